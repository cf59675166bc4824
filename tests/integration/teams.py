"""Agents that share a thread: models that hand over to one another, and what they were asked.

As in `doubles` an agent reads from its view alone how far the work is, here also from what others
say.
"""

import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, model_view
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.doubles import STEPS, WINDOW, ScriptedModel, assert_valid, request
from tests.support.ledger import Ledger

THREAD: Any = {"configurable": {"thread_id": "6f1b0f3e-0000-4000-8000-000000000000"}, **STEPS}
SETTINGS: dict[str, Any] = {"context_window": WINDOW, "token_counter": "estimate"}
EVERY = 7
"""Steps after which an agent hands over to the next."""

_REQUEST = re.compile(r"Do steps (\d+) to (\d+)")
_DONE = re.compile(r"(?:result-0*|after step )(\d+)")


def progress(messages: list[BaseMessage]) -> tuple[int, int]:
    """The last step of the newest request, and the last that was done for it."""
    first, last = next(
        map(int, found.groups())
        for message in reversed(messages)
        if isinstance(message, HumanMessage) and (found := _REQUEST.search(message.text))
    )
    said = [
        int(n) for m in messages if not isinstance(m, HumanMessage) for n in _DONE.findall(m.text)
    ]
    return last, max((n for n in said if first <= n <= last), default=first - 1)


def relay(me: str, *others: str) -> ScriptedModel:
    """An agent that works, and hands over to others after some steps: to all of them at once."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        last, done = progress(messages)
        if done >= last:
            return AIMessage(f"Finished up to step {done}.", name=me)
        newest = messages[-1]
        if done % EVERY == 0 and isinstance(newest, ToolMessage) and newest.name == "work":
            calls = [
                {"name": f"transfer_to_{other}", "args": {}, "id": f"h{done}{other}"}
                for other in others
            ]
            return AIMessage(f"{me} hands over after step {done}.", name=me, tool_calls=calls)
        call = {"name": "work", "args": {"n": done + 1}, "id": f"c{done + 1}"}
        return AIMessage(f"call-{done + 1:04}", name=me, tool_calls=[call])

    return ScriptedModel(reply=reply)


_FINISHED = re.compile(r"after step (\d+)")
_ASSIGNED = re.compile(r"(\w+) does the steps (\d+) to (\d+)")
HALF = 5
"""Steps that a worker is given at once."""


def boss(*workers: str) -> ScriptedModel:
    """A supervisor that gives out some steps at a time, to each of the workers at once."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        last, _ = progress(messages)
        said = [int(n) for m in messages if m.name in workers for n in _FINISHED.findall(m.text)]
        done = max((n for n in said if n <= last), default=last - 22)
        if done >= last:
            return AIMessage(f"All is done up to step {last}.", name="supervisor")
        shares = [
            (name, done + n * HALF) for n, name in enumerate(workers) if done + n * HALF < last
        ]
        text = ", ".join(
            f"{name} does the steps {n + 1} to {min(n + HALF, last)}" for name, n in shares
        )
        calls = [
            {"name": f"transfer_to_{name}", "args": {}, "id": f"h{n}{name}"} for name, n in shares
        ]
        return AIMessage(f"Now {text}.", name="supervisor", tool_calls=calls)

    return ScriptedModel(reply=reply)


def hand(me: str) -> ScriptedModel:
    """A worker that does what it was assigned last."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        first, last = next(
            (int(a), int(b))
            for message in reversed(messages)
            for name, a, b in _ASSIGNED.findall(message.text)
            if name == me and isinstance(message, AIMessage)
        )
        said = [
            int(n) for m in messages if isinstance(m, ToolMessage) for n in _DONE.findall(m.text)
        ]
        done = max((n for n in said if first <= n <= last), default=first - 1)
        if done >= last:
            return AIMessage(f"{me} is ready after step {done}. " + "It went well. " * 20, name=me)
        call = {"name": "work", "args": {"n": done + 1}, "id": f"c{done + 1}"}
        return AIMessage(f"call-{done + 1:04}", name=me, tool_calls=[call])

    return ScriptedModel(reply=reply)


class Team:
    """Agents that hand over to one another, and what they and their summariser were asked."""

    def __init__(self, **options: Any) -> None:
        self.ledger = Ledger()
        self.options = SETTINGS | options
        self.events: list[dict[str, Any]] = []
        self.models: list[ScriptedModel] = []

    def node(self) -> CompactionNode:
        return CompactionNode(self.ledger, hook=self.events.append, **self.options)

    def middleware(self) -> CompactionMiddleware[Any, Any]:
        return CompactionMiddleware(self.ledger, hook=self.events.append, **self.options)

    def model(self, model: ScriptedModel) -> ScriptedModel:
        self.models.append(model)
        return model

    @property
    def told(self) -> list[str]:
        """Reasons of the failures that were reported."""
        return [one["reason"] for one in self.events if one["type"] == "compaction.failed"]

    def check(self, values: Any) -> None:
        """Nothing is lost, and a provider would have accepted every call."""
        state = {"compaction": {}, **values}
        assert self.ledger.folds
        assert self.ledger.faults(values["messages"], model_view(state)) == []
        for model in self.models:
            assert_valid(model.calls)


def compiled(builder: Any) -> Any:
    return builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


def two_requests(graph: Any) -> Any:
    for first in (1, 23):
        graph.invoke({"messages": [request(first, first + 21)]}, THREAD)
    return graph.get_state(THREAD).values
