"""The chain of segments: which neighbours are condensed next, and how long what they become may be.

Levels merge as in a log-structured store, so that no text is condensed at every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph_compaction.digest.facts.quotes import CONDENSED_BINDING_SHARE, directive_tokens
from langgraph_compaction.digest.segments import parts_of
from langgraph_compaction.record import EDITED, LEAST_SEGMENT_TOKENS, DigestSegment, tokens_of

ROOM_SHARE = 0.8
"""Share of the digest's budget that condensing brings it down to: with less room below the budget
every fold would condense again, with more the oldest text would lose detail at once."""
CONDENSED_SHARE = 0.5
"""Tokens of a condensed segment as a share of what it replaces, at most."""
LARGEST_SHARE, LEVEL_SHARE, LEAST_SHARE = 0.2, 0.7, 0.05
"""Shares of the digest's budget that a condensed segment may have: the first on level 1, less with
each level (times the second), down to the last. So there is room for many levels, and a text is
condensed at most as often as the logarithm (base 2) of the folds says (``tests/unit/test_chain``);
5 times over 351 folds in ``tests.benchmarks.endless --steps 20000``."""
LEAST_CONDENSED = 120
"""Tokens that a condensed segment may always have: shorter ones have no room for what binds."""
HELD_MOST = 0.25
"""Share of the digest's budget that directives may take in condensed segments beyond what the level
of each allows: with more, the rest would have to be condensed again and again."""
DUE_MOST = 0.1
"""The same for the newest values of what earlier segments have otherwise."""
STILL_SHORTER = 0.95
"""Tokens of a condensed segment as a share of what it replaces at most, whatever it has to hold."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain as it counts for condensing: without the directives that were condensed already.

    They are not told anew but handed on, so that they say nothing of how much text there is.

    Attributes:
        segments: oldest first.
        held: tokens of directives in each segment above level 0.
        whole: tokens that the chain may have.
    """

    segments: Sequence[DigestSegment]
    held: Sequence[int]
    whole: int

    @classmethod
    def of(
        cls, segments: Sequence[DigestSegment], budget: int, count: Callable[[str], int]
    ) -> Chain:
        """The chain of some segments.

        Args:
            segments: oldest first.
            budget: tokens that the digest may have.
            count: tokens of a text.
        """
        held = [
            directive_tokens(parts_of(one).quotes, count) if one["level"] else 0 for one in segments
        ]
        return cls(segments, held, chain_budget(segments, budget))

    @property
    def _sizes(self) -> list[int]:
        """Tokens of each segment beside what it holds."""
        pairs = zip(self.segments, self.held, strict=True)
        return [max(1, one["tokens"] - held) for one, held in pairs]

    @property
    def _room(self) -> int:
        """Tokens that all directives so held may have."""
        return int(self.whole * HELD_MOST)

    @property
    def _budget(self) -> int:
        """Tokens that the rest may have."""
        return self.whole - min(sum(self.held), self._room)

    def next(self, share: float) -> slice | None:
        """The neighbours to condense next; None while at most a share of the budget is filled."""
        goal = int(self.whole * share)
        if tokens_of(self.segments) <= goal:
            return None
        return neighbours(self.segments, self._sizes, self._budget, goal - sum(self.held))

    def cap(self, chosen: slice, binding: int, due: int) -> int:
        """Tokens that the condensed text of some neighbours may have.

        More than their level has where the directives among the user's words (``binding`` tokens)
        or the newest values of what earlier segments have otherwise (``due`` tokens) need it: they
        must not fade, however often they are condensed.
        """
        old = self.segments[chosen]
        elsewhere = sum(self.held) - sum(self.held[chosen])
        needed = condensed_cap(old, self._sizes[chosen], self._budget)
        needed += min(int(binding / CONDENSED_BINDING_SHARE), max(0, self._room - elsewhere))
        needed += min(due, int(self.whole * DUE_MOST))
        return max(1, min(needed, int(tokens_of(old) * STILL_SHORTER)))


def rolled(segments: Sequence[DigestSegment]) -> list[DigestSegment]:
    """The newest segments up to the last that a person edited: what a rolling digest replaces."""
    edited = [number for number, one in enumerate(segments) if one["model"] == EDITED]
    return list(segments[edited[-1] + 1 if edited else 0 :])


def chain_budget(segments: Sequence[DigestSegment], budget: int) -> int:
    """Tokens that the whole chain may have.

    What a person edited is never condensed: the rest has half of the budget in any case, or a long
    correction would leave no room for anything after it.
    """
    edited = tokens_of([one for one in segments if one["model"] == EDITED])
    return max(budget, edited + budget // 2)


def condensed_cap(old: Sequence[DigestSegment], sizes: Sequence[int], budget: int) -> int:
    """Tokens that the condensed text of some neighbours may have: half of theirs, at most.

    Args:
        old: the segments to condense.
        sizes: tokens of each.
        budget: tokens that all segments together may have.
    """
    level = max(one["level"] for one in old) + 1
    share = max(LARGEST_SHARE * LEVEL_SHARE ** (level - 1), LEAST_SHARE)
    most = max(int(budget * share), min(LEAST_CONDENSED, int(budget * LARGEST_SHARE)))
    most = max(most, LEAST_SEGMENT_TOKENS)
    return max(1, min(int(sum(sizes) * CONDENSED_SHARE), most))


def neighbours(
    segments: Sequence[DigestSegment], sizes: Sequence[int], budget: int, goal: int
) -> slice | None:
    """The neighbouring segments to condense next, or None while the chain is within ``goal``.

    The oldest of the lowest level that has two neighbours, as many as are needed to come down to
    the goal, but no more than fit one segment at half their size; the newest segment is left alone
    while there are others. So levels merge as in a log-structured store. What a person edited and
    the newest quoted request are never condensed.

    Args:
        segments: the chain, oldest first.
        sizes: tokens of each.
        budget: tokens that all segments together may have.
        goal: tokens that they are to come down to.
    """
    total = sum(sizes)
    if total <= goal or len(segments) < 2:
        return None
    found = _lowest_run(segments)
    if found is None:
        return None
    start, stop = found
    for end in range(start + 2, stop):
        old, more = slice(start, end), slice(start, end + 1)
        cap = condensed_cap(segments[old], sizes[old], budget)
        most = condensed_cap(segments[more], sizes[more], budget)
        left = total - sum(sizes[old]) + cap
        if left <= goal or int(sum(sizes[more]) * CONDENSED_SHARE) > most:
            return slice(start, end)
    return slice(start, stop)


def _lowest_run(segments: Sequence[DigestSegment]) -> tuple[int, int] | None:
    """Start and stop of the run of one level to condense from; at least two segments long.

    What a person wrote is in no run, and neither is the newest quoted request: a correction and
    the work in hand must not fade.
    """
    quotes = [index for index, segment in enumerate(segments) if segment.get("quoted")]
    fixed = {index for index, segment in enumerate(segments) if segment["model"] == EDITED}
    fixed.update(quotes[-1:])
    runs: list[tuple[int, int, int]] = []
    pairs: list[int] = []
    start = 0
    for index in range(1, len(segments) + 1):
        level = segments[index - 1]["level"]
        if index < len(segments) and not fixed & {index - 1, index}:
            pairs.append(index - 1)
            if segments[index]["level"] == level:
                continue
        runs.append((level, start, index))
        start = index
    for _, first, stop in sorted(runs):
        older = min(stop, len(segments) - 1)
        if older - first >= 2:
            return first, older
    # No two neighbours of one level beside the newest segment: the two oldest join.
    return (pairs[0], pairs[0] + 2) if pairs else None
