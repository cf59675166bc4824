"""Where in the messages channel the covered range ends.

A position is an index hint and an id. The hint makes the usual case O(1); the id makes a deleted,
inserted or rewound message harmless. Whatever cannot be proven to be covered is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import CompactionRecord, message_key


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a record covers in the messages that are there now.

    Attributes:
        boundary: index into the messages of the first one that is not covered.
        kept: indexes below ``boundary`` of the messages that stay visible, ascending.
        position: position in the thread of the message at ``boundary``.
        digest: whether the digest is shown.
        folded_after: index of the first message that came after the last fold was made.
        made_after: index of the first message that was made under the present view.
        stayed: positions of the messages below ``boundary`` that a prune left, by index.
    """

    boundary: int
    kept: tuple[int, ...]
    position: int
    digest: bool
    folded_after: int = 0
    made_after: int = 0
    stayed: Mapping[int, int] = field(default_factory=dict)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Indexes below ``boundary`` of the messages that the view does not show, ascending."""
        kept = set(self.kept)
        return tuple(index for index in range(self.boundary) if index not in kept)

    def position_of(self, index: int) -> int:
        """Position in the thread of the message at ``index``.

        Exact from ``boundary`` on and for what a prune left. Else it is as many before the
        boundary as there are messages between, which is right unless some were deleted. Where
        more were put in before the boundary than the thread had, the first of them are at 0.
        """
        return self.stayed.get(index, max(0, self.position + index - self.boundary))

    def index_of(self, position: int) -> int:
        """Index of the message at ``position``; negative where it is not in the messages."""
        return self.boundary + position - self.position


def locate(messages: Sequence[BaseMessage], record: CompactionRecord) -> Anchor:
    """Find the covered range of ``record`` in ``messages``.

    O(1) in the number of messages while the hints hold, O(n) after a deletion or insertion.
    Never raises for a message that is gone.
    """
    last = record.get("last_summarized_index", -1)
    if last < 0:
        return _anchor(messages, record, 0, (), 0, digest=False)
    segments = record.get("segments")
    if not segments:  # of a hand: nothing stands for the messages that it says are covered
        return Anchor(0, (), last + 1, digest=False)
    pruned = record.get("pruned", False)
    boundary = _at_hint(messages, record)
    if boundary is None:
        boundary = _by_id(messages, record)
    if boundary is None:
        boundary = _by_kept(messages, record) if pruned else _by_survivors(messages, record)
    if boundary is None:
        if pruned:
            return _lost_after_prune(messages, record, last)
        return Anchor(0, (), last + 1, digest=False)
    kept = _kept(messages, record, boundary)
    if pruned:
        kept = _with_unproven(messages, record, boundary, kept)
    elif boundary != _hint(record):
        kept = _with_unknown(messages, record, boundary, kept)
    before = boundary - (last + 1 - segments[0]["first_index"])
    if before > 0:  # a chain that began anew, or a hand: what stands before it is not covered
        kept = (*range(before), *(index for index in kept if index >= before))
    return _anchor(messages, record, boundary, kept, last + 1, digest=True)


def _anchor(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    boundary: int,
    kept: tuple[int, ...],
    position: int,
    *,
    digest: bool,
) -> Anchor:
    def after(length: int, newest: str | None) -> int:
        index = boundary + max(0, length - position)
        return _after(messages, record, index, newest, boundary)

    folded_after = after(record.get("length_at_fold", 0), record.get("id_at_fold"))
    changed_after = after(record.get("length_at_change", 0), record.get("id_at_change"))
    return Anchor(
        boundary,
        kept,
        position,
        digest,
        folded_after,
        max(folded_after, changed_after),
        _stayed(messages, record, boundary),
    )


def _stayed(
    messages: Sequence[BaseMessage], record: CompactionRecord, boundary: int
) -> dict[int, int]:
    names = record.get("stayed_ids")
    if not names:
        return {}
    known = dict(zip(names, record.get("stayed_indexes", ()), strict=False))
    found = ((index, known.get(message_key(messages[index], index))) for index in range(boundary))
    return {index: position for index, position in found if position is not None}


def _after(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    index: int,
    newest: str | None,
    boundary: int,
) -> int:
    """Index after the message that was the newest at some time, by its id as far as that goes.

    A list that an application keeps at one length loses its front, so that an index tells nothing:
    without the message, everything there is newer. If the front is unchanged, the end was deleted.
    """
    if newest is None or (0 < index <= len(messages) and messages[index - 1].id == newest):
        return index
    for found in range(len(messages) - 1, boundary - 1, -1):
        if messages[found].id == newest:
            return found + 1
    front = bool(messages) and record.get("first_id") == messages[0].id
    return min(index, len(messages)) if front else boundary


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
    if record.get("pruned") and (next_id is not None or hint == 0):
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
    """Both anchors are gone: covered as far as a message known to be covered survives."""
    farthest: dict[str | None, int] = {
        segment.get("last_id"): segment.get("last_index", -1)
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


def _with_unknown(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    boundary: int,
    kept: tuple[int, ...],
) -> tuple[int, ...]:
    """Off the hint the list was changed: what stands before every known message stays visible.

    Another tool may have put a message of its own in front, or have written the list anew.
    """
    known = {segment.get("last_id") for segment in record.get("segments", ())}
    known.update(record.get("kept_ids", ()))
    known.update((record.get("first_id"), record.get("last_summarized_id")))
    known.discard(None)
    first = next((i for i in range(boundary) if messages[i].id in known), boundary)
    return tuple(sorted({*range(first), *kept}))


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


def _with_unproven(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    boundary: int,
    kept: tuple[int, ...],
) -> tuple[int, ...]:
    """After a prune everything before the boundary stays visible, unless covered ones are there.

    They are where the prune did not reach, as in a parent's channel, and where it failed. Either
    the list is as it was written down then, or a message that is known to be covered shows it.
    """
    if boundary == _hint(record) and list(kept) == record.get("kept_hints", []):
        return kept
    covered = {segment.get("last_id") for segment in record.get("segments", ())}
    covered.update((record.get("last_summarized_id"), *record.get("pruned_ids", ())))
    covered.difference_update((None, *record.get("kept_ids", ())))
    if any(messages[index].id in covered for index in range(boundary)):
        return kept
    return tuple(range(boundary))


def _lost_after_prune(
    messages: Sequence[BaseMessage], record: CompactionRecord, last: int
) -> Anchor:
    """Covered messages are out of the channel, so every message present is shown.

    The digest is all that is left of them and is shown, unless kept messages were recorded and
    none of them is there any more: then the chat was cleared.
    """
    kept = set(record.get("kept_ids", ()))
    cleared = bool(kept) and not any(message.id in kept for message in messages)
    return Anchor(0, (), last + 1, digest=not cleared)


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


FINGERPRINTED = 8
"""Messages before the boundary that a fingerprint is made of, beside the first one of the list."""


def fingerprint(messages: Sequence[BaseMessage], boundary: int) -> str:
    """A short hash of what stands before ``boundary``, for messages that have no ids.

    Made of the first message and the last few: one alone may recur ("go", "ok").
    """
    seen = [messages[0], *messages[max(0, boundary - FINGERPRINTED) : boundary]]
    text = "\0".join(f"{message.type}\0{message.content!r}" for message in seen)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
