"""Agents at work under the presets that are named after other ways of compacting."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode
from tests.faults.threads import Talk
from tests.support.doubles import ScriptedModel, assert_valid, loop, markers, request

SYSTEM = SystemMessage("You are an agent that works step by step.", id="system")
_DONE = re.compile(r"result-(\d{4})")


def told(prompt: Sequence[BaseMessage]) -> str:
    """A digest that verification accepts, with how far the work is."""
    done = max(_DONE.findall(prompt[-1].text), default="0000")
    return (
        f"## Goal\nCarry out the steps.\n## State now\nThe steps up to result-{done} are made.\n"
        "## Next step\nThe step after it."
    )


def calls_in(prompt: Sequence[BaseMessage]) -> list[str]:
    """The markers of the agent's calls that a summary prompt holds, in order."""
    return [name for name in markers(prompt) if name.startswith("call")]


class Writer:
    """A summariser that keeps its prompts."""

    def __init__(self, answer: Callable[[Sequence[BaseMessage]], Any] = told) -> None:
        self.prompts: list[list[BaseMessage]] = []
        self.answer = answer

    def __call__(self, messages: list[BaseMessage]) -> Any:
        self.prompts.append(messages)
        answer = self.answer(messages)
        if isinstance(answer, Exception):
            raise answer
        return answer


def stepper(last: int) -> ScriptedModel:
    """An agent that does steps up to the last, and reads from its view alone how far it is."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        done = max((int(n) for m in messages for n in _DONE.findall(m.text)), default=0)
        if done >= last:
            return AIMessage(f"Finished up to step {done}.")
        call = {"name": "work", "args": {"n": done + 1}, "id": f"c{done + 1}"}
        return AIMessage(f"call-{done + 1:04}", tool_calls=[call])

    return ScriptedModel(reply=reply)


class Steps:
    """An agent at work in a real graph with a checkpointer and a store."""

    def __init__(self, preset: Any, last: int, *, model: Any = None, **values: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.writer = Writer()
        self.agent = stepper(last)
        self.node = CompactionNode(
            model or self.writer, hook=self.events.append, **{**preset, **values}
        )
        self.graph = loop(
            self.node, self.agent, checkpointer=InMemorySaver(), store=InMemoryStore()
        )
        self.config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}
        task = request(1, last)
        task.id = "task"
        self.graph.invoke({"messages": [SYSTEM, task]}, self.config)
        assert_valid(self.agent.calls)
        done = self.state["messages"][-1].text
        assert done == f"Finished up to step {last}."

    @property
    def state(self) -> dict[str, Any]:
        """The thread's values."""
        values: dict[str, Any] = self.graph.get_state(self.config).values
        return values

    @property
    def history(self) -> list[dict[str, Any]]:
        """The values of all its checkpoints, oldest first."""
        return [one.values for one in self.graph.get_state_history(self.config)][::-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == f"compaction.{kind}"]


WINDOW = 4_000
"""Tokens of the pattern's window: 80% of it are some twenty steps."""


def talk(preset: Any, writer: Any, *, way: str = "invoke", **values: Any) -> Talk:
    """A thread that a test feeds message by message."""
    return Talk(CompactionNode(writer, **{**preset, **values}), way=way)


def said(name: str, text: str, words: int = 100) -> AIMessage:
    """Something that the agent said, with as many words more."""
    return AIMessage(f"{text} " + " ".join(f"{name}{n}" for n in range(words)), id=name)


def filler(first: int, last: int, words: int = 100) -> list[BaseMessage]:
    return [said(f"a{n}", f"Part {n} was looked at.", words) for n in range(first, last)]


GENERAL = "## Goal\nGo on.\n## State now\nUnder way.\n## Next step\nThe next part."
