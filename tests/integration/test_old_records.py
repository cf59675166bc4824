"""Threads whose record another version wrote, or a program that knows nothing of it.

In whole graphs, with checkpoints as LangGraph's strict mode reads them: what can be read goes on as
ever, and what cannot is told before anything is written, by each door of the package. And it can be
repaired. What a record may hold is tested in `tests.property.test_record_mutations`.
"""

import json
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionRecord,
    CompactionState,
    RecordError,
    RecordVersionError,
    create_recall_tool,
    edit_digest,
    forget,
    merge_compaction,
    model_view,
    request_compaction,
    restore,
)
from langgraph_compaction.delta import DeltaCompactionState
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.record import RECORD_VERSION
from tests.support.doubles import ScriptedModel
from tests.support.folding import Recorder
from tests.support.records import CONFIG, KINDS, Real, real, work

NAMED = [kind for kind in KINDS if "unnamed" not in kind]
"""Kinds whose messages have ids, as `add_messages` gives them."""
MORE = work(3, start=30)


class NoReducer(TypedDict):
    """The channels as a program declares them that knows nothing of compaction."""

    messages: Annotated[list[AnyMessage], add_messages]
    compaction: dict[str, Any]


class Pydantic(BaseModel):
    """A state that pydantic validates."""

    messages: Annotated[list[AnyMessage], add_messages] = []
    compaction: Annotated[CompactionRecord, merge_compaction] = {}


def saver() -> InMemorySaver:
    """A checkpointer that reads what LangGraph's strict mode lets pass."""
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def graph_of(
    thread: Real, model: Any, where: InMemorySaver, state: Any = CompactionState
) -> tuple[CompactionNode, Any]:
    """A node, and a graph in which it precedes an agent with a recall tool."""
    compact = thread.node(model)

    def agent(state: Any) -> Any:
        view = compact.view(state)
        if isinstance(view[-1], AIMessage):
            return {"messages": [AIMessage("Nothing to do.")]}
        call = {"name": "recall", "args": {"id": "m2"}, "id": "r1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    builder: Any = StateGraph(state)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return compact, builder.compile(checkpointer=where, store=thread.store)


def written(thread: Real, record: Any, where: InMemorySaver) -> None:
    """Write a thread as a program without the reducer does: nobody looks at the record."""
    builder: Any = StateGraph(NoReducer)
    builder.add_node("other", lambda state: {})
    builder.add_edge(START, "other")
    other = builder.compile(checkpointer=where)
    other.update_state(CONFIG, {"messages": thread.state["messages"], "compaction": record})


def shown(values: Any) -> list[Any]:
    return [(message.id, message.content) for message in model_view(values)]


# ---- what can be read


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_the_same_after_json_and_after_a_checkpoint(kind: str) -> None:
    thread = real(kind)
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    for back in (
        json.loads(json.dumps(thread.record, allow_nan=False)),
        strict.loads_typed(strict.dumps_typed(thread.record)),
    ):
        assert back == thread.record
        assert shown({**thread.state, "compaction": back}) == shown(thread.state)
        update = thread.node(Recorder()).invoke({**thread.state, "compaction": back}, CONFIG)
        assert update == thread.node(Recorder()).invoke(thread.state, CONFIG)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize(
    ("version", "state"),
    [
        (RECORD_VERSION, CompactionState),
        (RECORD_VERSION, Pydantic),
        (RECORD_VERSION, DeltaCompactionState),
        (0, CompactionState),
        (None, CompactionState),
    ],
)
def test_a_stored_thread_goes_on_and_fields_of_others_stay(
    kind: str, version: int | None, state: Any
) -> None:
    thread, where, model = real(kind), saver(), Recorder()
    record = {**deepcopy(thread.record), "note": {"by": "hand"}, "version": version}
    if version is None:
        del record["version"]
    record["segments"][0]["note"] = ["later", 1.5]
    record["segments"][-1]["text"] = "# Messages (edited)\nNobody condensed this."
    written(thread, record, where)
    _, graph = graph_of(thread, model, where, state)
    assert shown(graph.get_state(CONFIG).values) == shown({**thread.state, "compaction": record})
    graph.invoke({"messages": MORE}, CONFIG)
    after = graph.get_state(CONFIG).values["compaction"]
    assert after["last_summarized_index"] > record["last_summarized_index"]
    assert after["version"] == RECORD_VERSION
    assert after["note"] == record["note"]
    if len(after["segments"]) > len(record["segments"]):
        assert after["segments"][: len(record["segments"])] == record["segments"]
    # No message that was covered is read again, but for those that had been kept.
    covered = [m for m in thread.thread if m.id not in record["kept_ids"]]
    covered = covered[: record["last_summarized_index"] + 1 - len(record["kept_ids"])]
    span = model.read.partition("<transcript>")[2]
    assert [m.id for m in covered if str(m.content).split(" ")[0] in span] == []


@pytest.mark.parametrize("kind", NAMED)
def test_the_record_of_another_thread_hides_nothing_of_this_one(kind: str) -> None:
    theirs, where, model = real(kind), saver(), Recorder()
    own = [m.model_copy(update={"id": f"own-{m.id}"}) for m in work(6)]
    thread = Real({"messages": own, "compaction": theirs.record}, own, values=theirs.values)
    written(thread, theirs.record, where)
    _, graph = graph_of(thread, model, where)
    values = graph.get_state(CONFIG).values
    assert [message.id for message in model_view(values)] == [message.id for message in own]
    graph.invoke({"messages": MORE}, CONFIG)
    values = graph.get_state(CONFIG).values
    view = model_view(values)
    ids = {message.id for message in view}
    for message in own:
        assert message.id in ids or str(message.content).split(" ")[0] in model.read
    # Nor does the digest of the other thread stay.
    texts = [one["text"] for one in theirs.record["segments"]]
    assert not any(text in str(message.content) for text in texts for message in view)
    assert values["compaction"]["last_summarized_index"] > theirs.record["last_summarized_index"]


@pytest.mark.slow
def test_a_digest_of_ten_megabytes_is_shown_and_too_large_for_a_window() -> None:
    thread = real("folded")
    thread.record["segments"][0]["text"] = "Part 1 is 7 mm, see /srv/1.yaml.\n" * 300_000
    began = time.process_time()
    assert len(str(model_view(thread.state)[2].content)) > 9_000_000
    compact = thread.node(Recorder())
    assert (compact.measure(thread.state).utilisation or 0) > 1
    with pytest.raises(BudgetError, match="digest"):
        compact.invoke(thread.state, CONFIG)
    edited = edit_digest(thread.state, "Part 1 is 7 mm.", segment=0)
    thread.take(edited)
    thread.say(*MORE)
    assert compact.invoke(thread.state, CONFIG)["compaction"]["segments"][0]["model"] == "edited"
    assert time.process_time() - began < 60


# ---- what cannot be read


def newer(record: Any) -> Any:
    return {**record, "version": RECORD_VERSION + 1}


def broken(record: Any) -> Any:
    return {**record, "segments": [*record["segments"], {"text": "by hand"}]}


def contradictory(record: Any) -> Any:
    return {**record, "last_summarized_index": record["last_summarized_index"] + 5}


UNREADABLE: list[Callable[[Any], Any]] = [newer, broken, contradictory]


@pytest.mark.parametrize("change", UNREADABLE)
@pytest.mark.parametrize("state", [CompactionState, Pydantic, DeltaCompactionState])
def test_the_reducer_refuses_what_cannot_be_read_and_writes_nothing(
    change: Callable[[Any], Any], state: Any
) -> None:
    thread, where = real("folded"), saver()
    written(thread, thread.record, where)
    _, graph = graph_of(thread, Recorder(), where, state)
    before = list(graph.get_state_history(CONFIG))
    with pytest.raises(RecordError):
        graph.update_state(CONFIG, {"compaction": {**change(thread.record), "revision": 99}})
    assert list(graph.get_state_history(CONFIG)) == before


@pytest.mark.parametrize("change", UNREADABLE)
@pytest.mark.parametrize("kind", ["folded", "pruned"])
async def test_every_door_says_what_cannot_be_read_and_nothing_is_written(
    kind: str, change: Callable[[Any], Any]
) -> None:
    thread, where, model = real(kind), saver(), Recorder()
    record = change(thread.record)
    written(thread, record, where)
    compact, graph = graph_of(thread, model, where)
    values = graph.get_state(CONFIG).values
    store = thread.store
    asked = {**values, **request_compaction("keep the sizes")}
    doors: dict[str, Callable[[], Any]] = {
        "view": lambda: compact.view(values),
        "measure": lambda: compact.measure(values),
        "explain": lambda: compact.explain(values),
        "route": lambda: compact.route("agent")(values),
        "a request": lambda: compact.invoke(asked, CONFIG),
        "edit_digest": lambda: graph.update_state(CONFIG, edit_digest(values, "x")),
        "restore": lambda: graph.update_state(CONFIG, restore(values)),
        "forget": lambda: graph.update_state(CONFIG, forget(values, store=store, config=CONFIG)),
        "invoke": lambda: graph.invoke({"messages": MORE}, CONFIG),
        "stream": lambda: list(graph.stream({"messages": MORE}, CONFIG)),
        "a tool": lambda: with_tool(where, store).invoke({"messages": MORE}, CONFIG),
        "a middleware": lambda: with_middleware(where, store).invoke({"messages": MORE}, CONFIG),
    }
    said = set()
    items = [one.key for one in store.search(("langgraph_compaction",), limit=999)]
    for name, call in doors.items():
        with pytest.raises(RecordError) as caught:
            call()
        said.add(str(caught.value))
        assert isinstance(caught.value, RecordVersionError) == (change is newer), name
    with pytest.raises(RecordError):
        await graph.ainvoke({"messages": MORE}, CONFIG)
    assert len(said) == 1
    # LangGraph has stored the messages that came in; what was there is as it was.
    after = graph.get_state(CONFIG).values
    assert after["compaction"] == record
    assert after["messages"][: len(values["messages"])] == values["messages"]
    assert [one.key for one in store.search(("langgraph_compaction",), limit=999)] == items
    assert model.prompts == []


def with_tool(where: InMemorySaver, store: Any) -> Any:
    """An agent without compaction whose recall tool reads the record."""
    call = {"name": "recall", "args": {"id": "m2"}, "id": "r1"}
    builder: Any = StateGraph(CompactionState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage("", tool_calls=[call])]})
    builder.add_node("tools", ToolNode([create_recall_tool()]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    return builder.compile(checkpointer=where, store=store)


def with_middleware(where: InMemorySaver, store: Any) -> Any:
    """An agent of LangChain's with the middleware."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        return AIMessage("Nothing to do.")

    compaction = CompactionMiddleware(Recorder(), context_window=60_000, token_counter="estimate")
    return create_agent(
        ScriptedModel(reply=reply), [], middleware=[compaction], checkpointer=where, store=store
    )


@pytest.mark.parametrize("change", [broken, contradictory])
@pytest.mark.parametrize("kind", ["folded", "pruned"])
def test_what_cannot_be_read_is_repaired_by_a_record_of_a_greater_epoch(
    kind: str, change: Callable[[Any], Any]
) -> None:
    thread, where, model = real(kind), saver(), Recorder()
    written(thread, change(thread.record), where)
    _, graph = graph_of(thread, model, where)
    graph.update_state(CONFIG, {"compaction": {**thread.record, "epoch": 1}})
    assert shown(graph.get_state(CONFIG).values) == shown(thread.state)
    graph.invoke({"messages": MORE}, CONFIG)
    again = graph.get_state(CONFIG).values["compaction"]
    assert again["segments"][: len(thread.record["segments"])] == thread.record["segments"]
    # Or from nothing: all that is there shows, and is folded anew.
    graph.update_state(CONFIG, {"compaction": {"epoch": 2}})
    values = graph.get_state(CONFIG).values
    assert [m.id for m in model_view(values)] == [m.id for m in values["messages"]]
    graph.invoke({"messages": work(3, start=40)}, CONFIG)
    (segment,) = graph.get_state(CONFIG).values["compaction"]["segments"]
    assert segment["first_index"] == 0
