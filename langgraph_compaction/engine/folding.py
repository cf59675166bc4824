"""Folding a span into segments, part by part."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from langgraph_compaction.changes import advanced, last_covered
from langgraph_compaction.digest.chain import chain_budget, rolled
from langgraph_compaction.digest.facts.completing import Facts, facts_of
from langgraph_compaction.digest.segments import seal
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.fallback import extracts
from langgraph_compaction.engine.parts import Divided, Part
from langgraph_compaction.engine.tally import Outcome
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.plan.boundaries import SEGMENT_FRAME, Span
from langgraph_compaction.plan.decision import Decision
from langgraph_compaction.record import (
    DigestSegment,
    Render,
    message_key,
    render_of,
    tokens_of,
)
from langgraph_compaction.view.digest import frame_lines
from langgraph_compaction.view.marks import is_by_user


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a segment is made of.

    Attributes:
        standing: the segments that stay before it.
        old: those that it replaces; empty unless the digest rolls.
        facts: what it must not lose.
        source: what a summariser writes its text from.
    """

    standing: list[DigestSegment]
    old: list[DigestSegment]
    facts: Facts
    source: Source


def folded(
    visit: Visit, decision: Decision, span: Span, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, Outcome]:
    """Fold the span part by part; a finished part counts even if a later one fails."""
    messages, anchor = visit.messages, decision.layout.anchor
    render: Render = {**render_of(visit.record, visit.policy.render), "task": span.task}
    steps = visit.record.get("steps_at_fold", 0) + decision.usage.steps
    record, failed = visit.record, False
    # A digest that is not shown belongs to a chat that was cleared: the chain starts anew.
    chain: list[DigestSegment] = record.get("segments", []) if anchor.digest else []
    covered = anchor.position - 1
    waiting = set(span.folded)
    whole = Divided.of(visit, decision, span)
    # What is not folded yet, the next of it last, each with the first tier that may be asked. What
    # one tier could not write is divided anew, for the window of the one after it.
    left = [(whole.all, 0)] if whole.found else []
    while left:
        run, first = left.pop()
        tier = writer.next_tier(first)
        run, rest = whole.divided(run, writer.room_of(tier, visit.policy.max_segment))
        if rest is not None:
            left.append((rest, first))
        part = whole.part(run)
        draft = _draft(visit, chain, part, roll=visit.policy.rolling)
        written = None if tier is None else (yield from writer.ask(tier, draft.source))
        if written is None and tier is not None and writer.next_tier(tier + 1) is not None:
            left.append((run, tier + 1))
            continue
        failed = failed or written is None
        if written is None and urgent:
            # The digest so far stays as a model wrote it: extracts stand beside it.
            draft = _draft(visit, chain, part, roll=False)
            written = extracts(draft.source, visit)
        if written is None:
            break
        text, model = written
        last, last_id = last_covered(record, messages, anchor, part.stop)
        segment = seal(
            draft.facts.completed(text),
            first_index=min(covered + 1, last),
            last_index=last,
            last_id=last_id,
            step=steps,
            source_tokens=part.tokens,
            model=model,
            count=visit.counter.text,
            quoted=bool(draft.facts.newest),
            unsourced=draft.facts.unsourced(text),
            frame=frame_lines(visit.policy.render),
            absorbed=[
                (message_key(messages[i], i), anchor.position_of(i))
                for i in part.folded
                if i < anchor.boundary
            ],
            old=draft.old,
        )
        if segment["tokens"] >= draft.source.tokens:  # its heading or a quote outweighs the rest
            failed = True
            writer.tally.failures.append(f"{model}: with its heading, the text saves nothing")
            break
        chain, covered = [*draft.standing, segment], last
        waiting.difference_update(part.folded)
        record = advanced(
            record,
            messages,
            anchor,
            stop=part.stop,
            kept=sorted(i for i in (*span.kept, *waiting) if i < part.stop),
            segments=chain,
            render=render,
            steps=steps,
        )
    return Outcome(record, failed)


def _draft(visit: Visit, chain: list[DigestSegment], part: Part, *, roll: bool) -> _Draft:
    """What the part's segment is made of, and of which segments if the digest rolls."""
    policy, count = visit.policy, visit.counter.text
    old = rolled(chain) if roll else []
    standing = chain[: len(chain) - len(old)]
    before = visit.texts(standing)
    apart = visit.parts(old)
    newest = part.quoted
    said = (is_by_user(one) for one in visit.messages[part.folded[0] :])
    if apart and not any(said):
        # Still the newest: the work on it goes on. Extracts may stand behind the one that has it.
        newest = next((one.newest for one in reversed(apart) if one.newest), "")
    cap = policy.segment_cap(part.tokens - count(part.quoted), tokens_of(chain))
    if old:
        left = chain_budget(chain, policy.max_digest) - tokens_of(standing) - SEGMENT_FRAME
        cap = max(cap, min(left, tokens_of(old) + cap))
    facts = facts_of(
        apart,
        part.members,
        before=visit.parts(standing),
        cap=cap,
        count=count,
        newest=newest,
        absorbed=part.absorbed,
        redact=visit.redacted,
    )
    source = Source(
        chunks=[*render_segments(facts.old), *part.chunks],
        span=part.members,
        texts=facts.old,
        tokens=part.tokens + tokens_of(old),
        max_tokens=facts.room,
        extract_tokens=facts.extracts,
        previous=before,
        fullness=facts.fullness,
    )
    return _Draft(standing, old, facts, source)
