"""Condensing the chain of segments where it exceeds the digest's budget."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial

from langgraph_compaction.digest.facts.completing import facts_of
from langgraph_compaction.digest.facts.quotes import CONDENSED_BINDING_SHARE
from langgraph_compaction.digest.segments import (
    LEAST_CONDENSED,
    ROOM_SHARE,
    chain_budget,
    condensed_cap,
    joined,
    neighbours,
)
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.fallback import extracts
from langgraph_compaction.engine.tally import Outcome
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.record import CompactionRecord, DigestSegment, tokens_of
from langgraph_compaction.view.digest import frame_lines

BINDING_MOST = 0.4
"""Share of the digest's budget that one condensed segment may have for the sake of directives."""
STILL_SHORTER = 0.95
"""Tokens of a condensed segment as a share of what it replaces at most, even then."""
MOST_OVER = 1.25
"""Times its budget that the digest may have while no tier condenses it: then extracts do."""


def _cap(old: Sequence[DigestSegment], budget: int, binding: int, due: int) -> int:
    """Tokens that the condensed text of some neighbours may have.

    More than their level has where the directives among the user's words (``binding`` tokens) or
    the newest values of what earlier segments have otherwise (``due`` tokens) need it: they must
    not fade, however often they are condensed.
    """
    needed = int(binding / CONDENSED_BINDING_SHARE) + due + LEAST_CONDENSED // 2
    most = min(int(budget * BINDING_MOST), int(tokens_of(old) * STILL_SHORTER))
    return max(condensed_cap(old, budget), min(needed, most))


def condensed(
    visit: Visit, record: CompactionRecord, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, Outcome]:
    """Condense neighbouring segments until the chain is well within its budget."""
    count = visit.counter
    budget = chain_budget(record.get("segments", ()), visit.policy.max_digest)
    failed = False
    goal = budget
    while (chosen := neighbours(record.get("segments", []), budget, goal)) is not None:
        goal = int(budget * ROOM_SHARE)
        segments = record["segments"]
        old = segments[chosen]
        before = visit.texts(segments[: chosen.start])
        facts = facts_of(
            visit.parts(old),
            (),
            before=visit.parts(segments[: chosen.start]),
            cap=partial(_cap, old, budget),
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
