"""Two hundred threads through one node and one graph at once: none sees another's, or loses any.

The summariser is slow and fails at random. What has to be kept is what the same graph keeps without
the node.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, ModelTier
from tests.load.crew import MODES, Scribe, answer, graph_of, request
from tests.load.watch import Account, Watch, lost, recalled, transcript_of
from tests.support.background import asettle, settle

TURNS = ((1, 6), (7, 9), (10, 15))
"""Steps that each thread is asked for, in one run after the other."""
LAST = ((16, 16), (17, 17))
"""Two more runs: what was folded in the background meanwhile is applied."""
WORKERS = 40
"""Threads of the pool."""


class House:
    """One node, one graph and all its threads."""

    def __init__(self, mode: str) -> None:
        self.watch = Watch()
        self.scribe = Scribe(watch=self.watch.prompt)
        self.compact = CompactionNode(
            ModelTier(self.scribe.model, timeout=5.0),
            context_window=4_000,
            trigger=("tokens", 900),
            keep=("tokens", 300),
            min_fold_tokens=100,
            token_counter="estimate",
            clear=False,
            hook=self.watch.event,
            **MODES[mode],
        )
        self.store = InMemoryStore()
        agent = RunnableLambda(self._agent)
        self.graph = graph_of(agent, self.compact, checkpointer=InMemorySaver(), store=self.store)
        self.accounts: dict[str, Account] = {}

    def _agent(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        thread = str(config["configurable"]["thread_id"])
        view = self.compact.view(state)
        self.watch.view(thread, view)
        return {"messages": [answer(view)]}

    def run(self, thread: str, first: int, last: int) -> None:
        """One run of a thread."""
        asked = {"messages": [request(thread, first, last)]}
        for mode, part in self.graph.stream(
            asked, config(thread), stream_mode=["custom", "updates"]
        ):
            self._told(thread, mode, part)

    async def arun(self, thread: str, first: int, last: int) -> None:
        """One run of a thread, asynchronously."""
        asked = {"messages": [request(thread, first, last)]}
        modes: Any = ["custom", "updates"]
        async for mode, part in self.graph.astream(asked, config(thread), stream_mode=modes):
            self._told(thread, mode, part)

    def _told(self, thread: str, mode: str, part: Any) -> None:
        self.watch.saw(thread, mode, str(part))
        record = (part.get("compact") or {}).get("compaction") if mode == "updates" else None
        if record is not None:
            self.accounts.setdefault(thread, Account(thread)).enter(record)

    def checked(self, thread: str, expected: Sequence[BaseMessage]) -> list[str]:
        """What is wrong with a thread in the end."""
        state = self.graph.get_state(config(thread)).values
        found = transcript_of(thread, state, self.store)
        account = self.accounts.get(thread) or Account(thread)
        faults = [*lost(expected, found), *account.compare(state, self.scribe, found)]
        self.watch.saw(thread, "record", str(state["compaction"]))
        self.watch.view(thread, [*self.compact.view(state), request(thread, 99, 99)])
        shown = recalled(thread, state, self.store, self.watch, first=0, last=60)
        if shown != list(range(len(found))):
            faults.append(f"a recall shows the positions {shown}")
        recalled(thread, state, self.store, self.watch, query="step went as planned, a fault")
        return [f"{thread}: {fault}" for fault in faults]


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 1_000}


def names(threads: int) -> list[str]:
    return [f"t{n:03}" for n in range(threads)]


def kept_without_the_node(threads: Sequence[str]) -> dict[str, list[BaseMessage]]:
    """What the same graph without a node has of each thread in the end."""

    def agent(state: Any) -> dict[str, Any]:
        return {"messages": [answer(state["messages"])]}

    graph = graph_of(agent, checkpointer=InMemorySaver())
    for thread in threads:
        for first, last in (*TURNS, *LAST):
            graph.invoke({"messages": [request(thread, first, last)]}, config(thread))
    return {thread: graph.get_state(config(thread)).values["messages"] for thread in threads}


def in_a_pool(house: House, threads: Sequence[str]) -> None:
    def one(thread: str) -> None:
        for first, last in TURNS:
            house.run(thread, first, last)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, threads))
        for first, last in LAST:
            settle(house.compact)
            list(pool.map(house.run, threads, repeat(first), repeat(last)))


async def on_a_loop(house: House, threads: Sequence[str]) -> None:
    async def one(thread: str) -> None:
        for first, last in TURNS:
            await house.arun(thread, first, last)

    await asyncio.gather(*map(one, threads))
    for turn in LAST:
        await asettle(house.compact)
        await asyncio.gather(*(house.arun(thread, *turn) for thread in threads))


CASES = [
    pytest.param(12, "plain", "loop"),
    pytest.param(12, "background", "pool"),
    pytest.param(12, "prune", "pool"),
    pytest.param(12, "background, prune", "loop"),
    *(
        pytest.param(200, mode, way, marks=pytest.mark.slow)
        for mode in ("plain", "background", "prune")
        for way in ("pool", "loop")
    ),
]


@pytest.mark.parametrize(("count", "mode", "way"), CASES)
def test_threads_side_by_side_keep_their_own(count: int, mode: str, way: str) -> None:
    house, threads = House(mode), names(count)
    expected = kept_without_the_node(threads)
    if way == "pool":
        in_a_pool(house, threads)
    else:
        asyncio.run(on_a_loop(house, threads))
    faults = [fault for thread in threads for fault in house.checked(thread, expected[thread])]
    assert faults == []
    assert house.watch.leaks == []
    assert house.watch.invalid == []
    # It was worth looking: most threads folded, some calls failed, and every kind of text was seen.
    folds = {thread: account.folds for thread, account in house.accounts.items()}
    assert sum(folds.values()) > count
    assert len(folds) > 0.9 * count
    assert house.scribe.failed > count / 4
    assert {"prompt", "view", "event", "custom", "updates", "record", "recall"} <= set(
        house.watch.looked
    )
