"""One step of compaction as a generator of effects: no I/O here, and nothing written twice.

    decide → fold the span, part by part → condense the chain → fit the hard limit → the new record

The generator yields what has to be done (`CallModel`, `Emit`) and is sent the outcome. A
synchronous and an asynchronous driver (`run.drivers`) perform it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from langgraph_compaction.changes import revised
from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.folding import FALLBACK_NAME, condensed, folded
from langgraph_compaction.engine.limits import fitted, relaxed
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.plan.decision import Decision, decide
from langgraph_compaction.record import CompactionRecord

MOST_PASSES = 3
"""Folds in one visit at most: where the first did not bring the view below its trigger, the next
visit would fold again."""

Steps = Generator[Effect, object, CompactionRecord | None]


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
    for problem in visit.problems:
        yield Emit({"type": "compaction.failed", **facts, "reason": problem})
    if decision.action == "skip":
        yield Emit({"type": "compaction.skipped", **facts})
        return None
    yield Emit({"type": "compaction.started", **facts})
    policy = visit.policy
    tiers = [tier.info for tier in visit.tiers]
    writer = Writer(tiers, visit.counter.text, policy.prompt, policy.instructions)
    record = visit.record
    for _ in range(MOST_PASSES):
        before = record
        record = yield from _pass(visit, replace(visit, record=before), decision, writer, facts)
        if record is before:
            break
        decision = decide(visit.messages, record, policy, visit.counter)
        if decision.action != "fold":
            break
    if record is visit.record:
        return None
    yield Emit({"type": "compaction.completed", **facts, **_outcome(visit, record, writer)})
    return revised(record)


def _pass(
    visit: Visit, now: Visit, decision: Decision, writer: Writer, facts: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """Fold once and see to the limits; ``now`` is the visit with the record so far."""
    record, urgent = now.record, decision.need == "hard"
    if decision.span is not None:
        record = yield from folded(now, decision, decision.span, writer, urgent=urgent)
        record = yield from condensed(now, record, writer, urgent=urgent)
        if writer.exhausted:
            yield Emit(_failure(visit, record, writer, facts))
        record = relaxed(now, record)
        if record is not now.record and now.size(now.layout(record)) >= decision.usage.tokens:
            record = now.record  # a digest that saves nothing only loses detail
    return (yield from fitted(now, record, facts))


def _failure(
    visit: Visit, record: CompactionRecord, writer: Writer, facts: dict[str, Any]
) -> dict[str, Any]:
    segments = record.get("segments", [])
    if record is visit.record:
        rest = "the thread is as it was"
    elif segments and segments[-1]["model"] == FALLBACK_NAME:
        rest = "extracts stand in for it"
    else:
        rest = "what was finished before counts"
    return {
        "type": "compaction.failed",
        **facts,
        "reason": f"no tier wrote an acceptable digest; {rest}",
        "failures": list(writer.failures),
    }


def _outcome(visit: Visit, record: CompactionRecord, writer: Writer) -> dict[str, Any]:
    segments = record.get("segments", [])
    before = visit.record.get("last_summarized_index", -1)
    last = record.get("last_summarized_index", -1)
    return {
        "tokens_after": visit.size(visit.layout(record)),
        "first_index": before + 1 if last > before else None,
        "last_index": last if last > before else None,
        "segments": len(segments),
        "condensed": writer.condensed,
        "digest_tokens": sum(one["tokens"] for one in segments),
        "model": segments[-1]["model"] if segments else None,
        "calls": writer.calls,
    }
