"""The public surface as a user's type checker sees it; never run, only checked.

`assert_type` is what a checker has to infer: a public function that returns Any would pass every
other use.
"""

from typing import Annotated, Any, assert_type

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from langgraph_compaction import (
    CompactionError,
    CompactionNode,
    CompactionRecord,
    CompactionSettings,
    CompactionState,
    DigestSegment,
    Explanation,
    ExtractiveSummarizer,
    Measurement,
    ModelTier,
    SettingValues,
    compact_conversation,
    create_compact_tool,
    create_recall_tool,
    edit_digest,
    forget,
    load_settings,
    merge_compaction,
    model_view,
    overflow_handler,
    pin,
    presets,
    request_compaction,
    restore,
    with_overflow_recovery,
)
from langgraph_compaction.middleware import CompactionMiddleware


class State(CompactionState):
    todos: list[str]


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord, merge_compaction] = {}


def to_dos(state: State) -> str | None:
    return "\n".join(state["todos"]) or None


def summarise(messages: list[BaseMessage]) -> str:
    return messages[-1].text


compact = CompactionNode(
    ["gpt-5-mini", summarise, ModelTier(ExtractiveSummarizer(), timeout=3)],
    context_window=8_000,
    trigger=[("fraction", 0.8), {"tokens": 6_000, "messages": 20}],
    keep=("tokens", 2_000),
    live_state=to_dos,
    pinned={"type": "tool", "name": "load_skill"},
    settings=CompactionSettings(history="prune"),
    output_messages_key="llm_input_messages",
)


def agent(state: State) -> dict[str, list[BaseMessage]]:
    view = compact.view(state, system=SystemMessage("You are careful."))
    assert_type(view, list[BaseMessage])
    return {"messages": [AIMessage(str(len(view)))]}


builder = StateGraph(State)
builder.add_node("compact", compact)
builder.add_node("agent", agent, error_handler=overflow_handler(compact, retry="agent"))
builder.add_edge(START, "compact")
builder.add_conditional_edges("agent", compact.route("agent"), ["compact", "agent"])
graph = builder.compile()

state: State = {"messages": [], "compaction": {}, "compaction_settings": {}, "todos": []}
assert_type(compact.invoke(state), dict[str, Any])
assert_type(compact.measure(state), Measurement)
assert_type(compact.measure(state).utilisation, float | None)
assert_type(compact.explain(Model(messages=[])), Explanation)
assert_type(model_view(state), list[BaseMessage])
assert_type(pin(HumanMessage("Never.")), HumanMessage)
assert_type(request_compaction(instructions="Keep the SQL."), dict[str, Any])
assert_type(create_recall_tool(), BaseTool)
assert_type(create_compact_tool(), BaseTool)
assert_type(compact_conversation, BaseTool)

record: CompactionRecord = state["compaction"]
segments: list[DigestSegment] = record.get("segments", [])
texts: list[str] = [segment["text"] for segment in segments]
update: dict[str, Any] = edit_digest(state, "The new text.", segment=-1)
update = restore(state, segment=1)
update = forget(state)
settings = CompactionNode("gpt-5-mini", settings=load_settings("a.yaml", {"target": 500}))
rules: SettingValues = {"trigger": ("tokens", 60_000), "context_window": 128_000}
settings = CompactionNode("gpt-5-mini", name="fold", **rules)
settings = CompactionNode("gpt-5-mini", agent_model="gpt-5", **presets.STAGEWISE)
settings.check()
middleware = CompactionMiddleware("gpt-5-mini", context_window=8_000, live_state="todos")
middleware = CompactionMiddleware("gpt-5-mini", name="fold", tools=[], **rules)
assert_type(middleware.view(state), list[BaseMessage])
assert_type(middleware.measure(state), Measurement)
assert_type(middleware.explain(state), Explanation)
model = FakeListChatModel(responses=["It runs."])
recovering: Runnable[Any, Any] = with_overflow_recovery(model, compact)
try:
    compact.invoke(state)
except CompactionError as error:
    assert_type(error, CompactionError)
