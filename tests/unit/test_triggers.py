"""When to compact: one meaning for each form, the same arithmetic everywhere, and off means off.

An interval of 0 that fires at every step, a None that summarises anyway, a limit that is looked at
in the wrong unit: each was reported by users of other systems, and each costs money or the thread.
"""

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import ConfigurationError
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.decision import Decision, decide
from langgraph_compaction.plan.triggers import (
    Condition,
    Usage,
    count_threshold,
    fired,
    parse_keep,
    parse_trigger,
    token_threshold,
)
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.view.clipping import text_size
from tests.support.segments import sealed

T4K = Condition("tokens", 4_000)
M10 = Condition("messages", 10)


# ---- forms


@pytest.mark.parametrize(
    ("value", "clauses"),
    [
        (None, ()),
        ([], ()),
        ({}, ()),
        (("tokens", 4_000), ((T4K,),)),
        (["tokens", 4_000], ((T4K,),)),
        (("tokens", 4_000.0), ((T4K,),)),
        (("fraction", 0.8), ((Condition("fraction", 0.8),),)),
        (("fraction", 1), ((Condition("fraction", 1),),)),
        ({"tokens": 4_000, "messages": 10}, ((T4K, M10),)),
        ([("tokens", 4_000), ("messages", 10)], ((T4K,), (M10,))),
        ([["tokens", 4_000], {"messages": 10, "tokens": 4_000}], ((T4K,), (M10, T4K))),
        ([None, ("tokens", 4_000)], ((T4K,),)),
        *((("steps", off), ()) for off in (None, 0, -1, -inf, 0.0)),
        ([("steps", 0), ("tokens", -5)], ()),
        ({"steps": 0}, ()),
    ],
)
def test_every_form_of_a_trigger_becomes_clauses(value: Any, clauses: Any) -> None:
    assert parse_trigger(value) == clauses


@pytest.mark.parametrize(
    ("value", "conditions"),
    [
        (("tokens", 4_000), (T4K,)),
        (["messages", 10], (M10,)),
        ([("tokens", 4_000), ["messages", 10]], (T4K, M10)),
        (("messages", 0), (Condition("messages", 0),)),
        (("tokens", 0), (Condition("tokens", 0),)),
        (("fraction", -1), (Condition("tokens", 0),)),
        (None, (Condition("tokens", 0),)),
    ],
)
def test_every_form_of_a_keep_rule_becomes_conditions(value: Any, conditions: Any) -> None:
    assert parse_keep(value) == conditions


@pytest.mark.parametrize("parse", [parse_trigger, parse_keep])
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("tokens", "'tokens'"),
        (4_000, "4000"),
        (("tokens",), "'tokens'"),
        (("tokens", 1, 2), "'tokens'"),
        (("token", 4_000), "'token'"),
        (("TOKENS", 4_000), "'TOKENS'"),
        (("tokens", "4000"), "'4000'"),
        (("tokens", True), "True"),
        (("tokens", nan), "nan"),
        (("tokens", inf), "inf"),
        (("fraction", inf), "inf"),
        (("tokens", 0.5), "0.5"),
        (("messages", 2.5), "2.5"),
        (("fraction", 80), "80"),
        (("fraction", 1.01), "1.01"),
        ([("tokens", 4_000), "messages"], "'messages'"),
        ([("tokens", [1])], "[1]"),
    ],
)
def test_what_has_no_meaning_is_named_with_the_remedy(parse: Any, value: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the_parameter: ") as caught:
        parse(value, "the_parameter")
    assert named in str(caught.value)
    assert (
        "the_parameter=(" in str(caught.value)
        or "write (" in str(caught.value)
        or ("has to be" in str(caught.value))
    )


def test_what_belongs_to_one_of_the_two_only_is_refused_by_the_other() -> None:
    with pytest.raises(ConfigurationError, match="'steps' is not a kind"):
        parse_keep(("steps", 3))
    with pytest.raises(ConfigurationError, match="wrong form"):
        parse_keep({"tokens": 4_000})
    with pytest.raises(ConfigurationError, match="wrong form"):
        parse_keep([])


# ---- arithmetic


@pytest.mark.parametrize(
    ("trigger", "tokens", "messages", "steps", "expected"),
    [
        (("tokens", 100), 99, 9, 9, False),
        (("tokens", 100), 100, 0, 0, True),
        (("messages", 10), 999, 9, 9, False),
        (("messages", 10), 0, 10, 0, True),
        (("steps", 3), 999, 99, 2, False),
        (("steps", 3), 0, 0, 3, True),
        (("fraction", 0.5), 499, 9, 9, False),
        (("fraction", 0.5), 500, 0, 0, True),
        ({"tokens": 100, "messages": 10}, 100, 9, 9, False),
        ({"tokens": 100, "messages": 10}, 100, 10, 0, True),
        ([("tokens", 100), ("messages", 10)], 1, 10, 0, True),
        ([("tokens", 100), ("messages", 10)], 99, 9, 9, False),
        (None, 10**9, 10**9, 10**9, False),
        (("steps", 0), 10**9, 10**9, 10**9, False),
    ],
)
def test_a_trigger_fires_where_a_clause_is_reached(
    trigger: Any, tokens: int, messages: int, steps: int, *, expected: bool
) -> None:
    clauses = parse_trigger(trigger)
    assert (fired(clauses, Usage(tokens, messages, steps), 1_000) is not None) is expected


@given(
    st.lists(
        st.tuples(st.just("tokens"), st.integers(1, 5_000))
        | st.tuples(st.just("fraction"), st.floats(0.001, 1)),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 5_000),
)
def test_the_threshold_in_tokens_is_the_first_number_that_fires(
    pairs: list[tuple[str, float]], window: int
) -> None:
    for clauses in (parse_trigger(pairs), parse_trigger(dict(pairs))):
        least = token_threshold(clauses, window)
        assert least is not None
        assert fired(clauses, Usage(least, 0, 0), window) is not None
        assert fired(clauses, Usage(least - 1, 0, 0), window) is None


def test_thresholds_are_those_of_the_clauses_that_look_at_them() -> None:
    clauses = parse_trigger([{"tokens": 900, "messages": 5}, ("messages", 8), ("steps", 4)])
    assert token_threshold(clauses, None) == 900
    assert count_threshold(clauses, "messages") == 8
    assert count_threshold(clauses, "steps") == 4
    assert token_threshold(parse_trigger(("steps", 4)), 1_000) is None
    assert count_threshold((), "steps") is None


# ---- what a visit decides


class Characters:
    """Counts a token for each character."""

    def messages(self, messages: Sequence[BaseMessage], /) -> int:
        return sum(map(text_size, messages))

    def message(self, message: BaseMessage, /) -> int:
        return text_size(message)

    def text(self, text: str, /) -> int:
        return len(text)


def decision(
    count: int, record: CompactionRecord | None = None, *, size: int = 100, **values: Any
) -> Decision:
    """What is decided for a thread of ``count`` messages of ``size`` characters."""
    messages: list[BaseMessage] = [
        (HumanMessage, AIMessage)[n % 2]("x" * size, id=f"m{n}") for n in range(count)
    ]
    given: dict[str, Any] = {"keep": ("tokens", 200), "min_keep": 0, "min_segment_tokens": 1}
    policy = resolved(CompactionSettings.of({**given, **values}))
    return decide(Visit(messages, record or {}, policy, Characters(), ()))


def test_below_the_trigger_nothing_is_done() -> None:
    found = decision(9, trigger=("tokens", 1_000))
    assert (found.need, found.action, found.span) == ("none", "none", None)
    assert (found.usage.tokens, found.usage.messages, found.usage.steps) == (900, 9, 4)


def test_at_the_trigger_a_span_is_folded() -> None:
    found = decision(10, trigger=("tokens", 1_000))
    assert (found.need, found.action) == ("soft", "fold")
    assert found.span is not None


def test_the_overhead_counts() -> None:
    assert decision(9, trigger=("tokens", 1_000), overhead_tokens=100).need == "soft"


@pytest.mark.parametrize("off", [None, ("steps", 0), ("tokens", -1), []])
def test_off_is_off_everywhere(off: Any) -> None:
    found = decision(90, trigger=off, context_window=1_000)
    assert (found.need, found.action) == ("none", "none")


def test_above_the_hard_limit_something_is_done_whatever_the_trigger_says() -> None:
    limits: dict[str, Any] = {"context_window": 1_000, "reserve_tokens": 100}
    assert decision(9, trigger=("steps", 99), **limits).need == "none"
    found = decision(10, trigger=("steps", 99), **limits)
    assert (found.need, found.action) == ("hard", "fold")
    alone = decision(1, size=950, trigger=("steps", 99), **limits)
    assert (alone.need, alone.action, alone.span) == ("hard", "clip", None)


def test_a_fold_that_is_not_worth_it_is_skipped_with_the_reason() -> None:
    few = decision(10, trigger=("tokens", 1_000), min_fold_tokens=800)
    assert (few.need, few.action, few.span) == ("soft", "skip", None)
    assert "600 tokens" in few.reason or "700 tokens" in few.reason
    share = decision(10, trigger=("messages", 10), min_fold_tokens=0, min_fold_share=0.9)
    assert share.action == "skip"
    none = decision(2, trigger=("messages", 2), min_fold_tokens=0)
    assert none.action == "skip"
    assert "kept, pinned or open" in none.reason


def test_steps_count_from_the_last_fold() -> None:
    record: CompactionRecord = {
        "segments": [sealed("Text.", 0, 3)],
        "last_summarized_index": 3,
        "last_summarized_id": "m3",
        "next_id": "m4",
        "boundary_hint": 4,
        "length_at_fold": 8,
    }
    # m9 and m11 came after the fold that was made at a length of 8.
    assert decision(12, record, trigger=("steps", 3)).usage.steps == 2
    assert decision(12, record, trigger=("steps", 2)).need == "soft"
    # Also after a human's change that took the fold back: the next one comes when it is due.
    assert decision(12, {"length_at_fold": 8}, trigger=("steps", 3)).usage.steps == 2
