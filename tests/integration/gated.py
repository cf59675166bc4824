"""A summariser that answers when it is let, and threads that fold beside their agents."""

import asyncio
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState
from langgraph_compaction.archive.naming import namespace_of
from tests.support.background import begun
from tests.support.replay import good_summary
from tests.support.validity import Rule, violations

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
ONE: Any = {"configurable": {"thread_id": "one"}}
WAIT = 10.0
"""Seconds after which a test that waits in vain gives up."""


class Gate:
    """A summariser that answers when it is let."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.open = threading.Event()
        self.answer: Callable[[list[BaseMessage]], str] = good_summary
        self.answered = 0

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.prompts.append(str(messages[-1].content))
        assert self.open.wait(WAIT)
        return self._told(messages)

    async def awaited(self, messages: list[BaseMessage]) -> str:
        self.prompts.append(str(messages[-1].content))
        until = time.monotonic() + WAIT
        while not self.open.is_set() and time.monotonic() < until:  # noqa: ASYNC110  # any loop
            await asyncio.sleep(0.005)
        return self._told(messages)

    def _told(self, messages: list[BaseMessage]) -> str:
        try:
            return self.answer(messages)
        finally:
            self.answered += 1


def messages(count: int, first: int = 0) -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")] if not first else []
    return [*found, *(AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}") for n in range(first, count))]


def node(model: Any, **options: Any) -> CompactionNode:
    values: dict[str, Any] = {
        "context_window": 50_000,
        "trigger": ("tokens", 900),
        "keep": ("tokens", 300),
        "background": True,
        "clear": False,
    }
    return CompactionNode(model, **{**values, **options})


def thread(count: int = 16, **more: Any) -> dict[str, Any]:
    return {"messages": messages(count), "compaction": {}, **more}


def settled(compact: CompactionNode, key: str = "one", *, running: bool = False) -> None:
    """Wait until a thread's fold has come to an end (or is under way)."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        fold = begun(compact).of(background_key(key))
        if fold is None or fold.running == running:
            return
        time.sleep(0.005)
    raise AssertionError("the fold does not come to an end")


def background_key(name: str) -> Any:
    return namespace_of(name, "")


def visits(compact: CompactionNode, state: dict[str, Any], config: Any = ONE) -> dict[str, Any]:
    """The state after a visit; the input must not change."""
    before = deepcopy(state)
    update = compact.invoke(state, config)
    assert state == before
    return {**state, **update}


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("compaction.") for event in events]


def slow_graph(model: Any, **options: Any) -> Any:
    """An agent that says one thing a step."""
    compact = node(model, **options)

    def agent(state: CompactionState) -> dict[str, Any]:
        view = compact.view(state)
        assert {one.rule for one in violations(view)} <= {Rule.ENDS_WITH_AI}
        number = len(state["messages"])
        return {"messages": [AIMessage(f"Pump {number}. {TEXT}", id=f"a{number}")]}

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return compact, builder.compile(checkpointer=InMemorySaver())


def edited(state: dict[str, Any]) -> None:
    state["messages"][2] = AIMessage("Pump 1 leaks. " + TEXT, id="a1")
