"""An agent with `CompactionMiddleware` and another middleware, in one of two orders.

Everything that comes out of its runs is kept: calls of the models, prompts of the summariser, parts
of the stream, events. So a test says what the other middleware is there for, and `assert_sound`
that neither of the two took anything from the other.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.doubles import (
    DIGEST_WORD,
    THREAD,
    WINDOW,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    request,
    requested,
    shows_digest,
    steps_done,
    work,
)

OURS = "CompactionMiddleware.before_model"
"""The step of our middleware in the agent's graph."""
WAYS = ("stream", "astream")

COVERED: dict[str, list[str]] = {}
"""The names of `langchain.agents.middleware` that have a test, and its name."""


def beside(*kinds: Any) -> Callable[[Any], Any]:
    """Mark a test that runs these middlewares on either side of ours, in both ways."""

    def mark(test: Any) -> Any:
        for kind in kinds:
            COVERED.setdefault(kind.__name__, []).append(test.__name__)
        first = pytest.mark.parametrize("first", [True, False], ids=["other-first", "ours-first"])
        return pytest.mark.parametrize("way", WAYS)(first(test))

    return mark


def steady(
    special: Mapping[int, tuple[str, dict[str, Any]]] | None = None,
    *,
    model: type[ScriptedModel] = ScriptedModel,
    **fields: Any,
) -> Any:
    """An agent that goes on to its next step whatever the last one came to.

    Args:
        special: by its number a step that calls another tool: name and arguments.
        model: the class of the model.
        fields: further fields of the model.
    """
    special = special or {}

    def reply(messages: list[BaseMessage]) -> AIMessage:
        first, last = requested(messages)
        calls = [m.tool_calls for m in messages if isinstance(m, AIMessage) and m.tool_calls]
        done = max(first - 1, int(str(calls[-1][-1]["id"])[1:])) if calls else first - 1
        if done >= last:
            return AIMessage(f"Finished up to step {done}.")
        step = done + 1
        name, args = special.get(step, ("work", {"n": step}))
        return AIMessage(
            f"call-{step:04}", tool_calls=[{"name": name, "args": args, "id": f"c{step}"}]
        )

    return model(reply=reply, **fields)


class Beside:
    """The agent, and what came out of it.

    Args:
        others: the other middleware, or several.
        first: whether they stand before ours in the list.
        model: the agent's.
        tools: the agent's.
        options: for ours.
        behind: more middlewares, which stand at the end of the list in any case.
        agent: for ``create_agent``.
    """

    def __init__(
        self,
        *others: Any,
        first: bool,
        behind: Sequence[Any] = (),
        model: Any = None,
        tools: Sequence[Any] = (work,),
        options: Mapping[str, Any] | None = None,
        **agent: Any,
    ) -> None:
        self.model = model or steady()
        self.summaries = Summaries()
        self.events: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        writes = ScriptedModel(reply=lambda messages: AIMessage(self.summaries(messages)))
        rules: dict[str, Any] = {"context_window": WINDOW, "hook": self.events.append}
        self.compaction: Any = CompactionMiddleware(writes, **{**rules, **(options or {})})
        stack = [*others, self.compaction] if first else [self.compaction, *others]
        self.agent: Any = create_agent(
            self.model,
            list(tools),
            middleware=[*stack, *behind],
            **{"checkpointer": InMemorySaver(), "system_prompt": "You are a worker.", **agent},
        )

    def run(self, given: Any, way: str = "stream", config: Any = THREAD) -> None:
        """Run the agent in one of the `WAYS`, and keep the parts of its stream.

        Args:
            given: numbers of the first and the last step to ask for, or any input.
            way: one of `WAYS`.
            config: the run's.
        """
        asked = {"messages": [request(*given)]} if isinstance(given, tuple) else given
        modes: Any = {"stream_mode": ["messages", "updates", "custom"], "version": "v2"}

        async def collect() -> None:
            async for part in self.agent.astream(asked, config, **modes):
                self.parts.append(part)

        if way == "stream":
            self.parts.extend(self.agent.stream(asked, config, **modes))
        else:
            asyncio.run(collect())

    def ask(self, text: str, way: str = "stream") -> dict[str, Any]:
        """Let the agent answer a text without a stream; the state after it."""
        given = {"messages": [HumanMessage(text)]}
        agent = self.agent
        found: dict[str, Any] = (
            agent.invoke(given, THREAD)
            if way == "stream"
            else asyncio.run(agent.ainvoke(given, THREAD))
        )
        return found

    def work(self, last: int = 36, way: str = "stream", at_once: int = 12) -> None:
        """Run all steps up to the last, some with each request."""
        for step in range(1, last + 1, at_once):
            self.run((step, min(step + at_once - 1, last)), way)

    @property
    def values(self) -> dict[str, Any]:
        """The thread's state."""
        values: dict[str, Any] = self.agent.get_state(THREAD).values
        return values

    @property
    def messages(self) -> list[Any]:
        """The thread's messages."""
        messages: list[Any] = self.values["messages"]
        return messages

    @property
    def calls(self) -> list[list[BaseMessage]]:
        """What the agent's model was called with."""
        calls: list[list[BaseMessage]] = self.model.calls
        return calls

    def of(self, kind: str) -> list[Any]:
        """The data of the stream's parts of one kind."""
        return [part["data"] for part in self.parts if part["type"] == kind]

    def assert_sound(
        self,
        steps: Sequence[int],
        *,
        calls: Sequence[Sequence[BaseMessage]] | None = None,
        wrote: Sequence[str] = (),
    ) -> None:
        """Nothing was lost, folded twice, invalid for a provider, or noise to a caller.

        Args:
            steps: the steps whose results have to be in the state, in order.
            calls: of all models that worked for the agent, if it was not the agent's alone.
            wrote: steps of the graph that others add to those of agent and compaction.
        """
        calls = self.calls if calls is None else calls
        assert steps_done(self.messages) == list(steps)
        assert_valid(calls)
        assert any(shows_digest(call) for call in calls)
        assert len(self.summaries.prompts) > 1
        assert_folded_once(self.summaries.folded)
        assert not any(event["type"] == "compaction.failed" for event in self.events)
        self._assert_quiet({"model", "tools", OURS, "__interrupt__", *wrote})

    def _assert_quiet(self, nodes: set[str]) -> None:
        """The stream has what the agent said, and one update of each step."""
        told = [message.text for message, _ in self.of("messages")]
        assert told
        assert not any(DIGEST_WORD in text for text in told)
        assert {event["type"].partition(".")[0] for event in self.of("custom")} == {"compaction"}
        updates = [item for data in self.of("updates") for item in data.items()]
        assert {name for name, _ in updates} <= nodes
        ours = [update for name, update in updates if name == OURS]
        assert all(update is None or set(update) == {"compaction"} for update in ours)
        there = {message.id for message in self.messages}
        for _, update in updates:
            if isinstance(update, Mapping):
                written = update.get("messages") or ()
                assert there >= {m.id for m in written if not isinstance(m, RemoveMessage)}


class Decides(BaseDecisionModel):
    """A decision model: by a function from its state to the answer to each question."""

    model: str = "decides"
    answer: Callable[[Any], dict[str, Any]]

    @property
    def _provider(self) -> str:
        return "tests"

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        answers = {name: self.answer(state) for name in questions}
        return ClassifierResponse.model_validate({"model": self.model, "answers": answers})


def human_texts(messages: Sequence[BaseMessage]) -> list[str]:
    """What stands in human messages, in order."""
    return [message.text for message in messages if isinstance(message, HumanMessage)]
