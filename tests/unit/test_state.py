"""The record and its channels: what the reducers accept, keep and refuse.

A reducer runs in every superstep of every thread. One that raises for a message that is gone ends
the run; one that prefers the wrong record brings back what a person took out; one that guesses at
a record it cannot read hides messages.
"""

import copy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from langgraph_compaction import (
    RecordError,
    RecordVersionError,
    merge_compaction,
    merge_messages,
    merge_settings,
)
from langgraph_compaction.record import RECORD_VERSION, checked_record

H = HumanMessage("Check the build.", id="h")
A = AIMessage("It is green.", id="a")
REMOVE_ALL = RemoveMessage(REMOVE_ALL_MESSAGES)
SEGMENT: dict[str, Any] = {
    "text": "The user asked for a check of the build.",
    "first_index": 0,
    "last_index": 0,
    "last_id": "h",
    "level": 0,
    "tokens": 9,
    "source_tokens": 20,
    "model": "m",
}
RECORD: dict[str, Any] = {
    "version": 1,
    "epoch": 0,
    "revision": 1,
    "segments": [SEGMENT],
    "last_summarized_index": 0,
    "last_summarized_id": "h",
    "next_id": "a",
    "kept_ids": [],
    "kept_hints": [],
    "boundary_hint": 1,
    "render": {},
}


# ---- what is a record


@pytest.mark.parametrize("record", [{}, RECORD, {"version": 0}, {"epoch": 3}, {"later": [1, None]}])
def test_a_record_is_returned_as_it_is(record: Any) -> None:
    before = copy.deepcopy(record)
    assert checked_record(record) is record
    assert record == before


WRONG_FIELDS: dict[str, list[Any]] = {
    "version": ["1", None, -1],
    "epoch": ["1", True, -1],
    "revision": [1.5, float("nan"), 2**53],
    "last_summarized_index": [None, -2, 10**30, 10**5_000],
    "last_summarized_id": [7],
    "next_id": [["a"]],
    "kept_ids": ["h", [["h"]], [1]],
    "kept_hints": [{}, ["0"], [-1], [True]],
    "pruned": [1],
    "segments": [{"text": "x"}, ["x"], [{**SEGMENT, "text": None}], [{"first_index": 0}]],
    "tokens": [[{**SEGMENT, "tokens": "9"}]],
    "render": [None],
    "header": [{"header": 5}],
    "role": [{"role": "robot"}],
    "clip_result_bytes": [{"clip_result_bytes": "many"}],
}
IN_FIELD = {
    "tokens": "segments",
    "header": "render",
    "role": "render",
    "clip_result_bytes": "render",
}


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_a_field_that_cannot_be_read_is_refused_by_name(name: str) -> None:
    for value in WRONG_FIELDS[name]:
        with pytest.raises(RecordError, match="record") as caught:
            checked_record({**RECORD, IN_FIELD.get(name, name): value})
        assert name.removesuffix("s") in str(caught.value).lower(), value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "Annotated[CompactionRecord, merge_compaction]"),
        ("{}", "str"),
        ({"segments": [SEGMENT]}, "last_summarized_index"),
        ({"segments": [SEGMENT], "last_summarized_index": -1}, "last_summarized_index"),
    ],
)
def test_what_is_no_record_is_refused_with_the_remedy(value: Any, named: str) -> None:
    with pytest.raises(RecordError) as caught:
        checked_record(value)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("ranges", "named"),
    [
        ([(-1, 5)], "from -1 to 5"),
        ([(3, 2), (3, 5)], "from 3 to 2"),
        ([(0, 2), (4, 5)], "from 4 to 5, after one that ends at 2"),  # a gap
        ([(0, 3), (2, 5)], "from 2 to 5, after one that ends at 3"),
        ([(3, 5), (0, 2)], "from 0 to 2, after one that ends at 5"),
        ([(0, 5), (0, 5)], "from 0 to 5, after one that ends at 5"),
        ([(0, 4)], "up to 4, but its last_summarized_index is 5"),
        ([(0, 6)], "up to 6, but its last_summarized_index is 5"),
    ],
)
def test_segments_that_do_not_cover_what_the_record_says_are_refused(
    ranges: list[tuple[int, int]], named: str
) -> None:
    chain = [{**SEGMENT, "first_index": first, "last_index": last} for first, last in ranges]
    with pytest.raises(RecordError, match=named):
        checked_record({**RECORD, "last_summarized_index": 5, "segments": chain})


@pytest.mark.parametrize(
    "ranges", [[(0, 5)], [(0, 2), (3, 5)], [(7, 7), (8, 9)], [(0, 4), (4, 4), (5, 5)]]
)
def test_segments_may_begin_anywhere_and_take_in_kept_messages_alone(
    ranges: list[tuple[int, int]],
) -> None:
    chain = [{**SEGMENT, "first_index": first, "last_index": last} for first, last in ranges]
    last = ranges[-1][1]
    assert checked_record({**RECORD, "last_summarized_index": last, "segments": chain})


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        ("kept_ids", {"kept_hints": [0]}),
        ("pruned", {"pruned_index": 3}),
        ("pruned", {"pruned_marks": ["h"]}),
        ("pruned", {"stayed_ids": ["h"]}),
        ("archived", {"archived_prunes": 2}),
    ],
)
def test_a_field_that_was_lost_is_missed_where_another_tells_of_it(lost: str, left: Any) -> None:
    with pytest.raises(RecordError, match=f"but no '{lost}'"):
        checked_record(left)


def test_a_record_of_a_newer_version_is_refused_before_its_fields_are_read() -> None:
    newer = {"version": RECORD_VERSION + 1, "segments": "another shape"}
    with pytest.raises(RecordVersionError, match="Upgrade") as caught:
        checked_record(newer)
    assert (caught.value.found, caught.value.supported) == (RECORD_VERSION + 1, RECORD_VERSION)


# ---- merging records


@pytest.mark.parametrize(
    ("lesser", "greater"),
    [
        ({}, {"revision": 1}),
        ({"epoch": 1, "last_summarized_index": 90, "revision": 9}, {"epoch": 2}),
        ({"last_summarized_index": 4, "revision": 9}, {"last_summarized_index": 5, "revision": 1}),
        ({"last_summarized_index": 4, "revision": 1}, {"last_summarized_index": 4, "revision": 2}),
        ({"revision": 1, "next_id": "a"}, {"revision": 1, "next_id": "b"}),
        # An absent position is "nothing yet", which is less than the first position.
        ({"revision": 1}, {"last_summarized_index": 0}),
    ],
)
def test_the_record_that_is_further_along_wins_whole(lesser: Any, greater: Any) -> None:
    assert merge_compaction(lesser, greater) is greater
    assert merge_compaction(greater, lesser) is greater


@pytest.mark.parametrize("record", [{}, RECORD])
def test_nothing_counts_as_the_empty_record(record: Any) -> None:
    assert merge_compaction(None, record) == merge_compaction(record, None) == record
    assert merge_compaction(None, None) == {}


@pytest.mark.parametrize("wrong", [{"version": RECORD_VERSION + 1}, {"epoch": "x"}, [], "{}"])
@pytest.mark.parametrize("other", [None, {}, "same"])
def test_merging_refuses_what_it_cannot_read_on_either_side(wrong: Any, other: Any) -> None:
    other = copy.deepcopy(wrong) if other == "same" else other
    with pytest.raises(RecordError):
        merge_compaction(wrong, other)
    with pytest.raises(RecordError):
        merge_compaction(other, wrong)


def test_a_record_that_cannot_be_read_is_repaired_by_one_of_a_greater_epoch() -> None:
    for wrong in ({"epoch": "x"}, {"epoch": 2, "segments": [{"text": "a"}]}, [], "{}"):
        broken: Any = wrong
        assert merge_compaction(broken, {"epoch": 3}) == {"epoch": 3}
        with pytest.raises(RecordError):
            merge_compaction({"epoch": 3}, broken)
    newer: Any = {"version": RECORD_VERSION + 1}
    with pytest.raises(RecordVersionError):  # not broken, only unknown here
        merge_compaction(newer, {"epoch": 9})


def test_a_value_that_is_no_json_is_refused_by_a_record_error() -> None:
    strange: Any = {**RECORD, "later": {1, 2}}
    with pytest.raises(RecordError):
        merge_compaction(strange, {**RECORD, "later": "a list"})


# ---- merging messages


@pytest.mark.parametrize(
    "update",
    [
        HumanMessage("more", id="n"),
        [AIMessage("It is red.", id="a"), HumanMessage("more", id="n")],
        {"role": "user", "content": "more", "id": "n"},
        [("user", "more")],
        "more",
        [],
        [RemoveMessage("h")],
        RemoveMessage("a"),
        [RemoveMessage("h"), HumanMessage("again", id="h")],
        [HumanMessage("more", id="n"), RemoveMessage("n")],
        [HumanMessage("dropped", id="n"), REMOVE_ALL, HumanMessage("new", id="m")],
        REMOVE_ALL,
    ],
)
def test_a_removal_of_what_is_there_and_all_else_is_as_in_add_messages(update: Any) -> None:
    before: Any = [H, A]
    expected: Any = add_messages(list(before), copy.deepcopy(update))
    found: Any = merge_messages(before, copy.deepcopy(update))
    assert [(m.type, m.content) for m in found] == [(m.type, m.content) for m in expected]
    assert before == [H, A]


@pytest.mark.parametrize(
    ("update", "left"),
    [
        (RemoveMessage("gone"), ["h", "a"]),
        ([RemoveMessage("gone"), RemoveMessage("h"), RemoveMessage("h")], ["a"]),
        ([RemoveMessage("gone"), HumanMessage("back", id="gone")], ["h", "a", "gone"]),
        ([{"role": "remove", "id": "gone", "content": ""}], ["h", "a"]),
        # After REMOVE_ALL everything is absent, what stood there before and what came since.
        ([REMOVE_ALL, RemoveMessage("h")], []),
        ([REMOVE_ALL, HumanMessage("new", id="n"), RemoveMessage("h")], ["n"]),
        ([REMOVE_ALL, HumanMessage("new", id="n"), RemoveMessage("n")], []),
    ],
)
def test_removing_an_absent_message_is_no_error_and_leaves_no_trace(
    update: Any, left: list[str]
) -> None:
    found = merge_messages([H, A], update)
    assert [message.id for message in found] == left
    assert not any(isinstance(message, RemoveMessage) for message in found)


def test_the_openai_format_can_be_asked_for_in_both_ways_of_add_messages() -> None:
    image = HumanMessage([{"type": "text", "text": "look"}], id="i")
    plain: Any = add_messages
    expected = plain([H], [image], format="langchain-openai")
    merge: Any = merge_messages
    at_once = merge([H], [image], format="langchain-openai")
    reducer: Any = merge(format="langchain-openai")
    assert [m.content for m in at_once] == [m.content for m in expected]
    assert [m.content for m in reducer([H], [image])] == [m.content for m in expected]


# ---- merging settings


def test_settings_merge_key_by_key_and_replace_everything_else() -> None:
    current = {"keep": ["tokens", 1], "models": {"a": {"x": 1, "y": 2}}, "task": "first"}
    update = {"keep": ["tokens", 2], "models": {"a": {"y": None}, "b": 3}, "task": {"by": "id"}}
    before = copy.deepcopy((current, update))
    assert merge_settings(current, update) == {
        "keep": ["tokens", 2],
        "models": {"a": {"x": 1, "y": None}, "b": 3},
        "task": {"by": "id"},
    }
    assert (current, update) == before
    assert merge_settings(None, None) == {}
    assert merge_settings({"a": 1}, None) == merge_settings(None, {"a": 1}) == {"a": 1}


def test_an_update_in_place_of_a_record_is_told() -> None:
    """Handed back as the record, it would be read as an empty one, and all be folded anew."""
    update: Any = {"compaction": {"version": 1, "revision": 1}}
    with pytest.raises(RecordError, match=r"state \|= compact\.invoke\(state\)"):
        checked_record(update)
