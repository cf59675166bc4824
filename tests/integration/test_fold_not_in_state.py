"""When a node says that a fold of its own did not reach the state, and when it has to be silent."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_compaction import CompactionNode, CompactionState
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
