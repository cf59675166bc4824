"""Settings at every level: code < file < thread < run; and a wrong value never ends a run.

The thread's live in its checkpoint: they are changed while it runs, and last.
"""

import json
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    load_settings,
    model_view,
)
from langgraph_compaction.state import UNSET
from tests.support.folding import chat
from tests.support.replay import good_summary

CONFIG: Any = {"configurable": {"thread_id": "t"}}
OTHER: Any = {"configurable": {"thread_id": "other"}}
EARLY: dict[str, Any] = {
    "trigger": ["tokens", 1_000],
    "keep": ["tokens", 200],
    "min_fold_tokens": 100,
}


def graph(context: Any = None, **options: Any) -> Any:
    compact = CompactionNode(
        good_summary, context_window=50_000, token_counter="estimate", **options
    )
    builder = StateGraph(CompactionState, context_schema=context)
    builder.add_node("compact", compact)
    builder.add_node("agent", lambda state: {"messages": [AIMessage("Noted. " * 30)]})
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return builder.compile(checkpointer=InMemorySaver())


def note(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"Note {number}. " + "It rains. " * 30)]}


def talk(running: Any, config: Any, turns: int = 12, **options: Any) -> dict[str, Any]:
    for number in range(turns):
        running.invoke(note(number), config, **options)
    values: dict[str, Any] = running.get_state(config).values
    return values


def events(running: Any, config: Any, turns: int = 12, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(turns):
        found += running.stream(note(number), config, stream_mode="custom", **options)
    return found


# ---- the thread


def test_a_live_thread_is_changed_and_stays_changed() -> None:
    running = graph()
    assert talk(running, CONFIG)["compaction"] == {}
    running.update_state(CONFIG, {"compaction_settings": EARLY})
    assert talk(running, CONFIG, 1)["compaction"]["segments"]
    folded = running.get_state(CONFIG).values["compaction"]["last_summarized_index"]
    later = talk(running, CONFIG)["compaction"]["last_summarized_index"]
    assert later > folded, "the change did not last"
    assert talk(running, OTHER)["compaction"] == {}, "another thread was changed, too"


@pytest.mark.parametrize("off", [{"trigger": None}, {"trigger": 0}, {"enabled": False}])
def test_one_value_is_changed_alone_and_off_is_off(off: dict[str, Any]) -> None:
    running = graph()
    running.update_state(CONFIG, {"compaction_settings": EARLY})
    running.update_state(CONFIG, {"compaction_settings": off})
    values = talk(running, CONFIG)
    assert values["compaction_settings"]["keep"] == ["tokens", 200]
    assert values["compaction"] == {}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"triger": ["tokens", 1_000]}, "'trigger'"),
    ({"trigger": ["tokens", "many"]}, "'many'"),
    ({"keep": ["tokens", 90_000]}, "keep"),
    ({"task": "newest"}, "'newest'"),
    ({"summary_timeout": -1}, "summary_timeout"),
]


@pytest.mark.parametrize(("wrong", "named"), WRONG)
def test_a_wrong_value_ends_no_run_and_is_reported(wrong: dict[str, Any], named: str) -> None:
    running = graph()
    running.update_state(CONFIG, {"compaction_settings": {**EARLY, **wrong}})
    told = events(running, CONFIG)
    expected = "trigger" not in wrong  # without its own trigger the thread has the node's
    assert bool(running.get_state(CONFIG).values["compaction"]) is expected
    problems = [e for e in told if e["reason"].startswith("compaction_settings of the thread")]
    assert len(problems) == 1, "the first of twelve visits says so"
    assert all(named in e["reason"] and e["type"] == "compaction.failed" for e in problems)


@pytest.mark.parametrize("junk", ["off", 7, [1], [["trigger", None]]])
def test_a_channel_that_holds_no_dict_is_left_out_and_reported(junk: Any) -> None:
    told: list[dict[str, Any]] = []
    node = CompactionNode(good_summary, context_window=50_000, hook=told.append)
    state = {"messages": [HumanMessage("hi")], "compaction": {}, "compaction_settings": junk}
    assert node.invoke(state) == {}
    assert node.measure(state).trigger == 40_000
    assert [event["type"] for event in told] == ["compaction.failed"]
    assert repr(junk) in told[0]["reason"]


@pytest.mark.parametrize(
    "odd",
    [
        {1: 2},
        {None: {}},
        {"request": 5},
        {"request": {"id": 7}},
        {"a\ud800": 1},
        {"keep": object()},
    ],
)
def test_nothing_in_the_channel_ends_a_run(odd: Any) -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    state = {"messages": [HumanMessage("hi")], "compaction": {}, "compaction_settings": odd}
    assert node.invoke(state) == {}
    assert node.explain(state).action == "none"


# ---- the run


@dataclass
class Context:
    compaction_settings: dict[str, Any] = field(default_factory=dict)
    user: str = "u"


class Model(BaseModel):
    compaction_settings: dict[str, Any] = {}


class Plain:
    """A context that knows nothing of compaction."""


@pytest.mark.parametrize("shape", [dict, Context, Model])
def test_the_context_of_a_run_counts_for_that_run(shape: Any) -> None:
    running = graph(shape)
    context = shape(compaction_settings=EARLY)
    assert talk(running, CONFIG, context=context)["compaction"]["segments"]
    assert talk(running, OTHER)["compaction"] == {}


def test_a_context_without_settings_changes_nothing() -> None:
    assert talk(graph(Plain), CONFIG, context=Plain())["compaction"] == {}


def test_the_config_of_a_run_counts_for_that_run() -> None:
    running = graph()
    config = {"configurable": {**CONFIG["configurable"], "compaction_settings": EARLY}}
    assert talk(running, config)["compaction"]["segments"]
    assert talk(running, OTHER)["compaction"] == {}


def test_view_route_measure_and_explain_know_the_run() -> None:
    node = CompactionNode(good_summary, context_window=50_000, token_counter="estimate")
    seen: dict[str, Any] = {}

    def agent(state: Any) -> dict[str, Any]:
        seen["measure"] = node.measure(state).trigger
        seen["route"] = node.route("agent")(state)
        seen["explain"] = node.explain(state).action
        return {"messages": [AIMessage("Yes.")]}

    builder = StateGraph(CompactionState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    said = {"messages": [HumanMessage("It rains. " * 60) for _ in range(12)]}
    config: Any = {"configurable": {"compaction_settings": EARLY}}
    builder.compile().invoke(said, config)
    assert seen == {"measure": 1_000, "route": "compact", "explain": "fold"}


def test_a_wrong_value_of_a_run_is_named_as_such() -> None:
    config: Any = {"configurable": {"compaction_settings": {**EARLY, "keep": "much"}}}
    told: list[dict[str, Any]] = []
    node = CompactionNode(good_summary, context_window=50_000, hook=told.append)
    node.invoke({"messages": [HumanMessage("hi")], "compaction": {}}, config)
    assert told[0]["reason"].startswith("compaction_settings of the run's config: keep: 'much'")


# ---- who wins


def trigger_of(node: CompactionNode, thread: Any = None, run: Any = None) -> Any:
    state = {"messages": [], "compaction": {}, "compaction_settings": thread or {}}
    config: Any = {"configurable": {"compaction_settings": run}} if run else None
    visit = node._visits.at(state, config)
    return visit.policy.soft


def test_each_level_wins_over_the_one_below(tmp_path: Path) -> None:
    file = tmp_path / "compaction.json"
    file.write_text(json.dumps({"trigger": ["tokens", 2_000]}), "utf-8")
    code = CompactionNode(good_summary, context_window=50_000, trigger=("tokens", 1_000))
    assert trigger_of(code) == 1_000
    for given in (load_settings(file), file, str(file)):
        node = CompactionNode(
            good_summary, context_window=50_000, trigger=("tokens", 1_000), settings=given
        )
        assert trigger_of(node) == 2_000
        assert trigger_of(node, {"trigger": ["tokens", 3_000]}) == 3_000
        run = {"trigger": ["tokens", 4_000]}
        assert trigger_of(node, {"trigger": ["tokens", 3_000]}, run) == 4_000
        assert trigger_of(node, None, run) == 4_000


def test_a_section_under_the_nodes_name_is_for_that_node_alone() -> None:
    settings = {
        "trigger": ["tokens", 3_000],
        "small": {"trigger": ["tokens", 500], "keep": ["tokens", 100]},
    }
    small = CompactionNode(good_summary, context_window=50_000, name="small")
    large = CompactionNode(good_summary, context_window=50_000, name="large")
    for node, expected in ((small, 500), (large, 3_000)):
        assert trigger_of(node, settings) == expected
        assert trigger_of(node, None, settings) == expected
        state = {"messages": [], "compaction": {}, "compaction_settings": settings}
        assert node.explain(state).problems == ()


@pytest.mark.parametrize("other", ["writer", "agent", "planner", "digest", "pin", "keeper"])
def test_another_nodes_section_is_no_slip_of_the_pen(other: str) -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    settings = {other: {"trigger": ["tokens", 500]}}
    state = {"messages": [], "compaction": {}, "compaction_settings": settings}
    assert node.explain(state).problems == ()


def test_a_wrong_section_leaves_what_is_right_beside_it() -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    settings = {"trigger": ["tokens", 3_000], "compact": {"trigger": "x"}}
    assert trigger_of(node, settings) == 3_000
    state = {"messages": [], "compaction": {}, "compaction_settings": settings}
    assert "for 'compact'" in node.explain(state).problems[0]


def test_a_file_may_have_sections(tmp_path: Path) -> None:
    file = tmp_path / "compaction.json"
    file.write_text(json.dumps({"trigger": ["tokens", 3_000], "small": {"trigger": None}}), "utf-8")
    for name, expected in (("small", None), ("large", 3_000)):
        node = CompactionNode(good_summary, context_window=50_000, name=name, settings=file)
        assert trigger_of(node) == expected


@pytest.mark.parametrize("name", ["", " ", "request", "trigger"])
def test_a_name_that_cannot_stand_among_settings_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name: "):
        CompactionNode(good_summary, context_window=50_000, name=name)


@pytest.mark.parametrize(
    ("at_first", "later", "shown"),
    [
        ({}, {"digest_header": "[Header]"}, "[Header]"),
        ({}, {"digest_footer": "[Footer]"}, "[Footer]"),
        ({}, {"digest_role": "system"}, "SystemMessage("),
        ({}, {"max_result_tokens": 100}, "left out. Call the tool"),
        ({"max_result_tokens": 100}, {"recall_tool": "look_up"}, "look_up("),
    ],
    ids=["header", "footer", "role", "clips", "recall"],
)
def test_how_a_digest_is_shown_changes_with_the_next_fold(
    at_first: dict[str, Any], later: dict[str, Any], shown: str
) -> None:
    compact = CompactionNode(
        good_summary, token_counter="estimate", trigger=("tokens", 1_000), keep=("messages", 2)
    )
    call: Any = {"name": "read", "args": {}, "id": "c"}
    read = [
        AIMessage("", id="a", tool_calls=[call]),
        ToolMessage("Line. " * 300, tool_call_id="c", id="t"),
    ]
    state: Any = {"messages": [*chat(12), *read], "compaction_settings": at_first}
    state |= compact.invoke({**state, "compaction": {}})
    before = compact.view(state)
    assert "segments" in state["compaction"]
    state["compaction_settings"] = {**at_first, **later}
    assert compact.view(state) == before == model_view(state)
    again = [one.model_copy(update={"id": f"{one.id}2"}) for one in read]
    state["messages"] += [*chat(12, start=12), *again]
    state |= compact.invoke(state)
    after = compact.view(state)
    assert after == model_view(state)
    assert shown in str(after)
    assert shown not in str(before)


def test_a_value_of_a_thread_can_be_taken_back() -> None:
    running = graph()
    running.update_state(CONFIG, {"compaction_settings": {**EARLY, "triger": 1}})
    assert any("'triger'" in event["reason"] for event in events(running, CONFIG, 1))
    running.update_state(CONFIG, {"compaction_settings": {"triger": UNSET, "trigger": UNSET}})
    assert events(running, CONFIG, 12) == []
    assert running.get_state(CONFIG).values["compaction_settings"]["keep"] == ["tokens", 200]


@pytest.mark.parametrize("junk", ["off", 7, ["trigger"]])
def test_no_dict_as_an_update_ends_no_run(junk: Any) -> None:
    running = graph()
    told = list(
        running.stream({**note(0), "compaction_settings": junk}, CONFIG, stream_mode="custom")
    )
    assert [event["type"] for event in told] == ["compaction.failed"]


class Spiteful:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no words")


NESTED: list[Any] = []
for _ in range(2_000):
    NESTED = [NESTED]
HOSTILE: list[Any] = [NESTED, ["tokens", 10**400], 10**5_000, Spiteful(), float("nan"), print]


@pytest.mark.parametrize("key", ["trigger", "keep", "context_window", "task", "pinned", "prompt"])
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_hostile_values_are_left_out(key: str, value: Any) -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    state = {"messages": [], "compaction": {}, "compaction_settings": {key: value}}
    assert node.invoke(state) == {}
    assert node.explain(state).problems


def test_values_that_are_right_together_are_taken() -> None:
    node = CompactionNode(good_summary, context_window=50_000, trigger=("tokens", 10_000))
    settings = {"keep": ["tokens", 12_000], "trigger": ["tokens", 20_000], "target": 90_000}
    for order in permutations(settings.items()):
        state = {"messages": [], "compaction": {}, "compaction_settings": dict(order)}
        told = node.explain(state)
        assert told.measurement.trigger == 20_000
        assert len(told.problems) == 1
        assert told.problems[0].startswith("compaction_settings of the thread: target: 90000")


def test_a_slip_of_the_pen_is_not_taken_for_another_nodes_section() -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    slip = {"triger": {"tokens": 500}}
    state = {"messages": [], "compaction": {}, "compaction_settings": slip}
    assert "'trigger'" in node.explain(state).problems[0]


def test_values_that_only_contradict_together_fall_back_one_by_one() -> None:
    node = CompactionNode(good_summary, context_window=50_000, trigger=("tokens", 10_000))
    settings = {"trigger": ["tokens", 900], "keep": ["tokens", 1_000]}
    state = {"messages": [], "compaction": {}, "compaction_settings": settings}
    told = node.explain(state)
    assert told.measurement.trigger == 900
    assert len(told.problems) == 1
    assert "keep" in told.problems[0]


def test_a_malformed_request_of_one_thread_is_no_problem_of_another() -> None:
    node = CompactionNode(good_summary, context_window=50_000)
    request = {"id": "r", "instructions": None}

    def problems(**more: Any) -> int:
        state = {"messages": [], "compaction": {}, "compaction_settings": {"min_keep": 4, **more}}
        return len(node.explain(state).problems)

    found = [problems(request=5), problems(), problems(request=request), problems(request="now")]
    assert found == [1, 0, 0, 1]
