"""What a step of compaction asks its driver to do, and what it is told in return."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from langchain_core.messages import BaseMessage

from langgraph_compaction.engine.remembering import RememberedRedact
from langgraph_compaction.engine.tally import Spent
from langgraph_compaction.plan.boundaries import SpanEnd


@dataclass(frozen=True, slots=True)
class TierInfo:
    """What a step knows of a tier of the cascade.

    Attributes:
        name: as segments and events name it.
        window: tokens of its context window, None where unknown or without limit.
        local: whether it needs no waiting for: no network, no model.
    """

    name: str
    window: int | None
    local: bool = False


class Described(Protocol):
    """Something that can say what a step has to know of it, once a step needs it."""

    @property
    def info(self) -> TierInfo:
        """Name and window; finding them out may build a client."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One call of a summariser.

    Attributes:
        messages: the prompt: one system and one human message.
        span: the original messages to fold, in order; empty where segments are condensed.
        texts: the segments to condense, oldest first; empty where only messages are folded. A
            rolling digest has both.
        max_tokens: tokens that the text may have.
        room: tokens that the tier's window leaves for the answer, None where it is unknown.
    """

    messages: Sequence[BaseMessage]
    span: Sequence[BaseMessage]
    texts: Sequence[str]
    max_tokens: int
    room: int | None = None


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask tier number ``tier``. The outcome is a `Reply` or a `CallFailed`."""

    tier: int
    request: SummaryRequest


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The outcome of a call that raised.

    Attributes:
        error: what it raised.
        overflow: whether the prompt exceeded the tier's window.
        ends_visit: whether no other model may be asked at this visit.
        asked: whether there was a call at all, and not just no time left for one.
    """

    error: Exception
    overflow: bool = False
    ends_visit: bool = False
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Emit:
    """Report ``event``: a plain dict with a ``type``. The outcome is of no interest."""

    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Propose:
    """Report ``event``, what is about to be done. The outcome is True where it is vetoed."""

    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArchiveOriginals:
    """Write originals to the archive.

    The outcome is the key of the newest item (None: nothing is archived here), or an
    `ArchiveFailed`.

    Attributes:
        messages: each with its position in the thread, by position.
        heads: keys of the newest items so far, see `heads_of`.
        doubtful: ids of messages that may be there already.
    """

    messages: Sequence[tuple[int, BaseMessage]]
    heads: Sequence[str]
    doubtful: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ArchiveFailed:
    """The outcome of a write that raised.

    Attributes:
        reason: what it raised, in words.
    """

    reason: str


class BackgroundFold(Protocol):
    """A fold that was begun beside the agent, as a step sees it: nothing of it is set there."""

    @property
    def span_end(self) -> SpanEnd:
        """Where its span ends."""

    @property
    def epoch(self) -> int:
        """Of the record that it began with."""

    @property
    def redact(self) -> RememberedRedact | None:
        """What its texts are redacted by, None where they are not."""

    @property
    def told(self) -> bool:
        """Whether the events of a visit that applied it have told of it."""

    @property
    def running(self) -> bool:
        """Whether its answers are still to come."""

    @property
    def complete(self) -> bool:
        """Whether all that it had to ask was answered."""

    @property
    def broken(self) -> str | None:
        """Why it failed before all was answered. None: it did not, or its event loop has gone."""

    @property
    def answered(self) -> int:
        """How many answers there are."""

    @property
    def spent(self) -> Spent:
        """Tokens of its calls, once it came to its end."""

    @property
    def seconds(self) -> float:
        """Seconds that its calls took, or have taken so far."""

    def answers(self, question: bytes) -> list[object]:
        """What was answered to a question, see `question_of`; in order, if it was asked twice."""


@dataclass(frozen=True, slots=True)
class CheckRoom:
    """Whether a fold may begin beside the agent. The outcome is None, or a sentence: why not."""


@dataclass(frozen=True, slots=True)
class BeginFold:
    """Begin a fold beside the agent. The outcome is None, or a sentence: why it was not begun.

    Attributes:
        span_end: where its span ends.
        epoch: of the record that it begins with.
        steps: what makes it; only the answers to its questions count.
        redact: what redacts its texts, and has to when it is applied; None: nothing does.
    """

    span_end: SpanEnd
    epoch: int
    steps: Generator[Any, object, object]
    redact: RememberedRedact | None = None


@dataclass(frozen=True, slots=True)
class AwaitFold:
    """Wait for the fold that is made beside the agent. The outcome is an `Awaited`."""


class Awaited(NamedTuple):
    """How the waiting for a fold went.

    Attributes:
        over: whether the fold came to an end.
        seconds: how long that was waited for.
    """

    over: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class MarkTold:
    """Note of a fold that was made beside the agent that events have told of it.

    Attributes:
        fold: the one that was told of; the thread may have another one by now.
    """

    fold: BackgroundFold


@dataclass(frozen=True, slots=True)
class DropFold:
    """Forget the fold that was made beside the agent: what it was about is gone.

    Attributes:
        fold: the one that is dropped; another one that the thread may have by now stays.
    """

    fold: BackgroundFold


Effect = (
    CallModel
    | Emit
    | Propose
    | ArchiveOriginals
    | CheckRoom
    | BeginFold
    | AwaitFold
    | MarkTold
    | DropFold
)
"""What a step may ask for."""
