"""A fold that is written beside the agent: begun at one visit, applied at a later one.

What runs beside is the ordinary step, over the messages as they were; only the answers of the
models are kept of it. A later visit makes the same step over the messages as they are then, and
takes an answer from there where the very same is asked. So what is applied is an answer about
exactly what it replaces: where a message was edited, deleted or pinned, the question is another
one, and the answers are dropped. So they are where a person corrected the digest, whatever is
asked: who restores messages does not want the digest back that they had.

    trigger fires → begin, and let the agent go on → later: apply the answers, or drop them, say so,
    and begin anew
    the hard limit is exceeded → wait, apply what there is, and ask for what is missing
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

from langgraph_compaction.engine import VETOED, Steps, compaction_steps, skipped
from langgraph_compaction.engine.answers import Answers, StaleError, answered, background_fields
from langgraph_compaction.engine.effects import (
    Awaited,
    AwaitFold,
    BackgroundFold,
    BeginFold,
    CheckRoom,
    DropFold,
    Effect,
    Emit,
    MarkTold,
    Propose,
)
from langgraph_compaction.engine.events import common_fields, told_problems
from langgraph_compaction.engine.remembering import remembered
from langgraph_compaction.engine.tally import Change
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.boundaries import Span, SpanEnd
from langgraph_compaction.plan.decision import Decision, decide, decide_to_wait
from langgraph_compaction.record import message_key

OTHER = "messages of its span, the digest before it or the settings are not what they were"
"""Why answers are dropped: the same question would be another one now."""
CORRECTED = "the digest was corrected since it began"
"""Why answers are dropped: a person's change is not undone by what was computed before it."""
NO_END = "it did not come to its end"
"""Why answers are dropped: they did not come in time, or their event loop has gone."""
UNCOUNTED = "A call that is still under way, or was lost, is not counted here."
"""What the event adds of a fold that did not come to its end."""


def background_steps(visit: Visit, fold: BackgroundFold | None) -> Steps:
    """Look at a thread once; folds that are not urgent are left to run beside the agent.

    Args:
        visit: what is looked at.
        fold: the thread's fold that was begun before, None where there is none.

    Returns:
        As `compaction_steps`; raises the same.
    """
    waiting = None if fold is None else _waits(visit, fold)
    there = visit if fold is None else resumed(visit, fold)
    decision = waiting or decide(there)
    yield from told_problems(visit, common_fields(decision))
    if waiting is not None:
        return None
    visit, there = replace(visit, problems=()), replace(there, problems=())
    if fold is not None:
        found = yield from _applied(there, decision, fold)
        if isinstance(found, _Applied):
            return found.change
        if decision.need != "none":
            if not fold.told:
                yield Emit(dropped(visit, common_fields(decision), fold, found.why, found.waited))
            yield DropFold(fold)
        decision = decide(visit)
    if not _may_wait(visit, decision) or decision.span is None:
        return (yield from compaction_steps(visit))
    return (yield from _begun(visit, decision, decision.span))


def resumed(visit: Visit, fold: BackgroundFold) -> Visit:
    """A visit that makes the step of a fold: its span, and texts redacted as they were then."""
    return replace(visit, until=fold.span_end, redact=fold.redact)


def is_corrected(visit: Visit, fold: BackgroundFold) -> bool:
    """Whether a person corrected the digest since a fold began."""
    return visit.record.get("epoch", 0) != fold.epoch


def _begun(visit: Visit, decision: Decision, span: Span) -> Steps:
    """Begin a fold, where there is room for it and the hook does not veto."""
    common = {**common_fields(decision), "background": True}
    # The hook is not asked about a fold that cannot begin.
    why_not = yield CheckRoom()
    if why_not is None:
        vetoed = yield Propose({"type": "compaction.started", **common})
        why_not = VETOED if vetoed else (yield _beginning(visit, decision, span))
    if why_not is None:
        return None
    yield Emit({"type": "compaction.skipped", **common, "reason": why_not})
    return skipped(decision, visit.record, visit.run)


def _beginning(visit: Visit, decision: Decision, span: Span) -> BeginFold:
    span_end, redact = _span_end(decision, span), remembered(visit.redact)
    apart = replace(
        visit,
        messages=list(visit.messages),  # as they are now: the run goes on with its own list
        until=span_end,
        redact=redact,
        policy=replace(visit.policy, prune=False),
    )
    return BeginFold(span_end, visit.record.get("epoch", 0), compaction_steps(apart), redact)


def due(visit: Visit, fold: BackgroundFold | None) -> Decision:
    """What a visit would do, with an action of "none" while a fold runs that it would leave alone.

    Args:
        visit: what is looked at.
        fold: the thread's fold that was begun before, None where there is none.
    """
    if fold is None:
        return decide(visit)
    waiting = _waits(visit, fold)
    if waiting is not None:
        return waiting
    if is_corrected(visit, fold):
        return decide(visit)
    decision = decide(resumed(visit, fold))
    return decision if decision.action == "fold" else decide(visit)


def dropped(
    visit: Visit, common: dict[str, Any], fold: BackgroundFold, why: str, waited: float = 0.0
) -> dict[str, Any]:
    """The event of answers that are not applied.

    Args:
        visit: what is looked at.
        common: fields of every event.
        fold: whose answers they are.
        why: why they are not applied.
        waited: seconds that the visit waited for them.
    """
    why = CORRECTED if is_corrected(visit, fold) else why
    reason = f"The fold that was made beside the agent is not applied: {why}."
    return {
        "type": "compaction.dropped",
        **common,
        "reason": reason if fold.complete else f"{reason} {UNCOUNTED}",
        "attempts": fold.answered,
        **fold.spent.fields(),
        **background_fields(fold, waited),
    }


def _waits(visit: Visit, fold: BackgroundFold) -> Decision | None:
    """The decision to leave a fold alone that runs; None where its time is over or has come."""
    if not fold.running:
        return None
    reason = f"Messages up to {fold.span_end.position} are being folded beside the agent."
    return decide_to_wait(visit, reason)


def _may_wait(visit: Visit, decision: Decision) -> bool:
    """Whether there is time for the fold, and anything that it would have to wait for."""
    if decision.need != "soft" or decision.action != "fold":
        return False
    return not all(tier.info.local for tier in visit.tiers)


def _span_end(decision: Decision, span: Span) -> SpanEnd:
    layout = decision.layout
    kept = (message_key(layout.messages[index], index) for index in span.kept)
    return SpanEnd(layout.anchor.position_of(span.stop) - 1, frozenset(kept))


class _Applied(NamedTuple):
    change: Change | None


class _Dropped(NamedTuple):
    """Why answers cannot be applied, and the seconds that the visit waited for them."""

    why: str
    waited: float = 0.0


def _applied(
    visit: Visit, decision: Decision, fold: BackgroundFold
) -> Generator[Effect, object, _Applied | _Dropped]:
    """Make the step with the answers that are there, unless they are about something else."""
    if decision.action != "fold" or decision.need not in {"soft", "hard"}:
        asked = decision.need == "asked"
        return _Dropped("another one was asked for" if asked else "its span is not to be folded")
    if is_corrected(visit, fold):
        return _Dropped(CORRECTED)
    waited = 0.0
    if fold.running:
        outcome = yield AwaitFold()
        over, waited = Awaited(*outcome)  # type: ignore[misc]  # as AwaitFold says
        if not over:
            return _Dropped(NO_END, waited)
    answers, hard = Answers(fold, waited), decision.need == "hard"
    try:
        change = yield from answered(
            compaction_steps(visit),
            answers,
            may_ask=lambda call: hard or visit.tiers[call.tier].info.local,
        )
    except StaleError:
        return _Dropped(OTHER if fold.complete else NO_END, waited)
    except Exception:
        yield DropFold(fold)  # the run ends with it, and the next one asks again
        raise
    if change is not None and "failures" in change.record:
        yield DropFold(fold)  # it is counted now, and must not be counted again
    if not answers.taken and fold.answered and not fold.told:
        # Above the hard limit what does not fit is asked for anew, at once.
        yield Emit(dropped(visit, common_fields(decision), fold, OTHER, waited))
    # It stays: if the update does not reach the state, the next visit applies it once more.
    yield MarkTold(fold)
    return _Applied(change)
