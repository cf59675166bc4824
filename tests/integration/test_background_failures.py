"""A fold beside the agent that fails, is vetoed, asked for or switched off."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CascadeExhaustedError,
    CompactionState,
    ExtractiveSummarizer,
    request_compaction,
)
from tests.integration.gated import (
    ONE,
    Gate,
    background_key,
    edited,
    kinds_of,
    messages,
    node,
    settled,
    thread,
    visits,
)
from tests.support.background import begun
from tests.support.replay import good_summary


def test_a_fold_that_failed_is_told_when_its_thread_comes_back_and_cools_down(gate: Gate) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    events: list[dict[str, Any]] = []
    gate.answer = fails
    gate.open.set()
    compact = node(gate, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state = visits(compact, state)
    kinds = [event["type"] for event in events]
    assert kinds == ["compaction.started", "compaction.tier_failed", "compaction.failed"]
    assert state["compaction"]["failures"]["count"] == 1
    assert "segments" not in state["compaction"]
    for number in range(2):
        state["messages"] += messages(17 + number, first=16 + number)
        assert compact.invoke(state, ONE) == {}
    assert len(gate.prompts) == 1
    state["messages"] += messages(19, first=18)
    compact.invoke(state, ONE)
    settled(compact)
    assert len(gate.prompts) == 2


@pytest.mark.parametrize("good", [True, False])
def test_a_fold_is_applied_or_counted_though_another_run_of_the_thread_cools_down(
    gate: Gate, good: bool
) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    events: list[dict[str, Any]] = []
    gate.answer = good_summary if good else fails
    gate.open.set()
    compact = node(gate, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    failures = {"count": 3, "thread_steps": 16, "tokens": 900, "last_id": "a15"}
    state["compaction"] = {"version": 1, "revision": 1, "failures": failures}
    events.clear()
    state = visits(compact, state)
    if good:
        assert len(state["compaction"]["segments"]) == 1
        assert "failures" not in state["compaction"]
        assert [event["type"] for event in events] == ["compaction.completed"]
    else:
        assert state["compaction"]["failures"]["count"] == 4
        assert [event["type"] for event in events] == [
            "compaction.tier_failed",
            "compaction.failed",
        ]
    events.clear()
    assert compact.invoke(state, ONE) == {}
    assert not events
    assert len(gate.prompts) == 1


def test_an_error_that_is_to_end_the_run_ends_the_one_that_comes_back(gate: Gate) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise TypeError("no such argument")

    gate.answer = fails
    gate.open.set()
    compact = node(gate, on_error="raise")
    state = thread()
    assert compact.invoke(state, ONE) == {}
    settled(compact)
    with pytest.raises(TypeError, match="no such argument") as raised:
        compact.invoke(state, ONE)
    assert any("in fails" in note for note in raised.value.__notes__)  # where it was


@pytest.mark.parametrize("error", [TypeError("no such argument"), RuntimeError("503")])
def test_once_it_ended_a_run_the_next_run_asks_again(gate: Gate, error: Exception) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise error

    gate.answer = fails
    gate.open.set()
    compact = node(gate, on_error="raise")
    state = thread()
    assert compact.invoke(state, ONE) == {}
    settled(compact)
    with pytest.raises((TypeError, CascadeExhaustedError)):
        compact.invoke(state, ONE)
    gate.answer = good_summary  # it was repaired
    assert compact.invoke(state, ONE) == {}
    settled(compact)
    assert len(visits(compact, state)["compaction"]["segments"]) == 1


def test_the_first_visit_says_that_a_setting_cannot_be_used(gate: Gate) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    state = thread(compaction_settings={"keep": "nothing much"})

    def told() -> list[str]:
        found = kinds_of(events)
        named = sum("compaction_settings" in one["reason"] for one in events)
        assert named == found.count("failed")
        events.clear()
        return found

    for expected in (["failed", "started"], [], []):
        assert compact.invoke(state, ONE) == {}
        assert told() == expected
    gate.open.set()
    settled(compact)
    edited(state)
    assert compact.invoke(state, ONE) == {}
    assert told() == ["dropped", "started"]
    settled(compact)
    visits(compact, state)
    assert told() == ["completed"]


@pytest.mark.parametrize("waits", [False, True])
def test_that_a_fold_was_lost_is_said_once_whatever_the_visit_comes_to(
    gate: Gate, waits: bool
) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state["messages"] += messages(17, first=16)
    assert visits(compact, state)["compaction"]
    # The record does not reach the state, and the fold that was kept is gone.
    fold = begun(compact).of(background_key("one"))
    assert fold is not None
    begun(compact).drop(background_key("one"), fold)
    gate.open.clear()
    if waits:  # a run from an earlier checkpoint has begun one
        compact.invoke(thread(), ONE)
    events.clear()
    state["messages"] += messages(18, first=17)
    for _ in range(2):
        assert compact.invoke(state, ONE) == {}
    lost = [event["reason"] for event in events if event["type"] == "compaction.failed"]
    assert len(lost) == 1
    assert "A fold was lost" in lost[0]
    assert kinds_of(events) == ["failed"] if waits else ["failed", "started"]


def test_a_veto_comes_before_anything_is_asked(gate: Gate) -> None:
    events: list[dict[str, Any]] = []

    def hook(event: dict[str, Any]) -> bool:
        events.append(event)
        return False

    compact = node(gate, hook=hook)
    assert compact.invoke(thread(), ONE) == {}
    assert [event["type"] for event in events] == ["compaction.started", "compaction.skipped"]
    assert not gate.prompts
    assert len(begun(compact)) == 0


def test_without_a_thread_the_agent_waits() -> None:
    compact = node(good_summary)
    assert len(compact.invoke(thread())["compaction"]["segments"]) == 1
    assert len(compact.invoke(thread(), {"configurable": {}})["compaction"]["segments"]) == 1


def test_extracts_need_no_waiting_for() -> None:
    compact = node(ExtractiveSummarizer())
    assert len(compact.invoke(thread(), ONE)["compaction"]["segments"]) == 1


def test_what_is_asked_for_is_made_at_once(gate: Gate) -> None:
    gate.open.set()
    compact = node(gate, trigger=("tokens", 40_000))
    state = {**thread(), **request_compaction()}
    assert len(visits(compact, state)["compaction"]["segments"]) == 1


def test_answers_that_a_request_comes_before_are_told(gate: Gate) -> None:
    gate.open.set()
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state |= request_compaction()
    assert len(visits(compact, state)["compaction"]["segments"]) == 1
    (dropped,) = (event for event in events if event["type"] == "compaction.dropped")
    assert (dropped["need"], dropped["attempts"]) == ("asked", 1)
    assert "another one was asked for" in dropped["reason"]


def test_a_thread_may_switch_it_on_and_off(gate: Gate) -> None:
    gate.open.set()
    compact = node(gate, background=False)
    state = thread(compaction_settings={"background": True})
    assert compact.invoke(state, ONE) == {}
    settled(compact)
    state["compaction_settings"] = {"background": False}
    assert len(visits(compact, state)["compaction"]["segments"]) == 1


def test_route_and_explain_know_of_it(gate: Gate) -> None:
    compact = node(gate)
    state = thread()
    builder = StateGraph(CompactionState)
    taken: list[str] = []

    def look(state: CompactionState) -> None:
        taken.append(compact.route("agent")(state))

    builder.add_node("look", look)
    builder.add_edge(START, "look")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(state, ONE)
    compact.invoke(state, ONE)
    told = compact.explain(state, ONE)
    assert (told.need, told.action) == ("soft", "none")
    assert "being folded beside the agent" in str(told)
    graph.invoke({"messages": []}, ONE)
    gate.open.set()
    settled(compact)
    graph.invoke({"messages": []}, ONE)
    assert taken == ["compact", "agent", "compact"]
    assert compact.explain(state, ONE).action == "fold"


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_pruning_comes_with_the_visit_that_applies_it(gate: Gate, asynchronous: bool) -> None:
    store = InMemoryStore()
    compact = node(gate.awaited if asynchronous else gate, history="prune", archive=store)
    state = thread()

    async def visit() -> dict[str, Any]:
        return await compact.ainvoke(state, ONE) if asynchronous else compact.invoke(state, ONE)

    await visit()
    assert not store.search(())
    gate.open.set()
    await asyncio.to_thread(settled, compact)
    update = await visit()
    assert {type(one) for one in update["messages"]} == {RemoveMessage}
    assert store.search(())
    assert update["compaction"]["archived"]
