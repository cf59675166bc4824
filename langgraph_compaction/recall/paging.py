"""A long text in pages that fit a number of tokens, and the piece of it that a search is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from langgraph_compaction.recall.comparing import comparable

Count = Callable[[str], int]
"""Tokens of a text."""

UNIT_CHARS = 400
"""Characters of a line above which a page may end within it."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BETWEEN = re.compile(r"[\W_]")
"""Where a line without spaces is cut: a search would not find a word in two pieces."""


def pages(text: str, budget: int, count: Count) -> list[str]:
    """``text`` in pages of at most ``budget`` tokens; joined they are the text.

    A page ends at the end of a line, but for lines that are long. Only a single character may be
    over the budget.
    """
    found: list[str] = []
    units: list[str] = []
    size = 0
    for unit in _units(text, budget, count):
        tokens = count(unit)
        if units and size + tokens > budget:
            found.extend(_fitting(units, budget, count))
            units, size = [], 0
        units.append(unit)
        size += tokens
    found.extend(_fitting(units, budget, count))
    return found or [""]


def excerpt(text: str, budget: int, count: Count, wanted: Collection[str]) -> str:
    """The piece of ``text``, of at most ``budget`` tokens, that has the most of the words.

    Args:
        text: a passage.
        budget: tokens.
        count: counts them.
        wanted: the words, as `comparable` gives them.
    """
    if count(text) <= budget:
        return text
    units = list(_units(text, max(1, budget - 2), count))  # two for the marks of a cut
    plain = map(comparable, units)
    hits = [sum(word in unit for word in wanted) for unit in plain]
    start = hits.index(max(hits))
    stop = start + 1
    while True:
        for wider in ((start, stop + 1), (start - 1, stop)):
            if wider[0] >= 0 and wider[1] <= len(units) and _fits(units, wider, budget, count):
                start, stop = wider
                break
        else:
            return _cut(units, start, stop)


def _fits(units: Sequence[str], span: tuple[int, int], budget: int, count: Count) -> bool:
    return count(_cut(units, *span)) <= budget


def _cut(units: Sequence[str], start: int, stop: int) -> str:
    before = "…" if start > 0 else ""
    after = "…" if stop < len(units) else ""
    return before + "".join(units[start:stop]).strip("\n") + after


def _fitting(units: list[str], budget: int, count: Count) -> Iterator[str]:
    """The units joined; in parts where together they take more tokens than one by one."""
    text = "".join(units)
    if not units:
        return
    if len(units) == 1 or count(text) <= budget:
        yield text
        return
    half = len(units) // 2
    yield from _fitting(units[:half], budget, count)
    yield from _fitting(units[half:], budget, count)


def _units(text: str, budget: int, count: Count) -> Iterator[str]:
    """The lines of ``text``, ends included; long ones in pieces, each within the budget."""
    for line in _LINE.findall(text):
        for piece in _pieces(line):
            yield from _small(piece, budget, count)


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > UNIT_CHARS:
        least, most = start + UNIT_CHARS // 2, start + UNIT_CHARS
        space = line.rfind(" ", least, most)
        if space < 0:
            marks = [mark.start() for mark in _BETWEEN.finditer(line, least, most)]
            space = marks[-1] if marks else most - 1
        stop = space + 1
        yield line[start:stop]
        start = stop
    yield line[start:]


def _small(piece: str, budget: int, count: Count) -> Iterator[str]:
    if len(piece) < 2 or count(piece) <= budget:
        yield piece
        return
    half = len(piece) // 2
    yield from _small(piece[:half], budget, count)
    yield from _small(piece[half:], budget, count)
