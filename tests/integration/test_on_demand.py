"""Compaction on demand: asked for by a person, a node or the agent; once; and off is off."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    MissingChannelError,
    compact_conversation,
    create_compact_tool,
    forget,
    request_compaction,
    restore,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.doubles import ScriptedModel, Summaries, loop
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def messages(count: int = 16) -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    return [*found, *(AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}") for n in range(count))]


def node(model: Any = good_summary, **options: Any) -> CompactionNode:
    return CompactionNode(model, **{"context_window": 50_000, **options})


def asked(compact: CompactionNode, instructions: str | None = None) -> dict[str, Any]:
    state: dict[str, Any] = {"messages": messages(), "compaction": {}}
    return {**state, **request_compaction(instructions, settings_key=compact.settings_key)}


def test_it_folds_far_below_the_trigger_and_acts_once() -> None:
    told: list[dict[str, Any]] = []
    compact = node(hook=told.append)
    state = asked(compact)
    assert compact.route("agent")(state) == "compact"
    before = compact.measure(state).tokens
    state.update(compact.invoke(state))
    assert [event["need"] for event in told] == ["asked", "asked"]
    assert compact.measure(state).tokens < before / 2
    assert len(state["compaction"]["segments"]) == 1
    for _ in range(3):
        assert compact.route("agent")(state) == "agent"
        assert compact.invoke(state) == {}
        state["messages"] = [*state["messages"], AIMessage("Ok.")]
    state.update(request_compaction(), messages=[*state["messages"], *messages()[1:]])
    assert len(compact.invoke(state)["compaction"]["segments"]) == 2


def test_instructions_reach_the_summariser_of_this_fold_alone() -> None:
    summaries = Summaries()
    compact = node(summaries, instructions="Write in verse.")
    state = asked(compact, "Keep the SQL.")
    state.update(compact.invoke(state))
    state["messages"] = [*state["messages"], *messages(500)[1:]]
    state.update(compact.invoke(state))
    first, later = summaries.prompts[0][0].text, summaries.prompts[-1][0].text
    assert "Keep the SQL." in first
    assert "Write in verse." in first
    assert "Keep the SQL." not in later
    assert "Write in verse." in later


def test_a_request_with_nothing_to_fold_is_answered_once() -> None:
    told: list[dict[str, Any]] = []
    compact = node(hook=told.append)
    state = {**asked(compact), "messages": messages(1)}
    assert compact.route("agent")(state) == "compact"
    state.update(compact.invoke(state))
    assert [(event["type"], event["need"]) for event in told] == [("compaction.skipped", "asked")]
    assert compact.invoke(state) == {}
    assert compact.route("agent")(state) == "agent"


@pytest.mark.parametrize("off", [None, 0, ("tokens", -1)])
def test_without_a_trigger_only_requests_fold(off: Any) -> None:
    compact = node(trigger=off)
    state: dict[str, Any] = {"messages": messages(400), "compaction": {}}
    assert compact.invoke(state) == {}
    assert compact.view(state) == state["messages"]
    state.update(request_compaction())
    assert compact.invoke(state)["compaction"]["segments"]


def test_the_off_switch_is_off_everywhere() -> None:
    compact = node(enabled=False, context_window=1_000)
    giant = ToolMessage(TEXT * 50, tool_call_id="c", id="t")
    call: Any = {"name": "look", "args": {}, "id": "c"}
    state: dict[str, Any] = {
        "messages": [*messages(400), AIMessage("", tool_calls=[call], id="x"), giant],
        "compaction": {},
        **request_compaction(),
    }
    assert compact.invoke(state) == {}
    assert compact.view(state) == state["messages"]
    assert compact.route("agent")(state) == "agent"
    assert compact.explain(state).action == "none"
    # Switched on again, the request is still there.
    state["compaction_settings"]["enabled"] = True
    assert compact.invoke(state)["compaction"]["request_id"]


@pytest.mark.parametrize("change", [restore, forget])
def test_a_change_by_hand_does_not_bring_an_old_request_back(change: Any) -> None:
    compact = node()
    state = asked(compact)
    state.update(compact.invoke(state))
    state["compaction"] = change(state)["compaction"]
    assert compact.invoke(state) == {}


def test_by_update_state_over_a_restart(tmp_path: Any) -> None:
    file = str(tmp_path / "t.sqlite")
    summaries = Summaries()

    def graph(saver: Any) -> Any:
        builder = StateGraph(CompactionState)
        builder.add_node("compact", node(summaries))
        builder.add_edge(START, "compact")
        return builder.compile(checkpointer=saver)

    with SqliteSaver.from_conn_string(file) as saver:
        running = graph(saver)
        running.invoke({"messages": messages()}, CONFIG)
        running.update_state(CONFIG, request_compaction("Keep the SQL."))
    for _ in range(3):
        with SqliteSaver.from_conn_string(file) as saver:
            running = graph(saver)
            running.invoke({"messages": [HumanMessage("Go on.")]}, CONFIG)
            assert len(running.get_state(CONFIG).values["compaction"]["segments"]) == 1
    assert len(summaries.prompts) == 1


@pytest.mark.parametrize("wrong", [7, ["x"], {"keep": 1}])
def test_wrong_instructions_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="instructions: "):
        request_compaction(wrong)


# ---- by the agent


def worker() -> ScriptedModel:
    """Works, asks for compaction, and works on."""

    def reply(seen: list[BaseMessage]) -> AIMessage:
        last = seen[-1]
        if isinstance(last, ToolMessage):
            return AIMessage(f"Done. {last.text}")
        call: Any = {"name": "compact_conversation", "args": {"instructions": "SQL"}, "id": "c1"}
        return AIMessage("Tidying up.", tool_calls=[call])

    return ScriptedModel(reply=reply)


def test_the_agent_asks_by_its_tool() -> None:
    summaries, model = Summaries(), worker()
    compact = node(summaries)
    graph = loop(compact, model, tools=[compact_conversation], checkpointer=InMemorySaver())
    graph.invoke({"messages": messages()}, CONFIG)
    values = graph.get_state(CONFIG).values
    assert values["messages"][-1].text.startswith("Done. Compaction is requested")
    assert len(values["compaction"]["segments"]) == 1
    assert len(summaries.prompts) == 1
    assert "SQL" in summaries.prompts[0][0].text
    # The call that asked for it is the newest work: it stays.
    assert [m.type for m in model.calls[-1][-2:]] == ["ai", "tool"]


def test_the_tool_in_create_agent() -> None:
    summaries = Summaries()
    agent = create_agent(
        worker(),
        tools=[compact_conversation],
        middleware=[CompactionMiddleware(summaries, context_window=50_000)],
    )
    state = agent.invoke({"messages": messages()})
    assert len(state["compaction"]["segments"]) == 1
    assert len(summaries.prompts) == 1


def test_the_tool_for_channels_of_other_names() -> None:
    tool = create_compact_tool(messages_key="chat", settings_key="options")
    state = {"chat": [], "options": {}}
    call: Any = {"name": tool.name, "args": {"state": state}, "id": "c9", "type": "tool_call"}
    update = tool.invoke(call).update
    assert set(update) == {"chat", "options"}
    assert update["chat"][0].tool_call_id == "c9"
    assert update["options"]["request"]["instructions"] is None


def test_without_the_channel_the_tool_says_so() -> None:
    # LangGraph would drop the request without a word, and the agent would wait for it.
    call: Any = {"name": "x", "args": {"state": {"messages": []}}, "id": "c", "type": "tool_call"}
    with pytest.raises(MissingChannelError, match="compaction_settings"):
        compact_conversation.invoke(call)


def test_the_models_schema_of_the_tool_has_no_call_id() -> None:
    assert set(compact_conversation.tool_call_schema.model_json_schema()["properties"]) == {  # type: ignore[union-attr]
        "instructions"
    }
