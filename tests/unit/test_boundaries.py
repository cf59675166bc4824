"""Which span a fold takes: whole groups, never what is open, pinned, asked for or system text.

Too short a tail loses the work in hand; too long a one makes the next fold come at once; a cut in
the wrong place makes a history that no provider accepts. Sizes here are characters: a token each.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.changes import advanced
from langgraph_compaction.plan.boundaries import Span, choose_span
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.resolving import AgentLimits, resolved
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.view import lay_out
from langgraph_compaction.view.clipping import text_size
from langgraph_compaction.view.marks import pin
from langgraph_compaction.view.pairing import first_open, groups
from tests.support.histories import random_history
from tests.support.segments import sealed

SMALL: dict[str, Any] = {
    "trigger": ("tokens", 100_000),
    "keep": ("tokens", 300),
    "min_keep": 0,
    "target": None,
    "min_segment_tokens": 1,
    "segment_share": 0.1,
}


def policy(window: int | None = None, **values: Any) -> Policy:
    return resolved(CompactionSettings.of({**SMALL, **values}), AgentLimits(window))


def count(messages: Sequence[BaseMessage]) -> int:
    return sum(map(text_size, messages))


def chosen(
    messages: list[BaseMessage], rules: Policy, record: CompactionRecord | None = None
) -> Span | None:
    layout = lay_out(messages, record or {}, defaults=rules.render)
    fixed = count(layout.view()) - count(layout.recent)
    return choose_span(messages, layout, rules, count, fixed=fixed)


def stop(messages: list[BaseMessage], rules: Policy) -> int | None:
    span = chosen(messages, rules)
    return None if span is None else span.stop


def human(size: int = 100) -> HumanMessage:
    return HumanMessage("h" * size)


def ai(size: int = 100) -> AIMessage:
    return AIMessage("a" * size)


def work(*results: int, calls: int | None = None) -> list[BaseMessage]:
    """An AI message that calls tools, and results of these sizes."""
    asked = len(results) if calls is None else calls
    return [
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": f"{n}"} for n in range(asked)]),
        *(ToolMessage("t" * size, tool_call_id=f"{n}") for n, size in enumerate(results)),
    ]


def named(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [m.model_copy(update={"id": f"m{n}"}) for n, m in enumerate(messages)]


def talk(count: int) -> list[BaseMessage]:
    """Messages of 100 characters in turn; the first is a human one."""
    return named([(human, ai)[n % 2]() for n in range(count)])


# ---- how much stays


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (("tokens", 300), 7),
        (("tokens", 299), 8),
        (("tokens", 1), 9),
        (None, 9),
        (("messages", 4), 6),
        (("messages", 1), 9),
        ([("messages", 4), ("tokens", 200)], 8),
        ([("messages", 2), ("tokens", 500)], 8),
    ],
)
def test_the_tail_grows_until_the_budget_would_be_exceeded(keep: Any, expected: int) -> None:
    assert stop(talk(10), policy(keep=keep)) == expected


def test_a_fraction_is_one_of_the_window() -> None:
    rules = policy(window=2_000, trigger=("tokens", 1_700), keep=("fraction", 0.2))
    assert stop(talk(10), rules) == 6


def test_a_group_stays_or_goes_as_a_whole() -> None:
    messages = named([human(), *work(100, 100), *work(100, 100, 100), human(50)])
    assert stop(messages, policy(keep=("tokens", 250))) == 8
    assert stop(messages, policy(keep=("tokens", 350))) == 4
    assert stop(messages, policy(keep=("messages", 3))) == 8


def test_the_newest_group_stays_though_it_is_over_the_budget() -> None:
    messages = named([human(), *work(10), *work(5_000, 5_000)])
    assert stop(messages, policy()) == 3


@pytest.mark.parametrize("behind", [1, 3])
def test_the_newest_group_stays_where_system_messages_came_behind_it(behind: int) -> None:
    late: list[BaseMessage] = [SystemMessage("s")] * behind
    messages = named([human(), *work(100), *work(900), *late])
    assert stop(messages, policy(keep=("messages", 1))) == 3
    assert stop(messages, policy(keep=("tokens", 1), target=1)) == 3
    assert stop(messages, policy(keep=("messages", 0))) == len(messages)


def test_the_floor_in_messages_wins_over_the_budget() -> None:
    assert stop(talk(10), policy(keep=("tokens", 100), min_keep=4)) == 6
    messages = named([human(), *work(10), *work(10, 10), ai()])
    # The floor is filled up with whole groups.
    assert stop(messages, policy(keep=None, min_keep=2)) == 3


def test_the_tail_shrinks_to_the_target_but_not_below_the_floor() -> None:
    # Ten messages take 1,000; after a fold of six 400 and the task's 100 are left, and 50 and a
    # heading of a segment.
    rules: dict[str, Any] = {"trigger": ("tokens", 1_000), "keep": ("tokens", 800)}
    assert stop(talk(10), policy(**rules, target=570)) == 6
    assert stop(talk(10), policy(**rules, target=569)) == 7
    assert stop(talk(10), policy(**rules, target=569, min_keep=6)) == 4
    assert stop(talk(10), policy(**rules, target=1)) == 9


def test_the_floor_gives_way_to_the_hard_limit_alone() -> None:
    messages = talk(10)
    kept: dict[str, Any] = {"keep": ("tokens", 100), "trigger": ("tokens", 400), "min_keep": 8}
    assert stop(messages, policy(window=1_000, reserve_tokens=0, **kept)) == 2
    assert stop(messages, policy(window=700, reserve_tokens=0, **kept)) == 5


@pytest.mark.parametrize("target", ["auto", None])
def test_at_the_hard_limit_a_long_keep_gives_way_too(target: Any) -> None:
    # A trigger in messages knows no tokens, and its tail may be larger than the window.
    rules = policy(
        window=700, reserve_tokens=0, trigger=("messages", 50), keep="auto", target=target
    )
    found = stop(talk(10), rules)
    assert found is not None
    assert found >= 4


# ---- what is never folded


def test_system_messages_task_newest_request_and_pins_stay_visible() -> None:
    messages = named(
        [
            SystemMessage("s"),
            human(),
            ai(),
            pin(human()),
            SystemMessage("s2"),
            human(),
            *work(10),
            *work(10),
        ]
    )
    span = chosen(messages, policy(keep=None))
    assert span is not None
    assert span.stop == 8
    assert span.kept == (0, 1, 3, 4, 5)
    assert span.folded == (2, 6, 7)
    assert (span.task, span.quoted) == ("m1", None)


@pytest.mark.parametrize(
    ("task", "key", "kept"), [("first", "m0", (0, 4)), ("latest", "m4", (4,)), (None, None, (4,))]
)
def test_the_task_is_the_first_request_the_latest_or_none(
    task: Any, key: str | None, kept: tuple[int, ...]
) -> None:
    span = chosen(named([*talk(5), *work(10), *work(10)]), policy(keep=None, task=task))
    assert span is not None
    assert (span.task, span.kept) == (key, kept)


def test_a_call_that_still_waits_is_not_folded() -> None:
    messages = named([*talk(4), *work(10, calls=2), SystemMessage("s")])
    for rules in (policy(keep=None), policy(keep=("messages", 0))):
        assert stop(messages, rules) == 4
    # The result of another call that arrives meanwhile changes nothing about it.
    late = ToolMessage("late", tool_call_id="z", id="late")
    assert stop([*messages[:-1], late], policy(keep=("messages", 0))) == 4


def test_an_abandoned_call_is_folded() -> None:
    messages = named([human(), *work(calls=1), human(), *work(10), *work(10)])
    span = chosen(messages, policy(keep=None))
    assert span is not None
    assert 1 in span.folded


def test_a_pinned_result_keeps_its_whole_group() -> None:
    messages = named([human(), *work(10, 10), *work(10), *work(10)])
    messages[3] = pin(messages[3])
    span = chosen(messages, policy(keep=None))
    assert span is not None
    assert span.kept == (0, 1, 2, 3)


# ---- fold everything


def test_everything_but_task_pins_and_system_text_can_be_folded() -> None:
    messages = named([SystemMessage("s"), human(), *work(10), pin(ai()), human(), *work(10)])
    span = chosen(messages, policy(keep=("messages", 0)))
    assert span is not None
    assert span.stop == len(messages)
    assert span.kept == (0, 1, 4)
    assert span.folded == (2, 3, 5, 6, 7)
    assert span.quoted == 5


def test_the_newest_request_is_not_quoted_where_it_is_the_task() -> None:
    span = chosen(named([human(), *work(10)]), policy(keep=("messages", 0)))
    assert span is not None
    assert (span.kept, span.quoted) == ((0,), None)


# ---- later folds


def after_fold(messages: list[BaseMessage], until: int, *kept: int) -> CompactionRecord:
    return advanced(
        {}, messages, lay_out(messages, {}).anchor, stop=until, kept=kept,
        segments=[sealed("Text.", 0, until - 1)], render={"task": "m0"}, steps=0,
    )  # fmt: skip


def test_a_later_fold_begins_where_the_last_one_ended() -> None:
    messages = talk(12)
    span = chosen(messages, policy(keep=("tokens", 200)), after_fold(messages, 5, 0))
    assert span is not None
    assert span.folded == (5, 6, 7, 8, 9)
    assert (span.kept, span.task) == ((0,), "m0")


def test_a_message_that_is_kept_no_longer_is_folded_later() -> None:
    messages = talk(12)
    record = after_fold(messages, 6, 0, 2, 3)
    messages[2] = pin(messages[2])
    span = chosen(messages, policy(keep=("tokens", 200)), record)
    assert span is not None
    assert span.kept == (0, 2)
    assert span.folded == (3, 6, 7, 8, 9)


def test_where_nothing_may_be_folded_there_is_no_span() -> None:
    everything = policy(keep=("messages", 0), pinned={"type": "human"})
    for messages in ([], named([human()]), named([human(), human()]), named([SystemMessage("s")])):
        assert chosen(messages, everything) is None
    assert chosen(named([*work(10)]), policy(keep=None)) is None
    assert chosen(talk(3), policy(keep=("tokens", 900))) is None


def test_sizes_are_those_of_the_view() -> None:
    messages = named([human(), *work(9_000), *work(10), *work(20)])
    rules = policy(window=1_000, reserve_tokens=0, trigger=("tokens", 500), keep=None)
    layout = lay_out(messages, {}, defaults=rules.render)
    span = chosen(messages, rules)
    assert span is not None
    assert span.folded == (1, 2, 3, 4)
    assert span.tokens == count(layout.shown(range(1, 5)))


# ---- any history


@pytest.mark.parametrize("keep", [None, ("tokens", 300), ("messages", 5), ("messages", 0)])
@pytest.mark.parametrize("seed", range(20))
def test_in_any_history_the_rules_hold(seed: int, keep: Any) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        messages = random_history(rng, length=25)
        span = chosen(messages, policy(keep=keep))
        if span is None:
            continue
        found = list(groups(messages))
        starts = [group.start for group in found]
        assert span.stop in [*starts, len(messages)]
        assert sorted((*span.folded, *span.kept)) == list(range(span.stop))
        waiting = first_open(messages, found)
        newest = min(waiting, len(found) - (keep != ("messages", 0)))
        assert newest == len(found) or span.stop <= starts[newest]
        assert not any(isinstance(messages[index], SystemMessage) for index in span.folded)
        humans = [index for index, m in enumerate(messages) if isinstance(m, HumanMessage)]
        assert not humans or humans[0] not in span.folded
        if humans and keep != ("messages", 0):
            assert humans[-1] not in span.folded
