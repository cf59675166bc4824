"""Hand-offs between agents, and the record that goes with the messages.

A tool that returns ``Command(graph=Command.PARENT, ...)`` ends the run of its agent. Of the agent's
state the graph around it gets what the command brings, and nothing else: a record that is not in
it is lost, and whoever goes on folds the same messages anew.

A tool that runs an agent of its own may hand back that agent's whole state, and a record in it is
about other messages: in the channel it would win over the thread's own, whose digest would be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Command

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.state import Channels
from langgraph_compaction.view.anchors import locate


def with_record(result: Any, state: Any, channels: Channels) -> Any:
    """What a tool returned, with the thread's record where that has to go along.

    That is where it hands messages over to the graph around, among them all that the record covers,
    and no record beside them. Everything else is returned as it is.

    Args:
        result: what the tool returned; not changed.
        state: the state of its agent.
        channels: of both graphs.
    """
    if isinstance(result, list):
        return [with_record(one, state, channels) for one in result]
    if not isinstance(result, Command) or result.graph != Command.PARENT:
        return result
    update = result.update
    if not isinstance(update, Mapping) or channels.compaction in update:
        return result
    messages, record = channels.read(state)
    if not record or not _brings(update.get(channels.messages), messages, record):
        return result
    return replace(result, update={**update, channels.compaction: record})


def without_foreign_record(result: Any, state: Any, channels: Channels) -> Any:
    """What a tool returned, without the record of a thread that is not its agent's.

    The settings that come with such a record go, too: a request in them was for that thread.

    Args:
        result: what the tool returned; not changed.
        state: the state of its agent.
        channels: of that state.
    """
    if isinstance(result, list):
        return [without_foreign_record(one, state, channels) for one in result]
    if not isinstance(result, Command) or result.graph is not None:
        return result
    update = result.update
    if not isinstance(update, Mapping) or not isinstance(update.get(channels.compaction), Mapping):
        return result
    messages, record = channels.read(state)
    brought = update.get(channels.messages)
    present = [*messages, *(brought if isinstance(brought, list | tuple) else ())]
    known = {getattr(message, "id", None) for message in present} - {None}
    if _is_about(known, update[channels.compaction], record):
        return result
    others = (channels.compaction, channels.settings)
    return replace(result, update={key: update[key] for key in update if key not in others})


def _is_about(known: set[str | None], found: Mapping[str, Any], own: CompactionRecord) -> bool:
    """Whether a record is about the messages of these ids, or the same of them as ``own``."""
    ends = [(one.get("last_summarized_id"), one.get("next_id")) for one in (found, own)]
    if ends[0] != ends[1] and any(ends[0]):
        # What a prune removed only the record names.
        segments = {segment["last_id"] for segment in own.get("segments", ())}
        return any(name in known | segments for name in ends[0] if name is not None)
    new = set(_names(found)) - set(_names(own))
    return not new or not known.isdisjoint(new)


def _names(record: Mapping[str, Any]) -> Iterator[str]:
    """Ids of the messages from which a record tells its place, but for the covered range's end."""
    fields = ("first_id", "id_at_fold", "id_at_change", "last_id", "repeats_id")
    for part in (record, *(record.get(name) for name in ("clearing", "failures", "overflow"))):
        if isinstance(part, Mapping):
            yield from (part[name] for name in fields if part.get(name) is not None)


def _brings(given: Any, messages: Sequence[BaseMessage], record: CompactionRecord) -> bool:
    """Whether messages that are handed over begin with those that the record is about."""
    if not isinstance(given, Sequence):
        return False
    covered = [message.id for message in messages[: locate(messages, record).boundary]]
    return [getattr(message, "id", None) for message in given[: len(covered)]] == covered
