"""The clock of a visit, with real time: what a slow, hanging or stubborn summariser may cost.

One that hangs must cost a visit its timeout and the grace, not the run, and leave nothing behind:
no task, no blocked event loop, no threads without number, no complaint in the log.
"""

import asyncio
import gc
import threading
import time
from concurrent.futures import CancelledError as FutureCancelledError
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.errors import GraphInterrupt

from langgraph_compaction import ExtractiveSummarizer, ModelTier
from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import CallFailed, CallModel, SummaryRequest
from langgraph_compaction.run import attempts
from langgraph_compaction.run.attempts import MOST_ABANDONED, Attempts, AttemptTimeoutError
from langgraph_compaction.run.drivers import Performer
from langgraph_compaction.run.tiers import Tier, tier_of

SPAN = [HumanMessage("The pump in hall 3 was cleaned, and ran for an hour without a fault.")]
REQUEST = SummaryRequest((SystemMessage("Summarise."), HumanMessage("Hi.")), SPAN, (), 100)

GRACE = 0.25  # seconds, instead of 2
# `call`; `acall` of a model that only knows how to block; `acall` of one that awaits.
ways = pytest.mark.parametrize("way", ["sync", "thread", "async"])
blocking = pytest.mark.parametrize("way", ["sync", "thread"])
limits = pytest.mark.parametrize("limit", [9, None])


def tier(model: Any, timeout: float | None = 5.0) -> Tier:
    return tier_of(ModelTier(model, timeout=timeout), len)


def done(result: Any) -> Any:
    if isinstance(result, BaseException):
        raise type(result)(*result.args)  # a new one: what it keeps alive can be collected
    return result


def model_for(way: str, result: Any, seconds: float = 0) -> Any:
    """A summariser that takes its time, and then returns or raises."""

    def blocks(_: Any) -> Any:
        time.sleep(seconds)
        return done(result)

    async def awaits(_: Any) -> Any:
        await asyncio.sleep(seconds)
        return done(result)

    return awaits if way == "async" else blocks


def ask(way: str, one: Tier, clock: Attempts | None = None) -> Reply:
    clock, config = clock or Attempts(None), RunnableConfig(tags=["mine"])
    if way == "sync":
        return clock.call(one, REQUEST, config)

    async def run() -> Reply:
        try:
            return await clock.acall(one, REQUEST, config)
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}, "a task is left"

    return asyncio.run(run())


def outcome(way: str, model: Any, timeout: float | None) -> Any:
    performer = Performer([tier(model, timeout)], lambda _: False, None, Attempts(None), False)
    effect = CallModel(0, REQUEST)
    return performer.perform(effect) if way == "sync" else asyncio.run(performer.aperform(effect))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "GRACE", GRACE)


# ---- one attempt


@ways
@limits
@pytest.mark.parametrize("overall", [9, None])
def test_an_answer_in_time_is_the_answer(way: str, limit: Any, overall: Any) -> None:
    assert ask(way, tier(model_for(way, "ok"), limit), Attempts(overall)) == Reply("ok")


@ways
@pytest.mark.parametrize(("timeout", "overall"), [(0.1, None), (None, 0.1), (0.1, 9), (9, 0.1)])
def test_a_hanging_call_costs_its_time_and_the_grace(way: str, timeout: Any, overall: Any) -> None:
    hanging, begun = tier(model_for(way, "late", 1.5), timeout), time.monotonic()
    with pytest.raises(AttemptTimeoutError, match=r"no answer within 0\.[01]\d* sec") as caught:
        ask(way, hanging, Attempts(overall))
    took = time.monotonic() - begun - 0.1 - (0 if way == "async" else GRACE)
    assert -0.02 < took < 0.25
    assert caught.value.ends_visit is (way != "async"), "a cancelled call is no hanging one"


@blocking
def test_what_comes_within_the_grace_counts(way: str) -> None:
    assert ask(way, tier(model_for(way, "late", 0.15), 0.05)) == Reply("late")
    with pytest.raises(ConnectionError, match="down"):
        ask(way, tier(model_for(way, ConnectionError("down"), 0.15), 0.05))


@ways
def test_the_time_of_a_visit_is_shared_and_then_nobody_is_asked(way: str) -> None:
    clock, asked = Attempts(0.25), list[Any]()
    assert ask(way, tier(model_for(way, "ok", 0.15)), clock) == Reply("ok")
    assert clock.elapsed < 0.25
    with pytest.raises(AttemptTimeoutError, match=r"within 0\.[01]\d* seconds"):
        ask(way, tier(model_for(way, "late", 1)), clock)
    assert clock.over
    with pytest.raises(AttemptTimeoutError, match=r"not asked, because the 0\.25 sec") as caught:
        ask(way, tier(asked.append), clock)
    assert caught.value.ends_visit
    assert asked == []
    assert "pump" in ask(way, tier(ExtractiveSummarizer()), clock).text, "extracts take no waiting"


# ---- calls that pile up


@blocking
def test_a_server_that_never_answers_collects_few_threads(way: str) -> None:
    gate = threading.Event()
    one, asked = tier(RunnableLambda(lambda _: gate.wait(9) and "ok", name="hangs"), 0.02), []
    for _ in range(MOST_ABANDONED + 2):
        with pytest.raises(AttemptTimeoutError) as caught:
            ask(way, one)
        asked.append(("not asked" not in str(caught.value), caught.value.ends_visit))
    # Not to be asked does not end the visit: the next tier does not hang.
    assert asked == [(True, True)] * MOST_ABANDONED + [(False, False)] * 2
    assert ask(way, tier(lambda _: "well")) == Reply("well")
    ours = [thread for thread in threading.enumerate() if thread.name == "summary by hangs"]
    assert len(ours) == MOST_ABANDONED
    assert all(thread.daemon for thread in ours), "the process could not end"
    gate.set()
    for thread in ours:
        thread.join(5)
    assert ask(way, one) == Reply("ok"), "a server that is back is not asked again"


async def cancelled(one: Tier) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Attempts(None).acall(one, REQUEST, {}), 0.05)


async def test_threads_of_cancelled_runs_are_counted_too() -> None:
    one = tier(model_for("thread", "ok", 2), 9)
    for _ in range(MOST_ABANDONED):
        await cancelled(one)
    with pytest.raises(AttemptTimeoutError, match="not asked"):
        await asyncio.wait_for(Attempts(None).acall(one, REQUEST, {}), 0.5)


def stubborn(seconds: float, result: Any = "late") -> Any:
    """A summariser that awaits, and goes on when it is cancelled."""

    async def awaits(_: Any) -> Any:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        return done(result)

    return awaits


@pytest.mark.parametrize(("seconds", "ends_visit"), [(1.0, True), (0.15, False)])
async def test_a_call_that_swallows_its_cancellation(seconds: float, ends_visit: bool) -> None:
    begun, ended = time.monotonic(), False
    try:
        await Attempts(None).acall(tier(stubborn(seconds), 0.05), REQUEST, {})
    except AttemptTimeoutError as error:
        ended = error.ends_visit
    assert ended is ends_visit
    assert time.monotonic() - begun < 0.05 + GRACE + 0.25


async def test_calls_that_swallow_their_cancellation_do_not_pile_up() -> None:
    one = tier(stubborn(2.0), 0.02)
    for text in ["no answer"] * MOST_ABANDONED + ["not asked"]:
        with pytest.raises(AttemptTimeoutError, match=text):
            await Attempts(None).acall(one, REQUEST, {})


# ---- cancellation and control flow


@limits
async def test_cancelling_the_run_cancels_the_call_and_leaves_no_task(limit: Any) -> None:
    ended: list[int] = []

    async def hangs(_: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)

    await cancelled(tier(hangs, limit))
    assert ended == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


ODD = [asyncio.CancelledError, FutureCancelledError, StopIteration, TimeoutError]


@ways
@limits
@pytest.mark.parametrize("kind", ODD, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_a_call_that_ends_itself_is_a_failed_call(way: str, kind: Any, limit: Any) -> None:
    found = outcome(way, model_for(way, kind()), limit)
    assert isinstance(found, CallFailed)
    assert isinstance(found.error, Exception)
    assert not found.ends_visit


@ways
@limits
def test_an_interrupt_passes_through(way: str, limit: Any) -> None:
    with pytest.raises(GraphInterrupt):
        outcome(way, model_for(way, GraphInterrupt()), limit)


# ---- the event loop, the context, the log


@limits
async def test_a_model_that_blocks_does_not_block_the_event_loop(limit: Any) -> None:
    async def tick() -> None:
        while True:
            times.append(time.monotonic())
            await asyncio.sleep(0.01)

    times: list[float] = []
    ticking = asyncio.create_task(tick())
    model = RunnableLambda(model_for("thread", "ok", 0.4)).with_config(tags=["t"])
    assert await Attempts(None).acall(tier(model, limit), REQUEST, {}) == Reply("ok")
    ticking.cancel()
    assert max(after - before for before, after in pairwise(times)) < 0.2
    assert len(times) > 10
    pool = asyncio.get_running_loop()._default_executor  # type: ignore[attr-defined]
    assert pool is None, "what hangs in the common pool holds up all that share it"


WHO = ContextVar("WHO", default="nobody")


@ways
@limits
def test_context_and_config_reach_the_summariser(way: str, limit: Any) -> None:
    def tells(_: Any, config: RunnableConfig) -> str:
        return f"{WHO.get()} {config['tags']}"

    async def atells(_: Any, config: RunnableConfig) -> str:
        return tells(_, config)

    WHO.set("ann")
    assert ask(way, tier(atells if way == "async" else tells, limit)).text == "ann ['mine']"


@pytest.mark.parametrize("model", [stubborn(0.6), stubborn(0.6, ConnectionError("down"))])
async def test_a_task_given_up_says_nothing(model: Any, caplog: Any) -> None:
    with pytest.raises(AttemptTimeoutError):
        await Attempts(None).acall(tier(model, 0.05), REQUEST, {})
    begun = time.monotonic()
    await cancelled(tier(model))
    assert time.monotonic() - begun < GRACE + 0.3, "a cancelled run waits for nobody"
    await asyncio.sleep(0.7)
    gc.collect()
    assert caplog.records == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("result", ["late", ConnectionError("down")])
@pytest.mark.parametrize("timeout", [0.02, 9])
def test_a_thread_that_ends_after_its_loop_says_nothing(
    result: Any, timeout: float, caplog: Any
) -> None:
    gate = threading.Event()
    one = tier(RunnableLambda(lambda _: gate.wait(9) and done(result), name="late"), timeout)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(Attempts(None).acall(one, REQUEST, {}), 0.5))
    gate.set()
    for thread in [thread for thread in threading.enumerate() if thread.name == "summary by late"]:
        thread.join(5)
    assert caplog.records == []
