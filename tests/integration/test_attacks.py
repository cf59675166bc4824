"""Long and adverse lives of a thread: what must hold whatever models, tools or users do to it."""

import random
from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ExtractiveSummarizer,
    RecordError,
    edit_digest,
    forget,
    merge_compaction,
    model_view,
)
from langgraph_compaction.state import merge_messages
from tests.support import folding
from tests.support.folding import State, chat, state_of

_SERIAL = count()


def accepted(messages: list[BaseMessage]) -> str:
    """A digest that verification accepts, never the same twice."""
    return (
        "## Goal\nDo as the user said.\n## State now\nUnder way.\n"
        f"## Next step\nGo on with part {next(_SERIAL)}."
    )


def node(model: Any = accepted, **values: Any) -> CompactionNode:
    return folding.node(model, **values)


def step(n: int, words: int = 150) -> list[BaseMessage]:
    call = {"name": "tool", "args": {}, "id": f"c{n}", "type": "tool_call"}
    return [
        AIMessage("", id=f"a{n}", tool_calls=[call]),
        ToolMessage(f"result {n} " + f"r{n} " * words, tool_call_id=f"c{n}", id=f"t{n}"),
    ]


def more(state: State, messages: Sequence[BaseMessage]) -> State:
    return {**state, "messages": [*state["messages"], *messages]}


def after(state: State, update: State) -> State:
    record = merge_compaction(state["compaction"], update.get("compaction"))
    messages = merge_messages(state["messages"], update.get("messages", []))
    return {"messages": messages, "compaction": record}


def visited(compact: CompactionNode, state: State) -> State:
    update = compact.invoke(state)
    if not update:
        return state
    return {**state, "compaction": merge_compaction(state["compaction"], update["compaction"])}


def folded(compact: CompactionNode, messages: Sequence[BaseMessage]) -> State:
    state = visited(compact, state_of(messages))
    assert state["compaction"]["segments"]
    return state


def words(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def test_a_view_that_fits_is_not_enlarged_and_never_ends_in_a_budget_error() -> None:
    compact = CompactionNode(accepted, context_window=8_000, token_counter="estimate")
    state = state_of(
        [
            SystemMessage("rule " * 6_000, id="s"),
            HumanMessage("task", id="h0"),
            AIMessage("small note " * 30, id="a1"),
            HumanMessage("q", id="h2"),
            AIMessage("word " * 1_880, id="a3"),
        ]
    )
    size = compact.measure(state)
    before = size.tokens
    assert size.hard is not None
    assert size.hard < before <= 8_000
    assert compact.measure(visited(compact, state)).tokens <= before


def fuzzed(rng: random.Random, window: int) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for n in range(rng.randint(3, 40)):
        size = rng.choice([5, 50, 200, window // 20, window // 8, window // 3])
        kind = rng.choice(["human", "step", "note"])
        if kind == "step":
            messages += step(n, size)
        else:
            made = HumanMessage if kind == "human" else AIMessage
            messages.append(made("word " * size, id=f"m{n}"))
    return messages


@pytest.mark.slow
def test_in_small_windows_a_fold_shrinks_the_view_and_a_second_visit_does_nothing() -> None:
    folds = 0
    for seed in range(300):
        rng = random.Random(seed)
        window = rng.choice([2_000, 3_000, 4_000, 6_000])
        compact = CompactionNode(
            ExtractiveSummarizer(),
            context_window=window,
            token_counter="estimate",
            digest_role=rng.choice(["human", "system"]),
            task=rng.choice(["first", "latest", None]),
        )
        state = state_of(fuzzed(rng, window))
        before = compact.measure(state).tokens
        try:
            new = visited(compact, state)
        except BudgetError:
            assert before > window, seed
            continue
        assert compact.measure(new).tokens <= min(before, window), seed
        assert compact.invoke(new) == {}, seed
        folds += new is not state
    assert folds > 100


def test_a_message_that_another_tool_put_in_front_is_shown() -> None:
    state = folded(node(), chat(20))
    kept = state["messages"][-6:]
    for first in (HumanMessage("their summary", id="new"), AIMessage("their note", id="new")):
        assert first in model_view({**state, "messages": [first, *kept]})
        assert first in model_view({**state, "messages": [first, *state["messages"]]})


def test_a_window_that_slides_over_messages_without_ids_hides_nothing_uncovered() -> None:
    turns: list[BaseMessage] = [
        AIMessage(f"tick {n} " + "word " * 60) if n % 2 else HumanMessage("go") for n in range(29)
    ]
    state = folded(node(keep=("messages", 0), task=None), turns)
    longer = [*turns, AIMessage("a fact"), HumanMessage("go"), AIMessage("tick")]
    new = longer[len(turns) :]
    for dropped in range(1, len(longer)):
        window = longer[dropped:]
        present = [message for message in new if message in window]
        shown = model_view({**state, "messages": window})
        assert all(any(one is message for one in shown) for message in present), dropped


def test_the_newest_requests_words_stay_while_the_work_on_it_goes_on() -> None:
    request = "Use port 4711 and never touch the production database; " * 3
    compact = node(keep=("messages", 0), trigger=("messages", 6), max_digest_tokens=600)
    start = [
        HumanMessage("opening task", id="h0"),
        AIMessage("ok " * 200, id="a"),
        HumanMessage(request, id="h1"),
    ]
    state, condensed = state_of(start), 0
    for n in range(60):
        state = visited(compact, more(state, step(n)))
        assert request.strip() in words(compact.view(state)), n
        condensed += any(one["level"] for one in state["compaction"].get("segments", []))
    assert condensed > 10


def test_the_digest_stays_bounded_when_condensing_always_fails() -> None:
    def never_condenses(messages: list[BaseMessage]) -> str:
        return "no" if "consecutive records" in messages[0].text else accepted(messages)

    compact = node(
        never_condenses, trigger=("tokens", 3_000), keep=("messages", 4), max_digest_tokens=600
    )
    state, largest = state_of(chat(4)), 0
    for n in range(200):
        state = visited(compact, more(state, chat(1, start=100 + n, words=250)))
        largest = max(
            largest, sum(one["tokens"] for one in state["compaction"].get("segments", []))
        )
    assert 300 < largest <= 1.5 * 600


def test_a_small_summariser_reads_a_huge_message_in_few_calls() -> None:
    calls: list[int] = []

    class Small(RunnableLambda[Any, Any]):
        profile = {"max_input_tokens": 4_096}  # noqa: RUF012  # as chat models have it

    def summarise(messages: list[BaseMessage]) -> str:
        calls.append(len(messages))
        return accepted(messages)

    compact = node(Small(summarise), trigger=("tokens", 5_000), context_window=400_000)
    huge = HumanMessage("lorem ipsum dolor " * 15_000, id="huge")
    state = folded(compact, [*chat(4), huge, *chat(6, start=10)])
    assert huge not in model_view(state)
    assert 10 < len(calls) <= 60


def test_the_view_after_a_fold_with_a_pinned_answer_last_is_extended_by_the_next() -> None:
    compact = node(pinned={"id": "a1"}, keep=("messages", 0), trigger=("messages", 5))
    state = folded(
        compact,
        [
            HumanMessage("task", id="h0"),
            AIMessage("pinned", id="a1"),
            AIMessage("x " * 300, id="a2"),
            AIMessage("y " * 300, id="a3"),
            HumanMessage("go on", id="h4"),
        ],
    )
    view = compact.view(state)
    for new in (AIMessage("done", id="a9"), HumanMessage("next", id="h9"), step(9)[0]):
        assert compact.view(more(state, [new]))[: len(view)] == view


@pytest.mark.parametrize("pins", [("a1", "a3"), ("a1", "a4"), ("a3", "a4"), ("a1", "a3", "a5")])
def test_with_the_latest_task_no_call_comes_to_stand_behind_an_answer(pins: Sequence[str]) -> None:
    call = {"name": "tool", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [
        HumanMessage("first " + "x " * 100, id="h0"),
        AIMessage("note " * 50, id="a1"),
        HumanMessage("latest " + "z " * 50, id="h2"),
        AIMessage("", id="a3", tool_calls=[call]),
        ToolMessage("res", tool_call_id="c1", id="t3"),
        AIMessage("done " * 200, id="a4"),
        AIMessage("more " * 300, id="a5"),
        AIMessage("last", id="a6"),
    ]
    compact = node(
        task="latest",
        pinned=lambda message: message.id in pins,
        keep=("messages", 1),
        trigger=("messages", 6),
    )
    view = model_view(folded(compact, messages))
    assert not any(
        isinstance(one, AIMessage) and isinstance(two, AIMessage) and two.tool_calls
        for one, two in pairwise(view)
    )


@pytest.mark.parametrize("broken", [{"epoch": "x"}, {"segments": 3, "epoch": 4}, ["none"]])
def test_an_unreadable_record_gives_way_to_a_readable_one_of_a_greater_epoch(broken: Any) -> None:
    assert merge_compaction(broken, {"epoch": 5}) == {"epoch": 5}
    with pytest.raises(RecordError):
        merge_compaction(broken, {"epoch": 0})


def test_absorbed_ids_stay_bounded_over_many_requests() -> None:
    compact = node(task="latest", keep=("messages", 1), max_digest_tokens=1_000)
    state, most = state_of([]), 0
    for n in range(400):
        state = visited(compact, more(state, chat(2, start=2 * n)))
        segments = state["compaction"].get("segments", [])
        most = max(most, sum(len(one.get("absorbed_ids", ())) for one in segments))
    assert 0 < most <= 60


def test_forget_keeps_pins_and_continuation_ids_stay_out_of_the_view() -> None:
    def said(n: int) -> AIMessage:
        metadata = {"id": f"resp_{n}"}
        return AIMessage(f"said {n} " + "w " * 60, id=f"r{n}", response_metadata=metadata)

    messages = [*chat(3), said(0), *chat(14, start=10), said(1), HumanMessage("now", id="h")]
    compact = node(pinned={"id": "r0"}, trigger=("tokens", 1_200))
    state = folded(compact, messages)
    left = after(state, forget(state))
    assert {"r0", "r1", "h"} <= {message.id for message in left["messages"]}
    view = compact.view(left)
    assert not any(message.response_metadata.get("id") for message in view)
    new = said(2)
    assert compact.view(more(left, [new]))[-1] == new


def test_with_nothing_left_to_clip_a_visit_only_says_so_and_route_passes_by() -> None:
    compact = node(context_window=8_000, trigger=("fraction", 0.8))
    state = state_of([SystemMessage("rule " * 7_600, id="s"), HumanMessage("task", id="h")])
    size = compact.measure(state)
    assert size.hard is not None
    assert size.hard < size.tokens <= 8_000
    assert compact.route("agent")(state) == "agent"
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    graph: Any = builder.compile()
    events = list(graph.stream(state, stream_mode="custom"))
    assert [event["type"] for event in events] == ["compaction.skipped"]


def test_an_edited_segment_survives_a_hundred_folds_word_for_word() -> None:
    text = "The port is 4711.\nNever touch production: it is the user's word."
    compact = node(max_digest_tokens=1_000)
    state = folded(compact, chat(20))
    state = after(state, edit_digest(state, text, segment=0))
    folds = 0
    for n in range(1_000):
        new = visited(compact, more(state, chat(6, start=100 + 6 * n)))
        folds += new["compaction"] != state["compaction"]
        state = new
        if folds == 100:
            break
    assert folds == 100
    assert [one["text"] for one in state["compaction"]["segments"]].count(text) == 1
    assert text in words(model_view(state))
