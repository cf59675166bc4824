"""Folding a span into segments, part by part."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.changes import advanced, last_covered
from langgraph_compaction.digest.chain import chain_budget, rolled
from langgraph_compaction.digest.dividing import LEAST_PART, pack, without_small
from langgraph_compaction.digest.facts.completing import Facts, facts_of
from langgraph_compaction.digest.redaction import redacted_messages
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.segments import seal
from langgraph_compaction.digest.source import Source, render_group, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.fallback import extracts
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
from langgraph_compaction.view.anchors import Anchor
from langgraph_compaction.view.digest import frame_lines
from langgraph_compaction.view.marks import is_by_user
from langgraph_compaction.view.pairing import groups


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the span: what becomes one segment.

    Attributes:
        folded: indexes of its messages, ascending.
        members: the messages.
        chunks: its groups as the summariser reads them.
        stop: index after the last message that is covered once it is folded.
        absorbed: those of them that were kept at an earlier fold, and what stands between them and
            the covered range's end, each with whether it is one of them.
        quoted: the user's newest message if it is among them, in full; else "".
        tokens: of its messages in the view.
    """

    folded: Sequence[int]
    members: Sequence[BaseMessage]
    chunks: Sequence[str]
    stop: int
    absorbed: Sequence[tuple[BaseMessage, bool]]
    quoted: str
    tokens: int


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
    for part in _parts(visit, decision, span, writer):
        draft = _draft(visit, chain, part, roll=visit.policy.rolling)
        written = yield from writer.write(draft.source)
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


def _draft(visit: Visit, chain: list[DigestSegment], part: _Part, *, roll: bool) -> _Draft:
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


def _absorbed(
    visit: Visit, anchor: Anchor, folded: Sequence[int]
) -> list[tuple[BaseMessage, bool]]:
    """What a part takes in from before the boundary, with what came after it there."""
    taken = {index for index in folded if index < anchor.boundary}
    if not taken:
        return []
    indexes = range(min(taken), anchor.boundary)
    found = redacted_messages((visit.messages[index] for index in indexes), visit.redact)
    return [(message, index in taken) for index, message in zip(indexes, found, strict=True)]


def _parts(visit: Visit, decision: Decision, span: Span, writer: Writer) -> list[_Part]:
    """Divide the span between groups so that each part fits every tier's window."""
    anchor = decision.layout.anchor
    originals = [visit.messages[index] for index in span.folded]
    members = redacted_messages(originals, visit.redact)
    positions = [anchor.position_of(index) for index in span.folded]
    found = list(groups(members))
    policy = visit.policy
    rendered = [
        render_group(members, group, positions, policy.clamp_chars, policy.tool_markers)
        for group in found
    ]
    limit = writer.least_room(visit.policy.max_segment)
    sizes = [visit.counter.text(text) for text in rendered]
    parts = []
    for run in without_small(pack(sizes, limit), sizes, LEAST_PART):
        first, last = found[run][0].start, found[run][-1].stop
        following = span.folded[last] if last < len(span.folded) else span.stop
        folded, inside = span.folded[first:last], members[first:last]
        quoted = next(
            (one for at, one in zip(folded, inside, strict=True) if at == span.quoted), None
        )
        parts.append(
            _Part(
                folded=folded,
                members=inside,
                chunks=rendered[run],
                stop=max(anchor.boundary, following),
                absorbed=_absorbed(visit, anchor, folded),
                quoted=visit.redacted(message_text(quoted)) if quoted else "",
                tokens=visit.counter.messages(decision.layout.shown(folded)),
            )
        )
    return parts
