"""What one visit has to do: ask the trigger, and choose what to clear, to fold or to clip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from langgraph_compaction.plan.boundaries import Span
from langgraph_compaction.plan.calibration import Calibration
from langgraph_compaction.plan.clearing import ClearingPlan
from langgraph_compaction.plan.cooling import Cooling
from langgraph_compaction.plan.fitting import fit_view
from langgraph_compaction.plan.measuring import Look, Thread, look_at
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.requests import Request
from langgraph_compaction.plan.triggers import Usage, fired
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import Layout

Need = Literal["none", "asked", "soft", "hard"]
Action = Literal["none", "clear", "fold", "skip", "clip"]

ENOUGH = "Clearing old tool results is enough."
REFUSED = "The provider refused the call: it exceeds the context window."
NO_LESS = "Clearing old tool results leaves no more than a fold would."
LEAST_SPAN = 50
"""Tokens of a span below which no segment, heading included, could be smaller than the span."""
ASKED_KEEP_SHARE = 0.25
"""On request this share of the view stays, if ``keep`` says more: who asks for compaction far below
the trigger does not mean to keep everything."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of looking at a thread: nothing is changed by making one.

    Attributes:
        need: "none"; "asked": compaction was requested; "soft": the trigger fired; "hard": the
            view exceeds the hard limit.
        action: "none"; "clear" old tool results, which is enough; "fold" the span; "skip":
            something was asked for but nothing is worth folding; "clip": the hard limit is
            exceeded and there is nothing to fold.
        reason: one sentence about the action.
        usage: what was measured.
        counted: tokens of the view's messages, as the counter has them.
        read: tokens of those that the provider reads; see `Look`.
        predicted: tokens of the call after the clearing, or after a fold of the span into one
            segment of full length.
        span: the messages to fold, with action "fold".
        clearing: what to clear, with action "clear"; with "fold", what to clear if no digest can be
            had and that frees enough to pay for itself.
        layout: the parts of the view that was measured.
        policy: the numbers that were decided by: the thread's, with what was found out here.
        calibration: the provider's report that corrected the count, None where there was none.
        thread_steps: AI messages of the thread so far.
        cooling: why no summariser is asked now, None where they may be. At the hard limit only
            an open breaker holds.
        request: the request that is to be carried out, None where there is none.
    """

    need: Need
    action: Action
    reason: str
    usage: Usage
    counted: int
    read: int
    predicted: int | None
    span: Span | None
    clearing: ClearingPlan | None
    layout: Layout
    policy: Policy
    calibration: Calibration | None
    thread_steps: int
    cooling: Cooling | None
    request: Request | None

    @property
    def urgent(self) -> bool:
        """Whether extracts have to stand in where no digest can be had.

        At the hard limit they do, unless the clearing brings the view below it.
        """
        if self.need != "hard" or self.clearing is None or self.policy.hard is None:
            return self.need == "hard"
        return self.policy.call_tokens(self.counted - self.clearing.freed) > self.policy.hard


def decide(thread: Thread) -> Decision:
    """Decide what a visit does. Pure; O(view) as long as nothing has to be done."""
    look = look_at(thread)
    need = _need(look)
    if need == "hard":
        return _hard(look)
    if need == "asked":
        return _asked(look)
    if need == "soft":
        return _soft(look)
    return _decision(look, "none", "none", _why_not(look.policy))


def decide_to_wait(thread: Thread, reason: str) -> Decision | None:
    """The decision to do nothing, though the trigger fired; None where more, or less, is needed.

    Nothing is chosen for it: an agent that goes on beside a fold comes by here at every step.

    Args:
        thread: what the visit finds.
        reason: what is waited for.
    """
    look = look_at(thread)
    return _decision(look, "soft", "none", reason) if _need(look) == "soft" else None


def _need(look: Look) -> Need:
    policy = look.policy
    if not policy.enabled:
        return "none"
    if policy.clauses and look.exceeds:
        return "hard"
    if look.request is not None:
        return "asked"
    return "soft" if fired(policy.clauses, look.usage, policy.window) is not None else "none"


def _why_not(policy: Policy) -> str:
    if not policy.enabled:
        return "Compaction is switched off."
    return "The trigger has not fired." if policy.clauses else "The trigger is off."


def decide_unfolded(thread: Thread) -> Decision:
    """What a visit does at the hard limit where the fold that was decided on may not be made."""
    return _unfolded(look_at(thread))


def decide_refused(thread: Thread) -> Decision:
    """What to fold where the provider refused the view, whatever was measured of it.

    With action "clip" there is nothing to fold.
    """
    look = look_at(thread)
    span = look.span(look.policy)
    if span is None or look.gain(span) < max(LEAST_SPAN, look.cost(span)):
        return _decision(look, "hard", "clip", REFUSED)
    return _decision(look, "hard", "fold", REFUSED, span=span)


def clearing_to_fit(thread: Thread, record: CompactionRecord) -> ClearingPlan | None:
    """What to clear after a fold, made or not, that left the view above the hard limit.

    None where it is within the limit, or nothing can be cleared. As where nothing may be folded,
    the minimum share does not count.

    Args:
        thread: what the visit found.
        record: what the fold came to.
    """
    look = look_at(thread, record)
    return look.clearing() if look.exceeds else None


def _soft(look: Look) -> Decision:
    """The trigger fired: clear if that is enough, else fold what is worth it.

    Clearing is enough as well where a fold would leave no less: it asks nobody. While the
    summarisers are left alone, and where nothing is worth a fold, clearing is all that can be done.
    """
    reason = "The trigger fired."
    if look.until is not None:
        return _chosen(look, "soft", reason)
    clearing = look.worthwhile_clearing()
    if clearing is not None and clearing.enough:
        return _decision(look, "soft", "clear", f"{reason} {ENOUGH}", clearing=clearing)
    if look.cooling is not None:
        return _instead(look, clearing, "none", look.cooling.reason)
    span = look.span(look.policy)
    idle = _why_no_fold(look, span)
    if span is None or idle is not None:
        return _instead(look, clearing, "skip", f"The trigger fired, but {idle}.")
    if clearing is not None and look.spares(clearing, span):
        return _decision(look, "soft", "clear", f"{reason} {NO_LESS}", clearing=clearing)
    return _decision(look, "soft", "fold", reason, span=span, clearing=clearing)


def _why_no_fold(look: Look, span: Span | None) -> str | None:
    """Why a span is not worth a fold at the soft limit; None: it is."""
    if span is None:
        return "every message is kept, pinned or open"
    share = int(look.usage.tokens * look.policy.min_fold_share)
    worth = max(look.policy.min_fold_tokens, share, LEAST_SPAN, look.cost(span))
    gain = look.gain(span)
    if gain >= worth:
        return None
    if gain != span.tokens:
        return (
            "the provider ignores most of what may be folded, since it compacted the conversation "
            "itself"
        )
    return (
        f"what may be folded ({span.tokens} tokens) is less than a fold is worth ({worth} tokens)"
    )


def _chosen(look: Look, need: Need, reason: str) -> Decision:
    """Fold the span that an earlier visit chose: its text is there, so it is worth it.

    At the soft limit nobody has to be asked for it, so it does not matter whether the summarisers
    are left alone: in another run of the thread they may have failed meanwhile.
    """
    span = look.span(look.policy)
    if span is None:
        reason = f"{reason} The messages that were being folded are not there any more."
        return _decision(look, need, "skip", reason)
    if need == "soft":
        return replace(_decision(look, need, "fold", reason, span=span), cooling=None)
    clearing = look.worthwhile_clearing()
    return _decision(look, need, "fold", reason, span=span, clearing=clearing)


def _instead(look: Look, clearing: ClearingPlan | None, action: Action, reason: str) -> Decision:
    """Clearing, where the trigger fired and there is nothing better to do."""
    if clearing is None:
        return _decision(look, "soft", action, reason)
    reason = f"{reason} Tool results are cleared."
    return _decision(look, "soft", "clear", reason, clearing=clearing)


def _asked(look: Look) -> Decision:
    """Compaction was requested: fold all but the newest part, whatever the trigger says."""
    if look.cooling is not None:
        return _decision(look, "asked", "none", look.cooling.reason)
    kept = int(look.usage.tokens * ASKED_KEEP_SHARE)
    policy = look.policy
    if policy.keep_tokens is None or policy.keep_tokens > kept:
        policy = replace(policy, keep_tokens=kept)
    span = look.span(policy)
    if span is None or look.gain(span) < max(LEAST_SPAN, look.cost(span)):
        reason = "Compaction was requested, but nothing is worth folding."
        return _decision(look, "asked", "skip", reason)
    return _decision(look, "asked", "fold", "Compaction was requested.", span=span)


def _hard(look: Look) -> Decision:
    """The hard limit is exceeded: clear if that is enough, else fold, or clip at last."""
    reason = "The view exceeds the hard limit."
    if look.until is not None:
        return _chosen(look, "hard", reason)
    clearing = look.worthwhile_clearing()
    if clearing is not None and clearing.enough and look.request is None:
        return _decision(look, "hard", "clear", f"{reason} {ENOUGH}", clearing=clearing)
    span = look.span(look.policy)
    if span is not None and look.gain(span) >= max(LEAST_SPAN, look.cost(span)):
        if clearing is not None and look.request is None and look.spares(clearing, span):
            return _decision(look, "hard", "clear", f"{reason} {NO_LESS}", clearing=clearing)
        return _decision(look, "hard", "fold", reason, span=span, clearing=clearing)
    return _unfolded(look)


def _unfolded(look: Look) -> Decision:
    """The hard limit is exceeded and nothing is folded: clear what there is, or clip.

    However little it frees: the clips that it spares would break the cached prefix as well.
    """
    reason = "The view exceeds the hard limit and no message may be folded."
    clearing = look.clearing()
    if clearing is not None:
        return _decision(look, "hard", "clear", reason, clearing=clearing)
    fit = fit_view(look.messages, look.record, look.policy, look.counter)
    if fit.fits and fit.limits == look.layout.render:
        reason = "The view exceeds the hard limit, but nothing is left to fold or to clip."
        return _decision(look, "hard", "skip", reason)
    return _decision(look, "hard", "clip", reason)


def _decision(
    look: Look,
    need: Need,
    action: Action,
    reason: str,
    *,
    span: Span | None = None,
    clearing: ClearingPlan | None = None,
) -> Decision:
    predicted = None
    if span is not None:
        # What is quoted of the span stays, in the segment.
        predicted = look.folded(span)
    elif clearing is not None:
        predicted = look.after(clearing.freed)
    rests = look.cooling is not None and look.cooling.breaker
    return Decision(
        need=need,
        action=action,
        reason=reason,
        usage=look.usage,
        counted=look.counted,
        read=look.read,
        predicted=predicted,
        span=span,
        clearing=clearing,
        layout=look.layout,
        policy=look.policy,
        calibration=look.calibration,
        thread_steps=look.thread_steps,
        cooling=look.cooling if need != "hard" or rests else None,
        request=look.request,
    )
