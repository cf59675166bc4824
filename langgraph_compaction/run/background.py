"""Folds that run beside the agent: one for each thread, in this process alone.

What is kept of one are its answers, and by what question: small, and nothing of it may be read by
a thread that asks anything else. All of it is best effort. What is lost with the process, an event
loop, or for want of room is asked again by a later visit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from threading import Lock, Thread
from time import monotonic
from traceback import format_tb
from typing import Any, NamedTuple

from langgraph_compaction.digest.verifying import LONGEST, Reply
from langgraph_compaction.engine.answers import Raised, question_of
from langgraph_compaction.engine.effects import (
    BackgroundFold,
    BeginFold,
    CallFailed,
    CallModel,
    Emit,
)
from langgraph_compaction.engine.tally import Spent
from langgraph_compaction.run.attempts import finished
from langgraph_compaction.run.faults import said_by

MOST_RUNNING = 100
"""Folds of one node that run at the same time; further ones begin at a later visit."""
MOST_FOLDS = 2_000
"""Folds that are kept for threads which have not come back for them; the oldest give way."""
MOST_CHARS = 20_000_000
"""Characters of their answers together."""
KEPT_SECONDS = 900.0
"""Seconds after which a fold that nobody came back for is forgotten."""
SLACK = 10.0
"""Seconds that a fold may take beside its calls: it renders, verifies, and waits for late ones."""
LOOK_AGAIN = 0.5
"""Seconds after which who waits looks whether the event loop of the fold is still there."""

FULL = "{running} folds run beside their agents already; this one begins at a later visit."
"""Why a fold is not begun."""
TAKEN = "Another visit has begun a fold of this thread beside the agent."
"""Why a fold is not begun."""
NO_THREAD = "No thread can be started for a fold beside the agent ({error})."
"""Why a fold is not begun."""
NOTHING = "it ended without an answer"
"""Why a fold failed: ``redact`` did, say, before anything was sent."""
LATE = "it did not come to its end in time"
"""Why a fold failed that has a thread of its own."""

_log = logging.getLogger("langgraph_compaction")

Key = Hashable
Asks = Callable[[CallModel], object]
AwaitsAnswer = Callable[[CallModel], Awaitable[object]]


class BegunFold:
    """A fold that was begun beside the agent; see `engine.effects.BackgroundFold`.

    Args:
        begun: what it was begun by.
        seconds: that its calls may take together; None: it is waited for `KEPT_SECONDS`.
        loop: the event loop that it runs on, None for a thread of its own.

    Attributes:
        span_end: where its span ends.
        epoch: of the record that it began with.
        redact: what its texts are redacted by, None where they are not.
        spent: tokens of its calls, once it came to its end.
        complete: whether all that it had to ask was answered.
        failure: the error that ended it, in words; None where none did.
        told: whether the events of a visit that applied it have told of it.
        over: done once no more answers will come, for who waits for it.
        task: where it runs on an event loop; None in a thread of its own, and once it is over.
    """

    def __init__(
        self, begun: BeginFold, seconds: float | None, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.span_end = begun.span_end
        self.epoch = begun.epoch
        self.redact = begun.redact
        self.spent = Spent()
        self.complete = False
        self.failure: str | None = None
        self.told = False
        self.over: Future[None] = Future()
        self.task: asyncio.Task[None] | None = None
        self._loop = loop
        self._answers: dict[bytes, list[object]] = {}
        self._chars = 0
        self._begun = monotonic()
        self._ended: float | None = None
        self._latest = self._begun + (KEPT_SECONDS if seconds is None else seconds + SLACK)

    @property
    def running(self) -> bool:
        """Whether its answers are still to come."""
        lost = self._loop is not None and self._loop.is_closed()
        return not (self._ended is not None or lost or monotonic() >= self._latest)

    @property
    def broken(self) -> str | None:
        """Why it failed before all was answered. None: it did not, or its event loop has gone."""
        late = self._loop is None and self._ended is None and not self.running
        if late:
            return LATE
        return NOTHING if self.complete and not self._answers else self.failure

    @property
    def chars(self) -> int:
        """Characters of its answers and of its redacted texts, about."""
        return self._chars + (0 if self.redact is None else self.redact.chars)

    @property
    def seconds(self) -> float:
        """Seconds that its calls took, or have taken so far."""
        return (self._ended or monotonic()) - self._begun

    @property
    def answered(self) -> int:
        """How many answers there are."""
        return sum(map(len, self._answers.values()))

    @property
    def expired(self) -> bool:
        """Whether it is so old that nobody is expected to come back for it."""
        return monotonic() - (self._ended or self._latest) >= KEPT_SECONDS

    def answers(self, question: bytes) -> list[object]:
        """What was answered to a question, in order."""
        return self._answers.get(question, [])

    def keep(self, call: CallModel, answer: object) -> None:
        """Keep an answer. Of a text that is too long to be accepted, no more than shows it."""
        if isinstance(answer, Reply):
            answer = replace(answer, text=answer.text[: LONGEST + 1])
            self._chars += len(answer.text)
        elif isinstance(answer, CallFailed | Raised):
            _let_go(answer.error, noted=isinstance(answer, Raised))
            # The errors of some clients hold the request.
            self._chars += sum(len(str(message.content)) for message in call.request.messages)
        self._answers.setdefault(question_of(call), []).append(answer)

    def end(self) -> None:
        """Tell those who wait that no more answers will come."""
        self._ended = monotonic()
        self.task = None  # its context leads to the run that began it
        if not self.over.done():
            self.over.set_result(None)

    def goes_on(self, blocked: asyncio.AbstractEventLoop | None) -> bool:
        """Whether it goes on while an event loop is blocked by who waits for it."""
        return self._loop is None or (self._loop is not blocked and self._loop.is_running())


class BackgroundFolds:
    """The folds of one node that run, or wait for their threads. Safe to use from any thread."""

    def __init__(self) -> None:
        self._folds: OrderedDict[Key, BegunFold] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as in another process, begins with none."""
        return type(self), ()

    def __len__(self) -> int:
        return len(self._folds)

    def of(self, key: Key) -> BegunFold | None:
        """The fold of a thread, None where there is none."""
        with self._lock:
            self._forget_old()
            return self._folds.get(key)

    def why_full(self, key: Key) -> str | None:
        """Why no fold of a thread can begin now, in a sentence; None: it can."""
        with self._lock:
            return self._why_full(key)

    def add(self, key: Key, fold: BegunFold) -> str | None:
        """Add a fold that is about to begin, if it can; None, or why not, see `why_full`."""
        with self._lock:
            why = self._why_full(key)
            if why is None:
                self._folds[key] = fold
            return why

    def drop(self, key: Key, fold: BackgroundFold) -> None:
        """Forget a thread's fold; one that runs ends by itself, and nobody hears of it.

        Another visit may have dropped it already and begun the next one, which stays.
        """
        with self._lock:
            if self._folds.get(key) is fold:
                del self._folds[key]

    def _why_full(self, key: Key) -> str | None:
        self._forget_old()
        self._make_room()
        if key in self._folds:
            return TAKEN
        running = sum(one.running for one in self._folds.values())
        return FULL.format(running=running) if running >= MOST_RUNNING else None

    def _forget_old(self) -> None:
        """Forget what is old, from the oldest on: every visit of every thread comes by here."""
        while self._folds:
            key, fold = next(iter(self._folds.items()))
            if not fold.expired:
                return
            del self._folds[key]

    def _make_room(self) -> None:
        """Forget the oldest of what is too much."""
        chars = sum(fold.chars for fold in self._folds.values())
        for key, fold in list(self._folds.items()):
            if len(self._folds) < MOST_FOLDS and chars <= MOST_CHARS:
                break
            if not fold.running:
                chars -= fold.chars
                del self._folds[key]


class FoldSlot(NamedTuple):
    """The place of one thread among the folds of a node.

    Attributes:
        folds: the node's folds.
        key: the thread, and the graph of it.
        seconds: that the calls of a fold may take together, None: no limit.
    """

    folds: BackgroundFolds
    key: Key
    seconds: float | None

    @property
    def fold(self) -> BegunFold | None:
        """The thread's fold, None where there is none."""
        return self.folds.of(self.key)

    def why_full(self) -> str | None:
        """Why no fold can begin here now, in a sentence; None: it can."""
        return self.folds.why_full(self.key)

    def begin(self, effect: BeginFold, ask: Asks) -> str | None:
        """Begin a fold, if there is room, in a daemon thread: the process may end before it.

        Returns None, or why it was not begun.

        Args:
            effect: where its span ends, and its steps.
            ask: asks a tier, and raises what may end a run.
        """
        fold = BegunFold(effect, self.seconds, None)
        why = self.folds.add(self.key, fold)
        if why is not None:
            return why

        def run() -> None:
            questions = _questions(effect.steps, fold)
            with _ending(fold):
                call = next(questions)
                while True:
                    try:
                        answer = ask(call)
                    except Exception as error:  # noqa: BLE001  # raised where it is applied
                        answer = Raised(error)
                    call = questions.send(answer)

        context = copy_context()  # of tracing, and of the run that began it
        beside = Thread(target=context.run, args=(run,), name="fold beside the agent", daemon=True)
        try:
            beside.start()
        except RuntimeError as error:  # too many threads, or the interpreter ends
            fold.end()
            self.drop(fold)
            return NO_THREAD.format(error=error)
        return None

    def abegin(self, effect: BeginFold, ask: AwaitsAnswer) -> str | None:
        """Begin a fold as a task of the running loop; see `begin`."""
        fold = BegunFold(effect, self.seconds, asyncio.get_running_loop())
        why = self.folds.add(self.key, fold)
        if why is not None:
            return why

        async def run() -> None:
            questions = _questions(effect.steps, fold)
            with _ending(fold):
                call = next(questions)
                while True:
                    try:
                        answer = await ask(call)
                    except Exception as error:  # noqa: BLE001  # raised where it is applied
                        answer = Raised(error)
                    call = questions.send(answer)

        fold.task = asyncio.create_task(run(), name="fold beside the agent")
        return None

    def wait(self) -> bool:
        """Wait for the fold; whether there are answers. False at once where it cannot go on."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        fold = self.fold
        while fold is not None and fold.running and fold.goes_on(here):
            try:
                fold.over.result(LOOK_AGAIN)
            except TimeoutError:
                continue
        return fold is not None and not fold.running

    async def await_(self) -> bool:
        """Wait for the fold without holding up the event loop; see `wait`."""
        fold = self.fold
        while fold is not None and fold.running and fold.goes_on(None):
            await finished(fold.over, LOOK_AGAIN)
        return fold is not None and not fold.running

    def mark_told(self, fold: BackgroundFold) -> None:
        """Note of the fold that events have told of it, if it is still this one."""
        own = self.fold
        if own is not None and own is fold:
            own.told = True

    def drop(self, fold: BackgroundFold) -> None:
        """Forget the fold, if it is still this one."""
        self.folds.drop(self.key, fold)


def _questions(
    steps: Generator[Any, object, object], fold: BegunFold
) -> Generator[CallModel, object, None]:
    """The questions that the steps of a fold ask; each answer is kept.

    Nothing else that they want done is done: whoever applies the fold does that. What their events
    say of tokens is kept for who has to drop it.
    """
    outcome: object = None
    while True:
        try:
            effect = steps.send(outcome)
        except StopIteration:
            return
        outcome = None
        if isinstance(effect, CallModel):
            outcome = yield effect
            fold.keep(effect, outcome)
            if isinstance(outcome, Raised):
                return
        elif isinstance(effect, Emit):
            fold.spent.add_told(effect.event)


def _let_go(error: BaseException, *, noted: bool) -> None:
    """Take the tracebacks out of an error that is kept: their frames hold the thread's messages.

    Args:
        error: it, and what it came from.
        noted: whether it gets a note that says where it was raised.
    """
    if noted:
        lines = "".join(format_tb(error.__traceback__))
        with suppress(Exception):  # it lets no attribute be set
            error.add_note(f"Raised beside the agent:\n{lines.rstrip()}")
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        # Not set as an attribute: an error may be a frozen dataclass.
        BaseException.with_traceback(one, None)
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions


@contextmanager
def _ending(fold: BegunFold) -> Iterator[None]:
    """Tell those who wait when a fold is over, however it ends."""
    try:
        yield
    except StopIteration:
        fold.complete = True
    except asyncio.CancelledError:  # with its event loop, which is no failure of the fold
        raise
    except BaseException as error:
        # Not of a tier: that is an answer. It counts as a failure when the fold is applied.
        fold.failure = f"{type(error).__name__}: {said_by(error)}"
        _log.debug("A fold beside the agent ended early.", exc_info=True)
        if not isinstance(error, Exception):
            raise
    finally:
        fold.end()
