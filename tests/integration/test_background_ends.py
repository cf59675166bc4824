"""How a fold beside the agent ends: a person's word sticks, failures count, and costs are told.

What may go wrong is that the same is paid for at every visit, because the answers never fit or a
failure is counted nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from time import sleep
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction import request_compaction, restore
from langgraph_compaction.run import background
from tests.integration.gated import ONE, TEXT, Gate, messages, node, settled, thread, visits
from tests.support.background import begun, folds_of
from tests.support.replay import good_summary


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    found.open.set()
    yield found
    found.open.set()  # whatever a test left waiting


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("compaction.") for event in events]


def visited(compact: Any, state: dict[str, Any], times: int) -> dict[str, Any]:
    """The state after some visits, each with all that was begun before it."""
    for _ in range(times):
        state = visits(compact, state)
        settled(compact)
    return state


# ---- a person's change


@pytest.mark.parametrize("applied", [True, False])
def test_what_was_restored_is_not_folded_again_without_a_new_digest(
    gate: Gate, applied: bool
) -> None:
    events: list[dict[str, Any]] = []
    vetoed = False

    def hook(event: dict[str, Any]) -> bool:
        events.append(event)
        return not vetoed

    compact = node(gate, hook=hook, min_fold_tokens=0)
    state = visited(compact, thread(), 2)
    assert len(state["compaction"]["segments"]) == 1
    if not applied:  # the next fold is over, and was never applied
        state["messages"] += messages(32, first=16)
        compact.invoke(state, ONE)
        settled(compact)
    asked = len(gate.prompts)
    state |= restore(state)
    events.clear()
    vetoed = True
    assert compact.invoke(state, ONE) == {}  # the hook is asked anew
    vetoed = False
    state = visited(compact, state, 2)
    dropped = [] if applied else ["dropped"]
    assert kinds_of(events) == [*dropped, "started", "skipped", "started", "completed"]
    if not applied:
        assert "the digest was corrected" in events[0]["reason"]
    assert len(gate.prompts) == asked + 1
    assert len(state["compaction"]["segments"]) == 1


# ---- texts that are redacted otherwise each time


def pseudonyms() -> Any:
    number = count()
    return lambda text: re.sub(r"\S+@\S+", lambda _: f"<PERSON_{next(number)}>", text)


def with_addresses() -> dict[str, Any]:
    state = thread()
    state["messages"][2] = AIMessage(f"ann@example.com opened it. {TEXT}", id="a1")
    return state


@pytest.mark.parametrize("history", ["full", "prune"])
def test_a_redaction_that_names_secrets_anew_is_paid_for_once(gate: Gate, history: str) -> None:
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append, redact=pseudonyms(), history=history, archive=None)
    gate.answer = lambda prompt: good_summary(prompt) + "\nbob@example.com was told."
    state = visited(compact, with_addresses(), 2)
    assert kinds_of(events) == ["started", "completed"]
    assert len(gate.prompts) == 1
    (segment,) = state["compaction"]["segments"]
    assert "@" not in gate.prompts[0] + segment["text"]
    (fold,) = folds_of(compact)
    assert fold.redact is not None
    kept = repr(vars(fold.redact))
    assert "<PERSON_0>" in kept
    assert "example.com" not in kept
    assert fold.chars >= fold.redact.chars > len("<PERSON_0>")


def test_where_a_hook_fails_is_said_of_the_hook(gate: Gate) -> None:
    def fails(_: str) -> str:
        raise ValueError("a secret")

    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append, redact=fails)
    state = visited(compact, thread(), 2)
    assert "raised ValueError (test_background_ends.py, line " in events[-1]["reason"]
    assert state["compaction"]["failures"]["count"] == 1


def test_a_hook_that_fails_beside_the_agent_alone_is_counted(gate: Gate) -> None:
    calls = count()

    def fails_first(text: str) -> str:
        if not next(calls):
            raise ValueError("not yet")
        return text

    compact = node(gate, redact=fails_first)
    state = visited(compact, thread(), 2)
    assert state["compaction"]["failures"]["count"] == 1
    assert not gate.prompts


# ---- folds without an answer


@dataclass(frozen=True)
class FrozenError(Exception):
    """An error that lets nothing be set, as some clients have."""

    status: int


def test_an_error_that_lets_nothing_be_set_is_counted(gate: Gate) -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise FrozenError(500)

    gate.answer = fails
    compact = node(gate)
    state = visited(compact, thread(), 6)
    assert state["compaction"]["failures"]["count"] == 1
    assert len(gate.prompts) == 1


def test_a_fold_that_breaks_off_is_counted_like_any_failure(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is: here there is no memory to keep an answer in."""

    def out_of_memory(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(background.BegunFold, "keep", out_of_memory)
    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    state = visited(compact, thread(), 6)
    assert state["compaction"]["failures"]["count"] == 1
    assert kinds_of(events)[-1] == "failed"
    assert "MemoryError: no room" in events[-1]["failures"][-1]
    assert len(gate.prompts) == 1


def test_a_thread_that_does_not_come_to_its_end_is_counted(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[dict[str, Any]] = []
    gate.open.clear()
    monkeypatch.setattr(background, "SLACK", -100.0)
    compact = node(gate, hook=events.append)
    state = thread()
    for _ in range(6):
        state = visits(compact, state)
    assert state["compaction"]["failures"]["count"] == 1
    assert background.LATE in events[-1]["failures"][0]
    assert len(begun(compact)) == 0


def test_where_no_thread_can_be_started_the_run_goes_on(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoThread(background.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    events: list[dict[str, Any]] = []
    compact = node(gate, hook=events.append)
    with monkeypatch.context() as patched:
        patched.setattr(background, "Thread", NoThread)
        assert compact.invoke(thread(), ONE) == {}
    assert kinds_of(events) == ["started", "skipped"]
    assert "can't start new thread" in events[-1]["reason"]
    # The next one begins.
    assert len(visited(compact, thread(), 2)["compaction"]["segments"]) == 1


# ---- what it cost


@pytest.mark.parametrize("over", [False, True])
def test_that_a_call_under_way_is_not_counted_is_said(gate: Gate, over: bool) -> None:
    events: list[dict[str, Any]] = []
    beside = Gate()

    def model(prompt: list[BaseMessage]) -> str:
        return gate(prompt) if beside.prompts else beside(prompt)

    compact = node(model, hook=events.append)
    state = thread()
    compact.invoke(state, ONE)
    if over:
        beside.open.set()
        settled(compact)
    else:
        settled(compact, running=True)
        while not beside.prompts:
            sleep(0.005)
    visits(compact, state | request_compaction())
    beside.open.set()
    (dropped,) = (event for event in events if event["type"] == "compaction.dropped")
    assert ("under way" in dropped["reason"]) is not over
    assert dropped["attempts"] == int(over)
