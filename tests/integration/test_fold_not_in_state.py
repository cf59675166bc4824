"""When a node says that a fold of its own did not reach the state, and when it has to be silent."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    overflow_handler,
    with_overflow_recovery,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
WAIT = 10.0
"""Seconds after which a test that waits in vain gives up."""


def config(run: str = "") -> Any:
    return {"configurable": {"thread_id": "t", "run": run}}


class Line:
    """A graph that folds behind the agent, at the end of each run."""

    def __init__(self, state: type[Any] = CompactionState) -> None:
        self.told: list[str] = []
        self.asked, self.answers = threading.Event(), threading.Event()
        self.late, self.begun = threading.Event(), threading.Event()
        self.answers.set()
        self.compact = CompactionNode(
            self._summary,
            context_window=50_000,
            trigger=("tokens", 900),
            keep=("tokens", 300),
            clear=False,
            hook=self._hook,
        )
        builder = StateGraph(CompactionState)
        builder.add_node("agent", self._agent)
        builder.add_node("compact", self.compact)
        builder.add_edge(START, "agent")
        builder.add_edge("agent", "compact")
        if state is CompactionState:
            self.graph = builder.compile(checkpointer=InMemorySaver())
            return
        around = StateGraph(state)
        around.add_node("inside", builder.compile())
        around.add_edge(START, "inside")
        self.graph = around.compile(checkpointer=InMemorySaver())

    def run(self, number: int, name: str = "") -> None:
        asked = {"messages": [HumanMessage(f"Check pump {number}.", id=f"h{number}")]}
        self.graph.invoke(asked, config(name), durability="sync")

    def _agent(self, state: CompactionState, config: RunnableConfig) -> dict[str, Any]:
        if config["configurable"]["run"] == "late":
            self.begun.set()
            assert self.late.wait(WAIT)
        number = len(state["messages"])
        return {"messages": [AIMessage(f"Pump {number}. {TEXT}", id=f"a{number}")]}

    def _summary(self, messages: list[BaseMessage]) -> str:
        self.asked.set()
        assert self.answers.wait(WAIT)
        return good_summary(messages)

    def _hook(self, event: dict[str, Any]) -> None:
        if event["type"] == "compaction.failed":
            self.told.append(event["reason"])


@pytest.fixture
def line() -> Iterator[Line]:
    found = Line()
    yield found
    found.answers.set()
    found.late.set()


def test_of_two_runs_at_once_none_takes_the_others_fold_for_lost(line: Line) -> None:
    line.answers.clear()
    with ThreadPoolExecutor(2) as pool:

        def until_it_folds() -> None:
            number = 0
            while not line.asked.is_set():
                line.run(number)
                number += 1

        first = pool.submit(until_it_folds)
        assert line.asked.wait(WAIT)
        # It goes on from the checkpoint before the fold, and folds itself once that was noted.
        second = pool.submit(line.run, 100, "late")
        assert line.begun.wait(WAIT)
        line.answers.set()
        first.result(WAIT)
        line.late.set()
        second.result(WAIT)
    messages = line.graph.get_state(config()).values["messages"]
    assert [message.id for message in messages][-2] == "h100"
    for number in range(101, 104):
        line.run(number)
    assert line.told == []
    assert line.graph.get_state(config()).values["compaction"]["segments"]


def test_a_record_that_is_lost_at_the_end_of_each_run_is_told() -> None:
    line = Line(MessagesState)
    for number in range(12):
        line.run(number)
    # The first might be that of another run; not so the second in a row.
    assert line.told
    assert all("the graph around it has to have the record's channel" in one for one in line.told)


# ---- folds that are made where a call is refused


class Refused(BaseChatModel):
    """A model whose window is smaller than the node's settings say."""

    @property
    def _llm_type(self) -> str:
        return "refused"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if len(messages) > 12:
            raise ValueError("prompt is too long")
        answer = AIMessage("All is well.", id="answer")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def pumps(first: int, count: int) -> list[BaseMessage]:
    return [AIMessage(f"Pump {n}. {TEXT}", id=f"p{n}") for n in range(first, count)]


def given() -> list[BaseMessage]:
    return [HumanMessage("Check the pumps.", id="task"), *pumps(0, 16)]


OPTIONS: Any = {"context_window": 50_000, "keep": ("tokens", 300), "min_keep": 2, "clear": False}


def by_handler(compact: CompactionNode) -> None:
    builder = StateGraph(CompactionState)
    builder.add_node(
        "agent",
        lambda state: {"messages": [Refused().invoke(compact.view(state))]},
        error_handler=overflow_handler(compact),
    )
    builder.add_edge(START, "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert graph.invoke({"messages": given()}, config())["compaction"]["segments"]


def in_a_branch(compact: CompactionNode) -> None:
    def fan_out(state: CompactionState) -> list[Send]:
        return [Send("agent", {"messages": state["messages"], "compaction": {}})]

    builder = StateGraph(CompactionState)
    builder.add_node(
        "agent",
        lambda state: {"messages": [Refused().invoke(compact.view(state))]},
        error_handler=overflow_handler(compact),
    )
    builder.add_conditional_edges(START, fan_out, ["agent"])
    graph = builder.compile(checkpointer=InMemorySaver())
    assert not graph.invoke({"messages": given()}, config())["compaction"]


def outside(compact: CompactionNode) -> None:
    answer = with_overflow_recovery(Refused(), compact).invoke(
        {"messages": given(), "compaction": {}}, config()
    )
    assert answer.text == "All is well."


@pytest.mark.parametrize(
    ("way", "told"), [(by_handler, True), (in_a_branch, False), (outside, False)]
)
def test_a_reduction_that_was_to_commit_and_is_lost_is_told(
    way: Callable[[CompactionNode], None], told: bool
) -> None:
    events: list[dict[str, Any]] = []
    compact = CompactionNode(good_summary, hook=events.append, **OPTIONS)
    way(compact)
    assert "completed" in {event["type"].removeprefix("compaction.") for event in events}
    assert is_told_as_lost(compact, events) == told


@pytest.mark.parametrize("shortened", [False, True])
def test_so_is_that_of_a_middleware_unless_it_was_not_to_commit(shortened: bool) -> None:
    class Shortening(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            kept = [m for m in request.messages if not shortened or m.id != "p2"]
            return handler(request.override(messages=kept))

    events: list[dict[str, Any]] = []
    middleware: Any = CompactionMiddleware(good_summary, hook=events.append, **OPTIONS)
    agent: Any = create_agent(
        Refused(), [], middleware=[Shortening(), middleware], checkpointer=InMemorySaver()
    )
    state = agent.invoke({"messages": given()}, config())
    assert bool(state.get("compaction")) != shortened
    assert is_told_as_lost(middleware.node, events) != shortened


def is_told_as_lost(compact: CompactionNode, events: list[dict[str, Any]]) -> bool:
    """Whether a visit says so that finds the messages and no record; the next one is silent."""
    events.clear()
    gone: Any = {"messages": [*given(), AIMessage("All is well.", id="answer")], "compaction": {}}
    for _ in range(2):
        assert compact.invoke(gone, config()) == {}
    lost = [event for event in events if "A fold was lost" in event["reason"]]
    assert len(lost) <= 1
    return bool(lost)
