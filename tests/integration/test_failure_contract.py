"""The failure contract, cell by cell: what happens × (soft, hard) × (sync, async)."""

import asyncio
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    BudgetError,
    CascadeExhaustedError,
    CompactionNode,
    CompactionState,
    ConfigurationError,
    ModelTier,
    RecordVersionError,
    model_view,
)
from langgraph_compaction.run.attempts import GRACE
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
NEEDS = ("soft", "hard")
WAYS = ("sync", "async")
WINDOWS = {"soft": 50_000, "hard": 1_000}

cells = pytest.mark.parametrize("need", NEEDS)
ways = pytest.mark.parametrize("way", WAYS)


class Thread:
    """A thread at soft or hard need, and a node that visits it."""

    def __init__(self, need: str, way: str, model: Any, **options: Any) -> None:
        self.need, self.way = need, way
        self.events: list[dict[str, Any]] = []
        values: dict[str, Any] = {
            "context_window": WINDOWS[need],
            "trigger": ("tokens", 600),
            "keep": ("tokens", 150),
            "min_keep": 1,
            "token_counter": "estimate",
            "hook": self.events.append,
        }
        self.node = CompactionNode(model, **{**values, **options})
        self.state: dict[str, Any] = {"messages": thread(), "compaction": {}}

    def visit(self) -> dict[str, Any]:
        before = deepcopy(self.state)
        if self.way == "sync":
            update = self.node.invoke(self.state)
        else:
            update = asyncio.run(self.node.ainvoke(self.state))
        assert self.state == before, "an input was changed"
        return update

    @property
    def kinds(self) -> list[str]:
        return [event["type"].removeprefix("compaction.") for event in self.events]

    def assert_need(self) -> None:
        assert self.events[0]["need"] == self.need


def thread(pumps: int = 12) -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    for n in range(pumps):
        call = {"name": "check", "args": {"n": n}, "id": f"c{n}"}
        found.append(AIMessage("", id=f"a{n}", tool_calls=[call]))  # type: ignore[list-item]
        found.append(ToolMessage(f"Pump {n}. {TEXT}", id=f"t{n}", tool_call_id=f"c{n}"))
    return found


def raises(_: Sequence[BaseMessage]) -> str:
    raise ConnectionError("down")


async def hangs(_: Sequence[BaseMessage]) -> str:
    await asyncio.sleep(60)
    return "too late"


def slow(_: Sequence[BaseMessage]) -> str:
    time.sleep(1.5)
    raise ConnectionError("and down after all")


def answers(text: Any) -> Callable[[Sequence[BaseMessage]], Any]:
    return lambda _: text


BAD: dict[str, Any] = {
    "raises": raises,
    "is late and raises": ModelTier(slow, timeout=0.1),
    "refuses": answers("I'm sorry, but I can't help with that request."),
    "returns nothing": answers(""),
    "returns None": answers(None),
    "returns no text": answers(7),
    "is cut off": answers(
        AIMessage("## Goal\nGo on with", response_metadata={"finish_reason": "length"})
    ),
    "calls a tool": answers(
        AIMessage("## Goal\nGo on.", tool_calls=[{"name": "check", "args": {}, "id": "x"}])
    ),
    "rambles": answers("## Goal\n" + "The pumps are to be checked and checked again. " * 200),
    "asks back": answers("Please provide the conversation that you want me to summarize."),
}


@cells
@ways
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_tier_is_the_next_ones_turn(need: str, way: str, bad: str) -> None:
    thread = Thread(need, way, [BAD[bad], good_summary])
    update = thread.visit()
    thread.assert_need()
    assert update["compaction"]["segments"][0]["model"] == "good_summary"
    assert "failures" not in update["compaction"]
    assert {"tier_failed", "rejected"} & set(thread.kinds)
    assert "failed" not in thread.kinds
    assert thread.kinds[-1] == "completed"


@ways
@pytest.mark.parametrize("bad", BAD)
def test_all_tiers_fail_and_there_is_room(way: str, bad: str) -> None:
    thread = Thread("soft", way, BAD[bad])
    update = thread.visit()
    thread.assert_need()
    assert set(update["compaction"]) == {"version", "revision", "failures"}
    assert thread.kinds[-1] == "failed"
    assert thread.events[-1]["failures"]
    after = {**thread.state, **update}
    assert model_view(after) == thread.state["messages"]
    told = len(thread.events)
    thread.state = after
    assert thread.visit() == {}, "the next visit asked again at once"
    assert len(thread.events) == told


@ways
@pytest.mark.parametrize("bad", BAD)
def test_all_tiers_fail_and_there_is_no_room(way: str, bad: str) -> None:
    thread = Thread("hard", way, BAD[bad])
    update = thread.visit()
    thread.assert_need()
    segments = update["compaction"]["segments"]
    assert {segment["model"] for segment in segments} == {"extractive"}
    assert segments[0]["text"].splitlines()[1].startswith("Extracts")
    assert update["compaction"]["failures"]["count"] == 1
    assert thread.kinds[-2:] == ["failed", "completed"]
    after = thread.node.measure({**thread.state, **update})
    assert after.tokens <= 900


@cells
def test_a_tier_that_times_out_is_the_next_ones_turn(need: str) -> None:
    thread = Thread(need, "async", [ModelTier(hangs, timeout=0.1), good_summary])
    update = thread.visit()
    assert update["compaction"]["segments"][0]["model"] == "good_summary"
    reason = next(event["reason"] for event in thread.events if "tier_failed" in event["type"])
    assert "no answer within 0.1 seconds" in reason


@cells
@ways
def test_finished_parts_stay(need: str, way: str) -> None:
    answered: list[int] = []

    def twice(messages: Sequence[BaseMessage]) -> str:
        answered.append(1)
        if len(answered) > 2:
            raise ConnectionError("down")
        return good_summary(messages)

    thread = Thread(need, way, ModelTier(twice, window=1_400), min_segment_tokens=60)
    thread.state["messages"] = globals()["thread"](24)
    update = thread.visit()
    segments = update["compaction"]["segments"]
    written = [segment["model"] for segment in segments]
    assert written == ["twice", "twice"] if need == "soft" else "extractive" in written
    assert thread.kinds.count("tier_failed") == 1
    assert segments[-1]["last_index"] == update["compaction"]["last_summarized_index"]
    assert update["compaction"]["failures"]["count"] == 1


@ways
def test_what_cannot_fit_names_its_sizes(way: str) -> None:
    thread = Thread("hard", way, raises, pinned={"type": "tool"})
    with pytest.raises(BudgetError) as caught:
        thread.visit()
    assert caught.value.limit == 1_000
    assert sum(caught.value.sizes.values()) > 1_000
    assert "tool results" in str(caught.value)
    assert thread.kinds[-1] == "failed"


@ways
def test_the_largest_message_is_named_by_its_place_where_it_has_no_id(way: str) -> None:
    thread = Thread("hard", way, raises)
    thread.state["messages"] = [SystemMessage("Be brief."), SystemMessage(TEXT * 20)]
    with pytest.raises(BudgetError, match=r"The largest message is no\. 1 of the view, from 0 \("):
        thread.visit()


@ways
def test_what_is_sent_beside_no_messages_at_all_is_named_too(way: str) -> None:
    thread = Thread("hard", way, raises, system_prompt="Be brief. " * 900)
    thread.state["messages"] = []
    with pytest.raises(BudgetError, match=r"overhead 2.*, shorten the system prompt") as caught:
        thread.visit()
    assert list(caught.value.sizes) == ["overhead"]


@ways
def test_results_are_clipped_before_the_task(way: str) -> None:
    thread = Thread("hard", way, raises)
    task = HumanMessage("Check the pumps. " * 20, id="task")
    thread.state["messages"] = [task, *globals()["thread"](1)[1:]]
    thread.state["messages"][-1] = ToolMessage(TEXT * 20, id="t0", tool_call_id="c0")
    update = thread.visit()
    after = {**thread.state, **update}
    view = thread.node.view(after)
    assert view[0].text == task.text
    assert len(view[-1].text) < len(TEXT * 20)
    assert thread.node.measure(after).tokens <= 1_000


class Refused(Exception):  # noqa: N818  # as the providers' clients name theirs
    status_code = 401


def refused(_: Sequence[BaseMessage]) -> str:
    raise Refused("invalid api key")


def faulty(messages: Sequence[BaseMessage]) -> str:
    return messages.summarize()  # type: ignore[attr-defined,no-any-return]


@cells
@ways
@pytest.mark.parametrize(
    ("bad", "error"),
    [(refused, Refused), (faulty, AttributeError), (answers(7), TypeError)],
)
def test_what_the_user_has_to_repair_is_raised_if_asked_for(
    need: str, way: str, bad: Any, error: type[Exception]
) -> None:
    thread = Thread(need, way, [bad, good_summary], on_error="raise")
    with pytest.raises(error):
        thread.visit()
    assert "completed" not in thread.kinds


@cells
@ways
@pytest.mark.parametrize("bad", [refused, faulty])
def test_by_default_it_is_a_failed_tier_that_is_reported_once(
    need: str, way: str, bad: Any
) -> None:
    # A window that makes many parts of the span: every one of them would ask the tier.
    thread = Thread(need, way, [ModelTier(bad, window=1_400), good_summary])
    thread.state["messages"] = globals()["thread"](30)
    update = thread.visit()
    assert len(update["compaction"]["segments"]) > 1 or need == "hard"
    assert thread.kinds.count("tier_failed") == 1
    assert thread.kinds[-1] == "completed"


@ways
def test_exhaustion_is_raised_if_asked_for_and_there_is_room(way: str) -> None:
    thread = Thread("soft", way, [raises, answers("")], on_error="raise")
    with pytest.raises(CascadeExhaustedError) as caught:
        thread.visit()
    assert len(caught.value.failures) == 2
    assert "ConnectionError: down" in str(caught.value)
    hard = Thread("hard", way, [raises, answers("")], on_error="raise")
    assert hard.visit()["compaction"]["segments"][0]["model"] == "extractive"


def test_a_model_that_cannot_be_built_is_of_that_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    thread = Thread("soft", "sync", "gpt-5-mini", on_error="raise")
    with pytest.raises(ConfigurationError, match="'gpt-5-mini' cannot be built"):
        thread.visit()
    assert Thread("soft", "sync", ["gpt-5-mini", good_summary]).visit()["compaction"]["segments"]


@cells
@ways
def test_cancelled_means_nothing_written(need: str, way: str) -> None:
    started = asyncio.Event()

    async def hangs(_: Sequence[BaseMessage]) -> str:
        started.set()
        await asyncio.sleep(60)
        return "too late"

    def interrupted(_: Sequence[BaseMessage]) -> str:
        raise KeyboardInterrupt

    compact = Thread(need, way, hangs if way == "async" else interrupted).node
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}

    async def cancelled() -> None:
        run = asyncio.ensure_future(graph.ainvoke({"messages": thread()}, config))
        await started.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    begun = time.monotonic()
    if way == "async":
        asyncio.run(cancelled())
    else:
        with pytest.raises(KeyboardInterrupt):
            graph.invoke({"messages": thread()}, config)
    assert time.monotonic() - begun < 5
    assert graph.get_state(config).values["compaction"] == {}


@cells
@ways
def test_a_newer_record_is_an_error_and_nothing_is_written(need: str, way: str) -> None:
    thread = Thread(need, way, good_summary)
    thread.state["compaction"] = {"version": 99}
    with pytest.raises(RecordVersionError):
        thread.visit()
    assert thread.events == []


# ---- time


@ways
def test_the_visit_has_a_time_of_its_own(way: str) -> None:
    model = ModelTier(hangs if way == "async" else slow, timeout=30.0)
    thread = Thread("soft", way, [model, good_summary], summary_timeout=0.3)
    begun = time.monotonic()
    update = thread.visit()
    assert time.monotonic() - begun < 0.3 + GRACE + 1
    # The time is over, also for the next tier: finished work stays, the rest waits.
    assert "segments" not in update["compaction"]
    reasons = [event["reason"] for event in thread.events if "tier_failed" in event["type"]]
    assert "good_summary" not in str(thread.events[-1]["failures"])
    assert reasons


def test_an_attempt_that_does_not_come_back_ends_the_cascade() -> None:
    def hangs(_: Sequence[BaseMessage]) -> str:
        time.sleep(GRACE + 2)
        return ""

    asked: list[int] = []

    def second(messages: Sequence[BaseMessage]) -> str:
        asked.append(1)
        return good_summary(messages)

    thread = Thread("soft", "sync", [ModelTier(hangs, timeout=0.1), second])
    begun = time.monotonic()
    update = thread.visit()
    assert GRACE <= time.monotonic() - begun < GRACE + 1.5
    assert asked == []
    assert update["compaction"]["failures"]["count"] == 1
