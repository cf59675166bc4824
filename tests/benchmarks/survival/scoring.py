"""Which facts stand in what the agent's model would be called with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from tests.benchmarks.survival.counting import joined, tokens
from tests.benchmarks.survival.facts import KINDS, PROSE, REFERENCES, UPDATE, USERS, Fact
from tests.benchmarks.survival.history import History
from tests.benchmarks.survival.matching import holds, standing_last

NEWEST_LAST = "newest last"
STALE_LAST = "stale last"
GROUPS: dict[str, tuple[str, ...]] = {
    "all references": REFERENCES,
    "constraints and pins": USERS,
    "prose of the agent": PROSE,
    "all types": KINDS,
}
"""Rows of the table that sum up others."""


@dataclass
class Tally:
    """Facts counted, and those of them that survived, by row of the table."""

    total: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    def note(self, row: str, kept: bool) -> None:
        """Count one fact."""
        self.total[row] = self.total.get(row, 0) + 1
        self.kept[row] = self.kept.get(row, 0) + kept

    def add(self, other: Tally) -> None:
        """Count what another has counted, too."""
        for row, number in other.total.items():
            self.total[row] = self.total.get(row, 0) + number
            self.kept[row] = self.kept.get(row, 0) + other.kept[row]

    def share(self, row: str) -> float | None:
        """Share that survived, of a row or of a group of rows; None: nothing was counted."""
        rows = GROUPS.get(row, (row,))
        total = sum(self.total.get(one, 0) for one in rows)
        return sum(self.kept.get(one, 0) for one in rows) / total if total else None


def tail_start(messages: Sequence[BaseMessage], view: Iterable[BaseMessage]) -> int:
    """Index from which on the view shows every message of the thread; all of them: 0."""
    shown = {message.id for message in view}
    start = len(messages)
    while start and messages[start - 1].id in shown:
        start -= 1
    return start


def digest_tokens(messages: Iterable[BaseMessage], view: Iterable[BaseMessage]) -> int:
    """Tokens of what the view shows beside messages of the thread, its frame included."""
    known = {message.id for message in messages}
    return tokens(message for message in view if message.id not in known)


def score(history: History, messages: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> Tally:
    """Count the facts whose message the system has folded, or might have.

    What stands in the tail that every system keeps word for word proves nothing and is left out;
    a system that folds nothing is asked for everything. Of an updated value the newest statement
    counts, and only if it is not in the tail.

    Args:
        history: the thread and its facts.
        messages: the thread so far.
        view: what the agent's model would be called with.
    """
    start = tail_start(messages, view) or len(messages)
    text = joined(view)
    tally = Tally()
    series: dict[str, list[Fact]] = {}
    for fact in history.facts:
        if history.where[fact.number] >= len(messages):
            break
        if fact.series is not None:
            series.setdefault(fact.series, []).append(fact)
        elif history.where[fact.number] < start:
            kept = holds(text, fact.value)
            tally.note(fact.kind, kept)
            if fact.kind in REFERENCES:
                tally.note(fact.place, kept)
    for told in series.values():
        if history.where[told[-1].number] >= start:
            continue
        newest = told[-1].value
        last = standing_last(text, [fact.value for fact in told])
        tally.note(UPDATE, holds(text, newest))
        tally.note(NEWEST_LAST, last == newest)
        tally.note(STALE_LAST, last not in {newest, None})
    return tally
