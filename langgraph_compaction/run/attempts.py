"""The clock of one visit: how long an attempt may take, and what becomes of one that takes longer.

An asynchronous attempt is cancelled. A synchronous one runs in a thread of its own, which Python
cannot stop: it is abandoned, and the visit asks no other model, so that calls never pile up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from threading import Thread
from time import monotonic
from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import SummaryRequest
from langgraph_compaction.run.tiers import Tier

GRACE = 2.0
"""Seconds that a call gets to come back after its time is up. What a thread brings in them still
counts; a coroutine is cancelled at once."""
CANCEL_AGAIN = 0.1
"""Seconds after which a task that was cancelled and has not ended is cancelled again."""
MOST_ABANDONED = 4
"""Abandoned calls of one tier that may still be under way before it is not asked any more: a
server that never answers would collect a thread with every visit of every conversation."""


class AttemptTimeoutError(TimeoutError):
    """A summary call did not come back in time, or there was no time left for it.

    Attributes:
        ends_visit: whether this visit must not ask any other model.
        asked: whether there was a call.
    """

    def __init__(self, message: str, *, ends_visit: bool, asked: bool = True) -> None:
        super().__init__(message)
        self.ends_visit = ends_visit
        self.asked = asked


class Attempts:
    """Makes the calls of one visit within its time.

    Args:
        timeout: seconds for all calls together, None: no limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._started = monotonic()

    def anew(self) -> Attempts:
        """The clock of other calls that may take as long, from now on."""
        return Attempts(self._timeout)

    @property
    def elapsed(self) -> float:
        """Seconds since the visit began."""
        return monotonic() - self._started

    @property
    def over(self) -> bool:
        """Whether the visit's time is up."""
        return self._timeout is not None and self.elapsed >= self._timeout

    def call(self, tier: Tier, request: SummaryRequest, config: RunnableConfig) -> Reply:
        """Call a tier, and wait for it no longer than it may take.

        Raises:
            AttemptTimeoutError: it took longer, or there is no time left.
            RuntimeError: the call cancelled itself, which is not the run's cancellation.
            BaseException: whatever else the tier raised.
        """
        seconds = self._seconds(tier)
        if seconds is None:
            with _own_cancellation():
                return tier.call(request, config)
        future = _in_thread(tier, request, config)
        with _left_behind(tier, future):
            wait([future], seconds + GRACE)
        return self._result(tier, future, seconds)

    async def acall(self, tier: Tier, request: SummaryRequest, config: RunnableConfig) -> Reply:
        """Call a tier asynchronously; see `call`."""
        seconds = self._seconds(tier)
        if tier.awaits:
            return await self._awaited(tier, tier.acall(request, config), seconds)
        future = _in_thread(tier, request, config)
        with _left_behind(tier, future):
            await finished(future, None if seconds is None else seconds + GRACE)
        return self._result(tier, future, seconds)

    def _seconds(self, tier: Tier) -> float | None:
        """Seconds that the next attempt may take, None: as long as it takes."""
        if tier.info.local:
            return None
        tier.abandoned[:] = [call for call in tier.abandoned if not call.done()]
        if len(tier.abandoned) >= MOST_ABANDONED:
            raise AttemptTimeoutError(
                f"not asked, because {len(tier.abandoned)} earlier calls have not come back yet",
                ends_visit=False,
                asked=False,
            )
        limits = [limit for limit in (tier.timeout, self._left()) if limit is not None]
        return min(limits, default=None)

    def _left(self) -> float | None:
        if self._timeout is None:
            return None
        left = self._timeout - self.elapsed
        if left <= 0:
            raise AttemptTimeoutError(
                f"not asked, because the {self._timeout:g} seconds of the visit are over",
                ends_visit=True,
                asked=False,
            )
        return left

    def _result(self, tier: Tier, future: Future[Reply], seconds: float | None) -> Reply:
        if future.done():
            with _own_cancellation():
                return future.result()
        tier.abandoned.append(future)
        raise self._late(tier, seconds, ends_visit=True)

    async def _awaited(
        self, tier: Tier, call: Coroutine[Any, Any, Reply], seconds: float | None
    ) -> Reply:
        # A task of its own: what swallows its cancellation must not hold up the run.
        task = asyncio.ensure_future(call)
        task.add_done_callback(_retrieved)
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            await _cancelled(tier, task)
            raise
        if not task.done():
            await _cancelled(tier, task)
            raise self._late(tier, seconds, ends_visit=not task.done())
        with _own_cancellation():
            return task.result()

    def _late(self, tier: Tier, seconds: float | None, *, ends_visit: bool) -> AttemptTimeoutError:
        whose = "" if seconds == tier.timeout else f", what was left of the visit's {self._timeout}"
        return AttemptTimeoutError(
            f"no answer within {seconds or 0:.3g} seconds{whose}", ends_visit=ends_visit
        )


@contextmanager
def _own_cancellation() -> Iterator[None]:
    """A call that cancelled itself failed; only who waits for it can cancel the run."""
    try:
        yield
    except (asyncio.CancelledError, CancelledError) as error:
        raise RuntimeError("the call cancelled itself") from error


@contextmanager
def _left_behind(tier: Tier, future: Future[Reply]) -> Iterator[None]:
    """Count a thread whose visit ends before it does: the run was cancelled, say."""
    try:
        yield
    except BaseException:
        tier.abandoned.append(future)
        raise


def _in_thread(tier: Tier, request: SummaryRequest, config: RunnableConfig) -> Future[Reply]:
    """Start the call in a daemon thread: one that hangs must not keep the process from ending."""
    future: Future[Reply] = Future()
    context = copy_context()  # of tracing, and of the run that the config belongs to

    def run() -> None:
        try:
            reply = context.run(tier.call, request, config)
        except BaseException as error:  # noqa: BLE001  # raised where the future is asked
            future.set_exception(error)
        else:
            future.set_result(reply)

    Thread(target=run, name=f"summary by {tier.info.name}", daemon=True).start()
    return future


async def finished(future: Future[Any], seconds: float | None) -> None:
    """Wait for a thread without holding up the event loop."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(event.set)

    future.add_done_callback(tell)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def _cancelled(tier: Tier, task: asyncio.Future[Reply]) -> None:
    """Cancel a task until it has ended, for as long as the grace lasts.

    Once is not enough: on Python 3.11 ``asyncio.wait_for``, in which langchain-openai waits for
    each chunk of a stream, loses a cancellation that comes together with a chunk.
    """
    until = monotonic() + GRACE
    while not task.done() and monotonic() < until:
        task.cancel()
        await asyncio.wait({task}, timeout=min(CANCEL_AGAIN, GRACE))
    if not task.done():
        tier.abandoned.append(task)


def _retrieved(task: asyncio.Future[Reply]) -> None:
    """Look at the outcome of a task that may have been given up: asyncio complains otherwise."""
    if not task.cancelled():
        task.exception()
