"""Deeds that a text does not tell of: which of them are listed.

An agent that does not read that a mail was sent sends it again. So a text tells of a call only
where one statement has all that tells it from other calls, and none of what is to be done; one line
too many costs a few tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from langgraph_compaction.digest import cues, prompts
from langgraph_compaction.digest.facts.deeds import Deed
from langgraph_compaction.digest.facts.layout import DONE, Parts
from langgraph_compaction.digest.facts.linking import EDGES
from langgraph_compaction.digest.facts.listing import MISSES
from langgraph_compaction.digest.facts.matching import stands
from langgraph_compaction.digest.headings import headings
from langgraph_compaction.digest.sentences import Sentence

DONE_SHARE, DONE_MOST = 0.1, 0.3
"""Shares of a segment's cap for calls with an effect: what is kept free for them at most, however
long the text, and what they may take where the text leaves more."""
TELLING_WORDS = 3
"""Plain words among a call's arguments from which on a line tells it without naming the tool; of
words with a digit or mark, such as an address, one of `NAME_CHARS` is enough."""
NAME_CHARS = 4
"""Characters of such a word at least: "7" and "v2" stand in many lines."""

TELLING = (prompts.CONSTRAINTS, prompts.FINDINGS, prompts.DONE, prompts.REFERENCES)
"""Sections that tell what was, or what the user said. No other tells of a deed, and least of all
one of a user's own name: it may be about what is open."""
_WISHES = (cues.OPEN, cues.INTENT, cues.FIRM, cues.SOFT)
_AHEAD = (cues.OPEN, cues.INTENT)
_LEADS = (":", "：", ":**")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s|\s+\S|\Z")
_CROSSED = re.compile(r"\[ ?\]|[✗✘❌☐⛔]")
"""Marks of what is open or failed."""
_STATEMENTS = re.compile(r"(?<=[.!?])\s|[;。！？；]")


@dataclass(frozen=True, slots=True)
class Doing:
    """Which deeds are listed in a segment.

    Attributes:
        deeds: of its source, oldest first.
        cap: tokens that the segment may have.
        count: tokens of a text.
    """

    deeds: Sequence[Deed]
    cap: int
    count: Callable[[str], int]

    @property
    def due(self) -> int:
        """Tokens that are kept free for them, their label included; no more than all would take."""
        most = int(DONE_SHARE * self.cap)
        needed = self._label
        for deed in self._ranked():
            needed += self._cost(deed)
            if needed >= most:
                return most
        return needed if self.deeds else 0

    def added(self, parts: Parts, left: int) -> Parts:
        """The parts with the deeds that the text does not tell of.

        Args:
            parts: a text and the quotes.
            left: tokens that there are for them.
        """
        statements = list(_statements(parts.body))
        chosen: set[Deed] = set()
        left = min(left, int(DONE_MOST * self.cap)) - self._label
        misses = 0
        for deed in self._ranked():
            if deed.short in parts.body or _told(deed, statements):
                continue
            cost = self._cost(deed)
            if cost <= left:
                chosen.add(deed)
                left -= cost
            else:
                misses += 1
                if misses > MISSES:
                    break
        return replace(parts, done=[deed.line for deed in self.deeds if deed in chosen])

    def _ranked(self) -> list[Deed]:
        """The best of the deeds first: of equal rank the newest."""
        return sorted(self.deeds, key=lambda deed: deed.rank)[::-1]

    @property
    def _label(self) -> int:
        return self.count(f"\n{DONE}\n")

    def _cost(self, deed: Deed) -> int:
        return self.count(f"- {deed.line}\n")


def _statements(text: str) -> Iterator[tuple[str, bool]]:
    """What a text may state as done, in small letters, and whether it stands under Done.

    Elsewhere a statement that directs, wishes or intends is none. What stands above all headings
    may be one: a summary without any tells of the past, too. Items below a line such as "Not sent:"
    are none.
    """
    denied = False
    section: str | None = None
    telling = True
    for row, found in zip(text.splitlines(), headings(text), strict=True):
        if found is not None:
            section, telling = found.section, found.section in TELLING
        if row.rstrip().endswith(_LEADS):
            denied = _denied(Sentence.of(row))
        elif not _ITEM.match(row):
            denied = False
        done = section == prompts.DONE
        if telling and not denied:
            for part in _STATEMENTS.split(row if found is None else found.rest):
                sentence = Sentence.of(part)
                if not any(cue(sentence) for cue in (_AHEAD if done else _WISHES)):
                    yield part.casefold(), done


def _told(deed: Deed, statements: Iterable[tuple[str, bool]]) -> bool:
    """Whether one statement says all that tells a deed from others, and its outcome.

    It has each word of the arguments by itself, and the tool's name unless these say enough and it
    stands under Done. A success is not told by a statement of an error, nor by one that denies,
    asks or plans; a failure by one of an error alone. What came out nobody knows how is told by
    none.
    """
    if deed.outcome == "answered":
        return False
    words, name = _words(deed), deed.tool.casefold()
    enough = len(words) >= TELLING_WORDS or any(
        len(word) >= NAME_CHARS and not word.isalpha() for word in words
    )
    for statement, done in statements:
        needed = words if done and enough else [*words, name]
        if (done or words) and all(stands(statement, word) for word in needed):
            sentence = Sentence.of(statement)
            wrong = cues.ERROR(sentence)
            if wrong if deed.outcome == "error" else not (wrong or _denied(sentence)):
                return True
    return False


def _denied(sentence: Sentence) -> bool:
    """Whether a statement says that something was not done, or only asked or planned."""
    said = cues.NEGATION(sentence) or cues.UNDONE(sentence) or cues.OPEN(sentence)
    return said or sentence.text.endswith(("?", "？")) or bool(_CROSSED.search(sentence.text))


def _words(deed: Deed) -> list[str]:
    """The words of a deed's arguments in small letters, without what was cut."""
    values = (value.casefold() for _, value in deed.arguments)
    parts = (part.strip(EDGES) for value in values for part in value.split())
    return [word for part in parts if not part.endswith("…") and (word := part.lstrip("…"))]
