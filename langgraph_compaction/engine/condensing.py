"""Condensing the chain of segments where it exceeds the digest's budget."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from langgraph_compaction.digest.facts.completing import facts_of
from langgraph_compaction.digest.facts.quotes import CONDENSED_BINDING_SHARE, directive_tokens
from langgraph_compaction.digest.segments import (
    ROOM_SHARE,
    chain_budget,
    condensed_cap,
    joined,
    neighbours,
    parts_of,
)
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.fallback import extracts
from langgraph_compaction.engine.tally import Outcome
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.record import CompactionRecord, DigestSegment, tokens_of
from langgraph_compaction.view.digest import frame_lines

HELD_MOST = 0.25
"""Share of the digest's budget that directives may take in condensed segments beyond what the level
of each allows: with more, the rest would have to be condensed again and again."""
DUE_MOST = 0.1
"""The same for the newest values of what earlier segments have otherwise."""
STILL_SHORTER = 0.95
"""Tokens of a condensed segment as a share of what it replaces at most, whatever it has to hold."""
MOST_OVER = 1.25
"""Times its budget that the digest may have while no tier condenses it: then extracts do."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain as it counts for condensing: without the directives that were condensed already.

    They are not told anew but handed on, so that they say nothing of how much text there is.

    Attributes:
        held: tokens of directives in each segment above level 0.
        segments: with the tokens of their text beside these.
        room: tokens that all directives so held may have.
        budget: tokens that the rest may have.
        goal: tokens that it is to come down to.
    """

    held: Sequence[int]
    segments: Sequence[DigestSegment]
    room: int
    budget: int
    goal: int

    @classmethod
    def of(cls, visit: Visit, segments: Sequence[DigestSegment], budget: int, goal: int) -> Self:
        count, room = visit.counter.text, int(budget * HELD_MOST)
        held = [
            directive_tokens(parts_of(one).quotes, count) if one["level"] else 0 for one in segments
        ]
        net = [
            DigestSegment(**{**one, "tokens": max(1, one["tokens"] - tokens)})
            for one, tokens in zip(segments, held, strict=True)
        ]
        return cls(held, net, room, budget - min(sum(held), room), goal - sum(held))

    def next(self) -> slice | None:
        """The neighbouring segments to condense next; None while the chain is within its goal."""
        return neighbours(self.segments, self.budget, self.goal)

    def cap(self, chosen: slice, binding: int, due: int) -> int:
        """Tokens that the condensed text of some neighbours may have.

        More than their level has where the directives among the user's words (``binding`` tokens)
        or the newest values of what earlier segments have otherwise (``due`` tokens) need it: they
        must not fade, however often they are condensed.
        """
        old = self.segments[chosen]
        elsewhere = sum(self.held) - sum(self.held[chosen])
        needed = condensed_cap(old, self.budget)
        needed += min(int(binding / CONDENSED_BINDING_SHARE), max(0, self.room - elsewhere))
        needed += min(due, int(self.budget * DUE_MOST))
        replaced = tokens_of(old) + sum(self.held[chosen])
        return max(1, min(needed, int(replaced * STILL_SHORTER)))


def condensed(
    visit: Visit, record: CompactionRecord, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, Outcome]:
    """Condense neighbouring segments until the chain is well within its budget."""
    count = visit.counter
    budget = chain_budget(record.get("segments", ()), visit.policy.max_digest)
    failed = False
    goal = budget
    while True:
        segments = record.get("segments", [])
        chain = _Chain.of(visit, segments, budget, goal)
        if tokens_of(segments) <= goal or (chosen := chain.next()) is None:
            break
        goal = int(budget * ROOM_SHARE)
        old = segments[chosen]
        before = visit.texts(segments[: chosen.start])
        facts = facts_of(
            visit.parts(old),
            (),
            before=visit.parts(segments[: chosen.start]),
            cap=partial(chain.cap, chosen),
            count=count.text,
            redact=visit.redacted,
        )
        source = Source(
            chunks=render_segments(facts.old),
            span=(),
            texts=facts.old,
            tokens=tokens_of(old),
            max_tokens=facts.room,
            extract_tokens=facts.extracts,
            previous=before,
            fullness=facts.fullness,
        )
        written = yield from writer.write(source)
        failed = failed or written is None
        if written is None and (urgent or tokens_of(segments) > budget * MOST_OVER):
            written = extracts(source, visit)
        if written is None:
            break
        text, model = written
        one = joined(
            old,
            facts.completed(text),
            model=model,
            count=count.text,
            unsourced=facts.unsourced(text),
            frame=frame_lines(visit.policy.render),
        )
        if one["tokens"] >= tokens_of(old):
            break
        writer.tally.condensed += len(old)
        record = {
            **record,
            "segments": [*segments[: chosen.start], one, *segments[chosen.stop :]],
        }
    return Outcome(record, failed)
