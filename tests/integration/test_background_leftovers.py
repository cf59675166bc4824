"""Of folds beside the agent nothing stays behind: runs end, threads go, too many begin."""

import asyncio
import gc
import time
import warnings
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_compaction.engine.effects import BeginFold
from langgraph_compaction.plan.boundaries import SpanEnd
from langgraph_compaction.run import background
from tests.integration.gated import (
    ONE,
    TEXT,
    WAIT,
    Gate,
    background_key,
    kinds_of,
    messages,
    node,
    settled,
    slow_graph,
    thread,
    visits,
)
from tests.support.background import begun, folds_of
from tests.support.replay import good_summary


async def test_a_cancelled_run_loses_nothing_and_the_fold_is_applied_later(gate: Gate) -> None:
    compact, graph = slow_graph(gate.awaited)
    state = {"messages": [*messages(16)]}
    await graph.ainvoke(state, ONE)
    other = asyncio.create_task(graph.ainvoke({"messages": []}, ONE))
    await asyncio.sleep(0)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    gate.open.set()
    await asyncio.to_thread(settled, compact)
    await graph.ainvoke({"messages": []}, ONE)
    assert len(graph.get_state(ONE).values["compaction"]["segments"]) == 1
    assert len(gate.prompts) == 1


@pytest.mark.parametrize("hard", [False, True])
def test_a_loop_that_closes_takes_the_call_with_it_and_nothing_else(gate: Gate, hard: bool) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate.awaited, context_window=3_000, reserve_tokens=0, hook=events.append)
    state = thread()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(compact.ainvoke(state, ONE)) == {}
        gc.collect()
    gate.open.set()
    if hard:
        state["messages"] += messages(44, first=16)
        update = asyncio.run(compact.ainvoke(state, ONE))
        assert compact.measure({**state, **update}).tokens <= 3_000
        return

    async def long_enough() -> dict[str, Any]:
        assert await compact.ainvoke(state, ONE) == {}
        await asyncio.to_thread(settled, compact)
        return await compact.ainvoke(state, ONE)

    assert len(asyncio.run(long_enough())["compaction"]["segments"]) == 1
    (dropped,) = (event for event in events if event["type"] == "compaction.dropped")
    assert "it did not come to its end" in dropped["reason"]
    assert (dropped["attempts"], dropped["input_tokens"], dropped["usage"]) == (0, 0, None)


def test_a_loop_that_stands_still_is_not_waited_for(gate: Gate) -> None:
    compact = node(gate.awaited, context_window=3_000, reserve_tokens=0)
    state = thread()
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(compact.ainvoke(state, ONE))
        state["messages"] += messages(44, first=16)
        gate.open.set()
        began = time.monotonic()
        update = asyncio.run(compact.ainvoke(state, ONE))
        assert time.monotonic() - began < WAIT / 2
        assert compact.measure({**state, **update}).tokens <= 3_000
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_deleted_thread_starts_anew(gate: Gate) -> None:
    compact, graph = slow_graph(gate)
    graph.invoke({"messages": messages(16)}, ONE)
    gate.open.set()
    settled(compact)
    graph.checkpointer.delete_thread("one")
    graph.invoke({"messages": [HumanMessage("Hello", id="new")]}, ONE)
    record = graph.get_state(ONE).values["compaction"]
    assert "segments" not in record


def test_a_fork_gets_the_fold_only_if_it_has_the_messages(gate: Gate) -> None:
    compact, graph = slow_graph(gate)
    graph.invoke({"messages": messages(16)}, ONE)
    fork = graph.get_state(ONE).config
    graph.invoke({"messages": [HumanMessage("Go on.", id="h2")]}, ONE)
    gate.open.set()
    settled(compact)
    graph.invoke({"messages": []}, ONE)
    assert len(graph.get_state(ONE).values["compaction"]["segments"]) == 1
    changed = graph.update_state(fork, {"messages": [AIMessage("Other. " + TEXT, id="a3")]})
    graph.invoke({"messages": []}, changed)
    assert "segments" not in graph.get_state(ONE).values["compaction"]
    settled(compact)
    graph.invoke({"messages": []}, ONE)
    (segment,) = graph.get_state(ONE).values["compaction"]["segments"]
    assert len(gate.prompts) == 2
    assert "Other." in gate.prompts[1]
    assert segment["first_index"] == 0


def test_what_nobody_comes_back_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    compact = node(good_summary)
    monkeypatch.setattr(background, "MOST_FOLDS", 50)
    monkeypatch.setattr(background, "MOST_CHARS", 5_000)
    for number in range(200):
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        compact.invoke(thread(), config)
        settled(compact, f"t{number}")
        assert len(begun(compact)) <= 50
    folds = folds_of(compact)
    assert sum(fold.chars for fold in folds) <= 5_000 + 1_000
    monkeypatch.setattr(background, "KEPT_SECONDS", 0.0)
    compact.invoke({"messages": messages(1), "compaction": {}}, ONE)
    assert len(begun(compact)) == 0


def test_where_too_many_run_a_fold_begins_later(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(background, "MOST_RUNNING", 3)
    compact = node(gate, hook=events.append)
    for number in (0, 1, 2, 3, 4, 4):
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        assert compact.invoke(thread(), config) == {}
    assert len(begun(compact)) == 3
    # What cannot begin is not proposed, and each visit says why.
    assert kinds_of(events) == ["started"] * 3 + ["skipped"] * 3
    assert {(one["thread_id"], one["need"]) for one in events[3:]} == {
        ("t3", "soft"),
        ("t4", "soft"),
    }
    assert all(one["reason"].startswith("3 folds run beside") for one in events[3:])
    gate.open.set()
    for number in range(3):
        settled(compact, f"t{number}")
    late: Any = {"configurable": {"thread_id": "t4"}}
    assert compact.invoke(thread(), late) == {}
    settled(compact, "t4")
    assert len(compact.invoke(thread(), late)["compaction"]["segments"]) == 1


def test_where_another_visit_of_the_thread_was_faster_it_is_said(gate: Gate) -> None:
    events: list[dict[str, Any]] = []

    def hook(event: dict[str, Any]) -> None:
        events.append(event)
        if len(events) == 1:
            compact.invoke(thread(), ONE)

    compact = node(gate, hook=hook)
    assert compact.invoke(thread(), ONE) == {}
    assert kinds_of(events) == ["started", "started", "skipped"]
    assert events[-1]["reason"] == background.TAKEN
    assert len(begun(compact)) == 1


def test_what_is_noted_or_dropped_is_the_fold_that_was_looked_at(gate: Gate) -> None:
    folds = background.BackgroundFolds()
    slot = background.FoldSlot(folds, "one", None)
    begun = BeginFold(SpanEnd(3, frozenset()), 0, steps=iter(()))  # type: ignore[arg-type]  # not run
    first, second = (background.BegunFold(begun, None, None) for _ in range(2))
    assert folds.add("one", first) is None
    slot.drop(first)
    assert folds.add("one", second) is None
    # A visit of a parallel run that still has the first one in its hands.
    slot.mark_told(first)
    slot.drop(first)
    assert (slot.fold, second.told) == (second, False)
    slot.mark_told(second)
    assert second.told
    slot.drop(second)
    assert slot.fold is None


def test_an_answer_without_end_is_not_kept_whole(gate: Gate) -> None:
    gate.answer = lambda _: "x" * 3_000_000
    gate.open.set()
    compact = node(gate)
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    fold = begun(compact).of(background_key("one"))
    assert fold is not None
    assert 0 < fold.chars <= 210_000
    assert "failures" in visits(compact, state)["compaction"]
