"""Delta channels in real graphs: folds, restarts, forks and people's changes, as on plain ones.

The transcript is not in the checkpoints but is replayed from writes. So what has to be shown is
that each way to come back to a thread, of whatever age, finds the same messages under the same ids
and the record that belongs to them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    edit_digest,
    forget,
    model_view,
    restore,
)
from langgraph_compaction.delta import DeltaCompactionState, merge_message_writes
from tests.support.doubles import (
    WINDOW,
    Summaries,
    assert_folded_once,
    loop,
    request,
    steps_done,
    work,
    worker,
)
from tests.support.folding import Recorder, node

CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000}
SAVERS = ("memory", "sqlite", "sqlite-async")


@asynccontextmanager
async def opened(kind: str, file: Path) -> AsyncIterator[Any]:
    """A checkpointer; of SQLite's kinds a new one on the same file each time."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(str(file)) as saver:
            yield saver
    else:
        async with AsyncSqliteSaver.from_conn_string(str(file)) as asaver:
            yield asaver


class Thread:
    """A graph that answers each request with a text of its own and folds soon; with one thread."""

    def __init__(self, saver: Any, state: type[Any] = DeltaCompactionState) -> None:
        self.saver = saver
        self.model = Recorder()
        self.compact = node(self.model, keep=("messages", 4))
        builder = StateGraph(state)
        builder.add_node("compact", self.compact)
        builder.add_node("agent", self._answer)
        builder.add_edge(START, "compact")
        builder.add_edge("compact", "agent")
        builder.add_edge("agent", END)
        self.graph = builder.compile(checkpointer=saver)

    def _answer(self, state: Any) -> Any:
        asked = self.compact.view(state)[-1].text
        return {"messages": [AIMessage(f"Answer to {asked}: " + f"{asked} " * 20)]}

    async def ask(self, *requests: str, config: Any = CONFIG) -> dict[str, Any]:
        """One turn a request; the state after the last."""
        found: dict[str, Any] = {}
        for text in requests:
            given = {"messages": [("user", text)]}
            if isinstance(self.saver, AsyncSqliteSaver):
                found = await self.graph.ainvoke(given, config, durability="sync")
            else:
                found = self.graph.invoke(given, config, durability="sync")
        return found

    async def state(self, config: Any = CONFIG) -> Any:
        if isinstance(self.saver, AsyncSqliteSaver):
            return await self.graph.aget_state(config)
        return self.graph.get_state(config)

    async def history(self) -> list[Any]:
        """All states, the newest first."""
        if isinstance(self.saver, AsyncSqliteSaver):
            return [state async for state in self.graph.aget_state_history(CONFIG)]
        return list(self.graph.get_state_history(CONFIG))

    async def update(self, values: Any, config: Any = CONFIG) -> Any:
        if isinstance(self.saver, AsyncSqliteSaver):
            return await self.graph.aupdate_state(config, values)
        return self.graph.update_state(config, values)


def numbered(first: int, last: int) -> list[str]:
    return [f"request-{n:03}" for n in range(first, last + 1)]


def requests_in(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, HumanMessage)]


def shown(messages: list[BaseMessage]) -> list[Any]:
    return [(type(message), message.model_dump()) for message in messages]


def without_ids(messages: list[BaseMessage]) -> list[Any]:
    return [(type(message), message.model_dump(exclude={"id"})) for message in messages]


@pytest.mark.parametrize("kind", SAVERS)
async def test_folds_and_anchors_outlive_the_process(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        first = Thread(saver)
        state = await first.ask(*numbered(1, 12))
        assert first.model.prompts
        assert (await first.state()).values == state
        if kind == "memory":
            again = Thread(saver)
            await check_it_goes_on(again, state)
    if kind != "memory":
        async with opened(kind, tmp_path / "db") as saver:
            again = Thread(saver)
            await check_it_goes_on(again, state)


async def check_it_goes_on(again: Thread, before: dict[str, Any]) -> None:
    found = (await again.state()).values
    assert shown(found["messages"]) == shown(before["messages"])
    assert found["compaction"] == before["compaction"] != {}
    after = await again.ask(*numbered(13, 24))
    assert requests_in(after["messages"]) == numbered(1, 24)
    assert again.model.prompts
    # Only what was not folded before is read by the summariser.
    covered = before["compaction"]["last_summarized_index"]
    for message in before["messages"][1 : covered + 1]:
        assert message.text.split(":")[0] not in again.model.read
    ids = [message.id for message in after["messages"]]
    assert len(set(ids)) == len(ids)
    assert (await again.state()).values == after


@pytest.mark.parametrize("kind", SAVERS)
async def test_each_fork_sees_its_own_record_and_messages(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        thread = Thread(saver)
        await thread.ask(*numbered(1, 3))
        before = await thread.state()
        assert before.values["compaction"].get("segments") is None
        main = await thread.ask(*numbered(4, 12))
        main_end = (await thread.state()).config
        assert main["compaction"]["segments"]

        other = await thread.ask("other-001", config=before.config)
        assert requests_in(other["messages"]) == [*numbered(1, 3), "other-001"]
        assert not other["compaction"].get("segments")
        # Without a checkpoint's id the thread goes on where it was used last: in the fork.
        others = [f"other-{n:03}" for n in range(2, 15)]
        other = await thread.ask(*others)
        other_end = (await thread.state()).config
        assert requests_in(other["messages"]) == [*numbered(1, 3), "other-001", *others]
        assert other["compaction"]["segments"]
        assert other["compaction"] != main["compaction"]

        assert (await thread.state(main_end)).values == main
        assert (await thread.state(before.config)).values == before.values
        for text in numbered(13, 20):
            main = await thread.ask(text, config=main_end)
            main_end = (await thread.state()).config
        assert requests_in(main["messages"]) == numbered(1, 20)
        ids = {message.id for message in main["messages"]}
        assert main["compaction"]["last_summarized_id"] in ids
        assert "other-0" not in " ".join(m.text for m in model_view(main))
        assert (await thread.state(other_end)).values == other
        assert "request-004" not in " ".join(m.text for m in model_view(other))


@pytest.mark.parametrize("kind", SAVERS)
async def test_an_update_of_an_old_checkpoint_stays_in_its_branch(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        thread = Thread(saver)
        await thread.ask(*numbered(1, 3))
        before = await thread.state()
        main = await thread.ask(*numbered(4, 12))
        main_end = (await thread.state()).config
        branch = await thread.update(
            {"messages": [HumanMessage("a note", id="note")], "compaction": {"epoch": 1}},
            before.config,
        )
        found = (await thread.state(branch)).values
        assert requests_in(found["messages"]) == [*numbered(1, 3), "a note"]
        assert found["compaction"] == {"epoch": 1}
        assert (await thread.state(main_end)).values == main
        assert (await thread.state(before.config)).values == before.values


@pytest.mark.parametrize("kind", SAVERS)
async def test_each_checkpoint_shows_the_thread_as_it_was(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        thread = Thread(saver)
        turns = [(await thread.ask(text)) for text in numbered(1, 15)]
        ends = [state for state in reversed(await thread.history()) if not state.next]
        assert [state.values for state in ends] == turns
        folded = [turn["compaction"].get("last_summarized_index", -1) for turn in turns]
        assert len(set(folded)) > 2
        # Rewound to before its last fold, a thread has the record of then and makes the next anew.
        n = folded.index(folded[-1]) - 1
        again = await thread.ask("again", config=ends[n].config)
        assert again["messages"][: 2 * n + 2] == turns[n]["messages"]


@pytest.mark.parametrize("kind", SAVERS)
async def test_people_change_digest_and_messages(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        thread = Thread(saver)
        await thread.ask(*numbered(1, 12))

        await thread.update(edit_digest((await thread.state()).values, "As a person has it."))
        edited = (await thread.state()).values
        assert "As a person has it." in " ".join(m.text for m in thread.compact.view(edited))

        await thread.update(restore(edited, segment=0))
        restored = (await thread.state()).values
        assert restored["compaction"]["epoch"] == 2
        assert requests_in(thread.compact.view(restored)) == numbered(1, 12)

        await thread.ask(*numbered(13, 14))
        folded = (await thread.state()).values
        update = forget(folded)
        assert update["messages"]
        await thread.update(update)
        left = (await thread.state()).values
        removed = {message.id for message in update["messages"]}
        expected = [message for message in folded["messages"] if message.id not in removed]
        assert shown(left["messages"]) == shown(expected)
        assert "segments" not in left["compaction"]

        # Gone already, as where two people remove the same message.
        await thread.update({"messages": [RemoveMessage(id=str(min(removed)))]})
        await thread.update({"messages": [HumanMessage("Begin again.", id=left["messages"][0].id)]})
        after = await thread.ask("request-015")
        assert requests_in(after["messages"])[0] == "Begin again."
        assert (await thread.state()).values == after

        await thread.update({"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
        assert (await thread.state()).values["messages"] == []


@pytest.mark.parametrize("kind", SAVERS)
async def test_ids_stay_however_the_messages_were_written(kind: str, tmp_path: Path) -> None:
    written: list[Any] = [
        [("user", "a tuple"), {"role": "user", "content": "a dict"}, "text", HumanMessage("one")],
        [{"role": "developer", "content": "a dict of another role"}, ("user", "a tuple")],
        ("user", "alone"),
        {"role": "ai", "content": "alone, too"},
        "alone as well",
        AIMessage("an object alone"),
        [],
    ]
    async with opened(kind, tmp_path / "db") as saver:
        thread = Thread(saver)
        ids: list[str] = []
        for one in written:  # as people's changes ...
            await thread.update({"messages": one})
            found = [m.id for m in (await thread.state()).values["messages"]]
            assert found[: len(ids)] == ids
            ids = found
        for one in written:  # ... and as input
            if kind == "sqlite-async":
                state = await thread.graph.ainvoke({"messages": one}, CONFIG)
            else:
                state = thread.graph.invoke({"messages": one}, CONFIG)
            found = [message.id for message in state["messages"]]
            assert found[: len(ids)] == ids
            assert [m.id for m in (await thread.state()).values["messages"]] == found
            ids = found
        assert None not in ids
        assert len(set(ids)) == len(ids)
        await thread.update({"messages": Overwrite([("user", "anew"), HumanMessage("b")])})
        await thread.ask("request-001")
        first = (await thread.state()).values["messages"]
        second = (await thread.state()).values["messages"]
        assert shown(first) == shown(second)
        assert [message.text for message in first[:3]] == ["anew", "b", "request-001"]


def steps_of(state: type[Any], saver: Any, steps: int) -> tuple[Any, Any]:
    """A run of an agent with calls and results, and the thread as it is read back."""
    compact = node(keep=("messages", 10), trigger=("tokens", 8_000))

    def agent(values: Any) -> Any:
        done = sum(isinstance(message, ToolMessage) for message in values["messages"])
        if done == steps:
            return {"messages": [AIMessage("Done.", id="end")]}
        call = {"name": "read", "args": {"path": f"{done}.py"}, "id": f"c{done}"}
        return {"messages": [AIMessage(f"Reading {done}.", tool_calls=[call], id=f"a{done}")]}

    def tools(values: Any) -> Any:
        call = values["messages"][-1].tool_calls[0]
        text = f"{call['args']['path']} " * 40
        return {"messages": [ToolMessage(text, tool_call_id=call["id"], id=f"t{call['id']}")]}

    builder = StateGraph(state)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges(
        "agent", lambda values: "tools" if values["messages"][-1].tool_calls else END
    )
    builder.add_edge("tools", "compact")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("Read all.", id="h")]}, CONFIG, durability="sync")
    return graph, graph.get_state(CONFIG).values


class OftenSnapshot(DeltaCompactionState):
    """With many snapshots on the way."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_message_writes, snapshot_frequency=30)]


@pytest.mark.parametrize(
    "state", [pytest.param(DeltaCompactionState, marks=pytest.mark.slow), OftenSnapshot]
)
def test_after_250_steps_a_replay_equals_the_plain_channel(
    state: type[Any], tmp_path: Path
) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "plain")) as saver:
        _, plain = steps_of(CompactionState, saver, 250)
    with SqliteSaver.from_conn_string(str(tmp_path / "delta")) as saver:
        graph, delta = steps_of(state, saver, 250)
        assert shown(delta["messages"]) == shown(plain["messages"])
        assert len(delta["messages"]) == 502
        assert delta["compaction"] == plain["compaction"]
        assert delta["compaction"]["segments"]
        middle = next(graph.get_state_history(CONFIG, filter={"step": 400}))
        n = len(middle.values["messages"])
        assert shown(middle.values["messages"]) == shown(plain["messages"][:n])
    assert 10 * (tmp_path / "delta").stat().st_size < (tmp_path / "plain").stat().st_size


@pytest.mark.parametrize("kind", SAVERS)
async def test_a_plain_thread_goes_on_as_delta_and_back(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path / "db") as saver:
        plain = await Thread(saver, CompactionState).ask(*numbered(1, 12))
        delta = Thread(saver)
        assert (await delta.state()).values == plain
        on = await delta.ask(*numbered(13, 18))
        assert requests_in(on["messages"]) == numbered(1, 18)
        assert shown(on["messages"][:24]) == shown(plain["messages"])
        assert on["compaction"]["last_summarized_index"] > 0
        back = Thread(saver, CompactionState)
        found = (await back.state()).values
        assert without_ids(found["messages"]) == without_ids(on["messages"])
        assert found["compaction"] == on["compaction"]


@pytest.mark.parametrize("kind", SAVERS)
async def test_a_subgraph_folds_in_its_own_channels(kind: str, tmp_path: Path) -> None:
    class Inner(DeltaCompactionState):
        pass

    compact = node(keep=("messages", 2))
    inner = StateGraph(Inner)
    inner.add_node("compact", compact)
    inner.add_node("agent", lambda s: {"messages": [AIMessage("word " * 40)]})
    inner.add_edge(START, "compact")
    inner.add_edge("compact", "agent")
    outer = StateGraph(DeltaCompactionState)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    async with opened(kind, tmp_path / "db") as saver:
        graph = outer.compile(checkpointer=saver)
        for text in numbered(1, 14):
            given: Any = {"messages": [("user", text)]}
            if kind == "sqlite-async":
                await graph.ainvoke(given, CONFIG)
                values = (await graph.aget_state(CONFIG)).values
            else:
                graph.invoke(given, CONFIG)
                values = graph.get_state(CONFIG).values
        assert requests_in(values["messages"]) == numbered(1, 14)
        assert len(values["messages"]) == 28
        assert values["compaction"]["segments"]
        assert len(compact.view(values)) < 16


def test_an_agent_of_create_agent_takes_the_state() -> None:
    from langchain.agents import create_agent

    from langgraph_compaction.middleware import CompactionMiddleware

    summaries = Summaries()
    agent = create_agent(
        worker(),
        [work],
        middleware=[CompactionMiddleware(summaries, context_window=WINDOW)],
        checkpointer=InMemorySaver(),
        state_schema=DeltaCompactionState,
    )
    assert isinstance(agent.channels["messages"], DeltaChannel)
    assert isinstance(agent.channels["compaction"], DeltaChannel)
    state = agent.invoke({"messages": [request(1, 30)]}, CONFIG)
    assert steps_done(state["messages"]) == list(range(1, 31))
    assert_folded_once(summaries.folded)
    assert agent.get_state(CONFIG).values == state


def check_turns(saver: Any, durability: str) -> None:
    """Turns of an agent with tools; after each the thread is read back as it ended."""
    summaries = Summaries()
    compact = CompactionNode(summaries, context_window=WINDOW, token_counter="estimate")
    graph = loop(compact, worker(), state=DeltaCompactionState, checkpointer=saver)
    for first, last in ((1, 20), (21, 40), (41, 41)):
        given = {"messages": [request(first, last)]}
        state = graph.invoke(given, CONFIG, durability=durability)
        assert graph.get_state(CONFIG).values == state
    assert steps_done(state["messages"]) == list(range(1, 42))
    assert_folded_once(summaries.folded)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_turns_are_read_back_with_each_durability(durability: str, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        check_turns(saver, durability)


def test_turns_are_read_back_from_postgres(postgres: str) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        check_turns(saver, "sync")


@pytest.mark.parametrize("kind", SAVERS)
async def test_parallel_branches_are_read_back_in_their_order(kind: str, tmp_path: Path) -> None:
    builder = StateGraph(DeltaCompactionState)
    names = [f"branch-{n}" for n in range(8)]
    for name in names:
        builder.add_node(name, lambda _, name=name: {"messages": [("ai", "the same"), name]})
        builder.add_edge(START, name)
    async with opened(kind, tmp_path / "db") as saver:
        graph = builder.compile(checkpointer=saver)
        for _ in range(2):
            if kind == "sqlite-async":
                state = await graph.ainvoke({"messages": "go"}, CONFIG)
                found = (await graph.aget_state(CONFIG)).values
            else:
                state = graph.invoke({"messages": "go"}, CONFIG)
                found = graph.get_state(CONFIG).values
            assert shown(found["messages"]) == shown(state["messages"])
        assert len({message.id for message in found["messages"]}) == 2 * 17
