"""Hand-offs between agents, and the record that goes with the messages.

A tool that returns ``Command(graph=Command.PARENT, ...)`` ends the run of its agent. Of the agent's
state the graph around it gets what the command brings, and nothing else: a record that is not in
it is lost, and whoever goes on folds the same messages anew.

A tool that runs an agent of its own may hand back that agent's whole state, and a record in it is
about other messages: in the channel it would win over the thread's own, whose digest would be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from operator import is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.state import Channels
from langgraph_compaction.view.anchors import locate


def with_record(result: Any, state: Any, channels: Channels) -> Any:
    """What a tool returned, with the thread's record where that has to go along.

    That is where it hands messages over to the graph around, by an update or by a ``Send``, among
    them all that the record covers, and no record beside them. Everything else is returned as it
    is.

    Args:
        result: what the tool returned; not changed.
        state: the state of its agent.
        channels: of both graphs.
    """
    if isinstance(result, list):
        return [with_record(one, state, channels) for one in result]
    if not isinstance(result, Command) or result.graph != Command.PARENT:
        return result
    messages, record = channels.read(state)
    if not record:
        return result

    def along(given: Any) -> Any:
        if not isinstance(given, Mapping) or channels.compaction in given:
            return given
        if not _brings(given.get(channels.messages), messages, record):
            return given
        return {**given, channels.compaction: record}

    return _changed(result, update=along(result.update), sent=along)


def without_foreign_record(result: Any, state: Any, channels: Channels) -> Any:
    """What a tool returned, without the record of a thread that is not its agent's.

    Nor of one that is not the receiver's: a ``Send`` gives a node a whole state, and the record in
    it has to be about the messages in it. The settings that come with such a record go, too: a
    request in them was for that thread.

    Args:
        result: what the tool returned; not changed.
        state: the state of its agent.
        channels: of that state.
    """
    if isinstance(result, list):
        return [without_foreign_record(one, state, channels) for one in result]
    if not isinstance(result, Command):
        return result
    messages, record = channels.read(state)

    def own(update: Any) -> Any:
        if result.graph is not None or not _has_record(update, channels):
            return update
        known = _ids([*messages, *_listed(update.get(channels.messages))])
        return update if _is_about(known, update[channels.compaction], record) else _bare(update)

    def sent(given: Any) -> Any:
        if not _has_record(given, channels) or channels.messages not in given:
            return given
        known = _ids(_listed(given[channels.messages]))
        return given if _is_about(known, given[channels.compaction], {}) else _bare(given)

    def _bare(given: Mapping[str, Any]) -> dict[str, Any]:
        others = (channels.compaction, channels.settings)
        return {key: given[key] for key in given if key not in others}

    return _changed(result, update=own(result.update), sent=sent)


def _changed(command: Command[Any], *, update: Any, sent: Callable[[Any], Any]) -> Command[Any]:
    """A command with another update and other arguments of its ``Send``s; itself if all is same."""
    goto: Any = command.goto
    places = goto if isinstance(goto, list | tuple) else [goto]
    goes = [_sent(place, sent) for place in places]
    if not all(map(is_, goes, places)):
        return replace(command, update=update, goto=goes)
    return command if update is command.update else replace(command, update=update)


def _sent(place: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(place, Send):
        return place
    given = change(place.arg)
    if given is place.arg:
        return place
    sent = copy(place)
    sent.arg = given
    return sent


def _has_record(given: Any, channels: Channels) -> bool:
    return isinstance(given, Mapping) and isinstance(given.get(channels.compaction), Mapping)


def _listed(given: Any) -> Sequence[Any]:
    """Messages that are written to a channel, without those that a removal of all takes out."""
    messages = given if isinstance(given, list | tuple) else [given]
    stop = next(
        (i for i in reversed(range(len(messages))) if _id(messages[i]) == REMOVE_ALL_MESSAGES), -1
    )
    return messages[stop + 1 :]


def _id(message: Any) -> Any:
    return message.get("id") if isinstance(message, Mapping) else getattr(message, "id", None)


def _ids(messages: Iterable[Any]) -> set[str | None]:
    return set(map(_id, messages)) - {None}


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
    """Whether all that the record is about is among messages that are handed over, in its order."""
    if not isinstance(given, list | tuple):
        return False
    brought = list(map(_id, _listed(given)))
    covered, names = messages[: locate(messages, record).boundary], iter(brought)
    if not all(message.id in names for message in covered):
        return False
    return bool(covered) or _is_about(set(brought) - {None}, record, {})
