"""Condensing the chain of segments where it exceeds the digest's budget."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from langgraph_compaction.digest.chain import ROOM_SHARE, Chain
from langgraph_compaction.digest.facts.completing import facts_of
from langgraph_compaction.digest.segments import joined
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.fallback import extracts
from langgraph_compaction.engine.tally import Outcome
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.record import CompactionRecord, tokens_of
from langgraph_compaction.view.digest import frame_lines

MOST_OVER = 1.25
"""Times its budget that the digest may have while no tier condenses it: then extracts do."""


def condensed(
    visit: Visit, record: CompactionRecord, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, Outcome]:
    """Condense neighbouring segments until the chain is well within its budget."""
    count = visit.counter
    failed, share = False, 1.0
    while True:
        segments = record.get("segments", [])
        chain = Chain.of(segments, visit.policy.max_digest, count.text)
        if (chosen := chain.next(share)) is None:
            break
        share = ROOM_SHARE  # what is condensed at all makes room for some folds
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
        if written is None and (urgent or tokens_of(segments) > chain.whole * MOST_OVER):
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
