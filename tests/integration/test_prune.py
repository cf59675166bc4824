"""What was folded leaves the state with the fold, and is in the archive: on every store.

The checks are made from outside: what the transcript was is known from the messages that streamed
by, so a message that is neither in the state nor in the archive would show.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    create_recall_tool,
    forget,
    model_view,
    restore,
)
from langgraph_compaction.archive import aperform, archive_of, perform
from langgraph_compaction.delta import DeltaCompactionState
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support import folding
from tests.support.doubles import (
    THREAD,
    WINDOW,
    Summaries,
    assert_folded_once,
    assert_valid,
    loop,
    request,
    shows_digest,
    steps_done,
    work,
    worker,
)
from tests.support.folding import chat, state_of
from tests.support.pruning import Unreliable, applied
from tests.support.runtimes import runtime
from tests.support.stores import KINDS, done, opened

STEPS = 40


def pruning(**values: Any) -> CompactionNode:
    """A node that folds after some twelve steps and prunes."""
    rules = {"context_window": WINDOW, "token_counter": "estimate", "history": "prune"}
    return CompactionNode(values.pop("model", None) or Summaries(), **(rules | values))


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def originals(store: BaseStore, record: Any, where: Any = THREAD) -> list[Any]:
    """What the archive holds of the branch of a record."""
    head = record.get("archived")
    archive = archive_of(store, where, in_node=False)
    return perform(store, archive.steps_of_branch(head)) if head else []


def places(state: Any, store: BaseStore, where: Any = THREAD) -> list[str]:
    """Ids of the archived messages by position, then of those in the state that came after."""
    record = state["compaction"]
    archived = {one.position: one.id for one in originals(store, record, where)}
    stayed = dict(zip(record["stayed_indexes"], record["stayed_ids"], strict=True))
    assert not archived.keys() & stayed.keys()
    first = len(stayed)
    assert [m.id for m in state["messages"][:first]] == list(stayed.values())
    covered = archived | stayed
    assert sorted(covered) == list(range(record["pruned_index"] + 1))
    return [*(covered[n] for n in sorted(covered)), *(m.id for m in state["messages"][first:])]


# ---- in every store


@pytest.mark.parametrize("kind", KINDS)
async def test_folded_messages_move_to_the_archive(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    summaries, model, events = Summaries(), worker(), list[Any]()
    compact = pruning(model=summaries, hook=events.append)
    async with opened(kind, tmp_path, lambda: request.getfixturevalue("postgres")) as store:
        graph = loop(compact, model, checkpointer=InMemorySaver(), store=store)
        asked = {"messages": [HumanMessage(f"Do steps 1 to {STEPS}.", id="task")]}
        seen: list[BaseMessage] = [*asked["messages"]]
        told: list[Any] = []
        modes: Any = ["updates", "messages"]
        if kind.endswith("-async"):
            parts = [part async for part in graph.astream(asked, THREAD, stream_mode=modes)]
        else:
            parts = list(graph.stream(asked, THREAD, stream_mode=modes))
        for mode, part in parts:
            if mode == "messages":
                told.append(part[0])
                continue
            for update in part.values():
                made = (update or {}).get("messages", ())
                seen += [m for m in made if not isinstance(m, RemoveMessage)]
        state = (await graph.aget_state(THREAD)).values
        archive = archive_of(store, THREAD, in_node=False)
        found = await done(kind, store, archive.steps_of_branch(state["compaction"]["archived"]))
        everything = await done(kind, store, archive.steps_of_all())
        assert len(everything) == len(found)  # nothing is there twice
    assert steps_done(seen) == list(range(1, STEPS + 1))
    # Every message is in one of the two, as it was, at its place.
    hidden = [(one.position, one.message()) for one in found]
    assert hidden == [(place, seen[place]) for place, _ in hidden]
    gone = {place for place, _ in hidden}
    assert state["messages"] == [m for n, m in enumerate(seen) if n not in gone]
    assert state["messages"][0].id == "task"
    assert len(state["messages"]) < len(seen) / 2
    # The agent saw valid views, nothing was summarised twice, and no stream told of it.
    assert_valid(model.calls)
    assert any(map(shows_digest, model.calls))
    assert_folded_once(summaries.folded)
    assert not any(isinstance(message, RemoveMessage) for message in told)
    assert {m.id for m in told} <= {m.id for m in seen}
    completed = [event for event in events if event["type"] == "compaction.completed"]
    assert len(completed) > 1
    assert sum(event["pruned"] for event in completed) == len(hidden)
    assert not [event for event in events if event["type"] == "compaction.failed"]


def test_a_view_is_the_same_as_without_it() -> None:
    views = []
    for history in ("full", "prune"):
        model = worker()
        graph = loop(
            pruning(history=history, clear=True),
            model,
            checkpointer=InMemorySaver(),
            store=InMemoryStore(),
        )
        graph.invoke({"messages": [HumanMessage(f"Do steps 1 to {STEPS}.")]}, THREAD)
        views.append([[(m.type, m.text) for m in call] for call in model.calls])
    assert views[0] == views[1]


def test_with_delta_channels_and_with_the_middleware() -> None:
    store = InMemoryStore()
    graph = loop(
        pruning(), worker(), state=DeltaCompactionState, checkpointer=InMemorySaver(), store=store
    )
    graph.invoke({"messages": [request(1, STEPS)]}, THREAD)
    state = graph.get_state(THREAD).values
    assert len(places(state, store)) == 2 * STEPS + 2

    compaction: Any = CompactionMiddleware(
        Summaries(), context_window=WINDOW, token_counter="estimate", history="prune"
    )
    other = InMemoryStore()
    agent: Any = create_agent(
        worker(), [work], middleware=[compaction], checkpointer=InMemorySaver(), store=other
    )
    agent.invoke({"messages": [request(1, STEPS)]}, THREAD)
    state = agent.get_state(THREAD).values
    assert len(places(state, other)) == 2 * STEPS + 2
    assert len(state["messages"]) < STEPS


# ---- where the originals go


def test_without_a_store_the_first_visit_says_what_to_do() -> None:
    graph = loop(pruning(), worker(), checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match=r"compile\(store=\.\.\.\).*archive=None"):
        graph.invoke({"messages": [request(1, 1)]}, THREAD)
    with pytest.raises(ConfigurationError, match="store"):
        pruning().invoke(state_of(chat(2)))
    with pytest.raises(ConfigurationError, match="thread_id"):
        pruning(archive=InMemoryStore()).invoke(state_of(chat(2)))
    with pytest.raises(ConfigurationError, match="is no store"):
        pruning(archive={})
    # Looking is no visit.
    assert pruning().measure(state_of(chat(2))).tokens > 0
    agent: Any = create_agent(
        worker(),
        [work],
        middleware=[CompactionMiddleware(Summaries(), context_window=WINDOW, history="prune")],
    )
    with pytest.raises(ConfigurationError, match="store"):
        agent.invoke({"messages": [request(1, 1)]})


def test_originals_may_be_dropped_if_that_is_said() -> None:
    graph = loop(pruning(archive=None), worker(), checkpointer=InMemorySaver())
    graph.invoke({"messages": [request(1, STEPS)]}, THREAD)
    record = graph.get_state(THREAD).values["compaction"]
    assert record["pruned"]
    assert "archived" not in record
    assert len(graph.get_state(THREAD).values["messages"]) < STEPS


def test_a_store_of_its_own_comes_before_that_of_the_run() -> None:
    own, of_run = InMemoryStore(), InMemoryStore()
    graph = loop(pruning(archive=own), worker(), checkpointer=InMemorySaver(), store=of_run)
    graph.invoke({"messages": [request(1, STEPS)]}, THREAD)
    assert places(graph.get_state(THREAD).values, own)
    assert of_run.list_namespaces() == []


def test_a_thread_can_ask_for_it_and_without_a_store_is_told() -> None:
    events: list[Any] = []
    compact = pruning(history="full", hook=events.append)
    store = InMemoryStore()
    saver = InMemorySaver()
    with_store = loop(compact, worker(), checkpointer=saver, store=store)
    without = loop(compact, worker(), checkpointer=saver)
    without.invoke({"messages": [request(1, 20)]}, THREAD)
    before = without.get_state(THREAD).values
    assert before["compaction"]["segments"]
    assert len(before["messages"]) == 2 * 20 + 2
    wish = {"compaction_settings": {"history": "prune"}}
    without.invoke({"messages": [request(21, 21)], **wish}, THREAD)
    told = [e["reason"] for e in events if e["type"] == "compaction.failed"]
    assert told
    assert all("compile(store=...)" in reason for reason in told)
    assert len(without.get_state(THREAD).values["messages"]) == 2 * 20 + 2 + 4
    # The next fold takes out what was folded before it, too.
    events.clear()
    with_store.invoke({"messages": [request(22, STEPS)]}, THREAD)
    assert not [e for e in events if e["type"] == "compaction.failed"]
    state = with_store.get_state(THREAD).values
    assert len(places(state, store)) == 2 * STEPS + 2 * 3
    assert len(state["messages"]) < STEPS


# ---- when it fails


def test_a_failed_write_prunes_nothing_and_the_next_fold_makes_up_for_it() -> None:
    store, events = Unreliable(), list[Any]()
    node = folding.node(history="prune", archive=store, hook=events.append)
    state = state_of(chat(12))
    store.down = True
    state = applied(state, node.invoke(state, THREAD))
    assert len(state["messages"]) == 12
    assert state["compaction"]["segments"]
    assert "pruned" not in state["compaction"]
    types = [event["type"] for event in events]
    assert types == ["compaction.started", "compaction.failed", "compaction.completed"]
    assert "ConnectionError: The store is down." in events[1]["reason"]
    assert events[2]["pruned"] == 0
    store.down = False
    assert node.invoke(state, THREAD) == {}  # nothing is due
    state["messages"] += chat(12, start=12)
    events.clear()
    state = applied(state, node.invoke(state, THREAD))
    assert places(state, store) == [f"m{n}" for n in range(24)]
    assert events[-1]["pruned"] == len(originals(store, state["compaction"])) > 15
    assert node.invoke(state, THREAD) == {}


def test_a_visit_that_only_clears_makes_up_for_it_too() -> None:
    store, events = Unreliable(), list[Any]()
    node = folding.node(
        history="prune",
        archive=store,
        hook=events.append,
        trigger=("tokens", 2_000),
        keep=("tokens", 300),
        clear=True,
        clear_keep=1,
    )
    store.down = True
    state = applied(state_of(chat(30)), node.invoke(state_of(chat(30)), THREAD))
    store.down = False
    call = {"name": "sh", "args": {}, "id": "c"}
    state["messages"] += [
        HumanMessage("Go on.", id="h"),
        AIMessage("", tool_calls=[call], id="a"),
        ToolMessage("line\n" * 2_000, tool_call_id="c", id="r"),
        AIMessage("", tool_calls=[call], id="b"),
        ToolMessage("ok", tool_call_id="c", id="s"),  # the newest group is never cleared
        AIMessage("Done.", id="d"),
    ]
    events.clear()
    state = applied(state, node.invoke(state, THREAD))
    assert [event["type"] for event in events] == ["compaction.cleared", "compaction.completed"]
    assert events[-1]["pruned"] == len(originals(store, state["compaction"])) > 0
    assert events[-1]["last_index"] is None


@pytest.mark.parametrize("names", [None, "same"])
def test_messages_that_cannot_be_named_stay(
    names: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [
        m.model_copy(update={"id": names if n == 3 else m.id}) for n, m in enumerate(chat(12))
    ]
    messages[5].id = names or messages[5].id
    store, events = InMemoryStore(), list[Any]()
    node = folding.node(history="prune", archive=store, hook=events.append)
    with caplog.at_level(logging.WARNING):
        update = node.invoke(state_of(messages), THREAD)
    assert update["compaction"]["segments"]
    assert "messages" not in update
    assert "pruned" not in update["compaction"]
    failed = [event for event in events if event["type"] == "compaction.failed"]
    assert len(failed) == 1
    assert "add_messages" in failed[0]["reason"]
    assert store.list_namespaces() == []


def test_an_id_that_stands_for_all_messages_removes_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ids come from clients. To remove this one by its id, LangGraph would empty the channel."""
    messages = chat(12)
    messages[4].id = REMOVE_ALL_MESSAGES
    store, events = InMemoryStore(), list[Any]()
    node = folding.node(history="prune", archive=store, hook=events.append)
    with caplog.at_level(logging.WARNING):
        update = node.invoke(state_of(messages), THREAD)
    assert update["compaction"]["segments"]
    assert "messages" not in update
    failed = [event["reason"] for event in events if event["type"] == "compaction.failed"]
    assert len(failed) == 1
    assert "Give the message another id" in failed[0]
    with pytest.raises(ConfigurationError, match="another id for it"):
        forget(state_of(messages) | update)


# ---- secrets

SECRET = "sk-live-4f9a8b7c"


def hiding(text: str) -> str:
    return text.replace(SECRET, "[key]")


def secretive() -> list[BaseMessage]:
    """A chat with a secret wherever a message can hold one."""
    call = {"name": "login", "args": {"key": SECRET, "n": [SECRET]}, "id": "c"}
    raw = {"tool_calls": [{"function": {"arguments": f'{{"key": "{SECRET}"}}'}}]}
    return [
        HumanMessage("Log in.", id="task"),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": f"The key is {SECRET}.", "signature": "c2ln"},
                {"type": "text", "text": f"With {SECRET}."},
            ],
            id="a",
            tool_calls=[call],
            additional_kwargs=raw,
            response_metadata={"prompt": SECRET, "tokens": 7},
        ),
        ToolMessage(
            f"ok {SECRET}",
            tool_call_id="c",
            id="r",
            artifact={"env": SECRET, "n": 1, "o": object()},
        ),
        *chat(12),
    ]


def test_what_is_archived_is_redacted() -> None:
    store = InMemoryStore()
    messages = secretive()
    node = folding.node(history="prune", archive=store, redact=hiding)
    state = applied(state_of(messages), node.invoke(state_of(messages), THREAD))
    found = {one.id: one for one in originals(store, state["compaction"])}
    assert {"a", "r"} <= found.keys()
    stored = str([item.value for item in store.search(("langgraph_compaction",), limit=100)])
    assert SECRET not in stored
    back = found["a"].message()
    assert isinstance(back, AIMessage)
    assert back.tool_calls[0]["args"] == {"key": "[key]", "n": ["[key]"]}
    assert back.response_metadata == {"prompt": "[key]", "tokens": 7}
    assert back.content[0] == {
        "type": "reasoning",
        "reasoning": "The key is [key].",
        "signature": "c2ln",
    }
    result = found["r"].message()
    assert isinstance(result, ToolMessage)
    assert result.artifact == {"env": "[key]", "n": 1, "o": "[object]"}
    assert str(messages).count(SECRET) > 5  # the transcript is as it was
    # Without a hook they are as they were.
    plain = InMemoryStore()
    node = folding.node(history="prune", archive=plain)
    update = node.invoke(state_of(messages[:2] + chat(12)), THREAD)
    assert originals(plain, update["compaction"])[0].message() == messages[1]


@pytest.mark.parametrize("on_error", ["continue", "raise"])
def test_a_hook_that_fails_on_an_original_prunes_nothing(on_error: str) -> None:
    def broken(text: str) -> str:
        if text == "only in metadata":  # which no summariser sees
            raise ValueError(text)
        return text

    messages = chat(12)
    messages[3].additional_kwargs["raw"] = "only in metadata"
    store, events = InMemoryStore(), list[Any]()
    node = folding.node(
        history="prune", archive=store, redact=broken, hook=events.append, on_error=on_error
    )
    if on_error == "raise":
        with pytest.raises(ConfigurationError, match="ValueError"):
            node.invoke(state_of(messages), THREAD)
        return
    update = node.invoke(state_of(messages), THREAD)
    assert update["compaction"]["segments"]
    assert "messages" not in update
    assert store.list_namespaces() == []
    failed = next(event for event in events if event["type"] == "compaction.failed")
    assert "ValueError" in failed["reason"]
    assert "Nothing was pruned" in failed["reason"]
    assert "only in metadata" not in str(failed)


# ---- what nothing can hold


def nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("redact", [None, hiding])
@pytest.mark.parametrize("odd", ["contains itself", "is very deep"])
def test_an_artifact_that_nothing_can_hold_is_no_obstacle(redact: Any, odd: str) -> None:
    artifact: dict[str, Any] = {
        "rows": [1, 2],
        "odd": nested(20_000),
    }  # see `test_archive_items.deep`
    if odd == "contains itself":
        artifact["odd"] = [artifact]
    result = ToolMessage("ok", tool_call_id="c", id="r", artifact=artifact)
    call = AIMessage("", id="a", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    messages = [HumanMessage("Go.", id="task"), call, result, *chat(12)]
    store, events = InMemoryStore(), list[Any]()
    node = folding.node(history="prune", archive=store, redact=redact, hook=events.append)
    state = applied(state_of(messages), node.invoke(state_of(messages), THREAD))
    assert not [event for event in events if event["type"] == "compaction.failed"]
    assert "r" not in {message.id for message in state["messages"]}
    found = next(one for one in originals(store, state["compaction"]) if one.id == "r").message()
    assert isinstance(found, ToolMessage)
    assert (found.text, found.artifact["rows"]) == ("ok", [1, 2])
    assert "[dict]" in str(found.artifact) or "[list]" in str(found.artifact)


# ---- changes by hand


def pruned_thread(store: BaseStore) -> Any:
    graph = loop(pruning(), worker(), checkpointer=InMemorySaver(), store=store)
    graph.invoke({"messages": [request(1, STEPS)]}, THREAD)
    return graph


def test_pruned_messages_cannot_be_restored_and_the_error_says_what_can_be_done() -> None:
    graph = pruned_thread(InMemoryStore())
    with pytest.raises(ConfigurationError, match="create_recall_tool"):
        restore(graph.get_state(THREAD).values)


def test_forgetting_asks_about_the_archive_and_deletes_it() -> None:
    store = InMemoryStore()
    graph = pruned_thread(store)
    snapshot = graph.get_state(THREAD)
    archive = archive_of(store, snapshot.config, in_node=False)
    other = archive_of(store, {"configurable": {"thread_id": "other"}}, in_node=False)
    kept = perform(other.store, other.steps_of_write([(0, HumanMessage("Mine.", id="x"))], None))
    with pytest.raises(ConfigurationError, match=r"store=None"):
        forget(snapshot.values)
    with pytest.raises(ConfigurationError, match="config="):
        forget(snapshot.values, store=store)
    not_stores: list[Any] = ["./store.db", "unsaid", {}, 0]
    for wrong in not_stores:
        with pytest.raises(ConfigurationError, match="is no store, so that no original was del"):
            forget(snapshot.values, store=wrong, config=snapshot.config)
    elsewhere: Any = {"configurable": {"thread_id": "other"}}
    for place, whose in ((InMemoryStore(), snapshot.config), (store, elsewhere)):
        with pytest.raises(ConfigurationError, match="this store has nothing of what the record"):
            forget(snapshot.values, store=place, config=whose)
    assert "compaction" in forget(snapshot.values, store=None)
    assert perform(archive.store, archive.steps_of_all())
    graph.update_state(THREAD, forget(snapshot.values, store=store, config=snapshot.config))
    assert perform(archive.store, archive.steps_of_all()) == []
    assert len(perform(other.store, other.steps_of_branch(kept))) == 1
    state = graph.get_state(THREAD).values
    assert not {"pruned", "archived", "segments"} & state["compaction"].keys()
    assert model_view(state) == state["messages"]
    # The thread goes on: it is folded and archived anew.
    graph.invoke({"messages": [request(STEPS + 1, 2 * STEPS)]}, THREAD)
    assert len(places(graph.get_state(THREAD).values, store)) > STEPS


@pytest.mark.parametrize("kind", ["sqlite-async", "postgres-async"])
async def test_an_asynchronous_store_is_deleted_from_another_thread(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, tmp_path, lambda: request.getfixturevalue("postgres")) as store:
        node = folding.node(history="prune", archive=store)
        update = await node.ainvoke(state_of(chat(12)), THREAD)
        state = applied(state_of(chat(12)), update)
        archive = archive_of(store, THREAD, in_node=False)
        assert await aperform(archive.store, archive.steps_of_all())
        await asyncio.to_thread(forget, state, store=store, config=THREAD)
        assert await aperform(archive.store, archive.steps_of_all()) == []


async def test_an_asynchronous_store_refuses_its_own_thread_instead_of_hanging(
    tmp_path: Path,
) -> None:
    async with opened("sqlite-async", tmp_path, str) as store:
        events = list[Any]()
        node = folding.node(history="prune", archive=store, hook=events.append)
        with pytest.raises(ConfigurationError, match="Use ainvoke"):
            node.invoke(state_of(chat(12)), THREAD)
        assert events == []
        state = applied(state_of(chat(12)), await node.ainvoke(state_of(chat(12)), THREAD))
        with pytest.raises(ConfigurationError, match=r"asyncio\.to_thread"):
            forget(state, store=store, config=THREAD)
        running = runtime(state, THREAD, store)
        tool = create_recall_tool()
        with pytest.raises(ConfigurationError, match="Use ainvoke"):
            tool.invoke({"first": 1, "runtime": running})
        assert "message 1 " in await tool.ainvoke({"first": 1, "runtime": running})
        # From another thread than its loop's it is asked as any other.
        again = await asyncio.to_thread(node.invoke, state_of(chat(12)), THREAD)
        assert "archived" in again["compaction"]


def test_an_agent_gets_pruned_originals_back() -> None:
    store = InMemoryStore()
    graph = pruned_thread(store)
    state = graph.get_state(THREAD).values
    gone = originals(store, state["compaction"])
    tool = create_recall_tool(archive=store)
    running = runtime(state, THREAD)
    result = next(one for one in gone if one.type == "tool")
    text = tool.invoke({"id": result.id, "runtime": running})
    assert "result-00" in text
    ranged = tool.invoke({"first": result.position, "runtime": running})
    assert f"position={result.position}" in ranged
    task = tool.invoke({"first": 0, "runtime": running})
    assert f"Do steps 1 to {STEPS}" in task
