"""Channels that a prune did not reach, as that of the graph around a subgraph.

There the covered messages still stand, and others may have come after them: from a branch that ran
beside the subgraph, whose messages no digest covers. A record cannot list what was removed, since
that grows with the thread. It has short marks of what was covered in the present run of its graph:
the first of all, the last that stood there when the run began, and then one by one what the run
covered. The graph around has the front of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import CompactionRecord, message_key

MOST_MARKS = 256
"""Marks of a record. Of messages that a run was given and covered beyond these, the graph around
shows the rest again."""
MARK_CHARS = 10
"""Hexadecimal digits of a mark: of a million messages none has that of another."""


def covered_end(messages: Sequence[BaseMessage], record: CompactionRecord, stop: int) -> int:
    """Index after the last message before ``stop`` that is proven to be covered; 0: none is.

    The list has to begin with what was covered first, but for kept messages. Else it is the channel
    that was pruned, and what has a mark there was added again.
    """
    known = set(record.get("pruned_marks", ()))
    visible = {*record.get("kept_ids", ()), *record.get("stayed_ids", ())}
    end = 0
    for index in range(stop if known else 0):
        if _mark(messages[index]) in known:
            end = index + 1
        elif end == 0 and message_key(messages[index], index) not in visible:
            return 0
    return end


def marks_of(
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    hidden: Sequence[int],
    before: Sequence[int] | None,
) -> list[str]:
    """The marks of a record that hides messages which are about to leave the channel.

    Args:
        record: the record, with the marks of the prune before.
        messages: the messages channel before they leave.
        hidden: indexes of those that leave, ascending; there is at least one.
        before: indexes of those that were hidden when this run of the graph began; None: this run
            has changed the record before.
    """
    end = before[-1] + 1 if before else covered_end(messages, record, hidden[-1] + 1)
    if end > 0:  # what was covered before stands in this channel, and so in the one around it
        marks = [_mark(messages[hidden[0]]), _mark(messages[end - 1])]
    else:
        marks = list(record.get("pruned_marks", ())) if before is None else []
    marks += [_mark(messages[index]) for index in hidden if index >= end]
    return list(dict.fromkeys(marks))[:MOST_MARKS]


def _mark(message: BaseMessage) -> str:
    name = message.id or ""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_CHARS]
