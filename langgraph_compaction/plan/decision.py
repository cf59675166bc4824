"""What one visit has to do: measure the view, ask the trigger, choose a span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.plan.boundaries import SEGMENT_FRAME, Span, choose_span
from langgraph_compaction.plan.calibration import Calibration, calibration
from langgraph_compaction.plan.clearing import ClearingPlan, plan_clearing
from langgraph_compaction.plan.cooling import Cooling, cooling
from langgraph_compaction.plan.fitting import Counter, fit_view
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.requests import Request
from langgraph_compaction.plan.triggers import Usage, fired
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.digest import frame

Need = Literal["none", "asked", "soft", "hard"]
Action = Literal["none", "clear", "fold", "skip", "clip"]

ENOUGH = "Clearing old tool results is enough."
LEAST_SPAN = 50
"""Tokens of a span below which no segment, heading included, could be smaller than the span."""
ASKED_KEEP_SHARE = 0.25
"""On request this share of the view stays, if ``keep`` says more: who asks for compaction far below
the trigger does not mean to keep everything."""


class Thread(Protocol):
    """What a visit finds, and what it decides by."""

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The messages channel."""

    @property
    def record(self) -> CompactionRecord:
        """The record in the state."""

    @property
    def policy(self) -> Policy:
        """The numbers to decide by."""

    @property
    def counter(self) -> Counter:
        """Counts tokens."""

    @property
    def request(self) -> Request | None:
        """The request in the thread's settings, carried out or not."""


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
        predicted: tokens of the call after the clearing, or after a fold of the span into one
            segment of full length.
        span: the messages to fold, with action "fold".
        clearing: what to clear, with action "clear"; with "fold" at the hard limit, what to clear
            if no digest can be had and that frees enough to pay for itself.
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
    look = _look(thread)
    policy, usage = look.policy, look.usage
    if not policy.enabled:
        return look.decision("none", "none", "Compaction is switched off.")
    if policy.clauses and policy.hard is not None and usage.tokens > policy.hard:
        return look.hard()
    if look.request is not None:
        return look.asked()
    if not policy.clauses:
        return look.decision("none", "none", "The trigger is off.")
    if fired(policy.clauses, usage, policy.window) is None:
        return look.decision("none", "none", "The trigger has not fired.")
    return look.soft()


def _look(thread: Thread, record: CompactionRecord | None = None) -> _Look:
    messages, policy = thread.messages, thread.policy
    record = thread.record if record is None else record
    layout = lay_out(messages, record, defaults=policy.render)
    view = layout.view()
    sizes = list(map(thread.counter.message, view))
    report = None
    if policy.calibrate:
        made_after = layout.anchor.made_after
        report = calibration(messages, view, sizes, made_after, policy.window)
    counted = sum(sizes)
    if report is None:
        tokens = policy.call_tokens(counted)
    else:
        tokens = report.reported + round((counted - report.counted) * report.slope)
        # What comes after a fold is judged without the report: less than counted is not promised.
        slope = max(1.0, report.slope)
        beyond = report.reported - report.counted * slope - policy.overhead
        policy = replace(policy, slope=slope, beyond=max(0.0, beyond), beyond_of=report.counted)
    steps = steps_since_fold(messages, layout)
    thread_steps = record.get("steps_at_fold", 0) + steps
    request = thread.request
    if request is not None and request.id == record.get("request_id"):
        request = None
    return _Look(
        messages=messages,
        record=record,
        policy=policy,
        counter=thread.counter,
        layout=layout,
        counted=counted,
        usage=Usage(tokens=tokens, messages=len(view), steps=steps),
        calibration=report,
        thread_steps=thread_steps,
        cooling=cooling(record, messages, steps=thread_steps, tokens=tokens, request=request),
        request=request,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A thread as one visit finds it; see `Decision`."""

    messages: Sequence[BaseMessage]
    record: CompactionRecord
    policy: Policy
    counter: Counter
    layout: Layout
    counted: int
    usage: Usage
    calibration: Calibration | None
    thread_steps: int
    cooling: Cooling | None
    request: Request | None

    def soft(self) -> Decision:
        """The trigger fired: clear if that is enough, else fold what is worth it.

        While the summarisers are left alone, and where nothing is worth a fold, clearing is all
        that can be done.
        """
        cleared = self._worthwhile()
        if cleared is not None and cleared.enough:
            return self.decision("soft", "clear", f"The trigger fired. {ENOUGH}", cleared)
        if self.cooling is not None:
            return self._instead(cleared, "soft", "none", self.cooling.reason)
        span = self._span(self.policy)
        if span is None:
            reason = "The trigger fired, but every message is kept, pinned or open."
            return self._instead(cleared, "soft", "skip", reason)
        share = int(self.usage.tokens * self.policy.min_fold_share)
        worth = max(self.policy.min_fold_tokens, share, LEAST_SPAN, self._cost(span))
        if span.tokens < worth:
            reason = (
                f"The trigger fired, but what may be folded ({span.tokens} tokens) is less than "
                f"a fold is worth ({worth} tokens)."
            )
            return self._instead(cleared, "soft", "skip", reason)
        return self.decision("soft", "fold", "The trigger fired.", span)

    def asked(self) -> Decision:
        """Compaction was requested: fold all but the newest part, whatever the trigger says."""
        if self.cooling is not None:
            return self.decision("asked", "none", self.cooling.reason)
        kept = int(self.usage.tokens * ASKED_KEEP_SHARE)
        policy = self.policy
        if policy.keep_tokens is None or policy.keep_tokens > kept:
            policy = replace(policy, keep_tokens=kept)
        span = self._span(policy)
        if span is None or span.tokens < max(LEAST_SPAN, self._cost(span)):
            reason = "Compaction was requested, but nothing is worth folding."
            return self.decision("asked", "skip", reason)
        return self.decision("asked", "fold", "Compaction was requested.", span)

    def hard(self) -> Decision:
        """The hard limit is exceeded: clear if that is enough, else fold, or clip at last."""
        cleared = self._worthwhile()
        if cleared is not None and cleared.enough and self.request is None:
            reason = f"The view exceeds the hard limit. {ENOUGH}"
            return self.decision("hard", "clear", reason, cleared)
        span = self._span(self.policy)
        if span is not None and span.tokens >= max(LEAST_SPAN, self._cost(span)):
            reason = "The view exceeds the hard limit."
            return replace(self.decision("hard", "fold", reason, span), clearing=cleared)
        return self.unfolded()

    def unfolded(self) -> Decision:
        """The hard limit is exceeded and nothing is folded: clear what there is, or clip.

        However little it frees: the clips that it spares would break the cached prefix as well.
        """
        cleared = self.cleared()
        if cleared is not None:
            reason = "The view exceeds the hard limit and no message may be folded."
            return self.decision("hard", "clear", reason, cleared)
        fit = fit_view(self.messages, self.record, self.policy, self.counter)
        if fit.fits and fit.limits == self.layout.render:
            reason = "The view exceeds the hard limit, but nothing is left to fold or to clip."
            return self.decision("hard", "skip", reason)
        reason = "The view exceeds the hard limit and no message may be folded."
        return self.decision("hard", "clip", reason)

    def _instead(
        self, cleared: ClearingPlan | None, need: Need, action: Action, reason: str
    ) -> Decision:
        """Clearing where there is nothing better to do."""
        if cleared is None:
            return self.decision(need, action, reason)
        return self.decision(need, "clear", f"{reason} Tool results are cleared.", cleared)

    def _worthwhile(self) -> ClearingPlan | None:
        """The clearing that there is, if it frees enough to pay for the broken prefix."""
        found = self.cleared()
        rule = self.policy.clearing
        if found is None or rule is None or found.freed < rule.min_share * self.counted:
            return None
        return found

    def cleared(self) -> ClearingPlan | None:
        """The least clearing that reaches the target, or all there is."""
        return plan_clearing(
            self.messages,
            self.record,
            self.layout,
            self.policy,
            self.counter.messages,
            goal=self._reached,
        )

    def _reached(self, freed: int) -> bool:
        """Whether the view comes down to the target, and below trigger and hard limit."""
        policy = self.policy
        tokens = policy.call_tokens(self.counted - freed)
        limits = [n for n in (policy.target, policy.hard) if n is not None]
        usage = replace(self.usage, tokens=tokens)
        return all(tokens <= n for n in limits) and not fired(policy.clauses, usage, policy.window)

    def decision(
        self, need: Need, action: Action, reason: str, found: Span | ClearingPlan | None = None
    ) -> Decision:
        span = found if isinstance(found, Span) else None
        cleared = found if isinstance(found, ClearingPlan) else None
        after = None
        if span is not None:
            # What is quoted of the span stays, in the segment.
            after = self.policy.call_tokens(self.counted - span.tokens + self._cost(span))
        elif cleared is not None:
            after = self.policy.call_tokens(self.counted - cleared.freed)
        return Decision(
            need=need,
            action=action,
            reason=reason,
            usage=self.usage,
            counted=self.counted,
            predicted=after,
            span=span,
            clearing=cleared,
            layout=self.layout,
            policy=self.policy,
            calibration=self.calibration,
            thread_steps=self.thread_steps,
            cooling=self.cooling if need != "hard" or self._rests() else None,
            request=self.request,
        )

    def _rests(self) -> bool:
        return self.cooling is not None and self.cooling.breaker

    def _frame(self) -> int:
        """Tokens of the digest's opening and closing lines, which a first fold brings with it."""
        return self.counter.text(frame(self.layout.render)) if self.layout.digest is None else 0

    def _cost(self, span: Span) -> int:
        """Tokens that a fold of the span may add to the view."""
        return self._frame() + SEGMENT_FRAME + self.policy.segment_cap(span.tokens) + 1

    def _span(self, policy: Policy) -> Span | None:
        fixed = self.counted - self.counter.messages(self.layout.recent) + self._frame()
        return choose_span(self.messages, self.layout, policy, self.counter.messages, fixed=fixed)


def decide_unfolded(thread: Thread) -> Decision:
    """What a visit does at the hard limit where the fold that was decided on may not be made."""
    return _look(thread).unfolded()


def clearing_to_fit(thread: Thread, record: CompactionRecord) -> ClearingPlan | None:
    """What to clear after a fold, made or not, that left the view above the hard limit.

    None where it is within the limit, or nothing can be cleared. As where nothing may be folded,
    the minimum share does not count.

    Args:
        thread: what the visit found.
        record: what the fold came to.
    """
    look, hard = _look(thread, record), thread.policy.hard
    return look.cleared() if hard is not None and look.usage.tokens > hard else None


def steps_since_fold(messages: Sequence[BaseMessage], layout: Layout) -> int:
    """AI messages that came after the last fold was made."""
    return sum(
        isinstance(messages[index], AIMessage)
        for index in range(layout.anchor.folded_after, len(messages))
    )
