"""Removing folded messages from the channel, after they were written to the archive."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langgraph_compaction import changes
from langgraph_compaction.archive.redacting import redacted_originals
from langgraph_compaction.engine.effects import ArchiveFailed, ArchiveOriginals, Effect, Emit
from langgraph_compaction.engine.tally import Change
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import RedactionError
from langgraph_compaction.heads import heads_of
from langgraph_compaction.record import CompactionRecord, message_key
from langgraph_compaction.view.anchors import Anchor, locate

NO_IDS = (
    "Nothing was pruned: messages without ids, or with the same id, cannot be removed one by one. "
    "Give the messages channel the add_messages reducer."
)
NOT_ONE = (
    f"Nothing was pruned: a covered message has the id {REMOVE_ALL_MESSAGES!r}. To remove it "
    "LangGraph would empty the whole channel. Give the message another id."
)
KEPT = "Nothing was pruned, the messages stay in the state until a later fold."


def pruned(
    visit: Visit, record: CompactionRecord, common: dict[str, Any]
) -> Generator[Effect, object, Change]:
    """Everything that the record hides leaves the channel, if it is safe in the archive.

    Where it cannot be archived or removed, an event says why, and the record stays as it is. In a
    subgraph nothing leaves in the run that began the record: whether the graph around keeps it is
    not known before it has come back once, and without it nothing would lead to what was removed.

    Raises:
        RedactionError: the hook failed, and the settings say that this ends the run.
    """
    anchor = locate(visit.messages, record)
    unproven = bool(visit.run) and record.get("begun_run") == visit.run
    if not visit.policy.prune or not anchor.hidden or unproven:
        return Change(record)
    ids = [message.id for message in visit.messages]
    if None in ids or len(set(ids)) < len(ids):
        # add_messages leaves neither: this channel has another reducer, and would keep the removals
        # as messages, or remove others of the same id.
        yield Emit({"type": "compaction.failed", **common, "reason": NO_IDS})
        return Change(record)
    if any(ids[index] == REMOVE_ALL_MESSAGES for index in anchor.hidden):
        yield Emit({"type": "compaction.failed", **common, "reason": NOT_ONE})
        return Change(record)
    try:
        effect = _archive(visit, record, anchor)
    except RedactionError as error:
        if visit.policy.raises:
            raise
        yield Emit({"type": "compaction.failed", **common, "reason": f"{error} {KEPT}"})
        return Change(record)
    outcome = yield effect
    if isinstance(outcome, ArchiveFailed):
        reason = f"The archive could not be written ({outcome.reason}). {KEPT}"
        yield Emit({"type": "compaction.failed", **common, "reason": reason})
        return Change(record)
    head = outcome if isinstance(outcome, str) else None
    removed = tuple(str(ids[index]) for index in anchor.hidden)
    before = None
    if visit.run and visit.record.get("changed_run") != visit.run:
        before = locate(visit.messages, visit.record).hidden
    return Change(changes.pruned(record, visit.messages, anchor, head, before), removed)


def _archive(visit: Visit, record: CompactionRecord, anchor: Anchor) -> ArchiveOriginals:
    """What goes to the archive, by position; what may be there already is marked as doubtful.

    That is where an earlier prune did not reach this channel, as in the graph around a subgraph.
    """
    chosen: list[tuple[int, BaseMessage]] = []
    doubtful: set[str] = set()
    stayed, before = set(record.get("stayed_ids", ())), record.get("pruned_index", -1)
    hidden = [visit.messages[index] for index in anchor.hidden]
    originals = redacted_originals(hidden, visit.redact)
    for index, message in zip(anchor.hidden, originals, strict=True):
        position = anchor.position_of(index)
        chosen.append((position, message))
        if position <= before and message_key(message, index) not in stayed:
            doubtful.add(str(message.id))
    chosen.sort(key=lambda one: one[0])
    return ArchiveOriginals(chosen, heads_of(record), frozenset(doubtful))
