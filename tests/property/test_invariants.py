"""What must hold for every history, however broken: the promises of the record and the view.

The histories come from a fuzzer that knows what real ones look like when they go wrong: results
that are late, repeated or missing, ids used twice, calls that were cut off, server-side tools.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction import CompactionNode, merge_compaction, model_view
from langgraph_compaction.heads import HEADS_REMEMBERED
from langgraph_compaction.view.pairing import groups
from tests.support import folding
from tests.support.histories import histories, random_history
from tests.support.replay import Thread, good_summary, group_starts, replay

KEEPS: list[Any] = ["auto", ("messages", 2), ("messages", 0), ("tokens", 200), ("fraction", 0.005)]
TRIGGERS: list[Any] = [("tokens", 600), ("messages", 8), ("steps", 4), ("fraction", 0.02)]


def node(**changed: Any) -> CompactionNode:
    return folding.node(good_summary, **({"keep": "auto"} | changed))


@given(histories(max_size=30), st.sampled_from(KEEPS), st.sampled_from(TRIGGERS))
def test_every_promise_holds_at_every_step(
    history: list[BaseMessage], keep: Any, trigger: Any
) -> None:
    thread = replay(node(keep=keep, trigger=trigger), history)
    faults = thread.faults
    if keep == ("messages", 0):  # then the newest request may be folded: it is quoted in full
        faults = [fault for fault in faults if "newest request" not in fault]
    assert faults == []
    assert thread.budget_errors == 0


@given(histories(max_size=30), st.sampled_from(KEEPS))
def test_no_fold_splits_a_group(history: list[BaseMessage], keep: Any) -> None:
    thread = replay(node(keep=keep), history)
    boundary = thread.record.get("last_summarized_index", -1) + 1
    assert boundary in group_starts(thread.messages)
    hidden = thread.hidden()
    for group in groups(thread.messages):
        members = set(range(group.start, group.stop))
        kept = members - hidden
        # A kept request or system message may stand inside no group but its own.
        assert not kept or not (members & hidden), f"group {group} is split"


@given(histories(max_size=30))
def test_a_folded_request_is_quoted_in_full(history: list[BaseMessage]) -> None:
    thread = replay(node(keep=("messages", 0), task=None), history)
    humans = [i for i, m in enumerate(thread.messages) if isinstance(m, HumanMessage)]
    if humans and humans[-1] in thread.hidden():
        text = thread.messages[humans[-1]].content
        shown = "\n".join(str(message.content) for message in model_view(thread.state))
        assert not isinstance(text, str) or text in shown


@given(histories(max_size=30))
def test_messages_that_stay_are_the_same_objects(history: list[BaseMessage]) -> None:
    # Nothing is large enough to clip.
    thread = Thread(node(context_window=10_000_000, clear=False))
    for message in history:
        thread.append(message)
    thread.visit()
    strays = {i for g in groups(thread.messages) for run in g.runs for i in run.strays}
    view = thread.node.view(thread.state)
    for index, message in enumerate(thread.messages):
        if index not in thread.hidden() and index not in strays:
            assert any(message is shown for shown in view), f"message {index} was copied"


def heads() -> st.SearchStrategy[list[str]]:
    entries = st.builds("{:06d}-{}".format, st.integers(0, 4), st.sampled_from("abcde"))
    return st.lists(entries, max_size=4)


def records() -> st.SearchStrategy[Any]:
    segment = st.fixed_dictionaries(
        {
            "text": st.text(max_size=5),
            "last_id": st.one_of(st.none(), st.text(max_size=3)),
            "level": st.integers(0, 2),
            "tokens": st.integers(0, 9),
            "source_tokens": st.integers(0, 9),
            "model": st.sampled_from(["small", "edited"]),
        }
    )
    fields = {
        "version": st.just(1),
        "epoch": st.integers(0, 3),
        "revision": st.integers(0, 3),
        "last_summarized_index": st.integers(0, 3),
        "last_summarized_id": st.one_of(st.none(), st.text(max_size=3)),
        "kept_ids": st.lists(st.text(max_size=3), max_size=2),
        "segments": st.lists(segment, max_size=2),
        "archived": st.sampled_from("abcde"),
        "archived_prunes": st.integers(0, 4),
        "archived_also": heads(),
        "archived_before": heads(),
        "forgotten_epoch": st.integers(0, 1),
    }
    return st.fixed_dictionaries({}, optional=fields).map(consistent)


def consistent(record: Any) -> Any:
    """The record with segments that cover what it says is covered, one after the other."""
    last = record.get("last_summarized_index", -1)
    ends = [*range(len(record.get("segments", ())) - 1), last]
    if "archived" not in record:
        record.pop("archived_prunes", None)
    if last < len(ends) - 1:
        record.pop("segments", None)
    for first, (end, segment) in enumerate(zip(ends, record.get("segments", ()), strict=False)):
        segment |= {"first_index": first, "last_index": end}
    return record


@pytest.fixture(params=[3, HEADS_REMEMBERED], scope="module")
def few_heads(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("langgraph_compaction.heads.HEADS_REMEMBERED", request.param)
        yield


@pytest.mark.usefixtures("few_heads")
@given(records(), records(), records())
def test_merging_is_commutative_associative_and_idempotent(a: Any, b: Any, c: Any) -> None:
    assert merge_compaction(a, b) == merge_compaction(b, a)
    assert merge_compaction(a, merge_compaction(b, c)) == merge_compaction(
        merge_compaction(a, b), c
    )
    assert merge_compaction(a, a) == a
    assert merge_compaction(a, None) == a == merge_compaction(None, a)


@given(st.lists(records(), max_size=6))
def test_the_position_never_moves_back_within_an_epoch(updates: list[Any]) -> None:
    current: Any = {}
    for update in updates:
        merged = merge_compaction(current, update)
        assert merged.get("epoch", 0) >= current.get("epoch", 0)
        if merged.get("epoch", 0) == current.get("epoch", 0):
            assert merged.get("last_summarized_index", -1) >= current.get(
                "last_summarized_index", -1
            )
        current = merged


@pytest.mark.parametrize("seed", range(20))
def test_a_long_thread_stays_within_a_small_window(seed: int) -> None:
    rng = random.Random(seed)
    history = random_history(rng, length=120)
    small = node(context_window=8_000, trigger=("fraction", 0.8), keep="auto")
    thread = replay(small, history)
    assert thread.faults == []
