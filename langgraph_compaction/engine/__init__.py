"""One step of compaction as a generator of effects: no I/O here, and nothing written twice.

    decide → clear old results, or fold the span and condense the chain → fit the hard limit →
    remember what the next visits need → prune → the new record

The generator yields what has to be done (`CallModel`, `Emit`, `Propose`, `ArchiveOriginals`) and is
sent the outcome. A synchronous and an asynchronous driver (`run.drivers`) perform it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from langgraph_compaction.changes import revised, with_failures, with_request, without_failures
from langgraph_compaction.engine.clearing import clear, cleared_to_fit
from langgraph_compaction.engine.condensing import condensed
from langgraph_compaction.engine.effects import Effect, Emit, Propose
from langgraph_compaction.engine.events import (
    common_fields,
    completed,
    fold_failed,
    is_completed,
    told_problems,
)
from langgraph_compaction.engine.folding import folded
from langgraph_compaction.engine.limits import fitted, relaxed
from langgraph_compaction.engine.pruning import pruned
from langgraph_compaction.engine.tally import Change, Outcome
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.errors import CascadeExhaustedError, RedactionError
from langgraph_compaction.plan.boundaries import Span
from langgraph_compaction.plan.cooling import failed_again
from langgraph_compaction.plan.decision import Decision, decide, decide_unfolded
from langgraph_compaction.record import CompactionRecord

MOST_PASSES = 3
"""Folds in one visit at most: where the first did not bring the view below its trigger, the next
visit would fold again."""

VETOED = "The hook vetoed the fold."

Steps = Generator[Effect, object, Change | None]


def compaction_steps(visit: Visit) -> Steps:
    """Look at a thread once and do what is needed.

    Returns:
        What changes in the state, or None where nothing does.

    Raises:
        BudgetError: what must stay does not fit the window, even clipped.
        CascadeExhaustedError: no tier wrote an acceptable digest, the view still fits, and the
            settings say that this ends the run.
        RedactionError: the ``redact`` function failed, and the settings say that this ends the run.
    """
    decision = decide(visit)
    common = common_fields(decision)
    yield from told_problems(visit, common)
    if decision.action == "none":
        return None
    if decision.action in {"fold", "clip"}:
        started = {"type": "compaction.started", **common}
        vetoed = yield Propose(started) if decision.action == "fold" else Emit(started)
        if vetoed and decision.action == "fold":
            common["reason"] = VETOED
            yield Emit({"type": "compaction.skipped", **common})
            if decision.need != "hard":
                return skipped(decision, visit.record, visit.run)
            decision = decide_unfolded(visit)
    elif decision.action == "skip":
        yield Emit({"type": "compaction.skipped", **common})
        return skipped(decision, visit.record, visit.run)
    return (yield from _carry_out(replace(visit, policy=decision.policy), decision, common))


def skipped(decision: Decision, record: CompactionRecord, run: str) -> Change | None:
    """A request counts as carried out even where nothing is done; else nothing changes."""
    if decision.request is None:
        return None
    return Change(revised(with_request(record, decision.request.id), run))


def _carry_out(visit: Visit, decision: Decision, common: dict[str, Any]) -> Steps:
    """Clear, or fold as often as it takes; fit the hard limit; remove what the record hides."""
    writer = writer_for(visit, decision)
    if visit.until is None or decision.span is None:
        record, failed = yield from _passes(visit, decision, writer, common)
    else:
        record, failed = yield from _as_chosen(visit, decision, decision.span, writer, common)
    if failed and visit.policy.raises and decision.need != "hard":
        raise CascadeExhaustedError(writer.tally.failures)
    asked = writer.tally.calls > 0
    remembered = _remembered(visit, decision, record, failed=failed, asked=asked)
    if record is visit.record or remembered is None:
        return None if remembered is None else Change(remembered)
    change = yield from pruned(visit, remembered, common)
    if is_completed(visit, record, change):
        removed = len(change.removed)
        yield Emit(completed(visit, record, writer.tally, common, pruned=removed))
    return change


def writer_for(visit: Visit, decision: Decision) -> Writer:
    """What writes the texts of a visit's folds, with the tiers that may be asked."""
    policy, request = visit.policy, decision.request
    asked = [policy.instructions, request.instructions if request else None]
    writer = Writer(
        tiers=[tier.info for tier in visit.tiers],
        count=visit.counter.text,
        prompt=policy.prompt,
        instructions="\n".join(one for one in asked if one) or None,
        sections=policy.sections,
        redact=visit.redact,
    )
    if decision.cooling is not None:
        writer.ended = True
        writer.tally.failures.append(decision.cooling.reason)
    return writer


def _as_chosen(
    visit: Visit, decision: Decision, span: Span, writer: Writer, common: dict[str, Any]
) -> Generator[Effect, object, Outcome]:
    """Fold a span that was chosen earlier, when less had to be folded: more may have to follow."""
    fold = yield from _fold(visit, decision, span, writer, common)
    rest = replace(visit, record=fold.record, request=None, until=None)
    now = decide(rest)
    if now.need != "hard":
        return fold
    more = yield from _passes(rest, now, writer, common)
    return Outcome(more.record, fold.failed or more.failed)


def _passes(
    visit: Visit, decision: Decision, writer: Writer, common: dict[str, Any]
) -> Generator[Effect, object, Outcome]:
    """Clear or fold until a visit would have nothing more to do."""
    record, now, failed = visit.record, decision, False
    for _ in range(MOST_PASSES):
        before = record
        record, failed = yield from _pass(replace(visit, record=before), now, writer, common)
        if record is before or failed or now.action != "fold":
            break
        now = decide(replace(visit, record=record, request=None))
        if now.action not in {"fold", "clear"}:
            break
    return Outcome(record, failed)


def _pass(
    visit: Visit, decision: Decision, writer: Writer, common: dict[str, Any]
) -> Generator[Effect, object, Outcome]:
    """Clear, or fold once, and see to the hard limit."""
    record, failed = visit.record, False
    if decision.span is not None:
        record, failed = yield from _fold(visit, decision, decision.span, writer, common)
        if decision.need == "hard":
            record = yield from cleared_to_fit(visit, record, common)
        elif failed and record is visit.record and decision.clearing is not None:
            record = yield from clear(visit, record, decision.clearing, common)
    elif decision.clearing is not None:
        record = yield from clear(visit, record, decision.clearing, common)
    if visit.policy.clauses:
        record = yield from fitted(visit, record, common)
    return Outcome(record, failed)


def _fold(
    visit: Visit, decision: Decision, span: Span, writer: Writer, common: dict[str, Any]
) -> Generator[Effect, object, Outcome]:
    """Fold the span and condense the chain; an event tells of a text that no tier wrote.

    Only the span's text decides whether the fold failed. Where the chain could not be condensed
    it stays over its budget, and the fold counts.

    Raises:
        RedactionError: the hook failed, and the settings say that this ends the run.
    """
    reason, advice = "no tier wrote an acceptable digest", visit.advice
    try:
        fold = yield from folded(visit, decision, span, writer, urgent=decision.urgent)
        chain = yield from condensed(visit, fold.record, writer, urgent=decision.urgent)
        record, failed, stays = chain.record, fold.failed, chain.failed
    except RedactionError as error:
        if visit.policy.raises:
            raise
        # Not even what was finished is kept: who knows what the hook let pass.
        record, failed, stays, reason = visit.record, True, False, str(error)
        advice = ""  # extracts would not be stored either
    loose = relaxed(visit, record)
    size = visit.size(visit.layout(loose))
    if record is not visit.record and size >= visit.size(decision.layout):
        loose = visit.record  # a digest that saves nothing only loses detail
        failed = True
        writer.tally.failures.append("a digest was written but saves nothing")
    if failed or stays:
        advice = advice if failed else ""
        yield Emit(fold_failed(visit, loose, writer.tally, common, reason, advice=advice))
    return Outcome(loose, failed)


def _remembered(
    visit: Visit, decision: Decision, record: CompactionRecord, *, failed: bool, asked: bool
) -> CompactionRecord | None:
    """The record with what the next visits have to know of this one; None where it is the same.

    Args:
        visit: what it looked at.
        decision: what it decided.
        record: what it came to.
        failed: whether the fold failed.
        asked: whether any tier was asked.
    """
    changed = record is not visit.record
    if not failed:
        if changed and asked:
            record = without_failures(record)
        if decision.request is not None:
            record = with_request(record, decision.request.id)
    elif decision.cooling is None:  # while they are left alone, the failures stay as they were
        failures = failed_again(
            visit.record,
            visit.messages,
            steps=decision.thread_steps,
            tokens=visit.size(visit.layout(record)) if changed else decision.usage.tokens,
            request=decision.request,
        )
        record = with_failures(record, failures)
    return None if record is visit.record else revised(record, visit.run)
