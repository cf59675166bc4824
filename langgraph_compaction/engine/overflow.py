"""One forced reduction of a view that the provider refused as too long. No model is asked.

the same view again? → BudgetError
a fold beside the agent has come to its end → its digest; and where that leaves too much:
clear old results → fold into extracts → clip → remember → prune → the new record
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from langgraph_compaction.changes import clipped, revised, with_failures, with_overflow
from langgraph_compaction.engine import VETOED
from langgraph_compaction.engine.answers import background_fields
from langgraph_compaction.engine.clearing import clear
from langgraph_compaction.engine.condensing import condensed
from langgraph_compaction.engine.effects import BackgroundFold, Effect, Emit, Propose
from langgraph_compaction.engine.events import completed, is_completed, told_problems
from langgraph_compaction.engine.finished import Finished, finished
from langgraph_compaction.engine.folding import folded
from langgraph_compaction.engine.limits import too_large
from langgraph_compaction.engine.pruning import pruned
from langgraph_compaction.engine.tally import Change, Tally
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.engine.writing import Writer
from langgraph_compaction.errors import RedactionError
from langgraph_compaction.plan.cooling import failed_again
from langgraph_compaction.plan.decision import REFUSED, decide_refused
from langgraph_compaction.plan.excess import Excess, Room, room_after
from langgraph_compaction.plan.fitting import fit_view
from langgraph_compaction.plan.measuring import look_at
from langgraph_compaction.record import CompactionRecord, Overflow, render_of

NEED = "overflow"
"""What the events of a reduction name as its need."""
AGAIN = "the provider refused it, although it was reduced"
ADVICE = (
    "where the provider's window is smaller than context_window says, correct that, and pass the "
    "agent's tools to the node so that they are counted."
)


def overflow_steps(
    visit: Visit, excess: Excess, *, node: str, fold: BackgroundFold | None = None
) -> Generator[Effect, object, Change | None]:
    """Reduce the view really, so that the call may be made once more.

    Args:
        visit: the thread as the refused call saw it.
        excess: what the provider said.
        node: name of the node whose call it was.
        fold: the thread's fold beside the agent, None where there is none. While it runs, it is
            not waited for.

    Returns:
        What changes in the state; the record always does.

    Raises:
        BudgetError: the view is the one that the last reduction left, or cannot be reduced enough.
        RedactionError: the ``redact`` function failed, and the settings say that this ends the run.
    """
    look = look_at(visit)
    visit = replace(visit, policy=look.policy, request=None)
    before = visit.size(look.layout)
    room = room_after(excess, visit.policy, before)
    common = {
        "need": NEED,
        "reason": REFUSED,
        "tokens_before": before,
        "provider_limit": excess.named,
        "context_window": visit.policy.window,
    }
    yield from told_problems(visit, common)
    if visit.record.get("overflow") == _mark(visit, visit.record, node):
        yield from _given_up(visit, visit.record, room, AGAIN, common)
    vetoed = yield Propose({"type": "compaction.started", **common})
    found: Finished | None = None
    if fold is not None and not fold.running and not vetoed:
        found = yield from finished(visit, fold, common)
    inner, told, tally = replace(visit, policy=room.under(visit.policy)), common, Tally()
    digest = None if found is None else found.record
    if found is not None and digest is not None and fold is not None:
        inner, tally = replace(inner, record=digest), found.tally
        told = {**common, **background_fields(fold)}
    record = inner.record
    if digest is None or inner.size(inner.layout(record)) > room.goal:
        record = yield from _reduced(inner, room, common, may_fold=not vetoed)
    if inner.size(inner.layout(record)) > room.most:
        but = f"the provider refused {before} already"
        yield from _given_up(visit, record, room, but, common)
    record = with_overflow(record, _mark(visit, record, node))
    if found is not None and found.failed:
        size = visit.size(visit.layout(record))
        failures = failed_again(visit.record, visit.messages, steps=look.thread_steps, tokens=size)
        record = with_failures(record, failures)
    record = revised(record, visit.run)
    change = yield from pruned(visit, record, common)
    if is_completed(visit, record, change):
        yield Emit(completed(visit, record, tally, told, pruned=len(change.removed)))
    return change


def _mark(visit: Visit, record: CompactionRecord, node: str) -> Overflow:
    """What tells this view, as this node's call has it, from every other."""
    view = visit.layout(record).view()
    mark: Overflow = {"node": node, "tokens": visit.counter.messages(view)}
    if visit.messages and visit.messages[-1].id is not None:
        mark["last_id"] = visit.messages[-1].id
    return mark


def _given_up(
    visit: Visit, record: CompactionRecord, room: Room, but: str, common: dict[str, Any]
) -> Generator[Effect, object, None]:
    """Tell that nothing helps.

    Raises:
        BudgetError: always.
    """
    view = visit.layout(record).view()
    error = too_large(
        visit, view, limit=room.limit, but=but, advice=ADVICE, reason=common["reason"]
    )
    yield Emit({"type": "compaction.failed", **common, "reason": str(error)})
    raise error


def _reduced(
    visit: Visit, room: Room, common: dict[str, Any], *, may_fold: bool
) -> Generator[Effect, object, CompactionRecord]:
    """The record under which the view comes down to the room, as far as that can be done.

    What can be brought back is given up first: results are cleared, and only what that leaves too
    large is folded.
    """
    record = visit.record
    plan = look_at(visit).clearing()
    if plan is not None:
        record = yield from clear(visit, record, plan, common)
    if visit.size(visit.layout(record)) > room.goal:
        if may_fold:
            record = yield from _folded(replace(visit, record=record), common)
        else:
            yield Emit({"type": "compaction.skipped", **common, "reason": VETOED})
    fit = fit_view(visit.messages, record, visit.policy, visit.counter)
    if fit.limits != render_of(record, visit.policy.render):
        record = clipped(record, visit.messages, fit.limits)
    return record


def _folded(visit: Visit, common: dict[str, Any]) -> Generator[Effect, object, CompactionRecord]:
    """The record with the span folded into extracts, as it was where that saves nothing."""
    decision = decide_refused(visit)
    if decision.span is None:
        return visit.record
    writer = _writer(visit)
    try:
        fold = yield from folded(visit, decision, decision.span, writer, urgent=True)
        chain = yield from condensed(visit, fold.record, writer, urgent=True)
    except RedactionError as error:
        if visit.policy.raises:
            raise
        reason = f"{str(error).removesuffix('.')}; nothing is folded."
        yield Emit({"type": "compaction.failed", **common, "reason": reason})
        return visit.record
    saves = visit.size(visit.layout(chain.record)) < visit.size(decision.layout)
    return chain.record if saves else visit.record


def _writer(visit: Visit) -> Writer:
    """A cascade without tiers: what it cannot write, extracts stand for."""
    return Writer(
        tiers=(), count=visit.counter.text, prompt=None, instructions=None, redact=visit.redact
    )
