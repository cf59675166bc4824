"""Summarisers that fail are left alone for a while, and the record is what remembers it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    edit_digest,
    forget,
    request_compaction,
    restore,
)
from langgraph_compaction.plan.cooling import cooling, failed_again
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
LIMITS: dict[str, Any] = {
    "trigger": ("messages", 6),
    "keep": ("messages", 2),
    "token_counter": "estimate",
}


def failures(count: int, steps: int = 100, tokens: int = 1_000) -> CompactionRecord:
    return {"failures": {"count": count, "thread_steps": steps, "tokens": tokens}}


def rests(record: CompactionRecord, steps: int, tokens: int = 1_000) -> bool:
    return cooling(record, (), steps=steps, tokens=tokens) is not None


def test_without_failures_nobody_is_left_alone() -> None:
    assert not rests({}, 0)


@pytest.mark.parametrize(("count", "calls"), [(1, 3), (2, 3), (3, 10), (4, 10), (50, 10)])
def test_so_many_calls_are_waited(count: int, calls: int) -> None:
    record = failures(count)
    assert [rests(record, 100 + made) for made in range(calls + 2)] == [True] * calls + [False] * 2


def test_a_tenth_more_tokens_ends_the_wait_but_not_an_open_breaker() -> None:
    assert rests(failures(1), 101, 1_099)
    assert not rests(failures(1), 101, 1_100)
    assert rests(failures(3), 101, 100_000)


def test_deleted_messages_say_nothing_of_what_came_since() -> None:
    assert not rests(failures(3), 99)


@given(st.integers(1, 20), st.integers(0, 30), st.integers(0, 3_000))
def test_the_reason_says_how_long(count: int, made: int, tokens: int) -> None:
    found = cooling(failures(count), (), steps=100 + made, tokens=tokens)
    if found is not None:
        assert f"{(10 if count >= 3 else 3) - made} more call(s)" in found.reason
        assert f"{count} time(s)" in found.reason
        assert found.breaker is (count >= 3)


def test_failures_in_a_row_are_counted() -> None:
    record: CompactionRecord = {}
    for count in range(1, 5):
        record = {"failures": failed_again(record, (), steps=count, tokens=7)}
        assert record["failures"] == {"count": count, "thread_steps": count, "tokens": 7}


# ---- through the node


class Summariser:
    """Fails until it is told to be well; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.well = False

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.asked += 1
        if not self.well:
            raise RuntimeError("down")
        return good_summary(messages)


class Chat:
    """A thread above its trigger that grows by one short answer a step."""

    def __init__(self, **options: Any) -> None:
        self.summariser = Summariser()
        self.options = {**LIMITS, **options}
        self.state: dict[str, Any] = {
            "messages": [
                HumanMessage("Check the pumps.", id="task"),
                *(AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}") for n in range(8)),
            ],
            "compaction": {},
            "compaction_settings": {},
        }
        self.events: list[dict[str, Any]] = []

    def visit(self) -> dict[str, Any]:
        # A node of its own for each visit: whatever is remembered, the record remembers it.
        node = CompactionNode(self.summariser, hook=self.events.append, **self.options)
        update = node.invoke(self.state)
        self.state.update(update)
        number = len(self.state["messages"])
        self.state["messages"] = [*self.state["messages"], AIMessage("Ok.", id=f"a{number}")]
        return update

    def asked_at(self, visits: int) -> Iterator[bool]:
        for _ in range(visits):
            before = self.summariser.asked
            self.visit()
            yield self.summariser.asked > before


def test_a_summariser_that_is_down_is_asked_ever_more_rarely() -> None:
    chat = Chat()
    asked = [visit for visit, yes in enumerate(chat.asked_at(40)) if yes]
    assert asked == [0, 3, 6, 16, 26, 36]
    assert chat.state["compaction"]["failures"]["count"] == 6
    assert "segments" not in chat.state["compaction"]
    assert [event["type"] for event in chat.events].count("compaction.failed") == 6


def test_a_visit_that_asks_nobody_changes_nothing_and_says_nothing() -> None:
    chat = Chat()
    chat.visit()
    told = len(chat.events)
    assert chat.visit() == {}
    assert len(chat.events) == told


def test_success_forgets_the_failures() -> None:
    chat = Chat()
    chat.visit()
    chat.summariser.well = True
    assert list(chat.asked_at(3)) == [False, False, True]
    assert "failures" not in chat.state["compaction"]
    assert chat.state["compaction"]["segments"]


def test_growth_ends_the_wait() -> None:
    chat = Chat()
    chat.visit()
    chat.state["messages"].append(AIMessage(TEXT * 4, id="long"))
    assert list(chat.asked_at(1)) == [True]


@pytest.mark.parametrize("change", [edit_digest, restore, forget])
def test_after_a_change_of_a_person_they_are_asked_again(change: Any) -> None:
    chat = Chat()
    chat.summariser.well = True
    chat.visit()
    chat.summariser.well = False
    chat.state["messages"] += [AIMessage(f"{n}. {TEXT}", id=f"b{n}") for n in range(8)]
    assert list(chat.asked_at(2)) == [True, False]
    more = {"text": "The pumps are fine."} if change is edit_digest else {}
    chat.state.update({"compaction": change(chat.state, **more)["compaction"]})
    assert "failures" not in chat.state["compaction"]
    assert list(chat.asked_at(1)) == [True]


def test_a_request_is_tried_at_once_and_then_waits_with_the_others_and_is_not_lost() -> None:
    chat = Chat()
    chat.visit()
    chat.state.update(request_compaction())
    assert list(chat.asked_at(4)) == [True, False, False, True]
    chat.summariser.well = True
    wanted = chat.state["compaction_settings"]["request"]["id"]
    assert chat.state["compaction"]["failures"] == {
        "count": 3,
        "thread_steps": 12,
        "tokens": chat.state["compaction"]["failures"]["tokens"],
        "last_id": "a12",
        "request_id": wanted,
    }
    assert "request_id" not in chat.state["compaction"]
    assert list(chat.asked_at(10)) == [False] * 9 + [True]
    assert chat.state["compaction"]["request_id"] == wanted


def test_a_request_made_after_the_failures_ends_even_an_open_breaker() -> None:
    chat = Chat()
    assert list(chat.asked_at(7))[-1]
    assert chat.state["compaction"]["failures"]["count"] == 3
    chat.summariser.well = True
    chat.state.update(request_compaction())
    assert list(chat.asked_at(1)) == [True]
    assert chat.state["compaction"]["segments"]


# ---- at the hard limit


HARD: dict[str, Any] = {"trigger": ("tokens", 400), "context_window": 700, "keep": ("tokens", 50)}


def test_at_the_hard_limit_a_failed_summariser_is_asked_and_extracts_stand_in() -> None:
    chat = Chat(**HARD)
    assert list(chat.asked_at(1)) == [True]
    record = chat.state["compaction"]
    assert record["segments"][-1]["model"] == "extractive"
    assert record["failures"]["count"] == 1
    assert [event["type"] for event in chat.events] == [
        "compaction.started",
        "compaction.tier_failed",
        "compaction.failed",
        "compaction.completed",
    ]


def test_while_the_breaker_is_open_extracts_stand_in_without_a_call() -> None:
    chat = Chat(**HARD)
    chat.state["compaction"] = {"failures": {"count": 3, "thread_steps": 8, "tokens": 900}}
    assert list(chat.asked_at(1)) == [False]
    record = chat.state["compaction"]
    assert record["segments"][-1]["model"] == "extractive"
    assert record["failures"] == {"count": 3, "thread_steps": 8, "tokens": 900}
    failed = next(event for event in chat.events if event["type"] == "compaction.failed")
    assert "left alone" in failed["failures"][0]
    assert chat.events[-1]["attempts"] == 0


def test_a_list_that_is_kept_at_one_length_counts_calls_all_the_same() -> None:
    chat = Chat()
    chat.summariser.well = False
    chat.visit()
    chat.summariser.well = True
    visits = 0
    while not chat.state["compaction"].get("segments"):
        visits += 1
        assert visits < 6, "the cool-down never ended"
        del chat.state["messages"][1]
        chat.visit()
    assert visits == 3


def test_failures_without_a_call_are_failures() -> None:
    chat = Chat(summary_timeout=1e-9)
    chat.visit()
    assert chat.summariser.asked == 0
    assert chat.state["compaction"]["failures"]["count"] == 1
    assert chat.visit() == {}
