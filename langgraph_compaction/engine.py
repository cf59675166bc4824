"""One step of compaction as a generator of effects: no I/O here, and nothing written twice.

    decide → fold the span, part by part → condense the chain → fit the hard limit → the new record

The generator yields what has to be done (`CallModel`, `Emit`) and is sent the outcome. A
synchronous and an asynchronous driver (`run.drivers`) perform it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.changes import advanced, revised
from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.parts import pack
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.segments import condensed_cap, joined, neighbours, seal
from langgraph_compaction.digest.source import Source, render_group, render_segments
from langgraph_compaction.effects import Described, Effect, Emit
from langgraph_compaction.errors import BudgetError
from langgraph_compaction.plan.boundaries import Span
from langgraph_compaction.plan.decision import Counter, Decision, decide
from langgraph_compaction.plan.fitting import Fit, fitted_render, longest_text
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.state import (
    CompactionRecord,
    DigestSegment,
    Render,
    message_key,
    segment_tokens,
)
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.pairing import groups
from langgraph_compaction.writing import Writer

Steps = Generator[Effect, object, CompactionRecord | None]

FALLBACK = ExtractiveSummarizer()
"""Writes the segment where the view exceeds the hard limit and every tier failed."""
FALLBACK_NAME = "extractive"


@dataclass(frozen=True, slots=True)
class Visit:
    """Everything one step looks at.

    Attributes:
        messages: the messages channel.
        record: the record in the state.
        policy: the numbers to decide by.
        counter: counts tokens.
        tiers: the cascade, in the order in which it is tried.
    """

    messages: Sequence[BaseMessage]
    record: CompactionRecord
    policy: Policy
    counter: Counter
    tiers: Sequence[Described]

    def size(self, layout: Layout) -> int:
        """Tokens of a call with this view."""
        return self.counter.messages(layout.view()) + self.policy.overhead

    def layout(self, record: CompactionRecord) -> Layout:
        """The parts of the view under ``record``."""
        return lay_out(self.messages, record, defaults=self.policy.render)


def compaction_steps(visit: Visit) -> Steps:
    """Look at a thread once and do what is needed.

    Returns:
        The new record, or None where nothing changed.

    Raises:
        BudgetError: what must stay does not fit the window, even clipped.
    """
    decision = decide(visit.messages, visit.record, visit.policy, visit.counter)
    if decision.action == "none":
        return None
    facts = {
        "need": decision.need,
        "reason": decision.reason,
        "tokens_before": decision.usage.tokens,
    }
    if decision.action == "skip":
        yield Emit({"type": "compaction.skipped", **facts})
        return None
    yield Emit({"type": "compaction.started", **facts})
    policy = visit.policy
    tiers = [tier.info for tier in visit.tiers]
    writer = Writer(tiers, visit.counter.text, policy.prompt, policy.instructions)
    urgent = decision.need == "hard"
    record = visit.record
    if decision.span is not None:
        record = yield from _folded(visit, decision, decision.span, writer, urgent=urgent)
        record = yield from _condensed(visit, record, writer, urgent=urgent)
        record = _relaxed(visit, record)
    record = yield from _fitted(visit, record, facts)
    if writer.exhausted:
        reason = "no tier wrote an acceptable digest" + (
            "; extracts stand in for it" if urgent else "; the span stays as it was"
        )
        failures = list(writer.failures)
        yield Emit({"type": "compaction.failed", **facts, "reason": reason, "failures": failures})
    if record is visit.record:
        return None
    yield Emit({"type": "compaction.completed", **facts, **_outcome(visit, record, writer)})
    return revised(record)


def _outcome(visit: Visit, record: CompactionRecord, writer: Writer) -> dict[str, Any]:
    segments = record.get("segments", [])
    before = visit.record.get("last_summarized_index", -1)
    return {
        "tokens_after": visit.size(visit.layout(record)),
        "first_index": before + 1,
        "last_index": record.get("last_summarized_index", -1),
        "segments": len(segments),
        "digest_tokens": sum(map(segment_tokens, segments)),
        "model": segments[-1].get("model") if segments else None,
        "calls": writer.calls,
    }


# ---- folding


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


def _folded(
    visit: Visit, decision: Decision, span: Span, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, CompactionRecord]:
    """Fold the span part by part; a finished part counts even if a later one fails."""
    messages, policy, count = visit.messages, visit.policy, visit.counter
    anchor = decision.layout.anchor
    render: Render = {**policy.render, **visit.record.get("render", {}), "task": span.task}
    steps = visit.record.get("fold_steps", 0) + decision.usage.steps
    record = visit.record
    # A digest that is not shown belongs to a chat that was cleared: the chain starts anew.
    chain: list[DigestSegment] = record.get("segments", []) if anchor.digest else []
    covered = anchor.position - 1
    waiting = set(span.folded)
    for part in _parts(visit, decision, span, writer):
        members = [messages[index] for index in part.folded]
        replaced = count.messages(decision.layout.clipped(members))
        source = Source(
            chunks=part.chunks,
            span=members,
            texts=(),
            tokens=replaced,
            max_tokens=policy.segment_cap(replaced),
            previous=[segment["text"] for segment in chain],
        )
        written = yield from writer.write(source)
        if written is None and urgent:
            written = _extracts(source, count), FALLBACK_NAME
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
            quoted=_quoted(visit, span, part),
            absorbed_ids=[message_key(messages[i], i) for i in part.folded if i < anchor.boundary],
        )
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


def _extracts(source: Source, count: Counter) -> str:
    if source.condenses:
        return FALLBACK.condense(source.texts, max_tokens=source.max_tokens, count=count.text)
    return FALLBACK.summarize(source.span, max_tokens=source.max_tokens, count=count.text)


# ---- condensing


def _condensed(
    visit: Visit, record: CompactionRecord, writer: Writer, *, urgent: bool
) -> Generator[Effect, object, CompactionRecord]:
    """Condense neighbouring segments until the chain is within its budget."""
    budget = visit.policy.max_digest
    while (chosen := neighbours(record.get("segments", []), budget)) is not None:
        segments = record["segments"]
        old = segments[chosen]
        tokens = sum(map(segment_tokens, old))
        source = Source(
            chunks=render_segments([segment["text"] for segment in old]),
            span=(),
            texts=[segment["text"] for segment in old],
            tokens=tokens,
            max_tokens=condensed_cap(old, budget, visit.policy.min_segment),
            previous=[segment["text"] for segment in segments[: chosen.start]],
        )
        written = yield from writer.write(source)
        if written is None and urgent:
            written = _extracts(source, visit.counter), FALLBACK_NAME
        if written is None:
            break
        text, model = written
        one = joined(old, text, model=model, count=visit.counter.text)
        if one["tokens"] >= tokens:
            break
        record = {
            **record,
            "segments": [*segments[: chosen.start], one, *segments[chosen.stop :]],
        }
    return record


# ---- fitting the hard limit


def _relaxed(visit: Visit, record: CompactionRecord) -> CompactionRecord:
    """The record rendered as the settings say now, unless tighter clips are still needed.

    A fold is the one moment at which the view changes anyway, so new settings and looser clips
    come into force with it.
    """
    if record is visit.record:
        return record
    loose: CompactionRecord = {
        **record,
        "render": {**visit.policy.render, "task": record["render"]["task"]},
    }
    limits = [limit for limit in (visit.policy.soft, visit.policy.hard) if limit is not None]
    if limits and visit.size(visit.layout(loose)) >= min(limits):
        return record
    return loose


def _fitted(
    visit: Visit, record: CompactionRecord, facts: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """Clip oversized results, then human messages, until the view is within the hard limit."""
    hard, window = visit.policy.hard, visit.policy.window
    layout = visit.layout(record)
    if hard is None or window is None or visit.size(layout) <= hard:
        return record
    render: Render = {**visit.policy.render, **record.get("render", {})}

    def under(candidate: Render) -> CompactionRecord:
        return {**record, "render": candidate}

    def fit(limit: int) -> Fit:
        longest = longest_text(layout.view())
        return fitted_render(
            render, lambda limits: visit.size(visit.layout(under(limits))), limit, longest=longest
        )

    # Better a view that reaches into the reserve than the tightest clips for nothing.
    found = fit(hard)
    found = found if found.fits else fit(window)
    if not found.fits:
        sizes = _sizes(visit, visit.layout(under(found.limits)))
        message = _over_budget(sizes, window)
        yield Emit({"type": "compaction.failed", **facts, "reason": message})
        raise BudgetError(message, sizes=sizes, limit=window)
    return record if found.limits == render else under(found.limits)


def _over_budget(sizes: dict[str, int], window: int) -> str:
    listed = ", ".join(f"{name} {tokens}" for name, tokens in sizes.items())
    return (
        f"What must stay in the view takes {sum(sizes.values())} tokens, but the window has "
        f"{window}: {listed}. Unpin messages, shorten the system prompt or the task, lower "
        "overhead_tokens, or use a model with a larger window."
    )


def _sizes(visit: Visit, layout: Layout) -> dict[str, int]:
    count = visit.counter.messages
    parts = {
        "system messages": count(layout.leading),
        "task": count(layout.task),
        "digest": visit.counter.text(layout.digest or ""),
        "kept messages": count(layout.kept),
        "recent messages": count(layout.recent),
        "overhead": visit.policy.overhead,
    }
    return {name: tokens for name, tokens in parts.items() if tokens}
