"""The archive in every store: chains, branches, retries, crashes, and deletion."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionState, ConfigurationError
from langgraph_compaction.archive import Archive, aperform, archive_of, namespace_of, perform
from langgraph_compaction.archive.chain import PAGE, WRITTEN_AT_ONCE
from tests.support.archive_writer import open_at, talk
from tests.support.stores import KINDS, called, done, opened

ROOT = Path(__file__).parents[2]

IMAGE = {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "aGFsbG8="}


def texts(found: list[Any]) -> list[str]:
    return [one.message().text for one in found]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Any:
    """Gives the address of a PostgreSQL database, and starts the server only if it is asked."""
    return lambda: request.getfixturevalue("postgres")


async def test_what_is_written_comes_back_in_order(
    kind: str, tmp_path: Path, database: Any
) -> None:
    call = {"name": "sh", "args": {"cmd": "ls \x00 \ud800"}, "id": "c1"}
    messages = [
        (4, HumanMessage([{"type": "text", "text": "Look \x00"}, IMAGE], id="h")),
        (5, AIMessage("", id="a", tool_calls=[call])),
        (6, ToolMessage("1\x00\n", tool_call_id="c1", id="t", name="sh", artifact=b"\x00")),
    ]
    async with opened(kind, tmp_path, database) as store:
        archive = Archive(store, namespace_of("../t.1"))
        head = await done(kind, store, archive.steps_of_write(messages, None))
        found = await done(kind, store, archive.steps_of_branch(head))
        assert [(one.position, one.message()) for one in found] == messages
        assert found[-1].key == head
        assert [one.call_ids for one in found] == [(), ("c1",), ("c1",)]
        assert await done(kind, store, archive.steps_of_branch("0000000000-nothing")) == []


async def test_a_retry_writes_nothing_twice_and_nothing_is_overwritten(
    kind: str, tmp_path: Path, database: Any
) -> None:
    async with opened(kind, tmp_path, database) as store:
        archive = Archive(store, namespace_of("t"))
        first = await done(kind, store, archive.steps_of_write(talk(0, 5), None))
        again = await done(kind, store, archive.steps_of_write(talk(0, 5), None))
        assert again == first
        assert len(await done(kind, store, archive.steps_of_all())) == 5
        # The same position and id with another text is another item.
        other = await done(
            kind, store, archive.steps_of_write([(4, HumanMessage("New.", id="m4"))], None)
        )
        assert other != first
        assert texts(await done(kind, store, archive.steps_of_branch(first)))[-1] == "Message 4."


async def test_forks_share_what_they_share(kind: str, tmp_path: Path, database: Any) -> None:
    async with opened(kind, tmp_path, database) as store:
        archive = Archive(store, namespace_of("t"))
        trunk = await done(kind, store, archive.steps_of_write(talk(0, 3), None))
        left = await done(kind, store, archive.steps_of_write(talk(3, 5, " left"), trunk))
        right = await done(kind, store, archive.steps_of_write(talk(3, 6, " right"), trunk))
        assert len(await done(kind, store, archive.steps_of_all())) == 3 + 2 + 3
        assert [one.id for one in await done(kind, store, archive.steps_of_branch(left))] == (
            ["m0", "m1", "m2", "m3 left", "m4 left"]
        )
        assert len(await done(kind, store, archive.steps_of_branch(right))) == 6
        assert len(await done(kind, store, archive.steps_of_branch(trunk))) == 3


async def test_a_long_chain_comes_back_whole(kind: str, tmp_path: Path, database: Any) -> None:
    # Databases order the items of one batch by nothing: pages overlap and leave some out.
    size = PAGE * 2 + WRITTEN_AT_ONCE // 2
    async with opened(kind, tmp_path, database) as store:
        archive = Archive(store, namespace_of("t"))
        head = await done(kind, store, archive.steps_of_write(talk(0, size), None))
        found = await done(kind, store, archive.steps_of_branch(head))
        assert [one.position for one in found] == list(range(size))
        await done(kind, store, archive.steps_of_delete(head))
        assert await done(kind, store, archive.steps_of_all()) == []


async def test_a_missing_link_ends_the_walk(kind: str, tmp_path: Path, database: Any) -> None:
    async with opened(kind, tmp_path, database) as store:
        archive = Archive(store, namespace_of("t"))
        middle = await done(kind, store, archive.steps_of_write(talk(0, 3), None))
        head = await done(kind, store, archive.steps_of_write(talk(3, 5), middle))
        await called(kind, store, "delete", archive.namespace, middle)
        found = await done(kind, store, archive.steps_of_branch(head))
        assert [one.position for one in found] == [3, 4]


async def test_deleting_takes_all_that_shares_an_item_and_nothing_else(
    kind: str, tmp_path: Path, database: Any
) -> None:
    async with opened(kind, tmp_path, database) as store:
        archive, sub = Archive(store, namespace_of("t")), Archive(store, namespace_of("t", "s:1|c"))
        trunk = await done(kind, store, archive.steps_of_write(talk(0, 3), None))
        left = await done(kind, store, archive.steps_of_write(talk(3, 5), trunk))
        right = await done(kind, store, archive.steps_of_write(talk(3, 6, "b"), trunk))
        beside = await done(kind, store, sub.steps_of_write(talk(0, 2, "s"), None))
        steps = archive.steps_of_write(talk(5, 7), left, also=[beside])
        head = await done(kind, store, steps)
        found = await done(kind, store, archive.steps_of_branch(head))
        assert sorted(one.position for one in found) == [0, 0, 1, 1, 2, 3, 4, 5, 6]
        assert len(await done(kind, store, archive.steps_of_branch(head, right))) == 9 + 3
        await done(kind, store, sub.steps_of_write(talk(0, 3), None))  # the trunk once more
        stranger = await done(kind, store, archive.steps_of_write(talk(0, 2, "x"), None))
        await done(kind, store, archive.steps_of_delete(head))
        for one in (head, right, beside, trunk):
            assert await done(kind, store, archive.steps_of_branch(one)) == []
        assert len(await done(kind, store, archive.steps_of_all())) == 2
        assert len(await done(kind, store, archive.steps_of_branch(stranger))) == 2
        assert await done(kind, store, sub.steps_of_all()) == []


def test_a_delete_that_is_broken_off_is_done_by_the_next(monkeypatch: Any) -> None:
    monkeypatch.setattr("langgraph_compaction.archive.chain.WRITTEN_AT_ONCE", 2)
    for fails_at in range(1, 12):
        store = Failing(1_000)
        archive = Archive(store, namespace_of("t"))
        trunk = perform(store, archive.steps_of_write(talk(0, 5), None))
        perform(store, archive.steps_of_write(talk(5, 8, "b"), trunk))
        head = perform(store, archive.steps_of_write(talk(5, 9), trunk))
        store.left = fails_at
        with suppress(ConnectionResetError):
            perform(store, archive.steps_of_delete(head))
        store.left = 1_000
        perform(store, archive.steps_of_delete(head))
        assert perform(store, archive.steps_of_all()) == []


async def test_threads_and_graphs_do_not_see_each_other(
    kind: str, tmp_path: Path, database: Any
) -> None:
    ids = ["t", "t1", "T", "t.1", "t_", "t%", "", "../t", "t\x00"]
    spaces = [namespace_of(one) for one in ids]
    spaces += [namespace_of("t", ns) for ns in ("sub:1|compact:2", "Sub:1|compact:2")]
    heads: list[str] = []
    async with opened(kind, tmp_path, database) as store:
        for n, space in enumerate(spaces):
            steps = Archive(store, space).steps_of_write(talk(n, n + 1), None)
            heads.append(await done(kind, store, steps))
        await called(kind, store, "put", (*spaces[0], "below"), "k", {"mine": 1})
        for n, space in enumerate(spaces):
            found = await done(kind, store, Archive(store, space).steps_of_all())
            assert [one.position for one in found] == [n]
        await done(kind, store, Archive(store, spaces[0]).steps_of_delete(heads[0]))
        assert await done(kind, store, Archive(store, spaces[0]).steps_of_all()) == []
        assert await called(kind, store, "get", (*spaces[0], "below"), "k") is not None
        for space in spaces[1:]:
            assert len(await done(kind, store, Archive(store, space).steps_of_all())) == 1


async def test_a_chain_is_found_continued_and_deleted_from_another_graph_of_the_thread(
    kind: str, tmp_path: Path, database: Any
) -> None:
    async with opened(kind, tmp_path, database) as store:
        inner = Archive(store, namespace_of("t", "sub:1|compact:2"))
        outer, other = Archive(store, namespace_of("t")), Archive(store, namespace_of("t1"))
        head = await done(kind, store, inner.steps_of_write(talk(0, 3), None))
        later = await done(kind, store, outer.steps_of_write(talk(3, 5), head))
        for archive in (inner, outer):
            found = await done(kind, store, archive.steps_of_branch(later))
            assert [one.position for one in found] == [0, 1, 2, 3, 4]
            assert await done(kind, store, archive.steps_of_branch("unknown")) == []
        assert await done(kind, store, outer.steps_of_all()) == []  # it is where it began
        # Another thread is led to nothing, whatever key it has.
        assert await done(kind, store, other.steps_of_branch(later)) == []
        await done(kind, store, other.steps_of_delete(later))
        await done(kind, store, outer.steps_of_delete())
        assert len(await done(kind, store, inner.steps_of_all())) == 5
        await done(kind, store, outer.steps_of_delete(later))
        assert await done(kind, store, inner.steps_of_all()) == []


class Failing(InMemoryStore):
    """A store that fails from a certain batch on."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.left = batches

    def batch(self, ops: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ConnectionResetError("The store went away.")
        return super().batch(ops)


def test_an_error_of_the_store_is_raised_as_it_is_and_a_retry_heals() -> None:
    store = Failing(1)
    archive = Archive(store, namespace_of("t"))
    with pytest.raises(ConnectionResetError, match="The store went away"):
        perform(archive.store, archive.steps_of_write(talk(0, WRITTEN_AT_ONCE + 10), None))
    store.left = 100
    # The beginning of the chain is there, without a hole.
    left = perform(store, archive.steps_of_all())
    assert [one.position for one in left] == list(range(WRITTEN_AT_ONCE))
    head = perform(archive.store, archive.steps_of_write(talk(0, WRITTEN_AT_ONCE + 10), None))
    for steps in (archive.steps_of_all(), archive.steps_of_branch(head)):
        assert len(perform(store, steps)) == WRITTEN_AT_ONCE + 10


def test_nothing_is_embedded_and_nothing_written_for_nothing() -> None:
    asked: list[Any] = []

    def embed(found: list[str]) -> list[list[float]]:
        asked.append(found)
        return [[1.0]] * len(found)

    archive = Archive(InMemoryStore(index={"dims": 1, "embed": embed}), namespace_of("t"))
    perform(archive.store, archive.steps_of_write(talk(0, 3), None))
    assert asked == []
    with pytest.raises(ValueError, match="no messages"):
        perform(archive.store, archive.steps_of_write([], None))


def test_messages_are_not_changed() -> None:
    message = AIMessage("a", tool_calls=[{"name": "f", "args": {"x": [1]}, "id": "c"}])
    before = message.model_copy(deep=True)
    archive = Archive(InMemoryStore(), namespace_of("t"))
    head = perform(archive.store, archive.steps_of_write([(0, message)], None))
    back = perform(archive.store, archive.steps_of_branch(head))[0].message()
    assert isinstance(back, AIMessage)
    back.tool_calls[0]["args"]["x"].append(2)
    assert message == before == perform(archive.store, archive.steps_of_branch(head))[0].message()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=12))
def test_every_head_leads_to_the_history_that_was_written(plan: list[tuple[int, int]]) -> None:
    """Each step appends to a head made before: a tree of branches, some written twice."""
    archive = Archive(InMemoryStore(), namespace_of("t"))
    heads: list[tuple[str | None, list[str]]] = [(None, [])]
    for from_head, count in plan:
        head, history = heads[from_head % len(heads)]
        new = [
            (len(history) + n, HumanMessage(f"{len(history) + n} {count}")) for n in range(count)
        ]
        key = perform(archive.store, archive.steps_of_write(new, head))
        assert perform(archive.store, archive.steps_of_write(new, head)) == key
        heads.append((key, [*history, *(message.text for _, message in new)]))
    for head, history in heads[1:]:
        assert texts(perform(archive.store, archive.steps_of_branch(str(head)))) == history


def test_a_run_without_a_thread_is_told_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="thread_id"):
        archive_of(InMemoryStore(), {"configurable": {}})


async def test_nodes_of_a_graph_share_an_archive_over_runs_and_subgraphs_have_their_own() -> None:
    seen: list[tuple[str, ...]] = []

    def node(state: CompactionState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
        seen.append(archive_of(store, config).namespace)
        return {}

    def graph(*nodes: Any, **options: Any) -> Any:
        builder = StateGraph(CompactionState)
        for n, one in enumerate(nodes):
            builder.add_node(f"n{n}", one)
            builder.add_edge(START, f"n{n}")
        return builder.compile(**options)

    inner = graph(node, node)
    outer = graph(node, inner, checkpointer=InMemorySaver(), store=InMemoryStore())
    config: Any = {"configurable": {"thread_id": "a.b"}}
    for _ in range(2):
        outer.invoke({"messages": []}, config)
        await outer.ainvoke({"messages": []}, config)
    thread = "a~2eb"
    assert set(seen) == {
        ("langgraph_compaction", thread, "~top"),
        ("langgraph_compaction", thread, "n1"),
    }
    assert len(seen) == 4 * 3
    state = outer.get_state(config)
    assert archive_of(outer.store, state.config, in_node=False).namespace[2] == "~top"


def start_writer(address: str, thread: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.archive_writer", address, thread, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store on disk that is set up."""
    sqlite = str(tmp_path / "store.sqlite")
    where = sqlite if request.param == "sqlite" else request.getfixturevalue("postgres")
    with open_at(where) as store:
        store.setup()
    return str(where)


def test_two_processes_that_write_the_same_chain_write_it_once(address: str) -> None:
    writers = [start_writer(address, "t", 300) for _ in range(2)]
    heads = {json.loads(writer.communicate(timeout=120)[0].splitlines()[-1]) for writer in writers}
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(heads) == 1
    with open_at(address) as store:
        archive = Archive(store, namespace_of("t"))
        assert len(perform(archive.store, archive.steps_of_all())) == 300
        found = perform(store, archive.steps_of_branch(heads.pop()))
        assert [one.position for one in found] == list(range(300))


def test_a_writer_that_is_killed_leaves_a_beginning_and_a_retry_completes_it(address: str) -> None:
    count = 40_000
    writer = start_writer(address, "t", count)
    assert writer.stdout is not None
    writer.stdout.readline()  # it is about to write
    with open_at(address) as store:
        archive = Archive(store, namespace_of("t"))
        deadline = time.monotonic() + 60
        while not store.search(archive.namespace, limit=1) and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        left = [one.position for one in perform(archive.store, archive.steps_of_all())]
        assert left == list(range(len(left)))
        assert 0 < len(left) < count
        head = perform(archive.store, archive.steps_of_write(talk(0, len(left) + 50), None))
        for steps in (archive.steps_of_all(), archive.steps_of_branch(head)):
            assert len(perform(store, steps)) == len(left) + 50


async def test_concurrent_branches_in_one_process_lose_nothing() -> None:
    archive = Archive(InMemoryStore(), namespace_of("t"))
    trunk = await aperform(archive.store, archive.steps_of_write(talk(0, 3), None))
    writes = [archive.steps_of_write(talk(3, 6, f" {n}"), trunk) for n in range(10)]
    heads = await asyncio.gather(*(aperform(archive.store, steps) for steps in writes))
    branches = [await aperform(archive.store, archive.steps_of_branch(head)) for head in heads]
    assert [len(found) for found in branches] == [6] * 10
