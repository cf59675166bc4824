"""Folding a span into segments, part by part, and condensing the chain over its budget."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_compaction.changes import advanced
from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.parts import pack
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.segments import condensed_cap, joined, neighbours, seal
from langgraph_compaction.digest.source import Source, render_group, render_segments
from langgraph_compaction.engine.effects import Effect
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.plan.boundaries import Span
from langgraph_compaction.plan.decision import Decision
from langgraph_compaction.plan.fitting import Counter
from langgraph_compaction.record import (
    LEAST_SEGMENT_TOKENS,
    CompactionRecord,
    DigestSegment,
    Render,
    message_key,
)
from langgraph_compaction.view.digest import frame_lines
from langgraph_compaction.view.pairing import groups

FALLBACK = ExtractiveSummarizer()
"""Writes the segment where the view exceeds the hard limit and every tier failed."""
FALLBACK_NAME = "extractive"
MOST_OVER = 1.25
"""Times its budget that the digest may have while no tier condenses it: then extracts do."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the span that becomes one segment.

    Attributes:
        folded: indexes of its messages, ascending.
        chunks: its groups as the summariser reads them.
        stop: index after the last message that is covered once it is folded.
    """

    folded: Sequence[int]
    chunks: Sequence[str]
    stop: int


def folded(
    visit: Visit, decision: Decision, span: Span, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, CompactionRecord]:
    """Fold the span part by part; a finished part counts even if a later one fails."""
    messages, policy, count = visit.messages, visit.policy, visit.counter
    anchor = decision.layout.anchor
    render: Render = {**policy.render, **visit.record.get("render", {}), "task": span.task}
    steps = visit.record.get("steps_at_fold", 0) + decision.usage.steps
    record = visit.record
    # A digest that is not shown belongs to a chat that was cleared: the chain starts anew.
    chain: list[DigestSegment] = record.get("segments", []) if anchor.digest else []
    covered = anchor.position - 1
    waiting = set(span.folded)
    for part in _parts(visit, decision, span, writer):
        members = [messages[index] for index in part.folded]
        quoted = _quoted(visit, span, part)
        replaced = count.messages(decision.layout.clipped(members))
        source = Source(
            chunks=part.chunks,
            span=members,
            texts=(),
            tokens=replaced,
            max_tokens=policy.segment_cap(replaced - count.text(quoted or "")),
            previous=[segment["text"] for segment in chain],
        )
        written = yield from writer.write(source)
        if written is None and urgent:
            written = _extracts(source, count)
        if written is None:
            break
        text, model = written
        last = anchor.position_of(part.stop - 1)
        segment = seal(
            text,
            first_index=min(covered + 1, last),
            last_index=last,
            last_id=messages[part.stop - 1].id,
            step=steps,
            source_tokens=replaced,
            model=model,
            count=count.text,
            quoted=quoted,
            frame=frame_lines(policy.render),
            absorbed=[
                (message_key(messages[i], i), anchor.position_of(i))
                for i in part.folded
                if i < anchor.boundary
            ],
        )
        if segment["tokens"] >= replaced:  # its heading or a quote outweighs what was saved
            writer.exhausted = True
            writer.failures.append(f"{model}: with its heading, the text saves nothing")
            break
        chain, covered = [*chain, segment], last
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
    return record


def _quoted(visit: Visit, span: Span, part: _Part) -> str | None:
    if span.quoted is None or span.quoted not in part.folded:
        return None
    return message_text(visit.messages[span.quoted])


def _parts(visit: Visit, decision: Decision, span: Span, writer: Writer) -> list[_Part]:
    """Divide the span between groups so that each part fits every tier's window."""
    anchor = decision.layout.anchor
    members = [visit.messages[index] for index in span.folded]
    positions = [anchor.position_of(index) for index in span.folded]
    found = list(groups(members))
    rendered = [
        render_group(members, group, positions, visit.policy.clamp_chars) for group in found
    ]
    limit = writer.least_room(visit.policy.max_segment)
    runs = pack([visit.counter.text(text) for text in rendered], limit)
    parts = []
    for run in runs:
        first, last = found[run][0].start, found[run][-1].stop
        following = span.folded[last] if last < len(span.folded) else span.stop
        parts.append(
            _Part(
                folded=span.folded[first:last],
                chunks=rendered[run],
                stop=max(anchor.boundary, following),
            )
        )
    return parts


def condensed(
    visit: Visit, record: CompactionRecord, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, CompactionRecord]:
    """Condense neighbouring segments until the chain is within its budget."""
    budget, least = visit.policy.max_digest, visit.policy.min_segment
    while (chosen := neighbours(record.get("segments", []), budget, least)) is not None:
        segments = record["segments"]
        old = segments[chosen]
        tokens = sum(one["tokens"] for one in old)
        source = Source(
            chunks=render_segments([segment["text"] for segment in old]),
            span=(),
            texts=[segment["text"] for segment in old],
            tokens=tokens,
            max_tokens=condensed_cap(old, budget, least),
            previous=[segment["text"] for segment in segments[: chosen.start]],
        )
        written = yield from writer.write(source)
        over = sum(one["tokens"] for one in segments) > budget * MOST_OVER
        if written is None and (urgent or over):
            written = _extracts(source, visit.counter)
        if written is None:
            break
        text, model = written
        frame = frame_lines(visit.policy.render)
        one = joined(old, text, model=model, count=visit.counter.text, frame=frame)
        if one["tokens"] >= tokens:
            break
        writer.condensed += len(old)
        record = {
            **record,
            "segments": [*segments[: chosen.start], one, *segments[chosen.stop :]],
        }
    return record


def _extracts(source: Source, count: Counter) -> tuple[str, str] | None:
    """Extracts and their writer's name; None where there is no room even for those."""
    if source.max_tokens < LEAST_SEGMENT_TOKENS:
        return None
    limits: dict[str, Any] = {"max_tokens": source.max_tokens, "count": count.text}
    try:
        if source.condenses:
            return FALLBACK.condense(source.texts, **limits), FALLBACK_NAME
        return FALLBACK.summarize(source.span, **limits), FALLBACK_NAME
    except Exception:  # noqa: BLE001  # the last means must not be what ends a run
        return None
