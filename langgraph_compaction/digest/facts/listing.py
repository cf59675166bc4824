"""Names and values that a text lost: which of them are listed, the newest value last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.facts.layout import MENTIONS, PRINTED, Parts
from langgraph_compaction.digest.facts.matching import last_place
from langgraph_compaction.digest.facts.mentioned import Entry, Mentioned
from langgraph_compaction.digest.facts.mentions import BETWEEN, OF, Mention, mentions
from langgraph_compaction.digest.sentences import Sentence

PRINTED_SHARE = 0.1
"""Share of a segment's cap that names may take which stand in results alone."""
SHORT_NUMBER = 2
"""Digits of a number up to which it counts as kept only on a line with a word of its subject."""
MISSES = 20
"""Candidates that did not fit before the rest is not looked at any more."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed at the end of a segment.

    Attributes:
        mentioned: names and values of the source.
        cap: tokens that the segment may have.
        count: tokens of a text.
    """

    mentioned: Mentioned
    cap: int
    count: Callable[[str], int]

    def added(self, parts: Parts, before: Mapping[str, Sequence[str]]) -> Parts:
        """The parts with the names and values that they lost, as many as there is room for.

        Args:
            parts: a summariser's text and the quotes.
            before: values by subject that earlier segments show.
        """
        standing = parts.text()
        ranked = self.mentioned.ranked(before)
        overtaken = self._overtaken(standing)
        older = self.mentioned.older()
        lost = [
            entry
            for entry in filter(self.mentioned.listable, ranked)
            if _place(entry.mention, standing) < 0
            # An old value without its subject would look like one that still holds.
            and (entry.mention.subject or entry.mention.name not in older)
        ]
        chosen = self._chosen(overtaken, lost, self.cap - self.count(standing))
        unlisted = [entry.mention for entry in overtaken if shown(entry) not in chosen]
        if unlisted:
            parts = self._without_passed(parts, unlisted)
        return self._divided(parts, chosen)

    def _divided(self, parts: Parts, chosen: Mapping[str, Entry]) -> Parts:
        """The parts with what is listed, in the order in which it was mentioned.

        The values of one thing are on one line, the newest last.
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
        said = {entry.mention.subject for entry in chosen.values() if not entry.printed} - {""}
        printed_only = {
            name for name, entry in listed if entry.printed and entry.mention.subject not in said
        }
        return replace(
            parts,
            mentioned=[name for name, _ in listed if name not in printed_only],
            printed=[name for name, _ in listed if name in printed_only],
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
            kinds = {one.printed for one in added.values()}
            whole = cost + sum(label for kind, label in labels.items() if kind in kinds)
            due = index < len(overtaken)
            if whole > left or (entry.printed and cost > printed and not due):
                misses += not due
                if misses > MISSES:
                    break
                continue
            chosen.update(added)
            left -= whole
            labels.update(dict.fromkeys(kinds, 0))
            printed -= cost if entry.printed else 0
        return chosen

    def cost(self, names: Iterable[str]) -> int:
        """Tokens of names in a list."""
        return sum(self.count(name + BETWEEN) for name in names)

    def _overtaken(self, standing: str) -> list[Entry]:
        """The newest values that an older one of the same thing stands after."""
        found = []
        for entry in self.mentioned.newest():
            at = _place(entry.mention, standing)
            if any(_place(older, standing) > at for older in self._passed(entry.mention.subject)):
                found.append(entry)
        return found

    def _passed(self, subject: str) -> list[Mention]:
        """The values of a subject but the newest."""
        return [Mention(name, subject) for name in self.mentioned.series[subject][:-1]]

    def _without_passed(self, parts: Parts, newest: Iterable[Mention]) -> Parts:
        """The parts without the lines that say only an older value of what cannot be listed.

        No value is better than a wrong one; but a line that says more than that value stays, and
        so does a directive.
        """
        passed = [older for one in newest for older in self._passed(one.subject)]
        names = {older.name for older in passed}

        def fine(row: str) -> bool:
            if all(_place(older, row) < 0 for older in passed) or cues.FIRM(Sentence.of(row)):
                return True
            return not {one.name for one in mentions(row, said=True)} <= names

        body = "\n".join(filter(fine, parts.body.splitlines()))
        return replace(parts, body=body, quotes=list(filter(fine, parts.quotes)))

    def _with_newest(self, entry: Entry, chosen: Mapping[str, Entry]) -> dict[str, Entry]:
        """What is listed with an entry: a value that has passed never stands there alone."""
        added = {shown(entry): entry}
        if self.mentioned.passed(entry):
            newest = self.mentioned.newest_of(entry.mention.subject)
            added[shown(newest)] = newest
        return {name: one for name, one in added.items() if name not in chosen}


def shown(entry: Entry) -> str:
    """A mention as it is listed: with what it is the value of, where that is known.

    Without it, a newer value could not tell which one it replaces.
    """
    name, subject, _ = entry.mention
    return f"{subject}{OF}{name}" if subject else name


def _place(mention: Mention, text: str) -> int:
    """Index of the last place of a name or value in a text, -1 where it does not stand.

    A short number counts only on a line with a word of its subject: there are so many of them.
    """
    name, subject, _ = mention
    digits = name.strip("-+.,")
    if not digits.isdigit() or len(digits) > SHORT_NUMBER:
        return last_place(text, name)
    word = subject.rpartition(" ")[2]
    found, start = -1, 0
    for row in text.split("\n"):
        at = last_place(row, name)
        if at >= 0 and word in row.casefold():
            found = start + at
        start += len(row) + 1
    return found
