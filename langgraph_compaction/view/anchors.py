"""Where in the messages channel the covered range ends.

A position is an index hint and an id. The hint makes the usual case O(1); the id makes a deleted,
inserted or rewound message harmless. Whatever cannot be proven to be covered is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import CompactionRecord, message_key
from langgraph_compaction.view.places import place_after_prune, place_in_full


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
    place = (place_after_prune if pruned else place_in_full)(messages, record)
    if place is None:
        if pruned:
            return _lost_after_prune(messages, record, last)
        return Anchor(0, (), last + 1, digest=False)
    boundary, kept = place
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
