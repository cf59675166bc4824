"""Every way a visit changes a record. Each returns a new record; none is changed in place.

What people change stands in `corrections` and `forgetting`.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langgraph_compaction.heads import continued
from langgraph_compaction.record import (
    RECORD_VERSION,
    Clearing,
    CompactionRecord,
    DigestSegment,
    Failures,
    Overflow,
    Render,
    message_key,
)
from langgraph_compaction.view.anchors import Anchor, locate
from langgraph_compaction.view.fingerprints import fingerprint
from langgraph_compaction.view.places import in_place, landmarks
from langgraph_compaction.view.unreached import marks_of


def advanced(
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    anchor: Anchor,
    *,
    stop: int,
    kept: Sequence[int],
    segments: list[DigestSegment],
    render: Render,
    steps: int,
) -> CompactionRecord:
    """The record after a fold of everything before index ``stop`` that is not in ``kept``.

    Args:
        record: the record before.
        messages: the messages channel.
        anchor: where the thread's record ended in ``messages`` when the visit began.
        stop: index after the last message that is covered now.
        kept: indexes below ``stop`` of messages that stay visible, ascending.
        segments: the chain, the new segment included.
        render: how the view shows it.
        steps: AI messages of the thread so far.
    """
    last, last_id = last_covered(record, messages, anchor, stop)
    changed: CompactionRecord = {
        **covering(record, messages, stop=stop, last=last, last_id=last_id, kept=kept),
        "segments": segments,
        "first_id": messages[0].id,
        "render": render,
        "length_at_fold": anchor.position_of(len(messages)),
        "id_at_fold": messages[-1].id,
        "steps_at_fold": steps,
    }
    clearing = record.get("clearing")
    if clearing and changed["last_summarized_index"] >= max(
        clearing["last_index"], clearing["repeats_index"]
    ):
        del changed["clearing"]  # all that was cleared is covered now
    return changed


def covering(
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    *,
    stop: int,
    last: int,
    last_id: str | None,
    kept: Sequence[int],
) -> CompactionRecord:
    """The record with another covered range: everything before index ``stop`` but ``kept``.

    Args:
        record: the record before.
        messages: the messages channel.
        stop: index of the first message that is not covered.
        last: position in the thread of the last one that is.
        last_id: its id.
        kept: indexes below ``stop`` of messages that stay visible, ascending.
    """
    changed: CompactionRecord = {
        **record,
        "last_summarized_index": last,
        "last_summarized_id": last_id,
        "next_id": messages[stop].id if stop < len(messages) else None,
        "kept_ids": [message_key(messages[index], index) for index in kept],
        "kept_hints": list(kept),
        "boundary_hint": stop,
    }
    changed.pop("fingerprint", None)
    if last_id is None and stop > 0:
        changed["fingerprint"] = fingerprint(messages, stop)
    if not record.get("pruned"):
        names = (messages[index].id for index in landmarks(stop))
        changed["landmark_ids"] = [name for name in names if name is not None]
    return changed


def last_covered(
    record: CompactionRecord, messages: Sequence[BaseMessage], anchor: Anchor, stop: int
) -> tuple[int, str | None]:
    """Position and id of the last message covered by a fold of all before index ``stop``.

    After a prune a fold that takes only what was kept moves no boundary, and what stands before it
    in the channel is not what stood there in the thread.
    """
    position = anchor.position_of(stop) - 1
    if stop == anchor.boundary and record.get("pruned"):
        return position, record.get("last_summarized_id")
    return position, messages[stop - 1].id


def with_render(record: CompactionRecord, render: Render) -> CompactionRecord:
    """The record rendered in another way, at a moment at which the view changes anyway."""
    return {**record, "render": render}


def clipped(
    record: CompactionRecord, messages: Sequence[BaseMessage], limits: Render
) -> CompactionRecord:
    """The record with other clip limits: what was said under the old ones is of another view."""
    return {**with_render(record, limits), **changed_now(record, messages)}


def with_clearing(
    record: CompactionRecord, messages: Sequence[BaseMessage], clearing: Clearing, render: Render
) -> CompactionRecord:
    """The record with old tool results cleared; ``render`` says how the view shows the rest."""
    changed: CompactionRecord = {**record, "clearing": clearing, "render": render}
    return {**changed, **changed_now(record, messages)}


def pruned(
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    anchor: Anchor,
    archived: str | None,
    before: Sequence[int] | None = None,
) -> CompactionRecord:
    """The record once the hidden messages have left the channel.

    Args:
        record: the record that hides them; it hides at least one.
        messages: the messages channel before they leave.
        anchor: where the record ends in it.
        archived: key of the newest item in the archive, None where nothing was archived.
        before: see `marks_of`.
    """
    kept = [message_key(messages[index], index) for index in anchor.kept]
    left = [messages[index] for index in anchor.kept] + list(messages[anchor.boundary :])
    changed: CompactionRecord = {
        **record,
        "pruned": True,
        "pruned_index": anchor.position - 1,
        "pruned_marks": marks_of(record, messages, anchor.hidden, before),
        "stayed_ids": kept,
        "stayed_indexes": [anchor.position_of(index) for index in anchor.kept],
        "kept_ids": kept,
        "kept_hints": list(range(len(kept))),
        "boundary_hint": len(kept),
        "first_id": left[0].id if left else None,
    }
    changed.pop("landmark_ids", None)
    return changed if archived is None else continued(changed, archived)


def changed_now(record: CompactionRecord, messages: Sequence[BaseMessage]) -> CompactionRecord:
    """What marks the present end of the list as where another view begins."""
    changed: CompactionRecord = {
        "length_at_change": locate(messages, record).position_of(len(messages)),
        "id_at_change": messages[-1].id if messages else None,
    }
    if messages and in_place(messages, record):
        # Where the list was changed, what stands in front may be another tool's, and not covered.
        changed["first_id"] = messages[0].id
    return changed


def with_failures(record: CompactionRecord, failures: Failures) -> CompactionRecord:
    """The record after a visit at which no summariser wrote what was asked for."""
    return {**record, "failures": failures}


def without_failures(record: CompactionRecord) -> CompactionRecord:
    """The record after a visit at which one did."""
    changed: CompactionRecord = {**record}
    changed.pop("failures", None)
    return changed


def with_overflow(record: CompactionRecord, overflow: Overflow) -> CompactionRecord:
    """The record after a reduction that a refused call led to."""
    return {**record, "overflow": overflow}


def with_request(record: CompactionRecord, name: str) -> CompactionRecord:
    """The record once the request of this id was carried out."""
    return {**record, "request_id": name}


def revised(record: CompactionRecord, run: str = "") -> CompactionRecord:
    """The record as a newer one than before.

    Args:
        record: the record with its changes.
        run: tells this run of a subgraph from its others; the record remembers it, and the first
            of all, see `engine.pruning`. "" where the graph is none.
    """
    changed: CompactionRecord = {**record, "version": RECORD_VERSION}
    changed["revision"] = record.get("revision", 0) + 1
    if run and "revision" not in record:
        changed["begun_run"] = run
    if run:
        changed["changed_run"] = run
    else:
        changed.pop("changed_run", None)
    return changed
