"""A call that is refused as too long while a fold beside the agent runs, or has come to its end.

A digest that is finished and paid for must not give way to extracts; one that does not fit must not
be applied; and no error of a summariser may end the run that the reduction saves.
"""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    overflow_handler,
    restore,
    with_overflow_recovery,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.integration.gated import ONE, TEXT, Gate, messages, node, settled, thread
from tests.support.background import begun

EXTRACTIVE = "extractive"
WAYS = ("invoke", "ainvoke")


class Small(BaseChatModel):
    """A model whose window is smaller than the node's settings say."""

    limit: int = 1_000
    refused: int = 0
    first: Any = None
    """Called before each answer."""

    @property
    def _llm_type(self) -> str:
        return "small"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.first is not None:
            self.first()
        size = count_tokens_approximately(messages)
        if size > self.limit:
            self.refused += 1
            raise ValueError(f"maximum context length is {self.limit} tokens, requested: {size}")
        return ChatResult(generations=[ChatGeneration(message=AIMessage("All is well."))])


class Case:
    """An agent behind one of the two doors that commit, whose fold is over when it calls."""

    def __init__(self, door: str, gate: Gate, *, limit: int = 1_000, **options: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.model = Small(limit=limit, first=self._over)
        self.gate = gate
        values = {
            "context_window": 50_000,
            "trigger": ("tokens", 900),
            "keep": ("tokens", 300),
            "min_keep": 2,
            "background": True,
            "clear": False,
            "hook": self.events.append,
            **options,
        }
        if door == "middleware":
            middleware: Any = CompactionMiddleware(gate, **values)
            self.compact = middleware.node
            self.graph: Any = create_agent(
                self.model, [], middleware=[middleware], checkpointer=InMemorySaver()
            )
            return
        self.compact = CompactionNode(gate, **values)
        builder = StateGraph(CompactionState)
        builder.add_node("compact", self.compact)
        builder.add_node("agent", self._agent, error_handler=overflow_handler(self.compact))
        builder.add_edge(START, "compact")
        builder.add_edge("compact", "agent")
        self.graph = builder.compile(checkpointer=InMemorySaver())

    def run(self, given: list[BaseMessage], way: str = "invoke") -> dict[str, Any]:
        if way == "invoke":
            return dict(self.graph.invoke({"messages": given}, ONE))
        return dict(asyncio.run(self.graph.ainvoke({"messages": given}, ONE)))

    @property
    def kinds(self) -> list[str]:
        return [event["type"].removeprefix("compaction.") for event in self.events]

    def _agent(self, state: CompactionState) -> dict[str, Any]:
        return {"messages": [self.model.invoke(self.compact.view(state))]}

    def _over(self) -> None:
        self.gate.open.set()
        settled(self.compact)


def writers(record: Any) -> list[str]:
    return [segment["model"] for segment in record["segments"]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("door", ["handler", "middleware"])
def test_a_digest_that_is_finished_is_applied(door: str, way: str, gate: Gate) -> None:
    case = Case(door, gate)
    state = case.run(messages(16), way)
    assert case.model.refused == 1
    (writer,) = writers(state["compaction"])
    assert writer != EXTRACTIVE
    assert case.kinds == ["started", "started", "completed"]
    completed = case.events[-1]
    assert (completed["need"], completed["background"], completed["waited"]) == (
        "overflow",
        True,
        0.0,
    )
    # What was paid for is told with it.
    assert (completed["attempts"], completed["usage"], completed["model"]) == (
        1,
        "estimated",
        writer,
    )
    assert completed["input_tokens"] > 500
    # Nobody is asked again, and nothing is dropped later.
    state = case.run([HumanMessage("And now?"), *messages(18, first=16)], way)
    assert "dropped" not in case.kinds
    assert len(gate.prompts) == 1
    assert writers(state["compaction"]) == [writer]


def test_what_is_still_too_much_is_reduced_further(gate: Gate) -> None:
    case = Case("handler", gate, limit=400)
    state = case.run(messages(16))
    first, *rest = writers(state["compaction"])
    assert first != EXTRACTIVE
    assert rest == [EXTRACTIVE]
    assert case.events[-1]["tokens_after"] <= 400
    assert case.events[-1]["attempts"] == 1


def test_it_is_not_waited_for(gate: Gate) -> None:
    case = Case("handler", gate)
    case.model.first = None  # the fold is not over
    state = case.run(messages(16))
    assert writers(state["compaction"]) == [EXTRACTIVE]
    assert gate.answered == 0
    gate.open.set()
    settled(case.compact)
    case.run(messages(40, first=16))
    assert case.kinds.count("dropped") == 1


def refused(compact: CompactionNode, state: dict[str, Any]) -> Any:
    return with_overflow_recovery(Small(), compact).invoke(state, ONE)


def test_answers_about_other_messages_are_dropped_and_told(gate: Gate) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state["messages"][2] = AIMessage(f"Pump 1 leaks. {TEXT}", id="a1")
    assert refused(compact, state).text == "All is well."
    dropped, completed = events[-2:]
    assert dropped["type"] == "compaction.dropped"
    assert "messages of its span" in dropped["reason"]
    assert (dropped["need"], dropped["attempts"], dropped["usage"]) == ("overflow", 1, "estimated")
    assert (completed["model"], completed["attempts"]) == (EXTRACTIVE, 0)
    assert len(begun(compact)) == 0


def test_an_error_that_was_to_end_the_run_is_told_instead(gate: Gate) -> None:
    def answer(_: list[BaseMessage]) -> str:
        raise TypeError("an error of the program")

    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append, on_error="raise")
    gate.answer = answer
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    assert refused(compact, state).text == "All is well."
    dropped, completed = events[-2:]
    assert "an error of the program" in dropped["reason"]
    assert completed["model"] == EXTRACTIVE


def test_a_fold_that_failed_leaves_extracts(gate: Gate) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    gate.answer = lambda _: "no"
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    assert refused(compact, state).text == "All is well."
    dropped, completed = events[-2:]
    assert "no tier wrote an acceptable digest" in dropped["reason"]
    assert completed["model"] == EXTRACTIVE


@pytest.mark.parametrize("door", ["handler", "middleware"])
def test_a_fold_that_failed_counts_towards_the_cool_down(door: str, gate: Gate) -> None:
    case = Case(door, gate)
    gate.answer = lambda _: "no"
    state = case.run(messages(16))
    assert writers(state["compaction"]) == [EXTRACTIVE]
    assert state["compaction"]["failures"]["count"] == 1
    assert case.kinds.count("dropped") == 1


def test_a_digest_that_was_restored_does_not_come_back(gate: Gate) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state |= compact.invoke(state, ONE)
    state |= restore(state)
    assert refused(compact, state).text == "All is well."
    completed = events[-1]
    assert (completed["type"], completed["model"]) == ("compaction.completed", EXTRACTIVE)
    assert "background" not in completed
    assert len(begun(compact)) == 0


def test_a_veto_holds_for_it_too(gate: Gate) -> None:
    events: list[dict[str, Any]] = []

    def hook(event: dict[str, Any]) -> bool:
        events.append(event)
        return event["need"] != "overflow"

    compact = node(gate, hook=hook)
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    with pytest.raises(BudgetError):  # there is nothing to clear or to clip
        refused(compact, state)
    kinds = [event["type"].removeprefix("compaction.") for event in events]
    assert kinds == ["started", "started", "skipped", "failed"]
    # It is applied by the next visit.
    assert writers(compact.invoke(state, ONE)["compaction"]) != [EXTRACTIVE]
    assert len(gate.prompts) == 1
