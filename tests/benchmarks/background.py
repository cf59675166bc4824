"""What a fold that takes its time costs the agent, and what a node holds after many threads.

    python -m tests.benchmarks.background                 # a fold of 20 seconds, fifteen minutes
    python -m tests.benchmarks.background --seconds 5 --threads 2000

An agent does a step every few milliseconds, so that a fold would be seen in it. The fold's summary
is held back by a gate: for the agent that waits it opens after the given seconds, for the one that
does not it opens after so many steps, and then is applied. A step is one run through all nodes of a
graph: the compaction node, if there is one, and the agent.

Each of the ten thousand threads comes once, begins a fold and does not come back. Shown are the
bytes of all that the node leads to, and what the process has beyond its start.
"""

import argparse
import asyncio
import gc
import itertools
import logging
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState
from tests.support.background import asettle, begun
from tests.support.held import held_by, size_of
from tests.support.replay import good_summary

STEPS = 300
"""Steps of the agent whose time is taken; the trigger fires at a third of them."""
TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
TOKENS_PER_STEP = 95
"""What a message of the agent counts, about."""
THREAD: Any = {"configurable": {"thread_id": "one"}}
SAMPLES = (0, 1_000, 2_000, 5_000, 10_000)
"""Threads after which memory is looked at."""


class Gate:
    """A summariser that answers once it is let, or after some seconds."""

    def __init__(self, seconds: float | None) -> None:
        self.open = threading.Event()
        self._seconds = seconds

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.open.wait(self._seconds)
        return good_summary(messages)

    async def awaited(self, messages: list[BaseMessage]) -> str:
        await asyncio.to_thread(self.open.wait, self._seconds)
        return good_summary(messages)


class Times(NamedTuple):
    """What the steps of an agent took.

    Attributes:
        before: milliseconds of each step before the fold was due.
        during: of each step from then on, until it was applied.
        busy: milliseconds of the processor in each of those.
        folds: how many were applied in the end.
    """

    before: list[float]
    during: list[float]
    busy: list[float]
    folds: int


def graph_of(compact: CompactionNode | None) -> Any:
    """An agent that says one thing a step, with a node before it or without."""

    def agent(state: CompactionState) -> dict[str, Any]:
        view = state["messages"] if compact is None else compact.view(state)
        number = len(view)
        return {"messages": [AIMessage(f"Pump {number}. {TEXT}")]}

    async def aagent(state: CompactionState) -> dict[str, Any]:
        return agent(state)

    builder = StateGraph(CompactionState)
    builder.add_node("agent", RunnableLambda(agent, afunc=aagent))
    if compact is None:
        builder.add_edge(START, "agent")
    else:
        builder.add_node("compact", compact)
        builder.add_edge(START, "compact")
        builder.add_edge("compact", "agent")
    return builder.compile(checkpointer=InMemorySaver())


def node_of(model: Any, *, background: bool) -> CompactionNode:
    return CompactionNode(
        model,
        context_window=10 * STEPS * TOKENS_PER_STEP,
        trigger=("tokens", STEPS // 3 * TOKENS_PER_STEP),
        keep=("tokens", 10 * TOKENS_PER_STEP),
        token_counter="estimate",
        clear=False,
        summary_timeout=None,
        background=background,
    )


async def timed(kind: str, seconds: float, *, asynchronous: bool) -> Times:
    """The times of an agent's steps; ``kind``: "none" (no node), "waits", or "background"."""
    gate = Gate(seconds if kind == "waits" else None)
    model = gate.awaited if asynchronous else gate
    tier: Any = [model] if kind == "none" else model
    compact = None if kind == "none" else node_of(tier, background=kind == "background")
    graph = graph_of(compact)
    taken: list[float] = []
    busy: list[float] = []
    asked: Any = {"messages": [HumanMessage("Check the pumps.")]}
    for number in range(STEPS):
        if number == STEPS - 2:
            gate.open.set()
            if compact:
                await asettle(compact)
        began, worked = time.perf_counter(), time.process_time()
        if asynchronous:
            await graph.ainvoke(asked, THREAD)
        else:
            await asyncio.to_thread(graph.invoke, asked, THREAD)
        taken.append((time.perf_counter() - began) * 1_000)
        busy.append((time.process_time() - worked) * 1_000)
        asked = {"messages": []}
    gate.open.set()
    record = graph.get_state(THREAD).values.get("compaction") or {}
    due = STEPS // 3
    folds = len(record.get("segments", []))
    return Times(taken[5:due], taken[due : STEPS - 2], busy[due : STEPS - 2], folds)


def print_times(seconds: float) -> None:
    print(
        "| steps | agent | p50 before a fold is due, ms | p50 from then on, ms "
        "| of the processor, ms | longest, ms | folds |\n|---|---|---:|---:|---:|---:|---:|"
    )
    kinds = {
        "none": "without the node",
        "waits": f"waits for a fold of {seconds:g} s",
        "background": "`background=True`, the fold goes on all the time",
    }
    for asynchronous in (False, True):
        for kind, name in kinds.items():
            found = asyncio.run(timed(kind, seconds, asynchronous=asynchronous))
            cells = (
                "async" if asynchronous else "sync",
                name,
                f"{statistics.median(found.before):.1f}",
                f"{statistics.median(found.during):.1f}",
                f"{statistics.median(found.busy):.1f}",
                f"{max(found.during):,.1f}",
                found.folds,
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


# ---- memory


def conversation(thread: str) -> list[BaseMessage]:
    """Some 2,500 tokens, of which most are to be folded."""
    text = TEXT * 3
    answers = (AIMessage(f"Pump {n} of {thread}. {text}", id=f"{thread}-{n}") for n in range(9))
    return [HumanMessage(f"Check {thread}.", id=f"{thread}-task"), *answers]


class Unsteady:
    """A summariser of which every other call fails."""

    def __init__(self) -> None:
        self._calls = itertools.count()

    def __call__(self, messages: list[BaseMessage]) -> str:
        if next(self._calls) % 2:
            raise RuntimeError("503")
        return good_summary(messages)

    async def awaited(self, messages: list[BaseMessage]) -> str:
        return self(messages)


def resident() -> float:
    """Megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096 / 1e6


async def print_memory(name: str, model: Callable[..., Any], threads: int) -> None:
    """Print what the process takes after each number of threads that came once."""
    compact = CompactionNode(
        model,
        context_window=20_000,
        trigger=("tokens", 1_800),
        keep=("messages", 2),
        token_counter="estimate",
        background=True,
    )
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    graph = builder.compile()  # no checkpointer: what is held is the node's doing
    asynchronous = asyncio.iscoroutinefunction(model)
    gc.collect()
    first, began = resident(), time.perf_counter()
    for number in range(threads + 1):
        if number in SAMPLES or number == threads:
            gc.collect()
            held = size_of(held_by(compact)) / 1e6
            cells = (
                name,
                f"{number:,}",
                f"{len(begun(compact)):,}",
                f"{held:.1f}",
                f"{resident() - first:.0f}",
                f"{(time.perf_counter() - began) / max(1, number) * 1_000:.1f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        given: Any = {"messages": conversation(f"t{number}"), "compaction": {}}
        if asynchronous:
            await graph.ainvoke(given, config)
        else:
            await asyncio.to_thread(graph.invoke, given, config)
        await asettle(compact)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="that the fold takes")
    parser.add_argument("--threads", type=int, default=10_000)
    given = parser.parse_args()
    logging.getLogger("langgraph_compaction").setLevel(logging.CRITICAL)
    print_times(given.seconds)
    print(
        "\n| folds run in | threads | folds kept | the node leads to, MB | process, MB | ms each |"
        "\n|---|---:|---:|---:|---:|---:|"
    )
    for name, model in (("threads", Unsteady()), ("tasks", Unsteady().awaited)):
        asyncio.run(print_memory(name, model, given.threads))


if __name__ == "__main__":
    main()
