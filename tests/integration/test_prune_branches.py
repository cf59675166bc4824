"""Pruning where a thread is more than one line: parallel branches, subgraphs, forks, processes.

Run as a program this file is a process that works on a thread in one SQLite file
(`python -m tests.integration.test_prune_branches` with a job in JSON on stdin).
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    create_recall_tool,
    forget,
    model_view,
)
from langgraph_compaction.archive import Archive, archive_of, perform
from tests.support import folding
from tests.support.doubles import (
    THREAD,
    WINDOW,
    Summaries,
    assert_folded_once,
    loop,
    request,
    shows_digest,
    steps_done,
    worker,
)
from tests.support.folding import chat
from tests.support.pruning import Unreliable, archived, whole
from tests.support.runtimes import runtime

ROOT = Path(__file__).parents[2]


def worker_node(summaries: Summaries | None = None) -> CompactionNode:
    return CompactionNode(
        summaries or Summaries(), context_window=WINDOW, token_counter="estimate", history="prune"
    )


def recall(store: BaseStore, state: Any) -> Callable[..., str]:
    """The agent's tool, called in a thread with that state."""
    running = runtime(state, THREAD, store)
    return lambda **given: str(create_recall_tool().invoke({**given, "runtime": running}))


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


# ---- parallel branches


def parallel(store: BaseStore, *nodes: Any) -> Any:
    """A graph whose nodes run side by side."""
    builder: Any = StateGraph(CompactionState)
    for number, node in enumerate(nodes):
        builder.add_node(f"n{number}", node)
        builder.add_edge(START, f"n{number}")
    return builder.compile(checkpointer=InMemorySaver(), store=store)


def test_two_branches_that_fold_at_once_lose_nothing() -> None:
    store = InMemoryStore()
    shorter = folding.node(history="prune", keep=("messages", 6))
    longer = folding.node(history="prune", keep=("messages", 2))
    graph = parallel(store, shorter, longer, longer)
    history = chat(20)
    graph.invoke({"messages": history}, THREAD)
    state = graph.get_state(THREAD).values
    assert len(state["messages"]) < 8
    assert whole(store, state) == history
    # What the branches share is there once.
    assert len(perform(store, archive_of(store, THREAD, in_node=False).steps_of_all())) == len(
        archived(store, state["compaction"])
    )
    graph.invoke({"messages": chat(20, start=20)}, THREAD)
    assert whole(store, graph.get_state(THREAD).values) == chat(40)


def test_what_another_branch_appends_edits_or_removes_meanwhile_is_as_it_says() -> None:
    def other(state: Any) -> Any:
        return {
            "messages": [
                AIMessage("Appended.", id="new"),
                HumanMessage("Edited.", id="m19"),
                RemoveMessage(id="m4"),
            ]
        }

    store = InMemoryStore()
    graph = parallel(store, folding.node(history="prune"), other)
    graph.invoke({"messages": chat(20)}, THREAD)
    state = graph.get_state(THREAD).values
    assert texts(state["messages"])[-2:] == ["Edited.", "Appended."]
    assert "Appended." in texts(model_view(state))
    found = whole(store, state)
    assert [m.id for m in found] == [*(f"m{n}" for n in range(20)), "new"]


# ---- subgraphs


def nested(compact: CompactionNode, model: Any, store: BaseStore) -> Any:
    """An agent with its compaction as a subgraph of a graph with the same state."""
    builder: Any = StateGraph(CompactionState)
    builder.add_node("sub", loop(compact, model))
    builder.add_edge(START, "sub")
    return builder.compile(checkpointer=InMemorySaver(), store=store)


def test_what_two_subgraphs_side_by_side_removed_is_found() -> None:
    store, made = InMemoryStore(), dict.fromkeys(("east", "west"), 0)

    def agent(name: str, steps: int) -> Any:
        def work(_: Any) -> Any:
            made[name] += 1
            said = f"{name} finding {made[name]}. " * 30
            return {"messages": [AIMessage(said, id=f"{name}{made[name]}")]}

        builder: Any = StateGraph(CompactionState)
        builder.add_node("compact", folding.node(history="prune", trigger=("messages", 10)))
        builder.add_node("work", work)
        builder.add_edge(START, "compact")
        builder.add_edge("compact", "work")
        builder.add_conditional_edges(
            "work", lambda _: "compact" if made[name] % steps else END, ["compact", END]
        )
        return builder.compile()

    builder: Any = StateGraph(CompactionState)
    for name, steps in (("east", 30), ("west", 20)):
        builder.add_node(name, agent(name, steps))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    for last in (1, 2):  # the second run goes on from the heads of both
        asked = {"messages": [HumanMessage("Survey both sides.", id=f"task{last}")]}
        state = graph.invoke(asked, THREAD)
        assert made == {"east": 30 * last, "west": 20 * last}
        present, look_up = {m.id for m in state["messages"]}, recall(store, state)
        for name, count in made.items():
            for number in range(1, count + 1):
                said = f"{name} finding {number}. "
                assert f"{name}{number}" in present or said in look_up(id=f"{name}{number}")
    # Forgetting reaches both.
    forget(state, store=store, config=THREAD)
    root = archive_of(store, THREAD, in_node=False).namespace[:2]
    assert store.search(root, limit=1_000) == []


def test_what_a_node_removed_beside_one_whose_archive_is_down_is_found() -> None:
    store, broken = InMemoryStore(), Unreliable()
    broken.down = True
    one = folding.node(history="prune", archive=store, keep=("messages", 6))
    two = folding.node(history="prune", archive=broken, keep=("messages", 2))
    graph = parallel(store, one, two)
    graph.invoke({"messages": chat(20)}, THREAD)
    state = graph.get_state(THREAD).values
    look_up = recall(store, state)
    present = {message.id for message in state["messages"]}
    gone = [number for number in range(20) if f"m{number}" not in present]
    assert len(gone) > 5
    assert all(f"message {number} " in look_up(id=f"m{number}") for number in gone)


def test_forgetting_leaves_what_another_graph_with_the_thread_id_archived() -> None:
    store, graphs = InMemoryStore(), []
    for name in ("shop", "help"):
        messages = [HumanMessage(f"{name} {n}. " * 40, id=f"{name}{n}") for n in range(20)]
        builder: Any = StateGraph(CompactionState)
        builder.add_node("compact", folding.node(history="prune"))
        builder.add_edge(START, "compact")
        graphs.append(builder.compile(checkpointer=InMemorySaver(), store=store))
        graphs[-1].invoke({"messages": messages}, THREAD)
    shop, help_ = (graph.get_state(THREAD).values for graph in graphs)
    assert "shop 4. " in recall(store, shop)(id="shop4")
    forget(shop, store=store, config=THREAD)
    assert "shop 4. " not in recall(store, shop)(id="shop4")
    assert "help 4. " in recall(store, help_)(id="help4")


def test_a_prune_in_a_subgraph_does_not_reach_the_graph_around_it() -> None:
    store, summaries = InMemoryStore(), Summaries()
    inner = worker()
    graph = nested(worker_node(summaries), inner, store)
    archive = Archive(store, (*archive_of(store, THREAD, in_node=False).namespace[:2], "sub"))
    made: dict[str, BaseMessage] = {}
    for first in range(1, 80, 20):
        asked = {"messages": [request(first, first + 19)]}
        for _, update in graph.stream(asked, THREAD, stream_mode="updates", subgraphs=True):
            for change in update.values():
                messages = (change or {}).get("messages", ())
                # A tool's result gets its id where it is merged.
                made |= {m.id: m for m in messages if m.id and not isinstance(m, RemoveMessage)}
        state = graph.get_state(THREAD).values
        record, outer = state["compaction"], {m.id for m in state["messages"]}
        if first == 1:
            # Whether the record will be kept is not known yet, so nothing has left.
            assert record["last_summarized_index"] > 5
            assert "archived" not in record
            assert made.keys() <= outer
            continue
        # Each covered message was archived once, at its place in the thread.
        found = perform(archive.store, archive.steps_of_branch(record["archived"]))
        assert len(perform(archive.store, archive.steps_of_all())) == len(found)
        assert [made.get(str(one.id), one.message()) for one in found] == [
            one.message() for one in found
        ]
        steps = steps_done([one.message() for one in found])
        assert steps == list(range(1, len(steps) + 1))
        positions = {one.position for one in found} | set(record["stayed_indexes"])
        assert positions == set(range(record["last_summarized_index"] + 1))
        # What the subgraph made and folded in one run never came out of it; what it was given, or
        # left, is here although it was removed there. Its view is the digest's all the same.
        gone = {str(one.id) for one in found}
        assert gone - outer
        assert made.keys() <= gone | outer
        assert gone & outer
        assert not gone & {message.id for message in model_view(state)}
        assert shows_digest(inner.calls[-1])
    assert_folded_once(summaries.folded)
    # The agent's tool, in the outer graph, finds both kinds at their places.
    look_up = recall(store, state)
    for one in found[1::7]:
        assert f"position={one.position} " in look_up(id=one.id)


def test_a_node_around_a_subgraph_goes_on_with_its_chain() -> None:
    store = InMemoryStore()
    inside = folding.node(history="prune")
    around = folding.node(history="prune")
    inner: Any = StateGraph(CompactionState)
    inner.add_node("compact", inside)
    inner.add_edge(START, "compact")
    builder: Any = StateGraph(CompactionState)
    builder.add_node("sub", inner.compile())
    builder.add_node("more", lambda _: {"messages": chat(20, start=20)})
    builder.add_node("compact", around)
    builder.add_edge(START, "sub")
    builder.add_edge("sub", "more")
    builder.add_edge("more", "compact")
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    graph.invoke({"messages": []}, THREAD)  # the record comes back to the subgraph with the next
    state = graph.invoke({"messages": chat(20, start=60)}, THREAD)
    archive = archive_of(store, THREAD, in_node=False)
    look_up = recall(store, state)
    for number in (22, 35, 62):
        assert f"message {number} " in look_up(id=f"m{number}")
    # All of it is in the archive where the chain began.
    within = Archive(store, (*archive.namespace[:2], "sub"))
    assert perform(store, archive.steps_of_all())
    assert perform(store, within.steps_of_all()) == []
    assert len(state["messages"]) < 6


@pytest.mark.parametrize("parent", ["shares", "lacks"])
def test_a_subgraph_whose_record_is_not_kept_loses_nothing(parent: str) -> None:
    """Pruned in the run that made them, messages would be in no state, and nothing led to them."""
    store, starts = InMemoryStore(), iter(range(1, 200, 20))
    inner: Any = StateGraph(CompactionState)
    inner.add_node("more", lambda _: {"messages": chat(20, start=next(starts))})
    inner.add_node("compact", folding.node(history="prune"))
    inner.add_edge(START, "more")
    inner.add_edge("more", "compact")
    builder: Any = StateGraph(CompactionState if parent == "shares" else MessagesState)
    builder.add_node("sub", inner.compile())
    builder.add_edge(START, "sub")
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    for turn in range(3):
        state = graph.invoke({"messages": [HumanMessage("Go on.", id=f"go{turn}")]}, THREAD)
        held = {message.id for message in state["messages"]}
        kept = state if "compaction" in state else {**state, "compaction": {}}
        look_up = recall(store, kept)
        for number in range(1, 20 * turn + 21):
            assert f"m{number}" in held or f"message {number} " in look_up(id=f"m{number}")
    assert ("archived" in state.get("compaction", {})) == (parent == "shares")


# ---- time travel


def test_a_rewind_shows_the_old_messages_and_each_branch_has_its_originals() -> None:
    store = InMemoryStore()
    graph = loop(worker_node(), worker(), checkpointer=InMemorySaver(), store=store)
    graph.invoke({"messages": [request(1, 14)]}, THREAD)
    trunk = graph.get_state(THREAD)
    graph.invoke({"messages": [request(15, 40)]}, THREAD)
    left = graph.get_state(THREAD)
    unpruned = next(
        one
        for one in graph.get_state_history(THREAD)
        if "pruned" not in one.values.get("compaction", {})
    )
    assert len(model_view(unpruned.values)) == len(unpruned.values["messages"])
    # Another branch from before the later prunes, and one from before the first.
    graph.invoke({"messages": [request(15, 50)]}, trunk.config)
    right = graph.get_state(THREAD)
    graph.invoke(None, unpruned.config)
    third = graph.get_state(THREAD)
    for branch, last in ((left, 40), (right, 50), (third, 14)):
        thread = whole(store, branch.values)
        assert steps_done(thread) == list(range(1, last + 1))
    heads = [one.values["compaction"]["archived"] for one in (left, right, third)]
    assert len(set(heads)) == 3
    chains = [set(archived(store, one.values["compaction"])) for one in (left, right)]
    shared = set(archived(store, trunk.values["compaction"]))
    assert shared
    assert shared <= chains[0] & chains[1]
    # The archive has the shared part once.
    everything = perform(store, archive_of(store, THREAD, in_node=False).steps_of_all())
    assert sum(one.position in shared for one in everything) <= 2 * len(shared)
    for branch, last in ((left, 40), (right, 50)):
        look_up = recall(store, branch.values)
        position = 2 * 14 + 2  # the second request, which differs
        assert f"Do steps 15 to {last}." in look_up(first=position)


# ---- processes


class Job(TypedDict):
    """What a process is to do."""

    folder: str
    thread: str
    last: int
    die: bool  # right after the first write to the archive


def start(job: Job) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.test_prune_branches"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(job))
    process.stdin.close()
    process.stdin = None
    return process


def look(folder: Path, thread: str) -> tuple[list[BaseMessage], int, int]:
    """The whole thread, the messages in its state, and the items in its archive."""
    where: Any = {"configurable": {"thread_id": thread}}
    with (
        SqliteSaver.from_conn_string(str(folder / "checkpoints")) as saver,
        SqliteStore.from_conn_string(str(folder / "store")) as store,
    ):
        graph = loop(worker_node(), worker(), checkpointer=saver, store=store)
        state = graph.get_state(where).values
        items = perform(store, archive_of(store, where, in_node=False).steps_of_all())
        return whole(store, state, where), len(state["messages"]), len(items)


def prepared(folder: Path) -> None:
    with (
        SqliteSaver.from_conn_string(str(folder / "checkpoints")) as saver,
        SqliteStore.from_conn_string(str(folder / "store")) as store,
    ):
        saver.setup()
        store.setup()


def test_a_kill_between_archive_and_checkpoint_writes_nothing_twice(tmp_path: Path) -> None:
    prepared(tmp_path)
    job = Job(folder=str(tmp_path), thread="t", last=30, die=True)
    killed = start(job)
    _, errors = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, errors
    with SqliteStore.from_conn_string(str(tmp_path / "store")) as store:
        written = perform(store, archive_of(store, THREAD, in_node=False).steps_of_all())
    assert written
    again = start({**job, "die": False})
    _, errors = again.communicate(timeout=120)
    assert (again.returncode, errors) == (0, "")
    thread, left, items = look(tmp_path, "t")
    assert steps_done(thread) == list(range(1, 31))
    assert len(thread) == left + items  # what the killed process had written is not there twice


@pytest.mark.slow
def test_two_processes_share_the_store(tmp_path: Path) -> None:
    prepared(tmp_path)
    jobs = [Job(folder=str(tmp_path), thread=name, last=60, die=False) for name in ("a", "b")]
    for process in [start(job) for job in jobs]:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    for job in jobs:
        thread, left, items = look(tmp_path, job["thread"])
        assert steps_done(thread) == list(range(1, 61))
        assert len(thread) == left + items
        assert left < 40


def test_two_processes_on_one_thread_lose_nothing(tmp_path: Path) -> None:
    prepared(tmp_path)
    first = start(Job(folder=str(tmp_path), thread="t", last=10, die=False))
    first.communicate(timeout=120)
    job = Job(folder=str(tmp_path), thread="t", last=40, die=False)
    for process in [start(job), start(job)]:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    thread, _, _ = look(tmp_path, "t")
    assert steps_done(thread)[-30:] == list(range(11, 41))  # of the one that wrote last


def main(job: Job) -> None:
    """Do a job: go on where the thread stopped, or with its next steps."""
    folder = Path(job["folder"])
    where: Any = {"configurable": {"thread_id": job["thread"]}, "recursion_limit": 1_000}

    class Deadly(SqliteStore):
        def batch(self, ops: Any) -> Any:
            operations = list(ops)
            results = super().batch(operations)
            if job["die"] and any(type(one).__name__ == "PutOp" for one in operations):
                os.kill(os.getpid(), signal.SIGKILL)
            return results

    with (
        SqliteSaver.from_conn_string(str(folder / "checkpoints")) as saver,
        Deadly.from_conn_string(str(folder / "store")) as store,
    ):
        graph = loop(worker_node(), worker(), checkpointer=saver, store=store)
        state = graph.get_state(where)
        done = max(steps_done(state.values.get("messages", ())), default=0)
        # `next` lacks a task whose writes are there, and whose checkpoint is not.
        entry = None if state.tasks else {"messages": [request(done + 1, job["last"])]}
        graph.invoke(entry, where, durability="sync")


if __name__ == "__main__":
    main(json.load(sys.stdin))
