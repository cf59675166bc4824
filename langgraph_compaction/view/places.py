"""Where the covered range ends in a list of messages, and how that is proven.

The hint of the record and the ids beside it, then the ids alone, then other messages that are known
to be covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import CompactionRecord, message_key
from langgraph_compaction.view.fingerprints import fingerprint
from langgraph_compaction.view.marks import is_by_user
from langgraph_compaction.view.unreached import covered_end


class Place(NamedTuple):
    """Index of the first message that is not covered, and those before it that are visible."""

    boundary: int
    kept: tuple[int, ...]


def in_place(messages: Sequence[BaseMessage], record: CompactionRecord) -> bool:
    """Whether the covered range ends in the list where it did when the record was written."""
    return record.get("last_summarized_index", -1) < 0 or _at_hint(messages, record) is not None


def place_in_full(messages: Sequence[BaseMessage], record: CompactionRecord) -> Place | None:
    """The place in a channel that was never pruned; None: nothing proves it."""
    boundary = _at_hint(messages, record)
    if boundary is not None:
        return Place(boundary, _kept(messages, record, boundary))
    boundary = _by_id(messages, record)
    if boundary is None:
        boundary = _by_survivors(messages, record)
    if boundary is None:
        return None
    first = _first_known(messages, record, boundary)
    if first is None:
        return None
    kept = {*range(first), *_kept(messages, record, boundary)}
    if _is_cut_back(messages, record, boundary):
        kept.update(i for i in _request(messages) if i < boundary)
    return Place(boundary, tuple(sorted(kept)))


def place_after_prune(messages: Sequence[BaseMessage], record: CompactionRecord) -> Place | None:
    """The place in a channel that was pruned, or in one that the prune did not reach.

    Before the boundary everything is visible but what is proven to be covered.
    """
    boundary = _at_hint(messages, record)
    if boundary is not None:
        kept = _kept(messages, record, boundary)
        if list(kept) == record.get("kept_hints", []):
            return Place(boundary, kept)
    else:
        boundary = _by_id(messages, record)
    end = covered_end(messages, record, len(messages) if boundary is None else boundary)
    if boundary is None:
        boundary = end or _by_kept(messages, record)
    if boundary is None:
        return None if _hint(record) > 0 else Place(0, ())  # the prune left nothing before it
    # What was covered after the last prune stands right before the boundary.
    last = record.get("last_summarized_index", -1)
    left = last - record.get("pruned_index", last)
    kept = _kept(messages, record, boundary)
    unproven = set(range(end, boundary - left)).difference(kept)
    if unproven and end > 0 and left <= 0:
        # Another branch's: they came after what is covered, and are counted from there.
        return Place(end, tuple(index for index in kept if index < end))
    return Place(boundary, tuple(sorted({*unproven, *kept})))


def _kept(
    messages: Sequence[BaseMessage], record: CompactionRecord, boundary: int
) -> tuple[int, ...]:
    ids = record.get("kept_ids", ())
    hints = record.get("kept_hints", ())
    found = []
    if len(hints) == len(ids):
        for key, hint in zip(ids, hints, strict=True):
            if 0 <= hint < boundary and message_key(messages[hint], hint) == key:
                found.append(hint)
        if len(found) == len(ids):
            return tuple(sorted(set(found)))
    wanted = set(ids)
    return tuple(
        index for index in range(boundary) if message_key(messages[index], index) in wanted
    )


def _hint(record: CompactionRecord) -> int:
    return record.get("boundary_hint", record.get("last_summarized_index", -1) + 1)


def _at_hint(messages: Sequence[BaseMessage], record: CompactionRecord) -> int | None:
    """The boundary where it was when the record was written, if both neighbours are the same."""
    last_id, next_id = record.get("last_summarized_id"), record.get("next_id")
    hint = _hint(record)
    if last_id is None and next_id is None:
        return _by_position(messages, record, hint)
    if not 0 <= hint <= len(messages):
        return None
    before = messages[hint - 1].id if hint > 0 else None
    if next_id is not None and (hint == len(messages) or messages[hint].id != next_id):
        return None
    if record.get("pruned") and next_id is not None:
        return hint
    return hint if before == last_id and hint > 0 else None


def _by_position(
    messages: Sequence[BaseMessage], record: CompactionRecord, hint: int
) -> int | None:
    """Messages without ids: the position counts, if the message there is still the same."""
    if not 0 < hint <= len(messages) or messages[hint - 1].id is not None:
        return None
    known = record.get("fingerprint")
    return hint if known is None or known == fingerprint(messages, hint) else None


def _by_id(messages: Sequence[BaseMessage], record: CompactionRecord) -> int | None:
    """The earliest boundary that an anchor proves: of two readings the one that shows more.

    Removals only move messages to the front. An anchor that stands further back than it could
    was added again, or something was put in before it: it proves nothing.
    """
    last_id, next_id = record.get("last_summarized_id"), record.get("next_id")
    hint, pruned = _hint(record), record.get("pruned")
    after_last = before_next = None
    for index, message in enumerate(messages):
        if message.id is None:
            continue
        if message.id == last_id and after_last is None:
            after_last = index + 1
        if message.id == next_id and before_next is None:
            before_next = index
    if pruned:  # hints count what the prune left; in a channel it did not reach there are more
        return _least(after_last, before_next)
    if after_last is not None and after_last > hint:
        after_last = None
    # Without the last covered message in the list, the next one moved to the front, too.
    if before_next is not None and before_next > (hint if after_last is not None else hint - 1):
        before_next = None
    return _least(after_last, before_next)


def _least(*found: int | None) -> int | None:
    return min((index for index in found if index is not None), default=None)


def _by_survivors(messages: Sequence[BaseMessage], record: CompactionRecord) -> int | None:
    """Both anchors are gone: covered as far as a message known to be covered survives.

    Each no further back than it stood when the record was written. Of a segment's last message the
    position is known, less the messages that were missing before the boundary by then.
    """
    missing = record.get("last_summarized_index", -1) + 1 - _hint(record)
    farthest: dict[str | None, int] = {
        segment.get("last_id"): segment.get("last_index", -1) - missing
        for segment in record.get("segments", ())
    }
    ids, hints = record.get("kept_ids", ()), record.get("kept_hints", ())
    bounds = hints if len(hints) == len(ids) else [_hint(record) - 1] * len(ids)
    farthest.update(zip(ids, bounds, strict=True))
    farthest.pop(None, None)
    for index in range(min(_hint(record), len(messages)) - 1, -1, -1):
        if index <= farthest.get(messages[index].id, -1):
            return index + 1
    return None


FIRST_LANDMARKS, LANDMARKS = 4, 16
"""How many of the first covered messages, and of all, a record names: a person deletes one of the
first, an application that keeps its list short many. The ids take some 600 bytes."""


def landmarks(boundary: int) -> list[int]:
    """Indexes of the covered messages that a record names: the first few, and some of the rest."""
    step = max(1, -(-(boundary - FIRST_LANDMARKS) // (LANDMARKS - FIRST_LANDMARKS)))
    return [*range(min(boundary, FIRST_LANDMARKS)), *range(FIRST_LANDMARKS, boundary, step)]


def _first_known(
    messages: Sequence[BaseMessage], record: CompactionRecord, boundary: int
) -> int | None:
    """Index of the first message that the record knows; what stands before it stays visible.

    The list was changed: another tool may have put a message of its own in front, or have written
    the list anew. None: behind unknown ones stands a single covered message, without the one that
    came after it. The list may have been cleared, and the id used again.
    """
    known = {segment.get("last_id") for segment in record.get("segments", ())}
    known.update(record.get("kept_ids", ()), record.get("landmark_ids", ()))
    known.update((record.get("first_id"), record.get("last_summarized_id")))
    known.discard(None)
    first = next((i for i in range(boundary) if messages[i].id in known), boundary)
    following = messages[boundary].id if boundary < len(messages) else None
    alone = 0 < first == boundary - 1
    return None if alone and (following is None or following != record.get("next_id")) else first


def _is_cut_back(messages: Sequence[BaseMessage], record: CompactionRecord, boundary: int) -> bool:
    """Whether nothing is left of what was not covered when the last fold was made.

    So a thread was cut back by its messages, to have an answer made again or a request changed;
    and it stays so when the work on that goes on.
    """
    if record.get("next_id") is None:
        return False
    left = {message.id for message in messages[boundary:]}
    if record.get("id_at_fold") is None:
        return not left
    return left.isdisjoint((record["next_id"], record["id_at_fold"]))


def _request(messages: Sequence[BaseMessage]) -> range:
    """The newest request and what stands behind it: that is what there is to answer."""
    newest = (i for i in reversed(range(len(messages))) if is_by_user(messages[i]))
    return range(next(newest, len(messages)), len(messages))


def _by_kept(messages: Sequence[BaseMessage], record: CompactionRecord) -> int | None:
    """After a prune without the next message: behind the last of the kept ones that stayed.

    Removals only move messages to the front: one that stands further back was added again.
    """
    ids, hints = record.get("kept_ids", ()), record.get("kept_hints", ())
    farthest = dict(zip(ids, hints, strict=False))
    last = max(farthest.values(), default=-1)
    for index in range(min(last, len(messages) - 1), -1, -1):
        if index <= farthest.get(message_key(messages[index], index), -1):
            return index + 1
    return None
