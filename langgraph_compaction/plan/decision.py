"""What one visit has to do: measure the view, ask the trigger, choose a span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.plan.boundaries import SEGMENT_FRAME, Span, choose_span
from langgraph_compaction.plan.fitting import Counter, fit_view
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.triggers import Usage, fired
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.digest import frame

Need = Literal["none", "soft", "hard"]
Action = Literal["none", "fold", "skip", "clip"]

LEAST_SPAN = 50
"""Tokens of a span below which no segment, heading included, could be smaller than the span."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of looking at a thread: nothing is changed by making one.

    Attributes:
        need: "none"; "soft": the trigger fired; "hard": the view exceeds the hard limit.
        action: "none"; "fold" the span; "skip": the trigger fired but nothing is worth folding;
            "clip": the hard limit is exceeded and there is nothing to fold.
        reason: one sentence about the action.
        usage: what was measured.
        span: the messages to fold, with action "fold".
        layout: the parts of the view that was measured.
    """

    need: Need
    action: Action
    reason: str
    usage: Usage
    span: Span | None
    layout: Layout


def decide(
    messages: Sequence[BaseMessage], record: CompactionRecord, policy: Policy, counter: Counter
) -> Decision:
    """Decide what a visit does. Pure; O(view) as long as nothing has to be done."""
    layout = lay_out(messages, record, defaults=policy.render)
    view = layout.view()
    usage = Usage(
        tokens=counter.messages(view) + policy.overhead,
        messages=len(view),
        steps=steps_since_fold(messages, layout),
    )
    look = _Look(messages, record, policy, counter, layout, usage)
    if not policy.clauses:
        return look.decision("none", "none", "The trigger is off.")
    if policy.hard is not None and usage.tokens > policy.hard:
        return look.hard()
    if fired(policy.clauses, usage, policy.window) is None:
        return look.decision("none", "none", "The trigger has not fired.")
    return look.soft()


@dataclass(frozen=True, slots=True)
class _Look:
    """A thread as one visit finds it."""

    messages: Sequence[BaseMessage]
    record: CompactionRecord
    policy: Policy
    counter: Counter
    layout: Layout
    usage: Usage

    def soft(self) -> Decision:
        """The trigger fired: fold what is worth it."""
        span = self._span()
        if span is None:
            return self.decision(
                "soft", "skip", "The trigger fired, but every message is kept, pinned or open."
            )
        share = int(self.usage.tokens * self.policy.min_fold_share)
        worth = max(self.policy.min_fold_tokens, share, LEAST_SPAN, self._cost(span))
        if span.tokens < worth:
            reason = (
                f"The trigger fired, but what may be folded ({span.tokens} tokens) is less than "
                f"a fold is worth ({worth} tokens)."
            )
            return self.decision("soft", "skip", reason)
        return self.decision("soft", "fold", "The trigger fired.", span)

    def hard(self) -> Decision:
        """The hard limit is exceeded: fold, or clip if that still changes anything."""
        span = self._span()
        if span is not None and span.tokens >= max(LEAST_SPAN, self._cost(span)):
            return self.decision("hard", "fold", "The view exceeds the hard limit.", span)
        fit = fit_view(self.messages, self.record, self.policy, self.counter)
        if fit.fits and fit.limits == self.layout.render:
            reason = "The view exceeds the hard limit, but nothing is left to fold or to clip."
            return self.decision("hard", "skip", reason)
        reason = "The view exceeds the hard limit and no message may be folded."
        return self.decision("hard", "clip", reason)

    def decision(
        self, need: Need, action: Action, reason: str, span: Span | None = None
    ) -> Decision:
        return Decision(need, action, reason, self.usage, span, self.layout)

    def _frame(self) -> int:
        """Tokens of the digest's opening and closing lines, which a first fold brings with it."""
        return self.counter.text(frame(self.layout.render)) if self.layout.digest is None else 0

    def _cost(self, span: Span) -> int:
        """Tokens that a fold of the span may add to the view."""
        return self._frame() + SEGMENT_FRAME + self.policy.segment_cap(span.tokens) + 1

    def _span(self) -> Span | None:
        fixed = self.usage.tokens - self.counter.messages(self.layout.recent) + self._frame()
        return choose_span(
            self.messages, self.layout, self.policy, self.counter.messages, fixed=fixed
        )


def steps_since_fold(messages: Sequence[BaseMessage], layout: Layout) -> int:
    """AI messages that came after the last fold was made."""
    return sum(
        isinstance(messages[index], AIMessage)
        for index in range(layout.anchor.made_after, len(messages))
    )
