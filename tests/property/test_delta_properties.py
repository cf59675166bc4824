"""The reducers for delta channels: how the writes are batched must not show.

LangGraph applies writes one step at a time while a graph runs, and all at once when a thread is
opened. A reducer that gave another list then, or other ids, would move a thread's anchors.
"""

import copy
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langgraph_compaction import merge_compaction, merge_messages
from langgraph_compaction.delta import merge_compaction_writes, merge_message_writes

IDS = [f"m{n}" for n in range(6)]

ids = st.sampled_from(IDS)
texts = st.sampled_from(["go", "ok", "", "a\ud800b", "工具"])
call = {"name": "read", "args": {"path": "a.py"}, "id": "c"}
maybe_id = st.none() | ids
objects = st.one_of(
    st.builds(lambda text, id: HumanMessage(text, id=id), texts, maybe_id),
    st.builds(lambda text, id: AIMessage(text, id=id, tool_calls=[call]), texts, maybe_id),
    st.builds(lambda text, id: ToolMessage(text, id=id, tool_call_id="c"), texts, maybe_id),
    st.builds(lambda text, id: SystemMessage(text, id=id), texts, maybe_id),
    st.builds(lambda text, id: AIMessageChunk(text, id=id), texts, maybe_id),
)
removals = st.one_of(
    ids.map(RemoveMessage),
    ids.map(RemoveMessage),
    st.just(RemoveMessage(REMOVE_ALL_MESSAGES)),
    st.builds(lambda id: {"type": "remove", "id": id, "content": ""}, ids),
)
loose = st.one_of(
    texts.filter(bool),
    st.tuples(st.sampled_from(["user", "ai", "developer"]), texts),
    st.builds(lambda text: {"role": "user", "content": text}, texts),
    st.builds(lambda text, id: {"role": "ai", "content": text, "id": id}, texts, ids),
)
items = st.one_of(objects, objects, removals, loose)
writes = st.lists(st.one_of(items, st.lists(items, max_size=4)), max_size=6)
starts = st.lists(st.one_of(objects, loose), max_size=3)


def shown(messages: Any) -> list[Any]:
    return [(type(message), message.model_dump()) for message in messages]


def without_new_ids(messages: Any) -> list[Any]:
    """As `shown`, but ids that the reducer gave are all the same."""
    return [
        (kind, {**dumped, "id": dumped["id"] if dumped["id"] in IDS else "new"})
        for kind, dumped in shown(messages)
    ]


@given(start=starts, first=writes, then=writes)
def test_two_batches_are_one(start: Any, first: Any, then: Any) -> None:
    before = copy.deepcopy((start, first, then))
    once = merge_message_writes(start, first + then)
    twice = merge_message_writes(merge_message_writes(start, first), then)
    single = reduce(lambda state, write: merge_message_writes(state, [write]), first + then, start)
    assert shown(once) == shown(twice)
    assert not first + then or shown(once) == shown(single)  # reduce() of nothing calls nothing
    assert (start, first, then) == before
    assert all(message.id is not None for message in once)


@given(given_writes=writes)
def test_writes_that_were_stored_are_the_same(given_writes: Any) -> None:
    serde = JsonPlusSerializer()
    stored = [serde.loads_typed(serde.dumps_typed(write)) for write in copy.deepcopy(given_writes)]
    replayed = merge_message_writes([], stored)
    live = merge_message_writes([], given_writes)
    # Half a surrogate pair is stored as "?"; of a plain channel, too.
    assert shown(replayed) == shown(serde.loads_typed(serde.dumps_typed(live)))


@given(start=starts, given_writes=writes)
def test_it_is_merge_messages_repeated(start: Any, given_writes: Any) -> None:
    expected = copy.deepcopy(start)
    for write in copy.deepcopy(given_writes):
        expected = merge_messages(expected, write)
    if given_writes:
        assert without_new_ids(merge_message_writes(start, given_writes)) == without_new_ids(
            expected
        )


@given(start=starts, given_writes=writes)
def test_ids_that_were_given_are_no_other_messages(start: Any, given_writes: Any) -> None:
    new = [m.id for m in merge_message_writes(start, given_writes) if m.id not in IDS]
    assert len(new) == len(set(new))


records = st.none() | st.builds(
    lambda epoch, last, revision: {
        "epoch": epoch,
        "last_summarized_index": last,
        "revision": revision,
    },
    st.integers(0, 2),
    st.integers(-1, 3),
    st.integers(0, 2),
)


@given(first=st.lists(records), then=st.lists(records))
def test_records_are_merged_in_any_batches(first: Any, then: Any) -> None:
    once = merge_compaction_writes({}, first + then)
    assert merge_compaction_writes(merge_compaction_writes({}, first), then) == once
    assert once == reduce(merge_compaction, first + then, {})
