"""Branches of one run that fold side by side, in one superstep."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Send

from langgraph_compaction import CompactionNode, CompactionState
from langgraph_compaction.archive import archive_of, perform
from langgraph_compaction.heads import heads_of
from langgraph_compaction.view.anchors import locate
from tests.load.crew import MODES, Scribe, answer, graph_of, marks, request, told
from tests.load.holding import WAIT, Held, node_of
from tests.load.watch import Account, Watch, recalled, transcript_of
from tests.support.background import settle
from tests.support.validity import violations

T = "t001"
CONFIG: Any = {"configurable": {"thread_id": T}, "recursion_limit": 1_000}
ROUNDS = 4


def conversation(number: int) -> list[BaseMessage]:
    """The messages of one round: a request, five steps and an answer."""
    first = number * 100 + 1
    found: list[BaseMessage] = [request(T, first, first + 4)]
    graph = graph_of(lambda state: {"messages": [answer(state["messages"])]})
    return list(graph.invoke({"messages": found})["messages"])


def fanned(compact: CompactionNode, store: InMemoryStore, copies: int) -> Any:
    """A graph in which so many copies of the node see the same messages in one superstep."""
    builder: Any = StateGraph(CompactionState)
    builder.add_node("begin", lambda _: {})
    builder.add_node("compact", compact)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges(
        "begin", lambda state: [Send("compact", state) for _ in range(copies)], ["compact"]
    )
    return builder.compile(checkpointer=InMemorySaver(), store=store)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_copies_of_the_node_that_fold_the_same_end_in_one_digest(
    mode: str, *, asynchronous: bool
) -> None:
    scribe, store, account = Scribe(fails=0.0), InMemoryStore(), Account(T)
    compact = node_of(scribe, mode)
    graph = fanned(compact, store, 3)
    kept: list[BaseMessage] = []
    for number in range(ROUNDS):
        kept += conversation(number)
        given: Any = {"messages": kept[-len(conversation(0)) :]}
        for asked in (given, {"messages": []}):
            if asynchronous:
                await graph.ainvoke(asked, CONFIG)
            else:
                graph.invoke(asked, CONFIG)
            await asyncio.to_thread(settle, compact)
            account.enter(graph.get_state(CONFIG).values["compaction"])
    state = graph.get_state(CONFIG).values
    found = transcript_of(T, state, store)
    assert told(found) == told(kept)
    assert account.compare(state, scribe, found) == []
    assert account.folds >= ROUNDS - 1
    assert violations(compact.view(state), state_ends_with_ai=True) == []
    if "background" in mode:  # one fold at a time for all of them; the last may not be applied yet
        assert scribe.calls.total() - account.folds in {0, 1}
    archive = archive_of(store, CONFIG, in_node=False)
    places = [one.position for one in perform(store, archive.steps_of_all())]
    assert len(places) == len(set(places))
    shown = recalled(T, state, store, Watch(), first=0, last=len(kept))
    assert shown == list(range(len(kept)))


def test_they_are_in_the_call_at_the_same_time() -> None:
    """So the test above is about what it says."""
    scribe = Held()
    graph = fanned(node_of(scribe, "prune"), InMemoryStore(), 3)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(graph.invoke, {"messages": conversation(0) + conversation(1)}, CONFIG)
        scribe.arrived(3)
        scribe.open.set()
        run.result(WAIT)
    segments = graph.get_state(CONFIG).values["compaction"]["segments"]
    assert segments[0]["first_index"] == 0


# ---- branches with agents of their own


class Branches:
    """A graph that sends agents, each with its node, on their ways in one superstep."""

    def __init__(self, mode: str, *, fails: float) -> None:
        self.scribe, self.store = Scribe(fails=fails, seconds=(0.0, 0.02)), InMemoryStore()
        self.compact = node_of(self.scribe, mode)
        self.invalid: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        builder: Any = StateGraph(CompactionState)
        builder.add_node("branch", graph_of(self._agent, self.compact))
        builder.add_conditional_edges(START, self._sent, ["branch"])
        self.graph = builder.compile(checkpointer=InMemorySaver(), store=self.store)

    def _agent(self, state: Any) -> dict[str, Any]:
        view = self.compact.view(state)
        self.invalid += violations(view)
        return {"messages": [answer(view)]}

    def _sent(self, state: Any) -> list[Send]:
        return [
            Send("branch", {**state, "messages": [*state["messages"], request(T, *span)]})
            for span in self.spans
        ]

    def run(self, first: int, lengths: Sequence[int]) -> list[str]:
        """One run with a branch of each length; the marks that have to be there in the end."""
        self.spans = [(first + 100 * n, first + 100 * n + s) for n, s in enumerate(lengths, 1)]
        self.graph.invoke({"messages": [request(T, first, first)]}, CONFIG)
        settle(self.compact)
        results = (f"{T}-r{n:04}" for start, stop in self.spans for n in range(start, stop + 1))
        requests = (f"{T}-h{n:04}" for n in (first, *(start for start, _ in self.spans)))
        return [*requests, *results]


@pytest.mark.parametrize("mode", MODES)
def test_agents_side_by_side_lose_nothing_that_they_made(mode: str) -> None:
    run = Branches(mode, fails=0.2)
    made: list[str] = []
    for number in range(ROUNDS):
        made += run.run(1_000 * number + 1, (11, 14, 6))
    state = run.graph.get_state(CONFIG).values
    assert run.invalid == []
    assert len(run.scribe.calls) == 1
    assert run.scribe.calls.total() > ROUNDS
    assert violations(run.compact.view(state), state_ends_with_ai=True) == []
    present = [mark for message in state["messages"] for mark in marks(message.text)]
    assert len(present) == len(set(present))
    steps = archive_of(run.store, CONFIG, in_node=False).steps_of_branch(
        *heads_of(state["compaction"])
    )
    archived = perform(run.store, steps)
    assert bool(archived) == ("prune" in mode)
    away = {marks(one.text)[0]: one for one in archived}
    assert set(made) <= set(present) | away.keys()
    watch = Watch()
    for name in sorted(away)[::5]:
        assert recalled(T, state, run.store, watch, id=away[name].id) == [away[name].position]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_hidden_was_read_for_a_digest_that_is_there(mode: str) -> None:
    run, most = Branches(mode, fails=0.0), 0  # extracts would not tell what they were made from
    for number in range(ROUNDS):
        run.run(1_000 * number + 1, (11, 14, 6))
        state = run.graph.get_state(CONFIG).values
        record = state["compaction"]
        hidden = {
            marks(state["messages"][index].text)[0]
            for index in locate(state["messages"], record).hidden
        }
        covered = run.scribe.covered("\n".join(one["text"] for one in record.get("segments", ())))
        assert hidden <= covered
        most = max(most, len(hidden))
    assert most
