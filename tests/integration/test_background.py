"""A fold that is made beside the agent: begun at one visit, applied at a later one.

What may go wrong is that the agent waits all the same, that an answer is applied to messages it was
not about, or that one thread gets another's.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import edit_digest, pin
from tests.integration.gated import (
    ONE,
    TEXT,
    WAIT,
    Gate,
    edited,
    messages,
    node,
    settled,
    slow_graph,
    thread,
    visits,
)
from tests.support.replay import good_summary
from tests.support.validity import Rule, violations


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
