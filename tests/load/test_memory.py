"""What one node holds after ten thousand threads: bounded, and nothing of any conversation."""

import asyncio
import gc
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, CompactionState
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.run import background
from tests.support.background import asettle, begun, settle
from tests.support.folding import failing
from tests.support.held import held_by, size_of
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 12
MESSAGES = 8
"""Messages of each thread, of about 200 tokens: enough for one fold."""
CACHED = 400
"""Counts that the node's counter remembers, in these tests."""
BYTES_PER_FOLD = 6_000
"""What a kept fold takes at most: its text, where its span ends, and the ids that stay."""


def conversation(thread: str) -> list[BaseMessage]:
    """A thread's messages; its name is in each."""
    answers = (
        AIMessage(f"Pump {n} of {thread}. {TEXT}", id=f"{thread}-{n}") for n in range(MESSAGES)
    )
    return [HumanMessage(f"Check {thread}.", id=f"{thread}-task"), *answers]


async def agood(messages: list[BaseMessage]) -> str:
    return good_summary(messages)


async def afailing(_: list[BaseMessage]) -> str:
    raise RuntimeError("503")


class House:
    """One node in one graph, whose threads come once and not again."""

    def __init__(self, model: Callable[..., Any], **settings: Any) -> None:
        self.compact = CompactionNode(
            model,
            context_window=50_000,
            trigger=("tokens", 900),
            keep=("messages", 2),
            token_counter=token_counter("estimate", cache_size=CACHED),
            clear=False,
            **settings,
        )
        builder = StateGraph(CompactionState)
        builder.add_node("compact", self.compact)
        builder.add_edge(START, "compact")
        # Without a checkpointer: what is held is the node's doing.
        self._graph = builder.compile(store=InMemoryStore())

    def visit(self, threads: Iterable[str]) -> None:
        """A run of each thread; what is folded beside it comes to its end."""
        for thread in threads:
            self._graph.invoke(given(thread), config(thread))
            settle(self.compact)

    async def avisit(self, threads: Iterable[str]) -> None:
        for thread in threads:
            await self._graph.ainvoke(given(thread), config(thread))
            await asettle(self.compact)

    def held(self) -> list[object]:
        gc.collect()
        return held_by(self.compact)


def given(thread: str) -> Any:
    return {"messages": conversation(thread), "compaction": {}}


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def names(first: int, last: int) -> list[str]:
    return [f"thread-{n:05}" for n in range(first, last)]


def texts_of_threads(found: Iterable[object]) -> list[str]:
    """Those among some objects that are texts of a conversation, digests aside."""
    return [one for one in found if isinstance(one, str) and TEXT in one]


@pytest.mark.parametrize("settings", [{}, {"background": True}, {"history": "prune"}])
@pytest.mark.parametrize("model", [good_summary, failing])
def test_the_node_holds_no_message(model: Any, settings: dict[str, Any]) -> None:
    house = House(model, **settings)
    house.visit(names(0, 20))
    found = house.held()
    assert not [one for one in found if isinstance(one, BaseMessage)]
    assert texts_of_threads(found) == []
    assert len(begun(house.compact)) == (20 if "background" in settings else 0)


@pytest.mark.parametrize("model", [agood, afailing])
async def test_nor_does_it_hold_the_run_that_a_task_came_from(model: Any) -> None:
    house = House(model, background=True)
    await house.avisit(names(0, 20))
    await asyncio.sleep(0.01)
    found = house.held()
    assert not [one for one in found if isinstance(one, BaseMessage)]
    assert texts_of_threads(found) == []
    assert len(begun(house.compact)) == 20


@pytest.mark.parametrize("settings", [{}, {"background": True}])
def test_what_it_holds_stops_growing(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_FOLDS", 20)
    house = House(good_summary, **settings)
    house.visit(names(0, 60))  # more counts than are remembered, more folds than are kept
    before = house.held()
    house.visit(names(60, 90))
    after = house.held()
    assert len(begun(house.compact)) <= 20
    # Between two visits the counter's younger half is anything from empty to full.
    assert size_of(after) < size_of(before) + CACHED * 200


@pytest.mark.slow
def test_ten_thousand_threads_fit() -> None:
    calls = itertools.count()

    def model(messages: list[BaseMessage]) -> str:
        return (failing if next(calls) % 2 else good_summary)(messages)

    house = House(model, background=True)
    house.visit(names(0, 10_000))
    found = house.held()
    assert len(begun(house.compact)) in {background.MOST_FOLDS - 1, background.MOST_FOLDS}
    containers = [len(one) for one in found if isinstance(one, dict | list | set)]
    assert max(containers) <= max(background.MOST_FOLDS, CACHED)
    assert not [one for one in found if isinstance(one, BaseMessage)]
    assert texts_of_threads(found) == []
    assert size_of(found) < background.MOST_FOLDS * BYTES_PER_FOLD + CACHED * 400 + 1_000_000
