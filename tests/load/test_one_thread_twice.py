"""Two and more runs of one thread at the same time.

LangGraph lets the last writer win: each run goes on from the checkpoint that it loaded, and the
newest checkpoint is the thread. What the graph without the node keeps then, the same graph with it
has to keep, in the same order of steps.
"""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction.archive import archive_of, perform
from tests.load.crew import MODES, Scribe, answer, graph_of, marks, request
from tests.load.holding import WAIT, Held, node_of
from tests.load.watch import Account, Watch, lost, recalled, transcript_of
from tests.support.background import settle

T = "t001"


def config(run: str = "") -> Any:
    return {"configurable": {"thread_id": T, "run": run}, "recursion_limit": 1_000}


class Thread:
    """One thread of a graph with a node, or without one.

    Args:
        mode: one of `MODES`, None: without a node.
        scribe: writes the digests.
        before: called by the agent with the run's name, before it answers.
    """

    def __init__(
        self, mode: str | None, scribe: Scribe, before: Callable[[str], None] = lambda run: None
    ) -> None:
        self.watch, self.scribe = Watch(), scribe
        self.compact = None if mode is None else node_of(scribe, mode)
        self.store = InMemoryStore()

        def agent(state: Any, config: RunnableConfig) -> dict[str, Any]:
            before(config["configurable"]["run"])
            view = state["messages"] if self.compact is None else self.compact.view(state)
            self.watch.view(T, view)
            return {"messages": [answer(view)]}

        options = {"checkpointer": InMemorySaver(), "store": self.store}
        self.graph = graph_of(agent, self.compact, **options)

    def run(self, name: str, first: int, last: int) -> None:
        """One run; each of its checkpoints is written before the next step begins."""
        asked = {"messages": [request(T, first, last)]}
        self.graph.invoke(asked, config(name), durability="sync")

    @property
    def state(self) -> Any:
        return self.graph.get_state(config()).values

    @property
    def transcript(self) -> list[BaseMessage]:
        state = self.state
        return transcript_of(T, state, None if self.compact is None else self.store)

    def line(self) -> list[Any]:
        """The checkpoints that led to the newest one, from the first on."""
        history = {
            one.config["configurable"]["checkpoint_id"]: one
            for one in self.graph.get_state_history(config())
        }
        found = [next(iter(history.values()))]
        while (parent := found[-1].parent_config) is not None:
            found.append(history[parent["configurable"]["checkpoint_id"]])
        return found[::-1]

    def end(self, first: int) -> None:
        """Two runs more, in which nothing fails: what was folded beside the agent is applied."""
        self.scribe.fails = 0.0
        for span in ((first, first + 11), (first + 12, first + 12)):
            if self.compact:
                settle(self.compact)
            self.run("after", *span)

    def faults(self) -> list[str]:
        """What is wrong with it in the end, seen along the line of checkpoints that won."""
        state, account = self.state, Account(T)
        seen: dict[str, None] = {}
        for one in self.line():
            account.enter(one.values.get("compaction", {}))
            seen.update(
                dict.fromkeys(m for s in one.values.get("messages", ()) for m in marks(s.text)[:1])
            )
        found = [marks(message.text)[0] for message in self.transcript]
        faults = account.compare(state, self.scribe, self.transcript)
        if missing := set(seen) - set(found):
            faults.append(f"lost along the line: {sorted(missing)}")
        if len(set(found)) < len(found):
            faults.append(f"there twice: {found}")
        shown = recalled(T, state, self.store, self.watch, first=0, last=len(found))
        if shown != list(range(len(found))):
            faults.append(f"a recall shows the positions {shown}")
        if not account.folds:
            faults.append("nothing was folded")
        return [*faults, *self.watch.leaks, *self.watch.invalid]


# ---- step by step, in an order that is drawn


class Order:
    """Lets the steps of two runs happen in a given order, one at a time."""

    def __init__(self, order: Sequence[str]) -> None:
        self._order, self._parked, self._over = list(order), set[str](), set[str]()
        self._changed = threading.Condition()
        self._names, self._started = set(order), False

    def wait(self, run: str) -> None:
        """Called by a run before each step: until it is its turn, and the other one waits, too."""
        if run not in self._names:
            return
        with self._changed:
            self._parked.add(run)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._turn() == run, WAIT)
            self._parked.discard(run)
            self._order.pop(0)

    def finished(self, run: str) -> None:
        with self._changed:
            self._over.add(run)
            self._changed.notify_all()

    def until_parked(self, run: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: run in self._parked, WAIT)

    def start(self) -> None:
        """Let the first step happen."""
        with self._changed:
            self._started = True
            self._changed.notify_all()

    def _turn(self) -> str | None:
        if not self._started or (self._parked | self._over) != self._names:
            return None
        while self._order and self._order[0] in self._over:
            self._order.pop(0)
        return self._order[0] if self._order else next(iter(self._parked))


def interleaved(mode: str | None, seed: int) -> Thread:
    """Ten steps, then two runs of six and nine steps whose steps are mixed, then three more."""
    chance = random.Random(seed)
    steps = ["a"] * 7 + ["b"] * 10
    chance.shuffle(steps)
    order = Order(steps)
    thread = Thread(mode, Scribe(seed=seed, seconds=(0.0, 0.01), fails=0.2), order.wait)
    thread.run("before", 1, 10)

    def one(name: str, first: int, last: int) -> None:
        try:
            thread.run(name, first, last)
        finally:
            order.finished(name)

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(one, "a", 11, 16)]
        order.until_parked("a")
        runs.append(pool.submit(one, "b", 21, 29))
        order.until_parked("b")
        order.start()
        for run in runs:
            run.result(WAIT)
    thread.end(31)
    return thread


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 21))]
)
def test_steps_of_two_runs_in_any_order(mode: str, seed: int) -> None:
    thread, without = interleaved(mode, seed), interleaved(None, seed)
    assert lost(without.transcript, thread.transcript) == []
    assert thread.faults() == []


# ---- both in the same call


@pytest.fixture
def held() -> Iterator[Held]:
    scribe = Held()
    yield scribe
    scribe.open.set()


@pytest.mark.parametrize("mode", MODES)
def test_two_runs_that_fold_the_same_end_in_one_digest(mode: str, held: Held) -> None:
    thread = Thread(mode, held)
    held.open.set()
    thread.run("before", 1, 4)  # too little to fold
    assert not held.calls
    held.open.clear()
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(thread.run, "a", 11, 16), pool.submit(thread.run, "b", 21, 26)]
        # Beside the agents one fold is made for both; else each run makes its own.
        held.arrived(1 if "background" in mode else 2)
        held.open.set()
        for run in runs:
            run.result(WAIT)
    thread.end(31)
    assert thread.faults() == []


# ---- many, as it comes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["pool", "loop"])
def test_many_runs_of_one_thread_as_it_comes(mode: str, way: str) -> None:
    thread = Thread(mode, Scribe(seconds=(0.0, 0.03), fails=0.2))
    thread.run("before", 1, 10)
    spans = [(100 * n, 100 * n + 4) for n in range(1, 7)]
    if way == "pool":
        with ThreadPoolExecutor(len(spans)) as pool:
            list(pool.map(lambda span: thread.run("any", *span), spans))
    else:
        asyncio.run(_at_once(thread, spans))
    thread.end(801)
    assert thread.faults() == []


async def _at_once(thread: Thread, spans: Sequence[tuple[int, int]]) -> None:
    await asyncio.gather(
        *(thread.graph.ainvoke({"messages": [request(T, *span)]}, config("any")) for span in spans)
    )


def test_an_archive_has_one_chain_after_two_runs_that_archived_the_same(held: Held) -> None:
    thread = Thread("prune", held)
    held.open.set()
    thread.run("before", 1, 4)
    held.open.clear()
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(thread.run, name, 11, 16) for name in "ab"]
        held.arrived(2)
        held.open.set()
        for run in runs:
            run.result(WAIT)
    assert thread.faults() == []
    archive = archive_of(thread.store, config(), in_node=False)
    everything = perform(thread.store, archive.steps_of_all())
    branch = perform(thread.store, archive.steps_of_branch(thread.state["compaction"]["archived"]))
    # What both archived before their ways parted is there once.
    shared = [one.position for one in everything if one.position <= 8]
    assert len(shared) == len(set(shared))
    assert {one.key for one in branch} <= {one.key for one in everything}
