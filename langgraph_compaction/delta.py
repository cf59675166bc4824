"""A graph state whose checkpoints hold what was written, not the whole transcript again.

A plain channel is stored whole in every checkpoint, so that a thread takes the square of its length
on disk. LangGraph's `DeltaChannel` stores each write once and rebuilds the channel from them. It is
in beta there, which is why these names are imported from here and not from the package's top.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Any
from uuid import UUID

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage, convert_to_messages
from langgraph.channels.delta import DeltaChannel

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.state import CompactionState, merge_compaction, merge_messages

__all__ = ["DeltaCompactionState", "merge_compaction_writes", "merge_message_writes"]

SNAPSHOT_EVERY = 1_000
"""Writes to the messages after which a checkpoint holds all of them again.

Whoever opens a thread replays what was written since: 1,000 writes take about a tenth of a second.
LangGraph's own default, 100, takes several times the space in a thread of some thousand steps; see
``tests/benchmarks/storage.py``.
"""

_ROLES = frozenset({"ai", "assistant", "developer", "human", "system", "user"})
"""Roles of messages that a role and a text are enough for."""


def merge_message_writes(messages: Sequence[Any], writes: Sequence[Any]) -> list[Any]:
    """Reducer for a `DeltaChannel` of messages: what `merge_messages` does, for many writes.

    The same writes give the same messages, ids included, in however many calls they come. So a
    message without an id gets one that is derived: from the last message before the write, its
    place in the write, its type and its content. `merge_messages` draws one at random. LangGraph
    itself gives ids to message objects and dicts before it stores them, not to text and tuples.

    Args:
        messages: the messages so far; not changed.
        writes: each a message or a list of messages to add, replace (same id) or remove, in any of
            the forms that `merge_messages` takes. A role and a text, as in ``("user", "Go on.")``,
            are one message even as a list, since tuples are read back as lists.
    """
    merged: list[Any] = _with_ids(messages, [])
    waiting: list[Any] = []
    for write in writes:
        update = convert_to_messages(_listed(write))
        incomplete = any(message.id is None for message in update)
        removes = any(isinstance(message, RemoveMessage) for message in update)
        if waiting and (incomplete or removes):
            merged, waiting = merge_messages(merged, waiting), []
        if incomplete:
            update = _with_ids(update, merged)
        if removes:
            merged = merge_messages(merged, update)
        else:
            # Writes that only add and replace may be merged as one: merging costs the whole list.
            waiting += update
    return list(merge_messages(merged, waiting))


def _listed(write: Any) -> list[Any]:
    alone = (
        isinstance(write, list | tuple)
        and len(write) == 2
        and isinstance(write[0], str)
        and write[0] in _ROLES
        and isinstance(write[1], str | list | tuple)
    )
    return write if isinstance(write, list) and not alone else [write]


def _with_ids(messages: Sequence[Any], before: Sequence[BaseMessage]) -> list[Any]:
    """The messages, which come after ``before``, with an id for each that has none."""
    if all(isinstance(message, BaseMessage) and message.id is not None for message in messages):
        return list(messages)
    given = convert_to_messages(messages)
    taken = {message.id for message in (*before, *given)}
    previous = before[-1].id if before else None
    found: list[BaseMessage] = []
    for number, message in enumerate(given):
        known = message
        if message.id is None:
            place = json.dumps(
                [previous, number, message.type, message.content], ensure_ascii=False, default=str
            )
            known = message.model_copy(update={"id": _derived_id(place, taken)})
            taken.add(known.id)
        found.append(known)
    return found


def _derived_id(text: str, taken: set[str | None]) -> str:
    """An id that is the same at each replay, and no other message's of the list."""
    while True:
        # Half a surrogate pair is stored as "?", so it is read as that here, too.
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        found = str(UUID(bytes=digest[:16], version=4))
        if found not in taken:
            return found
        text += "\0"


def merge_compaction_writes(
    record: CompactionRecord, writes: Sequence[CompactionRecord | None]
) -> CompactionRecord:
    """Reducer for a `DeltaChannel` of the record: `merge_compaction` for many writes.

    Args:
        record: the record so far.
        writes: the records that nodes returned, in order; None counts as the empty record.

    Raises:
        RecordError, RecordVersionError: as `merge_compaction`.
    """
    return reduce(merge_compaction, writes, record)


class DeltaCompactionState(CompactionState):
    """`CompactionState` with messages and record in `DeltaChannel`s.

    It also opens threads that were written with `CompactionState`. Extend it likewise.

    Examples:
        >>> class MyState(DeltaCompactionState):
        ...     todos: list[str]
    """

    messages: Annotated[  # the same list, stored in another way
        list[AnyMessage], DeltaChannel(merge_message_writes, snapshot_frequency=SNAPSHOT_EVERY)
    ]
    # Stored whole at each change, which is rare, and not in the checkpoints between; who opens the
    # thread reads back to the last change.
    compaction: Annotated[
        CompactionRecord, DeltaChannel(merge_compaction_writes, snapshot_frequency=1)
    ]
