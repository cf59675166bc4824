"""A fold that is made beside the agent: begun at one visit, applied at a later one.

What may go wrong is that the agent waits all the same, that an answer is applied to messages it was
not about, that one thread gets another's, or that something stays behind.
"""

import asyncio
import gc
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CascadeExhaustedError,
    CompactionState,
    ExtractiveSummarizer,
    edit_digest,
    pin,
    request_compaction,
)
from langgraph_compaction.engine.effects import BeginFold
from langgraph_compaction.plan.boundaries import SpanEnd
from langgraph_compaction.run import background
from tests.integration.gated import (
    ONE,
    TEXT,
    WAIT,
    Gate,
    background_key,
    messages,
    node,
    settled,
    thread,
    visits,
)
from tests.support.background import begun, folds_of
from tests.support.replay import good_summary
from tests.support.validity import Rule, violations


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("compaction.") for event in events]


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    yield found
    found.open.set()  # whatever a test left waiting


# ---- the agent does not wait


def test_a_fold_is_begun_at_one_visit_and_applied_at_a_later_one(gate: Gate) -> None:
    compact = node(gate)
    state = thread()
    began = time.monotonic()
    assert compact.invoke(state, ONE) == {}
    state["messages"] += messages(17, first=16)
    assert compact.invoke(state, ONE) == {}
    assert time.monotonic() - began < WAIT / 4
    gate.open.set()
    settled(compact)
    state["messages"] += messages(18, first=17)
    after = visits(compact, state)
    (segment,) = after["compaction"]["segments"]
    assert len(gate.prompts) == 1
    assert "a16" not in segment["text"]
    # What came while it was made stays in full, and so does the tail of then.
    view = compact.view(after)
    assert [m.id for m in view[-3:]] == ["a15", "a16", "a17"]
    assert {one.rule for one in violations(view)} <= {Rule.ENDS_WITH_AI}
    # The same fold as one that the agent waits for.
    there = node(good_summary, background=False).invoke(thread(), ONE)["compaction"]
    same = {"first_index", "last_index", "last_id", "source_tokens", "tokens"}
    assert {key: segment[key] for key in same} == {key: there["segments"][0][key] for key in same}
    assert after["compaction"]["last_summarized_id"] == there["last_summarized_id"]
    # And it is applied once.
    assert compact.invoke(after, ONE) == {}
    assert len(gate.prompts) == 1


def slow_graph(model: Any, **options: Any) -> Any:
    """An agent that says one thing a step."""
    compact = node(model, **options)

    def agent(state: CompactionState) -> dict[str, Any]:
        view = compact.view(state)
        assert {one.rule for one in violations(view)} <= {Rule.ENDS_WITH_AI}
        number = len(state["messages"])
        return {"messages": [AIMessage(f"Pump {number}. {TEXT}", id=f"a{number}")]}

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return compact, builder.compile(checkpointer=InMemorySaver())


def test_a_graph_goes_on_while_the_summariser_takes_its_time(gate: Gate) -> None:
    compact, graph = slow_graph(gate)
    events: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"messages": [HumanMessage("Check.", id="task")]}
    for _ in range(20):
        events += graph.stream(asked, ONE, stream_mode="custom")
        asked = {"messages": []}
    told = [event for event in events if event["type"] != "compaction.skipped"]
    assert [event["type"] for event in told] == ["compaction.started"]
    assert told[0]["background"] is True
    gate.open.set()
    settled(compact)
    events += graph.stream(asked, ONE, stream_mode="custom")
    assert events[-1]["type"] == "compaction.completed"
    assert events[-1]["background"] is True
    assert events[-1]["duration"] > 0
    assert events[-1]["waited"] == 0.0
    record = graph.get_state(ONE).values["compaction"]
    assert len(record["segments"]) == len(gate.prompts) == 1


async def test_an_asynchronous_graph_goes_on_too(gate: Gate) -> None:
    compact, graph = slow_graph(gate.awaited)
    asked: dict[str, Any] = {"messages": [HumanMessage("Check.", id="task")]}
    for _ in range(20):
        await graph.ainvoke(asked, ONE)
        asked = {"messages": []}
    assert len(gate.prompts) == 1
    assert "segments" not in graph.get_state(ONE).values["compaction"]
    gate.open.set()
    await asyncio.to_thread(settled, compact)
    await graph.ainvoke(asked, ONE)
    assert len(graph.get_state(ONE).values["compaction"]["segments"]) == 1
    assert len(gate.prompts) == 1


# ---- what is applied is about what it replaces


def test_a_new_request_meanwhile_changes_nothing(gate: Gate) -> None:
    compact = node(gate)
    state = thread()
    state["messages"].insert(3, HumanMessage("Mind the valves.", id="asked"))
    compact.invoke(state, ONE)
    gate.open.set()
    settled(compact)
    state["messages"] += [*messages(17, first=16), HumanMessage("And the filters?", id="newest")]
    after = visits(compact, state)
    assert len(gate.prompts) == 1
    # It was the newest request when the span was chosen, so it is not in the digest: it stays.
    assert "asked" in [message.id for message in compact.view(after)]
    assert len(after["compaction"]["segments"]) == 1


def edited(state: dict[str, Any]) -> None:
    state["messages"][2] = AIMessage("Pump 1 leaks. " + TEXT, id="a1")


def deleted(state: dict[str, Any]) -> None:
    del state["messages"][2]


def pinned(state: dict[str, Any]) -> None:
    state["messages"][2] = pin(state["messages"][2])


def last_deleted(state: dict[str, Any]) -> None:
    del state["messages"][5:14]


@pytest.mark.parametrize("change", [edited, deleted, pinned, last_deleted])
def test_where_the_span_changed_meanwhile_it_is_folded_anew(
    gate: Gate, change: Callable[[dict[str, Any]], None]
) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    change(state)
    state["messages"] += messages(24, first=16)
    gate.open.set()
    settled(compact)
    assert compact.invoke(state, ONE) == {}
    settled(compact)
    after = visits(compact, state)
    assert len(gate.prompts) == 2
    kinds = [event["type"].removeprefix("compaction.") for event in events]
    assert kinds == ["started", "dropped", "started", "completed"]
    dropped = events[1]
    assert "messages of its span" in dropped["reason"]
    assert (dropped["need"], dropped["background"], dropped["attempts"]) == ("soft", True, 1)
    assert (dropped["node"], dropped["thread_id"], dropped["waited"]) == ("compact", "one", 0.0)
    # What was paid for is told once: in vain here, and of the other one when it is applied.
    assert dropped["usage"] == events[-1]["usage"] == "estimated"
    assert dropped["input_tokens"] > 500
    assert dropped["output_tokens"] > 10
    (segment,) = after["compaction"]["segments"]
    shown = [message.id for message in compact.view(after)]
    if change is edited:
        assert "Pump 1 leaks" in gate.prompts[1]
    if change is pinned:
        assert "a1" in shown
    covered = {m.id for m in state["messages"][: segment["last_index"] + 1]}
    assert covered.isdisjoint({"a1"} if change is deleted else {"a22"})


def test_a_correction_of_the_digest_meanwhile_stands(gate: Gate) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    gate.open.set()
    state = thread()
    compact.invoke(state, ONE)
    settled(compact)
    state = visits(compact, state)
    state["messages"] += messages(32, first=16)
    gate.open.clear()
    compact.invoke(state, ONE)
    state["compaction"] = edit_digest(state, "## Goal\nPump 7 is out of order for good.")[
        "compaction"
    ]
    gate.open.set()
    settled(compact)
    for _ in range(2):
        state = visits(compact, state)
        settled(compact)
    texts = [segment["text"] for segment in state["compaction"]["segments"]]
    assert "Pump 7 is out of order for good." in texts[0]
    assert len(texts) == 2
    assert "Pump 7 is out of order" in gate.prompts[-1]
    (dropped,) = (event for event in events if event["type"] == "compaction.dropped")
    assert "the digest was corrected" in dropped["reason"]


def test_of_two_threads_none_gets_what_the_other_asked(gate: Gate) -> None:
    """Even under one key: what is applied is an answer to the very question that is asked."""
    compact = node(gate)
    gate.answer = lambda prompt: (
        good_summary(prompt)
        + ("\nThe secret is Alice's." if "Alice" in str(prompt[-1].content) else "")
    )
    alice, carol = thread(), thread()
    alice["messages"][1] = AIMessage(f"Alice was here. {TEXT}", id="a0")
    compact.invoke(alice, ONE)
    gate.open.set()
    settled(compact)
    for _ in range(3):
        carol = visits(compact, carol)
        settled(compact)
    assert "Alice" not in str(carol["compaction"])
    assert len(carol["compaction"]["segments"]) == 1


# ---- the hard limit


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_above_the_hard_limit_a_visit_waits(gate: Gate, asynchronous: bool) -> None:
    events: list[dict[str, Any]] = []
    compact = node(
        gate.awaited if asynchronous else gate,
        context_window=3_000,
        reserve_tokens=0,
        hook=events.append,
    )
    state = thread()

    async def visit() -> dict[str, Any]:
        if asynchronous:
            return await compact.ainvoke(state, ONE)
        return await asyncio.to_thread(compact.invoke, state, ONE)

    assert await visit() == {}
    state["messages"] += messages(44, first=16)
    assert compact.explain(state, ONE).need == "hard"
    waiting = asyncio.create_task(visit())
    await asyncio.sleep(0.2)
    assert not waiting.done()
    gate.open.set()
    update = await waiting
    assert compact.measure({**state, **update}).tokens <= 3_000
    assert "extractive" not in {s["model"] for s in update["compaction"]["segments"]}
    assert events[-1]["type"] == "compaction.completed"
    assert 0.0 < events[-1]["waited"] < WAIT
    assert "waited" not in events[0]  # it was begun
    # The first question was answered once; what it left too large was asked for in the visit.
    assert len(set(gate.prompts)) == len(gate.prompts)


def test_above_the_hard_limit_answers_that_do_not_fit_are_told_and_asked_for_anew(
    gate: Gate,
) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, context_window=3_000, reserve_tokens=0, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    edited(state)
    state["messages"] += messages(44, first=16)
    gate.open.set()
    settled(compact)
    after = visits(compact, state)
    assert compact.measure(after).tokens <= 3_000
    assert "Pump 1 leaks" in gate.prompts[1]
    (dropped,) = (event for event in events if event["type"] == "compaction.dropped")
    assert (dropped["need"], dropped["attempts"]) == ("hard", 1)
    # Each call is told once: those of the visit in its own event.
    (completed,) = (event for event in events if event["type"] == "compaction.completed")
    assert completed["attempts"] == len(gate.prompts) - 1
    assert min(dropped["input_tokens"], completed["input_tokens"]) > 500


def test_above_the_hard_limit_a_fold_that_failed_becomes_extracts(gate: Gate) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    gate.answer = fails
    gate.open.set()
    compact = node(gate, context_window=3_000, reserve_tokens=0)
    state = thread()
    compact.invoke(state, ONE)
    state["messages"] += messages(44, first=16)
    after = visits(compact, state)
    assert {s["model"] for s in after["compaction"]["segments"]} == {"extractive"}
    assert compact.measure(after).tokens <= 3_000


# ---- failures, vetoes, switches


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
    assert visits(compact, state)["compaction"]
    # The record does not reach the state, and the fold that was kept is gone.
    fold = begun(compact).of(background_key("one"))
    assert fold is not None
    begun(compact).drop(background_key("one"), fold)
    gate.open.clear()
    if waits:
        compact.invoke(state, ONE)
    events.clear()
    state["messages"] += messages(17, first=16)
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


# ---- nothing stays behind


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
