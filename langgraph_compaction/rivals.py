"""Another middleware that summarises the same thread, told by the summaries that it leaves.

``create_agent`` shows no middleware the others. LangChain's ``SummarizationMiddleware`` puts its
summary in front of the state's messages and takes away the older ones; deepagents' does so with
each request and leaves the state alone. Both mark it, and a thread that comes from one of them has
such a summary, too. So a summary tells of a rival only where it was not there before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view.anchors import locate
from langgraph_compaction.view.marks import is_summary

MOST_PLACES = 1_000
"""Threads, and graphs in them, whose first message is remembered; the oldest give way."""

RIVAL = (
    "Another middleware of this agent summarises the thread, too: its summary stands in place of "
    "messages that are {gone}. Use one of the two. With create_agent take the other one, such as "
    "LangChain's SummarizationMiddleware, out of the list; with create_deep_agent give this one "
    'the name of the other, name="SummarizationMiddleware", and it takes its place.'
)
FROM_STATE = RIVAL.format(gone="removed from the state, so that digest and originals are lost")
FROM_CALLS = RIVAL.format(gone="left out of the agent's calls, and paid for twice")


class Rivals:
    """What other middlewares did to the threads of one. Safe to use from any thread.

    Nothing is decided by it, it only tells.
    """

    def __init__(self) -> None:
        self._firsts: OrderedDict[tuple[str, ...], str | None] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as in another process, has seen nothing."""
        return type(self), ()

    def in_state(
        self,
        place: tuple[str, ...] | None,
        messages: Sequence[BaseMessage],
        record: CompactionRecord,
    ) -> str | None:
        """What to say where a summary of another's has come into the state; None: nothing.

        Args:
            place: thread and graph, see `place_of`; None: what was there before is not known.
            messages: the messages channel.
            record: the record in the state.
        """
        if not messages:
            return None
        first = messages[0]
        moved = self._moved(place, first.id)
        if not is_summary(first):
            return None
        lost = bool(record.get("segments")) and not locate(messages, record).digest
        return FROM_STATE if moved or lost else None

    def _moved(self, place: tuple[str, ...] | None, first: str | None) -> bool:
        """Whether another message was the first of the thread at the visit before."""
        if place is None:
            return False
        with self._lock:
            before = self._firsts.get(place, first)
            self._firsts[place] = first
            self._firsts.move_to_end(place)
            while len(self._firsts) > MOST_PLACES:
                self._firsts.popitem(last=False)
        return before != first


def in_request(messages: Sequence[BaseMessage], own: Sequence[BaseMessage]) -> str | None:
    """What to say where the messages of a request have a summary in front; None: nothing.

    Args:
        messages: of the request, as the middlewares before this one left them.
        own: the messages channel.
    """
    if not messages or not is_summary(messages[0]):
        return None
    return FROM_CALLS if not own or own[0].id != messages[0].id else None
