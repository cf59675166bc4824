"""Measuring a thread as a visit finds it: its view, its sizes, and what could be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.plan.boundaries import SEGMENT_FRAME, Span, SpanEnd, choose_span
from langgraph_compaction.plan.calibration import Calibration, calibration
from langgraph_compaction.plan.clearing import ClearingPlan, plan_clearing
from langgraph_compaction.plan.cooling import Cooling, cooling
from langgraph_compaction.plan.costs import Growth
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.reading import Counter, read_sizes
from langgraph_compaction.plan.requests import Request
from langgraph_compaction.plan.triggers import Usage, fired
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.digest import frame
from langgraph_compaction.view.provider import newest_compaction


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

    @property
    def until(self) -> SpanEnd | None:
        """Where a span has to end that an earlier visit chose, None: this one chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A thread as one visit finds it.

    Attributes:
        messages: the messages channel.
        record: the record to view them under.
        policy: the thread's, with what a report of the provider told of its tokens.
        counter: counts tokens.
        layout: the parts of the view.
        counted: tokens of the view's messages, as the counter has them.
        read: tokens of those that the provider reads: where it has compacted the conversation
            itself, the later ones alone.
        ignored_to: index into the messages of the one in which the provider did so, None where it
            did not.
        usage: what the trigger looks at.
        calibration: the provider's report that corrected the count, None where there was none.
        thread_steps: AI messages of the thread so far.
        cooling: why the summarisers are left alone, None where they are not.
        request: the request that is to be carried out, None where there is none.
        until: where a span has to end that an earlier visit chose, None: this one chooses.
    """

    messages: Sequence[BaseMessage]
    record: CompactionRecord
    policy: Policy
    counter: Counter
    layout: Layout
    counted: int
    read: int
    ignored_to: int | None
    usage: Usage
    calibration: Calibration | None
    thread_steps: int
    cooling: Cooling | None
    request: Request | None
    until: SpanEnd | None

    @property
    def exceeds(self) -> bool:
        """Whether the view exceeds the hard limit."""
        return self.policy.hard is not None and self.usage.tokens > self.policy.hard

    def after(self, freed: int) -> int:
        """Tokens of a call with a view that has so many counted tokens less."""
        return self.policy.call_tokens(self.counted - freed)

    def span(self, policy: Policy) -> Span | None:
        """The span to fold under a policy, None where there is none."""
        fixed = self.counted - self.counter.messages(self.layout.recent) + self._frame()
        count = self.counter.messages
        return choose_span(self.messages, self.layout, policy, count, fixed=fixed, until=self.until)

    def cost(self, span: Span) -> int:
        """Tokens that a fold of the span may add to the view."""
        return self._frame() + SEGMENT_FRAME + self.policy.segment_cap(span.tokens) + 1

    def folded(self, span: Span) -> int:
        """Tokens of a call after a fold of the span into one segment of full length.

        Where the provider ignores all of the span, it will ignore the digest, too. Once a fold
        takes the message in which it compacted the conversation, it reads the whole view again.
        """
        if self.ignored_to is not None and span.stop <= self.ignored_to:
            return self.usage.tokens
        return self.after(span.tokens - self.cost(span))

    def gain(self, span: Span) -> int:
        """Tokens that a fold of the span takes out of a call, without those that it adds.

        0 where the call would not get smaller, since the provider ignores them anyway.
        """
        if self.ignored_to is None:
            return span.tokens
        gained = self.usage.tokens - self.folded(span)
        return gained + self.cost(span) if gained > 0 else 0

    def clearing(self) -> ClearingPlan | None:
        """The least clearing that reaches the target, or all there is; without a target, all.

        None where the provider ignores what could be cleared: nothing would be gained.
        """
        if self.ignored_to is not None:
            return None
        return plan_clearing(
            self.messages,
            self.record,
            self.layout,
            self.policy,
            self.counter.messages,
            goal=self._reached,
            least=self.policy.target is not None,
        )

    def worthwhile_clearing(self) -> ClearingPlan | None:
        """The clearing that there is, if it frees enough to pay for the broken prefix."""
        found, rule = self.clearing(), self.policy.clearing
        if found is None or rule is None or found.freed < rule.min_share * self.counted:
            return None
        return found

    def _reached(self, freed: int) -> bool:
        """Whether the view comes down to the target, and below trigger and hard limit.

        By no less than a clearing is worth.
        """
        policy = self.policy
        if policy.clearing is not None and freed < policy.clearing.min_share * self.counted:
            return False
        within = policy.target is None or self.after(freed) <= policy.target
        return within and self.settled(freed)

    def settled(self, freed: int) -> bool:
        """Whether with so many counted tokens less neither limit would ask for anything."""
        policy, tokens = self.policy, self.after(freed)
        if policy.hard is not None and tokens > policy.hard:
            return False
        growth = self.usage.growth
        if growth is not None:
            growth = growth._replace(foldable=growth.foldable - freed)
        usage = replace(self.usage, tokens=tokens, growth=growth)
        return fired(policy.clauses, usage, policy.window) is None

    def spares(self, clearing: ClearingPlan, span: Span) -> bool:
        """Whether the clearing does what a fold of the span would do: it leaves no more."""
        folded = span.tokens - self.cost(span)
        return self.after(clearing.freed) <= self.after(folded) and self.settled(clearing.freed)

    def _frame(self) -> int:
        """Tokens that a first fold brings with it: the digest's opening and closing, live state."""
        if self.layout.digest is not None:
            return 0
        return self.counter.text(frame(self.layout.render)) + self.policy.live


def look_at(thread: Thread, record: CompactionRecord | None = None) -> Look:
    """Measure a thread; O(view).

    Args:
        thread: what the visit finds.
        record: another record than the thread's own to view it under.
    """
    messages, policy = thread.messages, thread.policy
    record = thread.record if record is None else record
    layout = lay_out(messages, record, defaults=policy.render)
    policy = policy.with_live(layout.digest)
    view = layout.view()
    sizes = read_sizes(view, thread.counter)
    read, start = sum(sizes), newest_compaction(view)
    counted = read if start is None else thread.counter.messages(view)
    report = None
    if policy.calibrate:
        made_after = layout.anchor.made_after
        place = -1 if start is None else start
        report = calibration(messages, view, sizes, made_after, policy.window, start=place)
    if report is None:
        tokens = policy.call_tokens(read)
    else:
        tokens = report.reported + round((read - report.counted) * report.slope)
        if thread.policy.live and layout.digest is not None:  # it may have grown since that call
            tokens = max(tokens, policy.overhead + round(read * report.slope))
        if report.doubtful:
            tokens = max(tokens, policy.call_tokens(read))
        # What comes after a fold is judged without the report: less than counted is not promised.
        slope = max(1.0, report.slope)
        beyond = report.reported - report.counted * slope - policy.overhead
        policy = replace(policy, slope=slope, beyond=max(0.0, beyond), beyond_of=report.counted)
    steps = _steps_since_fold(messages, layout)
    thread_steps = record.get("steps_at_fold", 0) + steps
    request = thread.request
    if request is not None and request.id == record.get("request_id"):
        request = None
    return Look(
        messages=messages,
        record=record,
        policy=policy,
        counter=thread.counter,
        layout=layout,
        counted=counted,
        read=read,
        ignored_to=None if start is None else newest_compaction(messages),
        usage=Usage(
            tokens=tokens,
            messages=len(view),
            steps=steps,
            growth=_growth(thread, record, layout, sizes) if policy.weighs_costs else None,
        ),
        calibration=report,
        thread_steps=thread_steps,
        cooling=cooling(record, messages, steps=thread_steps, tokens=tokens, request=request),
        request=request,
        until=thread.until,
    )


def _growth(
    thread: Thread, record: CompactionRecord, layout: Layout, sizes: Sequence[int]
) -> Growth:
    """What a fold would be about.

    An estimate of the span, not the span: whole groups and pins would make it a few messages more
    or less, and choosing it at every visit would cost more than that is worth.

    Args:
        thread: what the visit finds.
        record: the record that it is viewed under.
        layout: the parts of the view.
        sizes: counted tokens of each message of the view.
    """
    policy, messages = thread.policy, thread.messages
    recent = sizes[len(sizes) - len(layout.recent) :]
    tail = 0
    for number, size in enumerate(reversed(recent)):
        over = policy.keep_tokens is not None and tail + size > policy.keep_tokens
        full = policy.keep_messages is not None and number >= policy.keep_messages
        if number >= policy.min_keep and (over or full):
            break
        tail += size
    # As they were written: what is cleared since arrived all the same.
    since = messages[layout.anchor.boundary :]
    steps = sum(isinstance(message, AIMessage) for message in since)
    return Growth(
        per_step=thread.counter.messages(since) / steps if steps else 0.0,
        foldable=sum(recent) - tail,
        tail=tail,
        digest=sum(segment["tokens"] for segment in record.get("segments", [])),
        rolling=policy.rolling,
    )


def _steps_since_fold(messages: Sequence[BaseMessage], layout: Layout) -> int:
    """AI messages that came after the last fold was made."""
    return sum(
        isinstance(messages[index], AIMessage)
        for index in range(layout.anchor.folded_after, len(messages))
    )
