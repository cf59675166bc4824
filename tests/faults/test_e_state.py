"""State, reducers, archives: what graphs do to the channels of a thread.

Messages are removed, repeated, forked and stored again; branches write at once; ids are missing. A
compaction that counts on none of it may at worst show more than it has to, and never raises.
"""

import operator
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Send
from typing_extensions import TypedDict

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    create_recall_tool,
    merge_compaction,
    merge_messages,
    pin,
)
from langgraph_compaction.delta import DeltaCompactionState
from tests.faults.threads import Talk, agent, each_graph, each_way, human, result, system
from tests.faults.turns import turn
from tests.support.doubles import (
    STEPS,
    THREAD,
    WINDOW,
    Summaries,
    loop,
    request,
    steps_done,
    worker,
)
from tests.support.folding import Recorder, node
from tests.support.runtimes import runtime

# ---- E1


@pytest.mark.parametrize("history_mode", ["full", "prune"])
def test_e1_two_branches_may_write_and_remove_the_same(history_mode: str) -> None:
    """langchain#29086: removing a message that is gone raises, as do two writers of the digest.

    Two branches fold at once, prune the same messages, and a person removes one of them, too.
    """
    store = InMemoryStore()
    compact = node(history=history_mode, clear=False)
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("remove", lambda _: {"messages": [RemoveMessage(id="a0")]})
    builder.add_conditional_edges(
        START, lambda s: [Send("compact", s), Send("compact", s), Send("remove", s)]
    )
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    for number in range(3):
        # From the second turn on the removed message is gone already.
        graph.invoke({"messages": turn(number)}, THREAD)
    values = graph.get_state(THREAD).values
    assert values["compaction"]["segments"]
    assert compact.view(values)[-1].id == "g2"
    graph.update_state(THREAD, {"messages": [RemoveMessage(id="a0")]}, as_node="remove")
    assert "a0" not in {message.id for message in values["messages"]}


# ---- E2


@pytest.mark.parametrize("reducer", [add_messages, merge_messages])
@each_graph
def test_e2_a_reducer_that_strips_ids_hides_nothing_that_is_not_covered(
    way: str, between: bool, reducer: Any
) -> None:
    """langgraph#7272: `add_messages(format="langchain-openai")` strips ids and keyword arguments.

    Messages are anchored by position then; what is not covered is shown, and a rule pins.
    """

    class Stripping(TypedDict):
        messages: Annotated[list[AnyMessage], reducer(format="langchain-openai")]
        compaction: Annotated[CompactionRecord, merge_compaction]

    asked = Recorder()
    compact = node(asked, clear=False, pinned={"contains": "This is h1."})
    talk = Talk(compact, way=way, between=between, state=Stripping)
    for number in range(4):
        view = talk.say(*turn(number))
        shown = {message.text for message in view}
        assert all(
            message.text in shown or asked.read.count(message.text) == 1
            for message in talk.state["messages"][:-1]
            if message.text != "Noted."
        )
    assert {message.id for message in talk.state["messages"]} == {None}
    assert len(asked.prompts) >= 3
    assert any(message.text.startswith("This is h1.") for message in talk.views[-1])


# ---- E3


def stored(steps: int, state: Any = CompactionState, **settings: Any) -> int:
    """Bytes in SQLite of a thread of that many steps; every step is in the state or the archive."""
    store = InMemoryStore()
    compact = CompactionNode(
        Summaries(), context_window=WINDOW, token_counter="estimate", clear=False, **settings
    )
    with SqliteSaver.from_conn_string(":memory:") as saver:
        graph = loop(compact, worker(), state=state, checkpointer=saver, store=store)
        values = graph.invoke({"messages": [request(1, steps)]}, THREAD)
        size: int = saver.conn.execute("PRAGMA page_count").fetchone()[0]
    recalled = archived(store)
    done = [*steps_done(values["messages"]), *steps_done(recalled)]
    assert sorted(done) == [*range(1, steps + 1)]
    assert bool(recalled) is (settings.get("history") == "prune")
    return size


def archived(store: BaseStore, thread: str = "t") -> list[BaseMessage]:
    """The originals of a thread in a store, all graphs of it together, by what they say."""
    found = []
    for item in store.search(("langgraph_compaction",), limit=1_000):
        if item.namespace[1] == thread and "message" in item.value:
            kept = item.value["message"]
            found.append(ToolMessage(str(kept), tool_call_id="c", id=item.key))
    return found


def test_e3_checkpoints_do_not_grow_with_the_square_of_the_thread() -> None:
    """deer-flow#3011, deepagents#2876: a compaction that edits the request never shrinks the state.

    `history="prune"` moves folded messages to the archive, and a delta channel stores each once.
    """
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "prune": {"history": "prune"},
        "delta": {"state": DeltaCompactionState},
    }
    sizes = {name: [stored(steps, **values) for steps in (25, 50)] for name, values in ways.items()}
    growth = {name: large / small for name, (small, large) in sizes.items()}
    assert growth["plain"] > 2.8  # the square: about four times as much
    assert growth["prune"] < 2.5
    assert growth["delta"] < 2.5
    assert sizes["plain"][1] > 2 * sizes["prune"][1]
    assert sizes["plain"][1] > 4 * sizes["delta"][1]


# ---- E4


@pytest.mark.parametrize("ids", [True, False])
@each_way
def test_e4_messages_of_one_instant_and_one_text_are_told_apart(way: str, ids: bool) -> None:
    """adk-go PR#1231: the covered span is a time interval, and ties delete messages.

    The span is positions and ids: of messages that are alike in all else exactly those before the
    position are hidden.
    """
    at: Any = {"created_at": "2025-01-01T00:00:00Z"}

    def alike(number: int) -> list[BaseMessage]:
        names = [f"m{number}" if ids else None, f"n{number}" if ids else None]
        text = "The very same text at the very same time. " * 12
        return [
            HumanMessage(text, id=names[0], response_metadata=at),
            AIMessage(text, id=names[1], response_metadata=at),
        ]

    channel = Annotated[list[AnyMessage], merge_messages if ids else operator.add]

    class Alike(TypedDict):
        messages: channel  # type: ignore[valid-type]  # with ids, or without
        compaction: Annotated[CompactionRecord, merge_compaction]

    talk = Talk(node(clear=False, task=None, calibrate=False), way=way, state=Alike)
    for number in range(8):
        view = talk.say(*alike(2 * number), *alike(2 * number + 1), HumanMessage("Go on."))
        last = talk.record.get("last_summarized_index", -1)
        # The view, its digest left out, is what stands behind the position (and the answer later).
        shown = [message for message in view if message.id != "summarization"]
        expected = talk.state["messages"][last + 1 : -1]
        assert [message.text for message in shown] == [message.text for message in expected]
    assert talk.kinds.count("completed") >= 3


# ---- E5


@pytest.mark.parametrize("mode", ["fold", "clear", "clip"])
@each_graph
def test_e5_what_is_given_is_never_changed(way: str, between: bool, mode: str) -> None:
    """agent-framework#7744: marks are set in place, so that state and checkpoint differ.

    Copies are returned: the given messages, the returned state and the checkpoint stay the same.
    """
    settings: dict[str, dict[str, Any]] = {
        "fold": {"clear": False},
        "clear": {"clear_keep": 1, "clear_min_chars": 100},
        "clip": {"context_window": 3_000, "clear": False},
    }
    given = [
        human("h1"), agent("a1", "c1"), result("c1", 300), agent("a2", "c2"),
        result("c2", 6_000 if mode == "clip" else 100), agent("a3"), human("h2"),
    ]  # fmt: skip
    before = deepcopy(given)
    compact = node(**settings[mode])
    talk = Talk(compact, way=way, between=between)
    talk.say(*given)
    view = compact.view(talk.state)
    assert given == before
    assert [m.model_dump() for m in given] == [m.model_dump() for m in before]
    assert talk.state["messages"][: len(before)] == before
    assert view != talk.state["messages"]
    # Whoever changes a message of the view (as a reducer or a client may) reaches no state.
    values: Any = {"messages": given, "compaction": talk.record}
    compact.view(values)
    compact.measure(values)
    compact.explain(values)
    compact.invoke(values)
    assert [m.model_dump() for m in given] == [m.model_dump() for m in before]


def test_e5_a_pin_is_a_copy() -> None:
    """agent-framework#7744: the mark of a pin is on the copy alone."""
    message = human("h1")
    before = message.model_dump()
    marked = pin(message)
    assert marked is not message
    assert message.model_dump() == before
    assert marked.model_dump() != before


# ---- E6

THREAD_IDS = ("../x", "a.b", "a/b", "a\\b", "a b", "a_b", "..", ".", "~", "%2e", "a\x00b", "ü" * 90,
              "x" * 500, "x" * 499 + "y", "langgraph_compaction", "A.b", "名")  # fmt: skip


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_e6_any_thread_id_has_an_archive_of_its_own(kind: str, tmp_path: Path) -> None:
    """deepagents PR#5470: an archive named by the thread id, which may be "../x".

    Every id is safe, and no two share anything; each recall finds its own originals alone.
    """
    recall = create_recall_tool(search=False)
    with SqliteStore.from_conn_string(str(tmp_path / "store")) as on_disk:
        on_disk.setup()
        store: BaseStore = on_disk if kind == "sqlite" else InMemoryStore()
        for number, thread in enumerate(THREAD_IDS):
            talk = Talk(node(history="prune"), thread=thread, store=store)
            talk.say(human("h"), agent("a", words=200), human(f"secret-{number}", 80), agent("b"))
            assert talk.record["pruned"]
            answer = asked_for(recall, "a", talk, store)
            assert "This is a." in answer
            assert "secret" not in answer
        names = {item.namespace for item in store.search(("langgraph_compaction",), limit=1_000)}
        assert len(names) == len(THREAD_IDS)
        assert all("." not in label and "/" not in label for name in names for label in name)


def asked_for(recall: Any, name: str, talk: Talk, store: BaseStore) -> str:
    """What the recall tool answers in a thread."""
    call = {"id": name, "runtime": runtime(talk.state, talk.config, store)}
    return str(recall.invoke({"name": "recall", "args": call, "id": "c", "type": "tool_call"}).text)


def test_e6_subgraphs_of_one_thread_do_not_overwrite_each_other() -> None:
    """deepagents PR#5470: subagents share a file that is named by the thread.

    Two subgraphs prune in the same run and thread; all originals of both are there.
    """
    store = InMemoryStore()

    def inner(first: int) -> Any:
        compact = CompactionNode(
            Summaries(), context_window=WINDOW, token_counter="estimate", history="prune"
        )
        graph = loop(compact, worker(), checkpointer=True)
        asked = {"messages": [request(first, first + 29)]}
        return lambda _: {"left": steps_done(graph.invoke(asked, STEPS)["messages"])}

    class Outer(TypedDict):
        left: Annotated[list[int], operator.add]

    builder = StateGraph(Outer)
    for name, first in (("one", 1), ("other", 101)):
        builder.add_node(name, inner(first))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    values = graph.invoke({"left": []}, THREAD)
    items = [*values["left"], *steps_done(archived(store))]
    assert sorted(items) == [*range(1, 31), *range(101, 131)]
    spaces = {item.namespace for item in store.search(("langgraph_compaction",), limit=1_000)}
    assert len(spaces) == 2


# ---- E7


@pytest.mark.parametrize("keep", [("messages", 0), ("messages", 1), ("tokens", 50)])
@pytest.mark.parametrize("role", ["human", "system"])
def test_e7_the_view_of_a_thread_with_messages_is_never_empty(role: str, keep: Any) -> None:
    """langgraph#8925: an empty list makes the agent fall back to the full history.

    Whatever is folded, pruned or removed: where there are messages there is a view, with more in
    it than system text if the thread has more.
    """
    tails: list[list[BaseMessage]] = [
        [], [system("s")], [human("h")], [agent("a", words=300)], [human("h"), agent("a", "c")],
        [agent("a", "c", words=300), result("c", 300)], [*turn(1)], [*turn(1), *turn(2)],
    ]  # fmt: skip
    for mode in ("full", "prune"):
        for tail in tails:
            compact = node(keep=keep, task=None, digest_role=role, history=mode, clear=False)
            talk = Talk(compact, store=InMemoryStore())
            talk.say(system("s0"), *tail, agent("end", words=200))
            for _ in range(2):
                view = compact.view(talk.state)
                assert view
                assert not all(isinstance(message, SystemMessage) for message in view)
                left = talk.state["messages"][-1].id
                rest = [m for m in talk.state["messages"] if m.id != left]
                removed = [RemoveMessage(id=m.id or "") for m in rest]
                talk.graph.update_state(talk.config, {"messages": removed}, as_node="agent")
