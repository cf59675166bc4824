"""States of every kind in real graphs: a channel that is there works, one that is missing says so.

LangGraph drops undeclared keys silently, on the way in and on the way out. A node that goes on
without its record computes, bills and loses the same fold at every visit: users of another system
saw one message summarised 41 times.
"""

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
from langgraph.graph.message import add_messages
from langgraph.types import StateSnapshot
from pydantic import BaseModel
from typing_extensions import TypedDict

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    ExtractiveSummarizer,
    MissingChannelError,
    merge_compaction,
    merge_messages,
    model_view,
)

H = HumanMessage("Check the build.", id="h")
A = AIMessage("It is green.", id="a")
RECORD: CompactionRecord = {
    "revision": 1,
    "segments": [
        {
            "text": "The user asked for a check of the build.",
            "first_index": 0,
            "last_index": 0,
            "last_id": "h",
            "level": 0,
            "tokens": 9,
            "source_tokens": 20,
            "model": "m",
        }
    ],
    "last_summarized_index": 0,
    "last_summarized_id": "h",
    "next_id": "a",
    "boundary_hint": 1,
}


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


@pytest.mark.parametrize("state", [None, {"compaction": {}}, object()])
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


# ---- parallel branches


def test_two_branches_may_remove_the_same_message() -> None:
    builder: Any = StateGraph(CompactionState)
    for name in ("left", "right"):
        builder.add_node(name, lambda state: {"messages": [RemoveMessage("h")]})
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    result = builder.compile().invoke({"messages": [H, A]})
    assert [message.id for message in result["messages"]] == ["a"]


def test_two_branches_may_write_a_record() -> None:
    further: CompactionRecord = {**RECORD, "revision": 2}
    builder: Any = StateGraph(CompactionState)
    for name, record in (("left", RECORD), ("right", further)):
        builder.add_node(name, lambda state, record=record: {"compaction": record})
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    assert builder.compile().invoke({"messages": [H, A]})["compaction"] == further


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ([H, A], "compact.view(state), not compact.view(state['messages'])"),
        ((H, A), "received a list of messages"),
        ([], '{"messages": [...], "compaction": {}}'),
        (H, "received a HumanMessage"),
        ("Check the build.", "received a str"),
        (StateSnapshot({}, (), {}, None, None, None, (), ()), ".values"),
    ],
)
def test_messages_in_place_of_a_state_are_told_what_to_pass(given: Any, remedy: str) -> None:
    compact = CompactionNode(ExtractiveSummarizer(), context_window=8_000)
    for look in (model_view, compact.view, compact.measure, compact.explain, compact.invoke):
        with pytest.raises(MissingChannelError) as caught:
            look(given)
        assert remedy in str(caught.value)
        assert caught.value.key == "messages"
