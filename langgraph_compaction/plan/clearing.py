"""Which old tool results to clear: repeats first, then the oldest, as many as the target asks for.

All at once, or not at all: what is cleared stands before most of the view, so the provider's cached
prefix breaks there, and a few results would never pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction.plan.pins import protected
from langgraph_compaction.plan.policy import ClearingRule, Policy
from langgraph_compaction.record import Clearing, CompactionRecord, message_key
from langgraph_compaction.view import Layout
from langgraph_compaction.view.clearing import apply_clearing, place_of
from langgraph_compaction.view.fingerprints import fingerprint
from langgraph_compaction.view.pairing import Group, calls_of, first_open, groups


@dataclass(frozen=True, slots=True)
class ClearingPlan:
    """What a clearing would do.

    Attributes:
        clearing: for the record.
        freed: counted tokens that it takes off the view.
        enough: whether the view comes down to the goal by it.
        first_index: position of the first message that it changes, inclusive.
        last_index: position of the last, inclusive.
        results: tool results that are cleared by it and were not before.
        arguments: AI messages whose arguments are shortened by it.
    """

    clearing: Clearing
    freed: int
    enough: bool
    first_index: int
    last_index: int
    results: int
    arguments: int


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far clearings of a thread may go, and what they do to its view.

    Attributes:
        messages: the messages channel.
        rule: what may be cleared.
        layout: the parts of the present view.
        before: index of the last message that was cleared before, -1 where none was.
        repeats: index after the last message up to which repeats are cleared.
        pinned: keys of the messages up to there that a rule pins.
    """

    messages: Sequence[BaseMessage]
    rule: ClearingRule
    layout: Layout
    before: int
    repeats: int
    pinned: Sequence[str]

    def until(self, stop: int) -> Clearing:
        """The clearing of repeats, and of everything before index ``stop``."""
        anchor, newest = self.layout.anchor, max(stop - 1, self.before)
        clearing = Clearing(
            last_index=anchor.position_of(newest) if newest >= anchor.boundary else -1,
            last_id=self.messages[newest].id if newest >= anchor.boundary else None,
            repeats_index=anchor.position_of(self.repeats - 1),
            repeats_id=self.messages[self.repeats - 1].id,
            min_chars=self.rule.min_chars,
            argument_chars=self.rule.argument_chars,
            protected_tools=list(self.rule.protected_tools),
            pinned_ids=list(self.pinned),
        )
        if clearing["repeats_id"] is None:
            clearing["fingerprint"] = fingerprint(self.messages, self.repeats)
        return clearing

    def under(self, clearing: Clearing) -> Layout:
        """The present view with another clearing."""
        anchor = self.layout.anchor
        cleared = apply_clearing(
            self.messages,
            clearing,
            start=anchor.boundary,
            position=anchor.position,
            render=self.layout.render,
        )
        return replace(self.layout, cleared=cleared)


def plan_clearing(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    layout: Layout,
    policy: Policy,
    count: Callable[[Sequence[BaseMessage]], int],
    *,
    goal: Callable[[int], bool],
    least: bool = True,
) -> ClearingPlan | None:
    """The least clearing that reaches the goal, the most there is where none does, None: nothing.

    Args:
        messages: the messages channel.
        record: the record in the state.
        layout: its view's parts.
        policy: the numbers to decide by.
        count: tokens of a sequence of messages.
        goal: whether it is reached once so many counted tokens are freed.
        least: whether to stop there; else all is cleared that may be.
    """
    rule, anchor = policy.clearing, layout.anchor
    if rule is None:
        return None
    found = list(groups(messages, anchor.boundary))
    repeats, old = _ends(messages, found, rule.keep)
    if repeats <= anchor.boundary:
        return None
    pinned = sorted(protected(messages, range(anchor.boundary, repeats), policy.pinned, set()))
    reach = _Reach(
        messages,
        rule,
        layout,
        before=_cleared_before(messages, record.get("clearing"), layout),
        repeats=repeats,
        pinned=[message_key(messages[index], index) for index in pinned],
    )
    stop, freed = _least_stop(reach, found, old, count, goal if least else lambda _: False)
    clearing = reach.until(stop)
    shown = reach.under(clearing).cleared.messages
    new = [index for index in shown if index not in layout.cleared.messages]
    if not new or freed <= 0:
        return None
    results = sum(isinstance(messages[index], ToolMessage) for index in new)
    return ClearingPlan(
        clearing=clearing,
        freed=freed,
        enough=goal(freed),
        first_index=anchor.position_of(min(new)),
        last_index=anchor.position_of(max(new)),
        results=results,
        arguments=len(new) - results,
    )


def _least_stop(
    reach: _Reach,
    found: Sequence[Group],
    old: int,
    count: Callable[[Sequence[BaseMessage]], int],
    goal: Callable[[int], bool],
) -> tuple[int, int]:
    """Index before which to clear so that the goal is reached, and the tokens that this frees.

    Group by group from the oldest, each counted once; ``old`` is the index where it has to end.
    """
    least, most = reach.under(reach.until(0)), reach.under(reach.until(old))
    views = (reach.layout, least, most)
    changed = {index for view in views for index in view.cleared.messages}
    touched = [group for group in found if not changed.isdisjoint(range(group.start, group.stop))]

    def sizes(view: Layout) -> list[int]:
        return [count(view.shown(range(group.start, group.stop))) for group in touched]

    present, without, cut = map(sizes, views)
    freed, stop = sum(present) - sum(without), 0
    for group, kept, cleared in zip(touched, without, cut, strict=True):
        if goal(freed) or group.stop > old:
            break
        freed, stop = freed + kept - cleared, group.stop
    return stop, freed


def _ends(messages: Sequence[BaseMessage], found: Sequence[Group], keep: int) -> tuple[int, int]:
    """Indexes after the last group that is complete, and after the last old one.

    The newest ``keep`` groups with calls, and what follows the first of them, are not old.
    """
    complete = first_open(messages, found)
    repeats = found[complete - 1].stop if complete else 0
    with_calls = [
        group
        for group in found[:complete]
        if any(calls_of(messages[run.start]) for run in group.runs)
    ]
    return repeats, with_calls[-keep].start if len(with_calls) > keep else 0


def _cleared_before(
    messages: Sequence[BaseMessage], clearing: Clearing | None, layout: Layout
) -> int:
    """Index of the last message that was cleared before, -1 where there is none."""
    if clearing is None:
        return -1
    hint = layout.anchor.index_of(clearing["last_index"])
    return place_of(messages, hint, clearing["last_id"], layout.anchor.boundary)
