"""Hand-offs between agents, and the record that goes with the messages.

A tool that returns ``Command(graph=Command.PARENT, ...)`` ends the run of its agent. Of the agent's
state the graph around it gets what the command brings, and nothing else: a record that is not in
it is lost, and whoever goes on folds the same messages anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Command

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.state import read_state
from langgraph_compaction.view.anchors import locate


def with_record(result: Any, state: Any, *, messages_key: str, compaction_key: str) -> Any:
    """What a tool returned, with the thread's record where that has to go along.

    That is where it hands messages over to the graph around, among them all that the record covers,
    and no record beside them. Everything else is returned as it is.

    Args:
        result: what the tool returned; not changed.
        state: the state of its agent.
        messages_key: name of the channel with the messages, in both graphs.
        compaction_key: name of the channel with the record, in both graphs.
    """
    if isinstance(result, list):
        keys = {"messages_key": messages_key, "compaction_key": compaction_key}
        return [with_record(one, state, **keys) for one in result]
    if not isinstance(result, Command) or result.graph != Command.PARENT:
        return result
    update = result.update
    if not isinstance(update, Mapping) or compaction_key in update:
        return result
    messages, record = read_state(state, messages_key=messages_key, compaction_key=compaction_key)
    if not record or not _brings(update.get(messages_key), messages, record):
        return result
    return replace(result, update={**update, compaction_key: record})


def _brings(given: Any, messages: Sequence[BaseMessage], record: CompactionRecord) -> bool:
    """Whether messages that are handed over begin with those that the record is about."""
    if not isinstance(given, Sequence):
        return False
    covered = [message.id for message in messages[: locate(messages, record).boundary]]
    return [getattr(message, "id", None) for message in given[: len(covered)]] == covered
