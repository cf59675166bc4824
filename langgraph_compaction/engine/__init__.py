"""One step of compaction as a generator of effects: no I/O here, and nothing written twice.

    decide → fold the span, part by part → condense the chain → fit the hard limit → prune → the
    new record

The generator yields what has to be done (`CallModel`, `Emit`, `Propose`, `Archive`) and is sent the
outcome.
A synchronous and an asynchronous driver (`run.drivers`) perform it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, Literal

from langgraph_compaction.changes import revised
from langgraph_compaction.engine.clearing import clear, cleared_to_fit
from langgraph_compaction.engine.condensing import condensed
from langgraph_compaction.engine.effects import Effect, Emit, Propose
from langgraph_compaction.engine.fallback import FALLBACK_NAME
from langgraph_compaction.engine.folding import folded
from langgraph_compaction.engine.limits import fitted, relaxed
from langgraph_compaction.engine.pruning import Change, pruned
from langgraph_compaction.engine.tally import Outcome, Tally
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.errors import CascadeExhaustedError, RedactionError
from langgraph_compaction.plan.cooling import failed_again, failures_in_a_row
from langgraph_compaction.plan.decision import Decision, decide, decide_unfolded
from langgraph_compaction.record import CompactionRecord

MOST_PASSES = 3
"""Folds in one visit at most: where the first did not bring the view below its trigger, the next
visit would fold again."""

Steps = Generator[Effect, object, Change | None]


def compaction_steps(visit: Visit) -> Steps:
    """Look at a thread once and do what is needed.

    Returns:
        What changes in the state, or None where nothing does.

    Raises:
        BudgetError: what must stay does not fit the window, even clipped.
        CascadeExhaustedError: no tier wrote an acceptable digest, the view still fits, and the
            settings say that this ends the run.
    """
    decision = decide(visit)
    facts = {
        "need": decision.need,
        "reason": decision.reason,
        "tokens_before": decision.usage.tokens,
    }
    for problem in visit.problems:
        yield Emit({"type": "compaction.failed", **facts, "reason": problem})
    if decision.action == "none":
        return None
    if decision.action == "skip":
        yield Emit({"type": "compaction.skipped", **facts})
        return _carried_out(decision, visit.record)
    if decision.action == "clear":
        return (yield from _carry_out(replace(visit, policy=decision.policy), decision, facts))
    started = {"type": "compaction.started", **facts}
    vetoed = yield Propose(started) if decision.action == "fold" else Emit(started)
    if vetoed and decision.action == "fold":
        facts["reason"] = "The hook vetoed the fold."
        yield Emit({"type": "compaction.skipped", **facts})
        if decision.need != "hard":
            return _carried_out(decision, visit.record)
        decision = decide_unfolded(visit)
    return (yield from _carry_out(replace(visit, policy=decision.policy), decision, facts))


def _carry_out(visit: Visit, decision: Decision, facts: dict[str, Any]) -> Steps:
    """Clear, or fold as often as it takes, and clip."""
    writer = _writer(visit, decision)
    record, now, failed = visit.record, decision, False
    for _ in range(MOST_PASSES):
        before = record
        record, failed = yield from _pass(replace(visit, record=before), now, writer, facts)
        if record is before or failed or now.action != "fold":
            break
        now = decide(replace(visit, record=record, request=None))
        if now.action not in {"fold", "clear"}:
            break
    if failed and visit.policy.raises and decision.need != "hard":
        raise CascadeExhaustedError(writer.tally.failures)
    asked = writer.tally.calls > 0
    remembered = _remembered(visit, decision, record, failed=failed, asked=asked)
    if record is visit.record or remembered is None:
        return None if remembered is None else Change(remembered)
    change = yield from pruned(visit, remembered, facts)
    if change.removed or decision.action != "clear" or _clips(visit, record):
        outcome = _outcome(visit, record, writer.tally)
        removed = {"pruned": len(change.removed)}
        yield Emit({"type": "compaction.completed", **facts, **outcome, **removed})
    return change


def _clips(visit: Visit, record: CompactionRecord) -> bool:
    """Whether a record clips other messages than the thread's own."""
    before = visit.layout(visit.record).render
    limits: tuple[Literal["clip_result_chars", "clip_message_chars"], ...]
    limits = ("clip_result_chars", "clip_message_chars")
    return any(record.get("render", before).get(name) != before.get(name) for name in limits)


def _writer(visit: Visit, decision: Decision) -> Writer:
    policy, request = visit.policy, decision.request
    asked = [policy.instructions, request.instructions if request else None]
    writer = Writer(
        tiers=[tier.info for tier in visit.tiers],
        count=visit.counter.text,
        prompt=policy.prompt,
        instructions="\n".join(one for one in asked if one) or None,
        redact=visit.redact,
    )
    if decision.cooling is not None:
        writer.ended = True
        writer.tally.failures.append(decision.cooling.reason)
    return writer


def _pass(
    visit: Visit, decision: Decision, writer: Writer, facts: dict[str, Any]
) -> Generator[Effect, object, Outcome]:
    """Clear or fold once and see to the limits.

    It fails by the fold: a chain that stays is no hindrance.
    """
    record, failed = visit.record, False
    if decision.action == "clear" and decision.clearing is not None:
        record = yield from clear(visit, record, decision.clearing, facts)
    if decision.span is not None:
        urgent = decision.need == "hard" and not _spared(visit, decision)
        reason = "no tier wrote an acceptable digest"
        try:
            fold = yield from folded(visit, decision, decision.span, writer, urgent=urgent)
            chain = yield from condensed(visit, fold.record, writer, urgent=urgent)
            record, failed, stays = chain.record, fold.failed, chain.failed
        except RedactionError as error:
            if visit.policy.raises:
                raise
            # Not even what was finished is kept: who knows what the hook let pass.
            record, failed, stays, reason = visit.record, True, False, str(error)
        relaxed_record = relaxed(visit, record)
        size = visit.size(visit.layout(relaxed_record))
        if record is not visit.record and size >= visit.size(decision.layout):
            relaxed_record = visit.record  # a digest that saves nothing only loses detail
            failed = True
            writer.tally.failures.append("a digest was written but saves nothing")
        record = relaxed_record
        if failed or stays:
            yield Emit(_failure(visit, record, writer.tally, {**facts, "reason": reason}))
    if visit.policy.clauses:
        if decision.need == "hard" and decision.span is not None:
            record = yield from cleared_to_fit(visit, record, facts)
        record = yield from fitted(visit, record, facts)
    return Outcome(record, failed)


def _spared(visit: Visit, decision: Decision) -> bool:
    """Whether clearing brings the view below the hard limit, if no digest can be had."""
    if decision.clearing is None or visit.policy.hard is None:
        return False
    after = visit.policy.call_tokens(decision.counted - decision.clearing.freed)
    return after <= visit.policy.hard


def _remembered(
    visit: Visit, decision: Decision, record: CompactionRecord, *, failed: bool, asked: bool
) -> CompactionRecord | None:
    """The record with what the next visits have to know of this one.

    Args:
        visit: what it looked at.
        decision: what it decided.
        record: what it came to.
        failed: whether the fold failed.
        asked: whether any tier was asked.
    """
    if not failed:
        if record is not visit.record and asked:
            record = {**record}
            record.pop("failures", None)
        if decision.request is not None:
            record = {**record, "request_id": decision.request.id}
    elif decision.cooling is None:  # while they are left alone, the failures stay as they were
        unchanged = record is visit.record
        failures = failed_again(
            visit.record,
            visit.messages,
            steps=decision.thread_steps,
            tokens=decision.usage.tokens if unchanged else visit.size(visit.layout(record)),
            request=decision.request,
        )
        record = {**record, "failures": failures}
    return None if record is visit.record else revised(record)


def _carried_out(decision: Decision, record: CompactionRecord) -> Change | None:
    """The record that remembers the request, None where there was none."""
    if decision.request is None:
        return None
    return Change(revised({**record, "request_id": decision.request.id}))


def _failure(
    visit: Visit, record: CompactionRecord, tally: Tally, facts: dict[str, Any]
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
        "reason": f"{facts['reason'].removesuffix('.')}; {rest}",
        "failures": list(tally.failures),
        "candidates": list(tally.candidates),
        "in_a_row": failures_in_a_row(visit.record) + 1,
    }


def _outcome(visit: Visit, record: CompactionRecord, tally: Tally) -> dict[str, Any]:
    segments = record.get("segments", [])
    before = visit.record.get("last_summarized_index", -1)
    last = record.get("last_summarized_index", -1)
    return {
        "tokens_after": visit.size(visit.layout(record)),
        "first_index": before + 1 if last > before else None,
        "last_index": last if last > before else None,
        "segments": len(segments),
        "condensed": tally.condensed,
        "digest_tokens": sum(one["tokens"] for one in segments),
        "model": segments[-1]["model"] if segments else None,
        "attempts": tally.calls,
        "candidates": list(tally.candidates),
    }
