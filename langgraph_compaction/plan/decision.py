"""What one visit has to do: measure the view, ask the trigger, choose a span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.plan.boundaries import Span, choose_span
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.triggers import Usage, fired
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.digest import frame

LEAST_SPAN = 50
"""Tokens of a span below which no segment, heading included, could be smaller than the span."""


class Counter(Protocol):
    """Counts the tokens of messages and of text."""

    def messages(self, messages: Sequence[BaseMessage], /) -> int:
        """Tokens of the messages together."""

    def text(self, text: str, /) -> int:
        """Tokens of a plain string."""


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

    need: Literal["none", "soft", "hard"]
    action: Literal["none", "fold", "skip", "clip"]
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
        steps=steps_since_fold(messages, record, layout),
    )
    if policy.hard is not None and usage.tokens > policy.hard and policy.clauses:
        return _with_span(messages, layout, policy, counter, usage, hard=True)
    clause = fired(policy.clauses, usage, policy.window)
    if clause is None:
        reason = "The trigger is off." if not policy.clauses else "The trigger has not fired."
        return Decision("none", "none", reason, usage, None, layout)
    return _with_span(messages, layout, policy, counter, usage, hard=False)


def _with_span(
    messages: Sequence[BaseMessage],
    layout: Layout,
    policy: Policy,
    counter: Counter,
    usage: Usage,
    *,
    hard: bool,
) -> Decision:
    fixed = usage.tokens - counter.messages(layout.recent)
    if layout.digest is None:  # a first fold brings the digest's frame with it
        fixed += counter.text(frame(layout.render))
    span = choose_span(messages, layout, policy, counter.messages, fixed=fixed)
    if hard:
        if span is None or span.tokens < LEAST_SPAN:
            reason = "The view exceeds the hard limit and no message may be folded."
            return Decision("hard", "clip", reason, usage, None, layout)
        reason = "The view exceeds the hard limit."
        return Decision("hard", "fold", reason, usage, span, layout)
    if span is None:
        reason = "The trigger fired, but every message is kept, pinned or open."
        return Decision("soft", "skip", reason, usage, None, layout)
    worth = max(policy.min_fold_tokens, int(usage.tokens * policy.min_fold_share), LEAST_SPAN)
    if span.tokens < worth:
        reason = (
            f"The trigger fired, but what may be folded ({span.tokens} tokens) is less than "
            f"a fold is worth ({worth} tokens)."
        )
        return Decision("soft", "skip", reason, usage, None, layout)
    return Decision("soft", "fold", "The trigger fired.", usage, span, layout)


def steps_since_fold(
    messages: Sequence[BaseMessage], record: CompactionRecord, layout: Layout
) -> int:
    """AI messages that came after the last fold was made."""
    start = layout.anchor.boundary
    if layout.anchor.position:
        start += max(0, record.get("fold_length", 0) - layout.anchor.position)
    return sum(isinstance(messages[index], AIMessage) for index in range(start, len(messages)))
