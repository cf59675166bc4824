"""Names and values that a text lost: which of them are listed, the newest value last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.facts.deeds import Deed
from langgraph_compaction.digest.facts.layout import MENTIONS, PRINTED, Parts
from langgraph_compaction.digest.facts.matching import last_place
from langgraph_compaction.digest.facts.mentioned import Entry, Mentioned
from langgraph_compaction.digest.facts.mentions import BETWEEN, OF, Mention, mentions
from langgraph_compaction.digest.headings import without_empty
from langgraph_compaction.digest.sentences import Sentence

PRINTED_SHARE = 0.1
"""Share of a segment's cap that names may take which stand in results alone."""
SHORT_NUMBER = 2
"""Digits of a number up to which it counts as kept only on a line with a word of its subject."""
MISSES = 20
"""Candidates that did not fit before the rest is not looked at any more."""

Row = tuple[int, str]
"""A line of a text, after the index at which it begins."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed at the end of a segment.

    Attributes:
        mentioned: names and values of the source.
        cap: tokens that the segment may have.
        count: tokens of a text.
        redact: takes secrets out of a name and what it is the value of, once they stand together.
    """

    mentioned: Mentioned
    cap: int
    count: Callable[[str], int]
    redact: Callable[[str], str] = str

    def added(self, parts: Parts) -> Parts:
        """The parts with the names and values that they lost, as many as there is room for.

        Args:
            parts: a summariser's text, the quotes, what was done, and the newest message, which
                costs nothing.
        """
        standing = parts.text()
        text, rows = replace(parts, done=()).text(), _rows(standing)
        done = {f"- {line}": f"- {Deed.of(line).call}" for line in parts.done}
        below = "\n".join(done)
        # An outcome may be the value of something that the line of its call does not name.
        sure = [(start, done.get(row, row)) for start, row in rows]
        ranked = self.mentioned.ranked()
        overtaken = self._overtaken(rows, sure, below)
        overtaken += self._missing(sure, {entry.mention for entry in overtaken})
        since = {self._shown(entry) for entry in self._overtaken(_rows(parts.newest))}
        older = self.mentioned.series.all_passed()
        lost = [
            entry
            for entry in filter(self.mentioned.listable, ranked)
            if _place(entry.mention, text) < 0
            and not (
                entry.mention.name in below
                and _place_of_value(entry.mention, sure if entry.mention.subject else rows) >= 0
            )
            # An old value without its subject would look like one that still holds.
            and (entry.mention.subject or entry.mention.name not in older)
        ]
        left = self.cap - self.count(replace(parts, newest="").text())
        chosen = self._chosen(overtaken, lost, left)
        unlisted = [entry for entry in overtaken if self._shown(entry) not in chosen]
        if unlisted:
            parts = self._without_passed(parts, unlisted)
        return self._divided(parts, chosen, since)

    def _divided(self, parts: Parts, chosen: Mapping[str, Entry], since: Collection[str]) -> Parts:
        """The parts with what is listed, in the order in which it was mentioned.

        The values of one thing are on one line, the newest last; what must stand behind the
        newest message, ``since``, is.
        """
        last: dict[str, int] = {}
        for entry in chosen.values():
            subject = entry.mention.subject
            last[subject] = max(last.get(subject, 0), entry.order)

        def place(item: tuple[str, Entry]) -> tuple[int, bool]:
            entry = item[1]
            newest = bool(entry.mention.subject) and not self.mentioned.passed(entry)
            return (last[entry.mention.subject] if newest else entry.order, newest)

        listed = sorted(chosen.items(), key=place)
        printed = {name for name, entry in listed if self.mentioned.printed(entry)}
        said = {entry.mention.subject for name, entry in listed if name not in printed} - {""}
        printed = {name for name in printed if chosen[name].mention.subject not in said}
        names = [name for name, _ in listed]
        return replace(
            parts,
            mentioned=[name for name in names if name not in printed and name not in since],
            printed=[name for name in names if name in printed and name not in since],
            since=[name for name in names if name in since],
        )

    def _chosen(
        self, overtaken: Sequence[Entry], lost: Sequence[Entry], left: int
    ) -> dict[str, Entry]:
        """What is listed, by how it is shown.

        Args:
            overtaken: the newest values that an older one stands after; they come first.
            lost: the other candidates, best first.
            left: tokens that there are for the list.
        """
        chosen: dict[str, Entry] = {}
        labels = {False: self.count(f"\n{MENTIONS}"), True: self.count(f"\n{PRINTED}")}
        printed = int(PRINTED_SHARE * self.cap)
        misses = 0
        for index, entry in enumerate([*overtaken, *lost]):
            added = self._with_newest(entry, chosen)
            cost = self.cost(added)
            printed_only = self.mentioned.printed(entry)
            kinds = {self.mentioned.printed(one) for one in added.values()}
            whole = cost + sum(label for kind, label in labels.items() if kind in kinds)
            due = index < len(overtaken)
            if "" in added or whole > left or (printed_only and cost > printed and not due):
                misses += not due
                if misses > MISSES:
                    break
                continue
            chosen.update(added)
            left -= whole
            labels.update(dict.fromkeys(kinds, 0))
            printed -= cost if printed_only else 0
        return chosen

    def cost(self, names: Iterable[str]) -> int:
        """Tokens of names in a list."""
        return sum(self.count(name + BETWEEN) for name in names)

    def _overtaken(
        self, rows: Sequence[Row], sure: Sequence[Row] | None = None, done: str = ""
    ) -> list[Entry]:
        """The newest values that an older one of the same thing stands after.

        Also of what only earlier segments have: a summariser may repeat what it was shown.

        Args:
            rows: of any text.
            sure: the same as far as a value in them is sure to be that of what they name.
            done: rows that tell of calls. A value in them may be that of what they do not name.
        """
        standing = "\n".join(row for _, row in rows)
        found = []
        for entry in self.mentioned.newest(here=False):
            older = [one for one in self._passed(entry) if one.name in standing]
            if older:
                at = _place_of_value(entry.mention, rows if sure is None else sure)
                if any(_place_of_value(one, rows) > at or _place(one, done) >= 0 for one in older):
                    found.append(entry)
        return found

    def _missing(self, rows: Sequence[Row], but: Collection[Mention]) -> list[Entry]:
        """The newest values of what was said that the text lacks, and an earlier segment has older.

        Without the newest, that older one would be the last in the digest.
        """
        return [
            entry
            for entry in self.mentioned.newest()
            if entry.weight
            and self.mentioned.changed(entry)
            and entry.mention not in but
            and _place_of_value(entry.mention, rows) < 0
        ]

    def _passed(self, newest: Entry) -> list[Mention]:
        """The values that the same thing had before."""
        names = self.mentioned.series.values(newest.mention.subject)[:-1]
        return [Mention(name, newest.mention.subject) for name in names]

    def _without_passed(self, parts: Parts, newest: Iterable[Entry]) -> Parts:
        """The parts without the lines that say only an older value of what cannot be listed.

        No value is better than a wrong one; but a line that says more than that value stays, and
        so does a directive. A call with an older value goes in any case.
        """
        passed = [older for one in newest for older in self._passed(one)]
        names = {older.name for older in passed}

        def fine(row: str) -> bool:
            told = {one.name for one in mentions(row, said=True)}
            if not told or not told <= names:
                return True
            old = (older for older in passed if older.name in told)
            return all(_place(older, row) < 0 for older in old) or cues.STRICT(Sentence.of(row))

        rows = parts.body.splitlines()
        kept = list(filter(fine, rows))
        body = parts.body if len(kept) == len(rows) else without_empty("\n".join(kept))
        done = [line for line in parts.done if all(_place(older, line) < 0 for older in passed)]
        return replace(parts, body=body, quotes=list(filter(fine, parts.quotes)), done=done)

    def _with_newest(self, entry: Entry, chosen: Mapping[str, Entry]) -> dict[str, Entry]:
        """What is listed with an entry: a value that has passed never stands there alone."""
        added = {self._shown(entry): entry}
        if self.mentioned.passed(entry):
            newest = self.mentioned.newest_of(entry.mention.subject)
            added[self._shown(newest)] = newest
        return {name: one for name, one in added.items() if name not in chosen}

    def _shown(self, entry: Entry) -> str:
        """A mention as it is listed, without secrets; "" where it would not be one entry."""
        line = " ".join(self.redact(shown(entry)).split())
        return "" if BETWEEN in f" {line} " else line


def shown(entry: Entry) -> str:
    """A mention as it is listed: with what it is the value of, where that is known.

    Without it, a newer value could not tell which one it replaces.
    """
    name, subject = entry.mention.name, entry.mention.subject
    return f"{subject}{OF}{name}" if subject else name


def _place(mention: Mention, text: str) -> int:
    """Index of the last place of a name or value in a text, -1 where it does not stand.

    A short number counts only on a line with a word of its subject: there are so many of them.
    """
    name = mention.name
    digits = name.strip("-+.,")
    if not digits.isdigit() or len(digits) > SHORT_NUMBER:
        return last_place(text, name)
    return _place_of_value(mention, _rows(text))


def _rows(text: str) -> list[Row]:
    """The lines of a text, each with the index at which it begins."""
    rows: list[Row] = []
    start = 0
    for row in text.split("\n"):
        rows.append((start, row))
        start += len(row) + 1
    return rows


def _place_of_value(mention: Mention, rows: Sequence[Row]) -> int:
    """Index of the last place of a value on a line with a word of its subject, -1: nowhere.

    On another line it may be the value of something else.
    """
    words = mention.subject.split()
    for start, row in reversed(rows):
        at = last_place(row, mention.name) if mention.name in row else -1
        if at >= 0:
            folded = row.casefold()
            there = sum(word in folded for word in words)
            if there >= max(len(words) - 1, min(len(words), 2)):
                return start + at
    return -1
