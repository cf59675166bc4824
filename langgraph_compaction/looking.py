"""What a node tells of a thread without changing anything: its size, and what a visit would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.boundaries import safe_cuts
from langgraph_compaction.plan.costs import sums
from langgraph_compaction.plan.counting import TokenCounter
from langgraph_compaction.plan.decision import Action, Decision, Need
from langgraph_compaction.plan.triggers import Condition, Kind, Usage, measured_value, needed


@dataclass(frozen=True, slots=True)
class Measurement:
    """The size of the view that the agent would be called with now.

    Attributes:
        tokens: tokens of the call: ``counted`` and ``overhead`` together.
        counted: tokens of the view's messages, as the counter has them; without those that the
            provider ignores since it compacted the conversation itself.
        overhead: tokens beyond them. Without a provider's report: ``overhead_tokens``, tools and
            system prompt. With one: what corrects the count to it, negative if it was less.
        reported: input tokens that the provider reported for the newest call under the present
            view; None where there is no such report, or it is not used.
        window: tokens of the context window, None where unknown.
        hard: tokens that a view may have, None where the window is unknown.
        trigger: fewest tokens at which the trigger can fire, None where it looks at no tokens.
        messages: messages in the view.
        clipped: those of them that are shown in part, cut to head and tail.
        steps: AI messages since the last fold.
        counter: how tokens were counted, for example "tiktoken:o200k_base".
        exact: whether that is a tokenizer rather than an estimate.
    """

    tokens: int
    counted: int
    overhead: int
    reported: int | None
    window: int | None
    hard: int | None
    trigger: int | None
    messages: int
    clipped: int
    steps: int
    counter: str
    exact: bool

    @property
    def utilisation(self) -> float | None:
        """``tokens`` as a share of the window; None where the window is unknown."""
        return None if self.window is None else self.tokens / self.window


MOST_CUTS = 12
"""Cuts that the text of an explanation lists."""


@dataclass(frozen=True, slots=True)
class TriggerCheck:
    """One condition of the trigger.

    Attributes:
        kind: what is measured: "fraction" and "tokens" (both in tokens), "messages", "steps" or
            "cost" (the tokens that a fold would take).
        measured: its present value, in that unit.
        threshold: the value from which it counts as reached, in that unit; of "cost" the foldable
            tokens from which a fold pays.
        sums: of "cost" the arithmetic behind the threshold, in words; else None.
    """

    kind: Kind
    measured: int
    threshold: float
    sums: str | None = None

    @property
    def reached(self) -> bool:
        """Whether the condition holds."""
        return self.measured >= self.threshold


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a visit would do now, and why. ``str()`` of it is a text for people.

    Attributes:
        need: "none", "asked" (on request), "soft" (the trigger fired) or "hard" (the view exceeds
            the hard limit).
        action: "none", "clear", "fold", "skip" (nothing is worth folding) or "clip".
        reason: one sentence about the action.
        measurement: the sizes.
        trigger: the trigger's arithmetic: any of these, each all of its conditions; empty: off.
        cuts: positions in the thread's messages before which a span may end.
        span: first and last position of the span to fold, both inclusive; None: nothing to fold.
        span_tokens: tokens of the messages in it that would be folded.
        kept: positions within the span of messages that stay visible.
        cleared: first and last position of the messages that would be cleared, both inclusive;
            None: nothing is to be cleared.
        tokens_after: tokens of the call after the clearing, or after the fold if it makes one
            segment of full length; None: neither.
        target: tokens that a fold has to come down to, None: no target.
        cooling: why the summarisers are left alone for now, None where they are not.
        problems: settings of thread and run that cannot be used, one line each.
    """

    need: Need
    action: Action
    reason: str
    measurement: Measurement
    trigger: tuple[tuple[TriggerCheck, ...], ...]
    cuts: tuple[int, ...]
    span: tuple[int, int] | None
    span_tokens: int
    kept: tuple[int, ...]
    cleared: tuple[int, int] | None
    tokens_after: int | None
    target: int | None
    cooling: str | None
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def measured(decision: Decision, counter: TokenCounter) -> Measurement:
    """What a decision measured.

    Args:
        decision: the outcome of looking at a thread.
        counter: what counted.
    """
    policy, usage, report = decision.policy, decision.usage, decision.calibration
    return Measurement(
        tokens=usage.tokens,
        counted=decision.read,
        overhead=usage.tokens - decision.read,
        reported=None if report is None else report.reported,
        window=policy.window,
        hard=policy.hard,
        trigger=policy.soft,
        messages=usage.messages,
        clipped=decision.layout.clipped,
        steps=usage.steps,
        counter=counter.name,
        exact=counter.exact,
    )


def explained(visit: Visit, decision: Decision, counter: TokenCounter) -> Explanation:
    """A decision in words and numbers.

    Args:
        visit: what was looked at.
        decision: the outcome.
        counter: what counted.
    """
    policy, usage = decision.policy, decision.usage
    anchor, span = decision.layout.anchor, decision.span
    start = anchor.position_of(anchor.boundary)
    clearing = decision.clearing if decision.action == "clear" else None
    return Explanation(
        need=decision.need,
        action=decision.action,
        reason=decision.reason,
        measurement=measured(decision, counter),
        trigger=tuple(
            tuple(_check(one, usage, policy.window) for one in clause) for clause in policy.clauses
        ),
        cuts=tuple(map(anchor.position_of, safe_cuts(visit.messages, decision.layout, policy))),
        span=None if span is None else (start, anchor.position_of(span.stop) - 1),
        span_tokens=0 if span is None else span.tokens,
        kept=() if span is None else _kept(span.kept, decision),
        cleared=None if clearing is None else (clearing.first_index, clearing.last_index),
        tokens_after=decision.predicted,
        target=policy.target,
        cooling=None if decision.cooling is None else decision.cooling.reason,
        problems=tuple(visit.problems),
    )


def _check(condition: Condition, usage: Usage, window: int | None) -> TriggerCheck:
    prices, growth = condition.prices, usage.growth
    return TriggerCheck(
        condition.kind,
        measured_value(usage, condition),
        needed(usage, condition, window),
        None if prices is None or growth is None else sums(prices, growth),
    )


def _clause(clause: tuple[TriggerCheck, ...]) -> str:
    return " and ".join(
        f"{one.kind} {one.measured} of {one.threshold:.0f}{' (reached)' if one.reached else ''}"
        for one in clause
    )


def _listed(cuts: tuple[int, ...]) -> str:
    newest = ", ".join(map(str, cuts[-MOST_CUTS:]))
    return newest if len(cuts) <= MOST_CUTS else f"{cuts[0]} ... {newest} ({len(cuts)} places)"


def _kept(kept: tuple[int, ...], decision: Decision) -> tuple[int, ...]:
    anchor = decision.layout.anchor
    return tuple(anchor.position_of(index) for index in kept if index >= anchor.boundary)


def _lines(told: Explanation) -> Iterator[str]:
    size = told.measurement
    yield f"{told.action} (need: {told.need}). {told.reason}"
    share = "" if size.utilisation is None else f", {size.utilisation:.0%} of the window"
    beyond = (
        f"{size.overhead:+} beside the messages"
        if size.reported is None
        else f"corrected by {size.overhead:+} to the provider's report of {size.reported} for the "
        "newest call and what came after it"
    )
    yield (
        f"The call has {size.tokens} tokens{share}: {size.counted} counted by {size.counter}, "
        f"{beyond}."
    )
    limit = "none, the window is not known" if size.hard is None else f"{size.hard} tokens"
    yield f"Hard limit: {limit}."
    if size.clipped:
        yield f"Of the {size.messages} messages in the view {size.clipped} are shown in part."
    if not told.trigger:
        yield "The trigger is off."
    else:
        any_of = ", any of" if len(told.trigger) > 1 else ""
        yield f"Trigger{any_of}: {'; '.join(map(_clause, told.trigger))}"
        yield from (f"Cost: {one.sums}." for each in told.trigger for one in each if one.sums)
    target = "" if told.target is None else f" (target: {told.target})"
    if told.cleared is not None:
        first, last = told.cleared
        yield (
            f"Tool results of messages {first} to {last} would be cleared. The call would have "
            f"about {told.tokens_after}{target}."
        )
    elif told.span is not None:
        first, last = told.span
        yield (
            f"Messages {first} to {last} would be folded: {told.span_tokens} tokens. The call "
            f"would have about {told.tokens_after}{target}."
        )
        if told.kept:
            yield f"Of these stay: {', '.join(map(str, told.kept))}."
    elif told.need != "none":  # where nothing is due, they decide nothing
        yield f"A span may end before {_listed(told.cuts) or 'no message'}."
    if told.cooling is not None and told.cooling != told.reason:
        yield told.cooling
    yield from told.problems
