"""Runs that stop and go on: interrupts around the compaction node and in it, and runs that fail.

A fold that was committed stands, and is not asked for again, whatever runs a second time.
"""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from tests.integration.travelling import MODES, Line, numbered
from tests.support.doubles import THREAD

REQUESTS = numbered(1, 9)


def straight(mode: str) -> Line:
    """The same thread without interrupts."""
    found = Line(InMemorySaver(), mode)
    found.ask(*REQUESTS)
    return found


def check(line: Line, mode: str) -> None:
    """It ends as without interrupts; where folds run beside the agent, they may end otherwise."""
    assert line.faults() == []
    assert line.told == []
    assert line.ledger.read_twice(line.seen.values()) == []
    if mode != "background":
        expected = straight(mode)
        assert len(line.ledger.folds) == len(expected.ledger.folds)
        views = (one.compact.view(one.values()) for one in (line, expected))
        found, wanted = ([m.text for m in view] for view in views)
        assert found == wanted


def resumed(line: Line, answer: Any = None) -> int:
    """Go on until the turn is over; how often it stopped."""
    stops = 0
    while line.graph.get_state(THREAD).next:
        stops += 1
        line.run(None if answer is None else Command(resume=answer))
    return stops


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "where",
    [
        {"interrupt_before": ["compact"]},
        {"interrupt_after": ["compact"]},
        {"interrupt_before": "*"},
        {"interrupt_after": ["agent"]},
    ],
    ids=lambda where: "-".join(str(one) for pair in where.items() for one in pair),
)
def test_interrupts_before_and_after_nodes(where: Any, mode: str) -> None:
    line = Line(InMemorySaver(), mode, options=where)
    stops = 0
    for text in REQUESTS:
        line.run({"messages": [HumanMessage(f"{text}: go on.")]})
        stops += resumed(line)
    assert stops >= len(REQUESTS) or "interrupt_after" in where
    check(line, mode)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_in_the_agent_runs_it_again_and_nothing_else(mode: str) -> None:
    line = Line(InMemorySaver(), mode, agent=lambda _: interrupt("Answer?"))
    for text in REQUESTS:
        line.run({"messages": [HumanMessage(f"{text}: go on.")]})
        assert resumed(line, "yes") == 1
    check(line, mode)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_in_the_hook_asks_before_each_fold(mode: str) -> None:
    asked: list[str] = []

    def hook(event: dict[str, Any]) -> Any:
        if event["type"] == "compaction.started":
            answer = interrupt(event["reason"])
            asked.append(answer)
            return answer == "yes"
        return None

    line = Line(InMemorySaver(), mode, hook=hook)
    for text in REQUESTS:
        line.run({"messages": [HumanMessage(f"{text}: go on.")]})
        resumed(line, "yes" if asked else "no")
    assert "no" in asked
    assert len(line.ledger.folds) == asked.count("yes") > 0
    assert line.ledger.read_twice(line.seen.values()) == []
    assert line.faults() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fails", ["once", "twice"])
def test_a_run_that_fails_after_a_fold_is_resumed_and_the_fold_stands(
    fails: str, mode: str
) -> None:
    broken: list[bool] = []

    def agent(_: Any) -> None:
        if broken and broken.pop():
            raise ConnectionError("503")

    line = Line(InMemorySaver(), mode, agent=agent)
    for text in REQUESTS:
        broken += [True] * (2 if fails == "twice" else 1)
        entry: Any = {"messages": [HumanMessage(f"{text}: go on.")]}
        while broken:
            with pytest.raises(ConnectionError):
                line.run(entry)
            entry = None
        line.run(None)
    check(line, mode)


def test_a_node_that_is_retried_asks_for_no_second_fold() -> None:
    failures = iter([True, False] * 20)

    def agent(_: Any) -> None:
        if next(failures):
            raise ConnectionError("503")

    line = Line(InMemorySaver(), agent=agent, retry=RetryPolicy(initial_interval=0.0, jitter=False))
    line.ask(*REQUESTS)
    check(line, "full")


@pytest.mark.parametrize("mode", MODES)
def test_a_new_request_instead_of_a_resume(mode: str) -> None:
    # Who does not answer an interrupt but writes something else leaves an answer out.
    line = Line(InMemorySaver(), mode, agent=lambda _: interrupt("Answer?"))
    for text in REQUESTS:
        line.run({"messages": [HumanMessage(f"{text}: go on.")]})
    assert line.faults() == []
    line.run(Command(resume="yes"))
    assert line.faults() == []
    assert line.ledger.read_twice(line.seen.values()) == []


@pytest.mark.parametrize("mode", MODES)
def test_an_update_while_it_waits(mode: str) -> None:
    line = Line(InMemorySaver(), mode, options={"interrupt_before": ["agent"]})
    for text in REQUESTS:
        line.run({"messages": [HumanMessage(f"{text}: go on.")]})
        newest = line.values()["messages"][-1]
        line.update([HumanMessage(f"{text}: or rather so.", id=newest.id)])
        assert line.graph.get_state(THREAD).next == ("agent",)
        resumed(line)
        assert line.faults() == []
    said = [m.text for m in line.branch() if isinstance(m, HumanMessage)]
    assert said == [f"{text}: or rather so." for text in REQUESTS]
