"""Which span to fold: whole groups, from the end of the covered range to a safe cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from langchain_core.messages import BaseMessage, SystemMessage

from langgraph_compaction.plan.pins import first_human, newest_human, protected
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.record import message_key
from langgraph_compaction.view import Layout
from langgraph_compaction.view.pairing import Group, first_open, groups

SEGMENT_FRAME = 20
"""Tokens of a segment beside its text: its heading."""


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """Where a span has to end that was chosen at an earlier visit.

    Attributes:
        position: of its last message in the thread, inclusive.
        kept: keys of the messages up to there that stay visible, see `message_key`.
    """

    position: int
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Span:
    """Messages that one fold takes. Indexes point into the messages channel.

    Attributes:
        stop: index after the last message of the span: the next boundary.
        folded: indexes of the messages to fold, ascending.
        kept: indexes below ``stop`` of the messages that stay visible, ascending.
        task: key of the task among ``kept``, see `message_key`; None if it is not there.
        quoted: index of the newest human message if it is folded; it is quoted in full.
        tokens: tokens of the folded messages as the view shows them, less what is quoted.
    """

    stop: int
    folded: tuple[int, ...]
    kept: tuple[int, ...]
    task: str | None
    quoted: int | None
    tokens: int


def choose_span(
    messages: Sequence[BaseMessage],
    layout: Layout,
    policy: Policy,
    count: Callable[[Sequence[BaseMessage]], int],
    *,
    fixed: int,
    until: SpanEnd | None = None,
) -> Span | None:
    """The span to fold now, or None where nothing may be folded.

    The tail grows backward over whole groups until the keep budget would be exceeded. Precedence:
    open calls > ``min_keep`` (within the window) > ``keep``. The newest group stays, unless
    everything is to be folded. If the result would still be above the target, the tail shrinks
    down to the floor; the floor itself gives way only to the hard limit.

    Args:
        messages: the messages channel.
        layout: its view's parts under the current record.
        policy: the numbers to decide by.
        count: tokens of a sequence of messages.
        fixed: counted tokens of the view without its recent part.
        until: where the span has to end, if that was decided before.
    """
    boundary = layout.anchor.boundary
    found = list(groups(messages, boundary))
    sizes = [count(layout.shown(range(group.start, group.stop))) for group in found]
    newest = newest_human(messages, boundary, layout.anchor.kept)
    task = _task(messages, layout, policy, newest)
    also = {index for index in (task,) if index is not None}
    if until is not None:
        also |= {i for i, message in enumerate(messages) if message_key(message, i) in until.kept}
    if newest is not None and not _is_quoted(messages[newest], policy, count):
        also.add(newest)
    reach = [*layout.anchor.kept, *range(boundary, len(messages))]
    staying = protected(messages, reach, policy.pinned, also)
    stays = [
        count(layout.shown(i for i in range(group.start, group.stop) if i in staying))
        for group in found
    ]
    latest = last_cut(messages, found, policy)
    if until is None:
        cut = _cut(found, sizes, stays, policy, fixed=fixed, latest=latest)
    else:
        cut = _cut_at(found, layout.anchor.index_of(until.position) + 1, latest)
    stop = found[cut].start if cut < len(found) else len(messages)
    kept = {index for index in staying if index < stop}
    folded = [index for index in reach if index < stop and index not in kept]
    if not folded:
        return None
    quoted = newest if newest in folded else None
    gained = count(layout.shown(folded))
    if quoted is not None:
        gained -= count([messages[quoted]])
    return Span(
        stop=stop,
        folded=tuple(folded),
        kept=tuple(sorted(kept)),
        task=message_key(messages[task], task) if task is not None and task in kept else None,
        quoted=quoted,
        tokens=gained,
    )


def _is_quoted(
    newest: BaseMessage, policy: Policy, count: Callable[[Sequence[BaseMessage]], int]
) -> bool:
    """Whether the newest request is folded and quoted in full: if all folds, and it has room."""
    return policy.fold_all and count([newest]) <= policy.max_digest // 2


def _task(
    messages: Sequence[BaseMessage], layout: Layout, policy: Policy, newest: int | None
) -> int | None:
    """Index of the task. The first request stays the task once it was kept as such."""
    if policy.task is None:
        return None
    if policy.task == "latest":
        return newest
    known = layout.render.get("task")
    for index in layout.anchor.kept:
        if message_key(messages[index], index) == known:
            return index
    return first_human(messages, layout.anchor.boundary)


def safe_cuts(messages: Sequence[BaseMessage], layout: Layout, policy: Policy) -> tuple[int, ...]:
    """Indexes before which a span may end: between groups, before any that still waits.

    Args:
        messages: the messages channel.
        layout: its view's parts under the current record.
        policy: the numbers to decide by.
    """
    found = list(groups(messages, layout.anchor.boundary))
    ends = (group.stop for group in found[: last_cut(messages, found, policy)])
    return tuple(ends)


def last_cut(messages: Sequence[BaseMessage], found: Sequence[Group], policy: Policy) -> int:
    """The greatest number of groups that may be folded.

    The newest group stays. A system message behind it is none: it says nothing of what was done.
    """
    waiting = first_open(messages, found)
    if policy.fold_all:
        return waiting
    turns = (n for n, one in enumerate(found) if not isinstance(messages[one.start], SystemMessage))
    return min(waiting, max(turns, default=0))


def _cut_at(found: Sequence[Group], stop: int, latest: int) -> int:
    """How many groups end at index ``stop``; 0 where none ends there, or it may not be folded."""
    ends = [group.stop for group in found[:latest]]
    return ends.index(stop) + 1 if stop in ends else 0


def _cut(
    found: Sequence[Group],
    sizes: Sequence[int],
    stays: Sequence[int],
    policy: Policy,
    *,
    fixed: int,
    latest: int,
) -> int:
    """How many groups to fold; ``stays`` are the tokens of each that stay visible even then."""
    if policy.fold_all:
        return latest
    lengths = [group.stop - group.start for group in found]
    tails = [*accumulate(reversed(sizes), initial=0)][::-1]
    kept = [*accumulate(stays, initial=0)]

    def size_after(cut: int) -> int:
        folded = max(1, tails[0] - tails[cut] - kept[cut])
        digest = policy.segment_cap(folded) + SEGMENT_FRAME
        return policy.call_tokens(fixed + kept[cut] + digest + tails[cut])

    floor = min(_smallest_tail(lengths, policy.min_keep), latest)
    while policy.hard is not None and floor < latest and size_after(floor) > policy.hard:
        floor += 1
    cut = min(
        max(_largest_tail(sizes, policy.keep_tokens), _largest_tail(lengths, policy.keep_messages)),
        floor,
    )
    goal = min((n for n in (policy.target, policy.hard) if n is not None), default=None)
    while goal is not None and cut < floor and size_after(cut) > goal:
        cut += 1
    return cut


def _largest_tail(sizes: Sequence[int], budget: int | None) -> int:
    """Number of groups before the longest tail that fits ``budget``."""
    cut, total = len(sizes), 0
    while cut > 0 and (budget is None or total + sizes[cut - 1] <= budget):
        cut -= 1
        total += sizes[cut]
    return cut


def _smallest_tail(lengths: Sequence[int], messages: int) -> int:
    """Number of groups before the shortest tail that has at least ``messages`` messages."""
    cut, total = len(lengths), 0
    while cut > 0 and total < messages:
        cut -= 1
        total += lengths[cut]
    return cut
