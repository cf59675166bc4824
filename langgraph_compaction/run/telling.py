"""What a node told lately, so that it does not tell it again at every visit.

What is wrong with a thread's settings stays wrong until somebody changes them: said at every visit
it would bury what is new. Nothing is decided by what is kept here. It is small, and of this process
alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

from langgraph_compaction.run.made import Place
from langgraph_compaction.run.reporting import Report, logger

MOST_TOLD = 1_000
"""Texts that one node remembers to have told, of all threads together; the oldest give way."""
MOST_WARNINGS = 20
"""Warnings of different subjects that one node logs; further ones would be of the same kinds."""
ALL_THREADS: Place = ()
"""In place of a thread: what is told once for all of them."""


class ToldTexts:
    """What was told of which thread. Safe to use from any thread of the process."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[Place | None, str], None] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as in another process, has told nothing."""
        return type(self), ()

    def untold(self, place: Place | None, texts: Sequence[str]) -> list[str]:
        """Those of the texts that were not told of that thread.

        Args:
            place: thread and graph, see `place_of`; None, as they have no thread: all such visits.
            texts: what there is to tell.
        """
        with self._lock:
            known = [(place, text) for text in texts if (place, text) in self._told]
            for key in known:  # what is still met gives way last
                self._told.move_to_end(key)
        return [text for text in texts if (place, text) not in known]

    def telling(self, report: Report, place: Place | None, texts: Sequence[str]) -> Report:
        """A report that remembers the texts once an event with them went out.

        Args:
            report: takes every event of a visit.
            place: as for `untold`.
            texts: what some event's reason may be, or end with.
        """
        if not texts:
            return report

        def reporting(event: dict[str, Any]) -> bool:
            vetoed = report(event)
            for text in texts:
                if str(event["reason"]).endswith(text):
                    self._note(place, text)
            return vetoed

        return reporting

    def _note(self, place: Place | None, text: str) -> None:
        with self._lock:
            self._told[place, text] = None
            self._told.move_to_end((place, text))
            while len(self._told) > MOST_TOLD:
                self._told.popitem(last=False)


class LogOnce:
    """Logs warnings, of each subject once."""

    def __init__(self) -> None:
        self._subjects: set[str] = set()

    def has(self, subject: str) -> bool:
        """Whether something of this subject was logged."""
        return subject in self._subjects

    def warn(self, subject: str, warnings: Sequence[str]) -> None:
        """Log all of these, unless something of their subject was, or a great deal of others."""
        if warnings and not self.has(subject) and len(self._subjects) < MOST_WARNINGS:
            self._subjects.add(subject)
            for warning in warnings:
                logger.warning(warning)
