"""Looking at a thread: `explain` says what a visit then does; events, hook, veto, log, traces."""

import logging
import random
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    request_compaction,
)
from tests.support.doubles import ScriptedModel, digest
from tests.support.histories import random_history
from tests.support.replay import good_summary, group_starts

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6


def messages(count: int = 16) -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    return [*found, *(AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}") for n in range(count))]


def node(**options: Any) -> CompactionNode:
    values: dict[str, Any] = {
        "context_window": 50_000,
        "trigger": ("tokens", 900),
        "keep": ("tokens", 300),
    }
    return CompactionNode(options.pop("model", good_summary), **{**values, **options})


def state(count: int = 16, **more: Any) -> dict[str, Any]:
    return {"messages": messages(count), "compaction": {}, **more}


# ---- explain


@pytest.mark.parametrize("seed", range(40))
def test_what_is_explained_is_what_happens(seed: int) -> None:
    chance = random.Random(seed)
    told: list[dict[str, Any]] = []
    compact = node(
        trigger=chance.choice([("tokens", 300), ("messages", 9), ("steps", 4)]),
        keep=("tokens", 100),
        context_window=chance.choice([3_000, 50_000]),
        reserve_tokens=0,
        token_counter="estimate",
        hook=told.append,
    )
    thread: dict[str, Any] = {"messages": random_history(chance, length=30), "compaction": {}}
    for _ in range(3):
        explained = compact.explain(thread)
        before = len(told)
        update = compact.invoke(thread)
        done = told[-1] if len(told) > before else None
        assert (explained.action == "none") is (done is None)
        if done is None:
            return
        assert done["need"] == explained.need
        assert done["tokens_before"] == explained.measurement.tokens
        record = update.get("compaction", {})
        if explained.span is not None and record.get("segments"):
            assert record["last_summarized_index"] >= explained.span[1]
            assert explained.span[1] + 1 in [*explained.cuts, len(thread["messages"])]
        thread.update(update)


def test_the_arithmetic_of_the_trigger() -> None:
    compact = node(trigger=[("fraction", 0.5), {"messages": 10, "steps": 99}])
    told = compact.explain(state())
    kinds = [[(one.kind, one.threshold, one.reached) for one in clause] for clause in told.trigger]
    assert kinds == [
        [("fraction", 25_000, False)],
        [("messages", 10, True), ("steps", 99, False)],
    ]
    assert [one.measured for one in told.trigger[1]] == [17, 16]
    assert told.need == "none"


def test_the_prediction_is_an_upper_bound() -> None:
    compact = node()
    before = state()
    told = compact.explain(before)
    assert told.span == (0, 10)
    assert told.kept == (0,)
    assert told.tokens_after is not None
    after = {**before, **compact.invoke(before)}
    assert compact.measure(after).tokens <= told.tokens_after
    assert told.measurement.tokens == compact.measure(before).tokens


def test_cuts_are_between_groups_and_before_what_waits() -> None:
    call: Any = {"name": "look", "args": {}, "id": "c"}
    waiting = [*messages(4), AIMessage("", tool_calls=[call], id="x")]
    pair = [*waiting, ToolMessage("ok", tool_call_id="c", id="t"), AIMessage("End.", id="e")]
    for thread, last in ((waiting, 5), (pair, 7)):
        told = node().explain({"messages": thread, "compaction": {}})
        assert set(told.cuts) <= group_starts(thread)
        assert max(told.cuts) == last


def test_it_reads_as_a_text() -> None:
    compact = node(trigger=[("tokens", 900), {"messages": 99, "steps": 5}])
    text = str(compact.explain(state()))
    assert text.startswith("fold (need: soft). The trigger fired.\n")
    assert "Trigger, any of: tokens" in text
    assert "of 900 (reached)" in text
    assert "messages 17 of 99 and steps 16 of 5 (reached)" in text
    assert "Hard limit: 45000 tokens." in text
    assert "Messages 0 to 10 would be folded" in text
    assert "Of these stay: 0." in text
    assert "Trigger: tokens" in str(node().explain(state()))
    unlimited = node(context_window=None).explain(state())
    assert "Hard limit: none, the window is not known." in str(unlimited)
    off = str(node(trigger=None).explain(state()))
    assert "The trigger is off." in off
    wrong = str(compact.explain(state(compaction_settings={"task": "x"})))
    assert "compaction_settings of the thread: task: 'x'" in wrong


def test_looking_changes_nothing_and_calls_nobody() -> None:
    def never(_: list[BaseMessage]) -> str:
        raise AssertionError("a dry run called the summariser")

    told: list[Any] = []
    compact = node(model=never, hook=told.append)
    thread = state(**request_compaction())
    kept = repr(thread)
    for look in (compact.explain, compact.measure, compact.view, compact.route("agent")):
        look(thread)
    assert repr(thread) == kept
    assert told == []


# ---- results that are shown in part


def parallel(count: int, sentences: int) -> dict[str, Any]:
    names = [f"c{number}" for number in range(count)]
    calls: Any = [{"name": "look", "args": {}, "id": name} for name in names]
    results = [
        ToolMessage(f"Pump {name}. " + TEXT * sentences, tool_call_id=name, id=f"t-{name}")
        for name in names
    ]
    asked = [HumanMessage("Check.", id="task"), AIMessage("", id="a", tool_calls=calls)]
    return {"messages": [*asked, *results], "compaction": {}}


def test_the_results_of_one_step_stand_whole_in_a_third_of_the_window() -> None:
    compact = CompactionNode(good_summary, context_window=32_000)
    thread = parallel(5, sentences=20)  # some 9,750 tokens
    size = compact.measure(thread)
    assert size.tokens > 32_000 * 0.3
    assert size.clipped == 0
    assert compact.view(thread) == thread["messages"]


def test_what_is_shown_in_part_is_measured_and_explained() -> None:
    compact = CompactionNode(good_summary, context_window=32_000)
    thread = parallel(5, sentences=60)
    size = compact.measure(thread)
    assert size.clipped == 5
    assert size.tokens <= 32_000 // 2
    told = str(compact.explain(thread))
    assert "Of the 7 messages in the view 5 are shown in part." in told
    whole = CompactionNode(good_summary, context_window=128_000).measure(thread)
    assert whole.clipped == 0


def test_the_share_of_results_is_a_setting() -> None:
    thread = parallel(5, sentences=19)
    settings = {"compaction_settings": {"max_result_tokens": 1_000}}
    compact = CompactionNode(good_summary, context_window=32_000)
    assert compact.measure({**thread, **settings}).clipped == 5
    unlimited = CompactionNode(good_summary, context_window=32_000, max_result_tokens=None)
    assert unlimited.measure(parallel(5, sentences=70)).tokens > 32_000


# ---- the hook


def test_a_hook_gets_every_event_and_may_veto_the_fold() -> None:
    told: list[dict[str, Any]] = []

    def hook(event: dict[str, Any]) -> bool | None:
        told.append(event)
        return False if event["type"] == "compaction.started" else None

    assert node(hook=hook).invoke(state()) == {}
    assert [event["type"] for event in told] == ["compaction.started", "compaction.skipped"]
    assert "vetoed" in told[-1]["reason"]


def test_a_veto_consumes_a_request_and_cannot_stop_a_clip() -> None:
    def hook(event: dict[str, Any]) -> bool:
        return False

    compact = node(hook=hook)
    thread = state(**request_compaction())
    thread.update(compact.invoke(thread))
    assert set(thread["compaction"]) == {"version", "revision", "request_id"}
    tight = node(hook=hook, context_window=1_200)
    after = tight.invoke(state(1) | {"messages": [HumanMessage(TEXT * 30, id="h")]})
    assert after["compaction"]["render"]["clip_message_bytes"]


def test_at_the_hard_limit_a_vetoed_fold_becomes_a_clip() -> None:
    call: Any = {"name": "look", "args": {}, "id": "c"}
    thread = [*messages(2), AIMessage("", tool_calls=[call], id="x")]
    thread.append(ToolMessage(TEXT * 20, tool_call_id="c", id="t"))
    compact = node(hook=lambda event: False, context_window=1_500, trigger=("tokens", 600))
    found = {"messages": thread, "compaction": {}}
    update = compact.invoke(found)
    assert "segments" not in update.get("compaction", {})
    assert compact.measure({**found, **update}).tokens <= 1_500


def test_a_fold_that_was_vetoed_at_the_hard_limit_is_not_made_after_the_clip() -> None:
    thread = messages(20)
    thread.insert(1, HumanMessage(TEXT * 15, id="long"))
    compact = node(hook=lambda event: False, context_window=3_000, trigger=("messages", 6))
    update = compact.invoke({"messages": thread, "compaction": {}})
    assert "segments" not in update.get("compaction", {})


@pytest.mark.parametrize("answer", [None, True, 0, "", "False"])
def test_only_false_is_a_veto(answer: Any) -> None:
    assert node(hook=lambda event: answer).invoke(state())["compaction"]["segments"]


def test_a_hook_that_fails_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("no queue")

    assert node(hook=broken).invoke(state())["compaction"]["segments"]
    assert "no queue" in caplog.text


def test_a_hook_cannot_change_the_event_for_others() -> None:
    seen: list[Any] = []
    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(hook=lambda event: event.clear()))
    builder.add_edge(START, "compact")
    graph = builder.compile()
    seen += graph.stream({"messages": messages()}, stream_mode="custom")
    assert [event["type"] for event in seen] == ["compaction.started", "compaction.completed"]


async def _coroutine(event: Any) -> None: ...


class _AsyncCall:
    async def __call__(self, event: Any) -> None: ...


@pytest.mark.parametrize("wrong", [_coroutine, _AsyncCall(), "log", 7])
def test_a_hook_that_cannot_be_called_in_place_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="hook: "):
        node(hook=wrong)


# ---- log and traces


def test_the_log_has_the_events(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "langgraph_compaction")
    told: list[dict[str, Any]] = []
    node(hook=told.append).invoke(state())
    logged = [vars(record)["event"] for record in caplog.records]
    assert logged == told
    assert all(event["duration"] >= 0 for event in told)


class Traces(BaseCallbackHandler):
    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **seen: Any) -> None:
        self.started.append(seen)


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_the_runs_callbacks_tags_and_metadata_reach_the_summary_call(way: str) -> None:
    model = ScriptedModel(reply=lambda seen: AIMessage(digest(1)))
    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(model=model))
    builder.add_edge(START, "compact")
    graph, traces = builder.compile(), Traces()
    config: Any = {"callbacks": [traces], "tags": ["mine"], "metadata": {"user": "u1"}}
    given = {"messages": messages()}
    if way == "sync":
        graph.invoke(given, config)
    else:
        await graph.ainvoke(given, config)
    assert len(traces.started) == 1
    seen = traces.started[0]
    assert {"mine", "nostream", "langgraph_compaction"} <= set(seen["tags"])
    wanted = {"user": "u1", "lc_source": "summarization", "compaction_tier": "ScriptedModel"}
    assert wanted.items() <= seen["metadata"].items()
    assert seen["name"] == "langgraph_compaction.summary"
    assert seen["parent_run_id"] is not None


# ---- a person decides


@pytest.mark.parametrize("answer", [True, False])
def test_a_hook_may_interrupt_and_let_a_person_decide(answer: bool) -> None:
    def hook(event: dict[str, Any]) -> bool | None:
        if event["type"] != "compaction.started":
            return None
        return bool(interrupt("Fold?"))

    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(hook=hook))
    builder.add_edge(START, "compact")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    waiting = graph.invoke({"messages": messages()}, config)
    assert waiting["__interrupt__"][0].value == "Fold?"
    assert waiting["compaction"] == {}
    done = graph.invoke(Command(resume=answer), config)
    assert bool(done["compaction"].get("segments")) is answer


@pytest.mark.parametrize("trigger", [("tokens", 900), ("messages", 99), None])
def test_where_a_span_may_end_is_left_out_where_it_does_not_matter(trigger: Any) -> None:
    assert "may end before" not in str(node(trigger=trigger).explain(state()))
    everything_stays = node(trigger=("messages", 9), pinned={"type": "ai"})
    assert "A span may end before 1 ..." in str(everything_stays.explain(state()))
