"""Settings that live in a thread: changed while it runs, kept by its checkpoints, never fatal."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState
from tests.support.replay import good_summary

CONFIG: Any = {"configurable": {"thread_id": "t"}}
OTHER: Any = {"configurable": {"thread_id": "other"}}


def graph() -> Any:
    compact = CompactionNode(good_summary, context_window=50_000, token_counter="estimate")
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", lambda state: {"messages": [AIMessage("Noted. " * 30)]})
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return builder.compile(checkpointer=InMemorySaver())


def talk(running: Any, config: Any, turns: int = 12) -> dict[str, Any]:
    for number in range(turns):
        running.invoke({"messages": [HumanMessage(f"Note {number}. " + "It rains. " * 30)]}, config)
    values: dict[str, Any] = running.get_state(config).values
    return values


def test_a_live_thread_is_changed_and_stays_changed() -> None:
    running = graph()
    assert talk(running, CONFIG)["compaction"] == {}
    change = {"trigger": ["tokens", 1_000], "keep": ["tokens", 200], "min_fold_tokens": 100}
    running.update_state(CONFIG, {"compaction_settings": change})
    assert talk(running, CONFIG, 1)["compaction"]["segments"]
    folded = running.get_state(CONFIG).values["compaction"]["last_summarized_index"]
    later = talk(running, CONFIG)["compaction"]["last_summarized_index"]
    assert later > folded, "the change did not last"
    assert talk(running, OTHER)["compaction"] == {}, "another thread was changed, too"


def test_one_value_is_changed_alone_and_off_is_off() -> None:
    running = graph()
    change = {"trigger": ["tokens", 1_000], "keep": ["tokens", 200], "min_fold_tokens": 100}
    running.update_state(CONFIG, {"compaction_settings": change})
    running.update_state(CONFIG, {"compaction_settings": {"trigger": None}})
    values = talk(running, CONFIG)
    assert values["compaction_settings"]["keep"] == ["tokens", 200]
    assert values["compaction"] == {}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"triger": ["tokens", 1_000]}, "'trigger'"),
        ({"trigger": ["tokens", "many"]}, "'many'"),
        ({"keep": ["tokens", 90_000]}, "keep"),
        ({"task": "newest"}, "'newest'"),
    ],
)
def test_a_wrong_value_ends_no_run_and_is_reported(wrong: dict[str, Any], named: str) -> None:
    running = graph()
    good = {"trigger": ["tokens", 1_000], "keep": ["tokens", 200], "min_fold_tokens": 100}
    running.update_state(CONFIG, {"compaction_settings": {**good, **wrong}})
    events: list[Any] = []
    for number in range(12):
        said = {"messages": [HumanMessage(f"Note {number}. " + "It rains. " * 30)]}
        events += running.stream(said, CONFIG, stream_mode="custom")
    expected = "trigger" not in wrong  # without its own trigger the thread has the node's
    assert bool(running.get_state(CONFIG).values["compaction"]) is expected
    reasons = [event["reason"] for event in events if event["type"] == "compaction.failed"]
    if expected:
        assert any("compaction_settings of the thread" in r and named in r for r in reasons)


def test_a_channel_that_holds_no_dict_is_left_out() -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    state = {"messages": [HumanMessage("hi")], "compaction": {}, "compaction_settings": "off"}
    assert node.invoke(state) == {}
    assert node.measure(state).trigger == 40_000
