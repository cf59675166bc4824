"""What people do to a digest: correct it, take it back. Each is a state update.

Having it forgotten stands in `forgetting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.changes import changed_now, covering, revised
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.record import (
    EDITED,
    CompactionRecord,
    DigestSegment,
    message_key,
)
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, read_state
from langgraph_compaction.view.anchors import Anchor, locate


def by_hand(record: CompactionRecord, messages: Sequence[BaseMessage]) -> CompactionRecord:
    """The record after a person's change: newer than any fold made before, and a fresh start.

    The summarisers are asked again, whatever failed before the change.
    """
    changed: CompactionRecord = {
        **record,
        "epoch": record.get("epoch", 0) + 1,
        **changed_now(record, messages),
    }
    changed.pop("failures", None)
    return revised(changed)


def edit_digest(
    state: Any,
    text: str,
    *,
    segment: int = -1,
    messages_key: str = MESSAGES_KEY,
    compaction_key: str = COMPACTION_KEY,
) -> dict[str, Any]:
    """A state update that replaces the text of one segment of the digest.

    Use it with ``graph.update_state(config, edit_digest(graph.get_state(config).values, "..."))``.
    The correction sticks: a fold that was computed before it is dropped.

    Args:
        state: the values of the graph's state.
        text: the new text; it stands in the digest as it is.
        segment: number of the segment, 0-based; negative numbers count from the newest.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.

    Raises:
        ConfigurationError: the text is empty, or there is no such segment.
        MissingChannelError: the state lacks a channel.
        RecordError, RecordVersionError: the record cannot be read.
    """
    messages, record = read_state(state, messages_key=messages_key, compaction_key=compaction_key)
    segments = list(record.get("segments", ()))
    number = _segment_number(segments, segment)
    if not text.strip():
        raise ConfigurationError(
            "edit_digest: the new text is empty. To drop a segment use restore() (its messages "
            "show again) or forget() (digest and covered messages go for good)."
        )
    # Tokens are scaled, not counted: a state update has no tokenizer at hand, and the chain's
    # budget needs no more than the size. No text has more of them than bytes.
    before = segments[number]
    ratio = len(text) / max(1, len(before["text"]))
    edited: DigestSegment = {
        **before,
        "text": text,
        "tokens": min(max(1, round(before["tokens"] * ratio)), 4 * len(text)),
        "model": EDITED,
    }
    segments[number] = edited
    changed: CompactionRecord = {**record, "segments": segments}
    return {compaction_key: by_hand(changed, messages)}


def restore(
    state: Any,
    *,
    segment: int = -1,
    messages_key: str = MESSAGES_KEY,
    compaction_key: str = COMPACTION_KEY,
) -> dict[str, Any]:
    """A state update that drops a segment and all newer ones, so that their originals show again.

    Cleared results show again as well; where there is no segment yet, they alone do.

    The newer ones go, too, because the covered range has one end: a hole in it would have to be
    written down message by message. The messages that show again may be folded anew.

    Args:
        state: the values of the graph's state.
        segment: number of the oldest segment to drop, 0-based; negative numbers count from the
            newest; 0 drops the whole digest.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.

    Raises:
        ConfigurationError: there is no such segment, or messages that would have to show were
            pruned from the state.
        MissingChannelError: the state lacks a channel.
        RecordError, RecordVersionError: the record cannot be read.
    """
    messages, record = read_state(state, messages_key=messages_key, compaction_key=compaction_key)
    segments = record.get("segments", [])
    if not segments and "clearing" in record:
        return {compaction_key: by_hand(_uncleared(record), messages)}
    number = _segment_number(segments, segment)
    left, dropped = segments[:number], segments[number:]
    first = left[-1]["last_index"] + 1 if left else 0
    pruned = record.get("pruned_index", record.get("last_summarized_index", -1))
    if record.get("pruned") and (first <= pruned or _took_away(dropped, messages)):
        first = min([first, *(i for gone in dropped for i in gone.get("absorbed_indexes", ()))])
        raise ConfigurationError(
            f"restore: the messages from position {first} to {pruned} were pruned from the state, "
            "and a channel of messages takes them back at its end only. The agent reads them by "
            "create_recall_tool(), a fork from a checkpoint before the prune has them, and "
            "forget() drops the digest."
        )
    anchor = locate(messages, record)
    if not left:
        empty = emptied(record, messages, min(anchor.folded_after, len(messages)))
        return {compaction_key: by_hand(empty, messages)}
    new_end = left[-1]
    boundary = _end_of(new_end, messages, anchor, record)
    names = {name for gone in dropped for name in gone.get("absorbed_ids", ())}
    names.update(record.get("kept_ids", ()))
    changed = covering(
        {**record, "segments": left},
        messages,
        stop=boundary,
        last=new_end["last_index"],
        last_id=messages[boundary - 1].id if boundary > 0 else None,
        kept=[i for i in range(boundary) if message_key(messages[i], i) in names],
    )
    return {compaction_key: by_hand(_uncleared(changed), messages)}


def _took_away(dropped: Sequence[DigestSegment], messages: Sequence[BaseMessage]) -> bool:
    """Whether what one of the segments took in from before its place has left the channel.

    A prune takes all of it at once.
    """
    present = {message_key(message, index) for index, message in enumerate(messages)}
    taken = [set(segment.get("absorbed_ids", ())) for segment in dropped]
    return any(names and names.isdisjoint(present) for names in taken)


def _uncleared(record: CompactionRecord) -> CompactionRecord:
    """The record with nothing cleared: what shows again shows as it was."""
    changed: CompactionRecord = {**record}
    changed.pop("clearing", None)
    return changed


def _end_of(
    segment: DigestSegment,
    messages: Sequence[BaseMessage],
    anchor: Anchor,
    record: CompactionRecord,
) -> int:
    """Index after the last message that ``segment`` covers.

    By id where it is there; else by position, which errs on the side of showing more if messages
    that newer segments cover were deleted. An id further back than its position allows is no proof:
    the place was lost, and a newer segment covers what stands before it once more.
    """
    missing = anchor.position - record.get("boundary_hint", anchor.position)
    farthest = segment["last_index"] - missing
    for index in range(min(farthest, anchor.boundary - 1, len(messages) - 1), -1, -1):
        if messages[index].id is not None and messages[index].id == segment["last_id"]:
            return index + 1
    return min(len(messages), max(0, anchor.index_of(segment["last_index"]) + 1))


def emptied(
    record: CompactionRecord, messages: Sequence[BaseMessage], made_before: int
) -> CompactionRecord:
    """A record that covers nothing but still outranks what came before it.

    ``made_before`` messages were made under an earlier view: what they say to their provider
    about it must stay out of the view, see `view.provider`.
    """
    empty: CompactionRecord = {
        "epoch": record.get("epoch", 0),
        "revision": record.get("revision", 0),
        "length_at_fold": made_before,
        "steps_at_fold": record.get("steps_at_fold", 0),
    }
    if made_before:
        empty["id_at_fold"] = messages[made_before - 1].id
    if "request_id" in record:  # what was carried out is not asked for again
        empty["request_id"] = record["request_id"]
    return empty


def _segment_number(segments: Sequence[DigestSegment], number: int) -> int:
    if not -len(segments) <= number < len(segments):
        held = f"{len(segments)} segment(s)" if segments else "no segments yet"
        raise ConfigurationError(
            f"segment={number!r}: the digest of this thread has {held}. Count from 0 for the "
            "oldest, or from -1 for the newest."
        )
    return number % len(segments)
