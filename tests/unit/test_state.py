"""The record and its channels: what the reducers accept, keep and refuse.

A reducer runs in every superstep of every thread. One that raises for a message that is gone ends
the run; one that prefers the wrong record brings back what a person took out; one that guesses at
a record it cannot read hides messages. And a state without the channel must say so at once: a
fold would be computed, billed and lost at every visit.
"""

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from pydantic import BaseModel
from typing_extensions import TypedDict

from langgraph_compaction import (
    CompactionRecord,
    CompactionState,
    MissingChannelError,
    RecordError,
    RecordVersionError,
    merge_compaction,
    merge_messages,
    merge_settings,
    model_view,
)
from langgraph_compaction.state import RECORD_VERSION, checked_record

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


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ([], "Annotated[CompactionRecord, merge_compaction]"),
        ("{}", "str"),
        ({"version": "1"}, "version"),
        ({"epoch": "1"}, "epoch"),
        ({"epoch": True}, "epoch"),
        ({"revision": 1.5}, "revision"),
        ({"last_summarized_index": None}, "last_summarized_index"),
        ({"last_summarized_id": 7}, "last_summarized_id"),
        ({"next_id": ["a"]}, "next_id"),
        ({"kept_ids": "h"}, "kept_ids"),
        ({"pruned": 1}, "pruned"),
        ({"render": None}, "render"),
        ({"segments": {"text": "x"}}, "segments"),
        ({"segments": ["x"], "last_summarized_index": 0}, "Segment 0"),
        ({"segments": [SEGMENT, {**SEGMENT, "text": None}], "last_summarized_index": 0}, "text"),
        ({"segments": [{**SEGMENT, "tokens": "9"}], "last_summarized_index": 0}, "tokens"),
        ({"segments": [{"first_index": 0}], "last_summarized_index": 0}, "text"),
        ({"segments": [SEGMENT]}, "last_summarized_index"),
        ({"segments": [SEGMENT], "last_summarized_index": -1}, "last_summarized_index"),
        # One level down: the view would fail on these with an error that names nothing.
        ({"kept_ids": [["h"]], "last_summarized_index": 0}, "kept_ids"),
        ({"kept_ids": ["h"], "kept_hints": ["0"], "last_summarized_index": 0}, "kept_hints"),
        ({"render": {"result_chars": "many"}}, "result_chars"),
        ({"render": {"heading": 5}}, "heading"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(record: Any, named: str) -> None:
    with pytest.raises(RecordError, match="record") as caught:
        checked_record(record)
    assert named in str(caught.value)


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
@pytest.mark.parametrize("other", [None, {}, {"epoch": 9}, "same"])
def test_merging_refuses_what_it_cannot_read_on_either_side(wrong: Any, other: Any) -> None:
    other = copy.deepcopy(wrong) if other == "same" else other
    with pytest.raises(RecordError):
        merge_compaction(wrong, other)
    with pytest.raises(RecordError):
        merge_compaction(other, wrong)


def test_a_value_that_is_no_json_is_refused_by_a_record_error() -> None:
    strange: Any = {**RECORD, "later": {1, 2}}
    with pytest.raises(RecordError):
        merge_compaction(strange, {"revision": 2})


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
    expected: Any = add_messages([H], [image], format="langchain-openai")
    at_once: Any = merge_messages([H], [image], format="langchain-openai")
    reducer: Any = merge_messages(format="langchain-openai")  # type: ignore[call-arg]
    assert [m.content for m in at_once] == [m.content for m in expected]
    assert [m.content for m in reducer([H], [image])] == [m.content for m in expected]


def test_two_branches_may_remove_the_same_message() -> None:
    builder = StateGraph(CompactionState)
    for name in ("left", "right"):
        builder.add_node(name, lambda state: {"messages": [RemoveMessage("h")]})
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    result = builder.compile().invoke({"messages": [H, A]})  # type: ignore[arg-type]
    assert [message.id for message in result["messages"]] == ["a"]


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


# ---- states


class Renamed(TypedDict):
    turns: Annotated[list[AnyMessage], add_messages]
    digest: Annotated[CompactionRecord, merge_compaction]


@dataclass
class AsDataclass:
    messages: Annotated[list[AnyMessage], merge_messages] = field(default_factory=list)
    compaction: Annotated[CompactionRecord, merge_compaction] = field(
        default_factory=CompactionRecord
    )


class AsPydantic(BaseModel):
    messages: Annotated[list[AnyMessage], merge_messages]
    compaction: Annotated[CompactionRecord, merge_compaction] = {}


class Optional(TypedDict):
    messages: Annotated[list[AnyMessage], merge_messages]
    compaction: Annotated[CompactionRecord | None, merge_compaction]


class Formatted(TypedDict):
    messages: Annotated[list[AnyMessage], partial(merge_messages, format="langchain-openai")]
    compaction: Annotated[CompactionRecord, merge_compaction]


class Undeclared(TypedDict):
    messages: Annotated[list[AnyMessage], merge_messages]


def run(state: type, given: dict[str, Any], **keys: str) -> list[list[BaseMessage]]:
    """The views before and after a node has written a record, inside a real graph."""
    views: list[list[BaseMessage]] = []
    builder: Any = StateGraph(state)
    builder.add_node("before", lambda s: views.append(model_view(s, **keys)))
    builder.add_node("fold", lambda s: {keys.get("compaction_key", "compaction"): RECORD})
    builder.add_node("after", lambda s: views.append(model_view(s, **keys)))
    for edge in ((START, "before"), ("before", "fold"), ("fold", "after"), ("after", END)):
        builder.add_edge(*edge)
    builder.compile().invoke(given)
    return views


@pytest.mark.parametrize("state", [CompactionState, AsDataclass, AsPydantic])
def test_every_kind_of_state_can_be_viewed_in_a_graph(state: type) -> None:
    before, after = run(state, {"messages": [H, A]})
    assert before == [H, A]
    assert "check of the build" in str(after[0].content)
    assert after[1:] == [A]


def test_the_channels_may_have_other_names() -> None:
    keys = {"messages_key": "turns", "compaction_key": "digest"}
    before, after = run(Renamed, {"turns": [H, A]}, **keys)
    assert before == [H, A]
    assert [message.id for message in after[1:]] == ["a"]
    with pytest.raises(MissingChannelError, match="messages_key="):
        run(Renamed, {"turns": [H, A]}, compaction_key="digest")


def test_a_format_that_strips_ids_hides_nothing_uncovered() -> None:
    result = ToolMessage("42", tool_call_id="c", id="t")
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}], id="c1")
    _, after = run(Formatted, {"messages": [H, A, call, result]})
    texts = "\n".join(str(message.content) for message in after)
    assert "It is green." in texts
    assert "42" in texts


def test_an_optional_channel_works_once_it_has_a_value() -> None:
    before, after = run(Optional, {"messages": [H, A], "compaction": None})
    assert before == [H, A]
    assert after[1:] == [A]


# LangGraph starts an optional channel without a value and then leaves the key out, as if it had
# never been declared: the remedy is the same.
@pytest.mark.parametrize("state", [Undeclared, Optional])
def test_a_missing_channel_is_a_clear_error_on_the_first_run(state: type) -> None:
    with pytest.raises(MissingChannelError) as caught:
        run(state, {"messages": [H, A]})
    assert caught.value.key == "compaction"
    assert "`compaction: Annotated[CompactionRecord, merge_compaction]`" in str(caught.value)


@pytest.mark.parametrize("state", [[H, A], None, {"compaction": {}}, object()])
def test_what_has_no_messages_is_no_state(state: Any) -> None:
    with pytest.raises(MissingChannelError, match="`messages: Annotated") as caught:
        model_view(state)
    assert isinstance(caught.value, KeyError)


def test_a_channel_that_the_nodes_own_input_schema_leaves_out_is_missed_too() -> None:
    builder: Any = StateGraph(CompactionState)
    builder.add_node("look", lambda s: model_view(s) and {}, input_schema=Undeclared)
    builder.add_edge(START, "look")
    with pytest.raises(MissingChannelError, match="input schema"):
        builder.compile().invoke({"messages": [H, A]})
