"""Steps whose questions are answered from what a fold beside the agent has brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from langgraph_compaction.engine.effects import (
    BackgroundFold,
    CallFailed,
    CallModel,
    Effect,
    Emit,
    Propose,
)


class Raised(NamedTuple):
    """An answer that was an error which the settings let end the run."""

    error: BaseException


class StaleError(Exception):
    """Another question is asked than was answered."""


class NoAnswerError(Exception):
    """A fold beside the agent failed before it had an answer to a question."""


@dataclass
class Answers:
    """The answers of a fold, each of which is taken once.

    Attributes:
        fold: the fold.
        waited: seconds that the visit waited for it.
        taken: how many were taken.
        raised: the answer that was raised as an error, None where none was.
    """

    fold: BackgroundFold
    waited: float = 0.0
    taken: int = 0
    raised: BaseException | None = None
    _used: Counter[bytes] = field(default_factory=Counter)

    def next(self, call: CallModel) -> object | None:
        """The next answer to a question, None where there is none."""
        question = question_of(call)
        answers, nth = self.fold.answers(question), self._used[question]
        self._used[question] += 1
        if nth >= len(answers):
            return None
        self.taken += 1
        return answers[nth]


def question_of(call: CallModel) -> bytes:
    """What tells one question to a summariser from all others."""
    request = call.request
    said = [(message.type, message.content) for message in request.messages]
    asked = (call.tier, said, list(request.texts), request.max_tokens, request.room)
    return sha256(repr(asked).encode("utf-8", "surrogatepass")).digest()


_Result = TypeVar("_Result")


def answered(
    steps: Generator[Effect, object, _Result],
    answers: Answers,
    *,
    may_ask: Callable[[CallModel], bool],
) -> Generator[Effect, object, _Result]:
    """Steps whose questions are answered from what was kept; returns what they return.

    Nothing is told before it is sure that the answers fit. Where the fold failed on the way, so did
    the question that it has no answer to: else the failure would be counted nowhere, and the
    summarisers asked again at every visit.

    Args:
        steps: they were not started yet.
        answers: what was kept.
        may_ask: whether a question that has no answer here may be asked now.

    Raises:
        StaleError: a question has no answer here, and may not be asked; the fold did not fail.
        Exception: an answer was an error that is to end the run.
    """
    told: list[Emit] = []
    outcome: object = None
    try:
        while True:
            effect = steps.send(outcome)
            outcome = None
            if isinstance(effect, Propose):
                outcome = False  # it was proposed when it was begun
            elif isinstance(effect, Emit):
                fields = background_fields(answers.fold, answers.waited)
                told.append(Emit({**effect.event, **fields}))
            elif not isinstance(effect, CallModel):
                yield from _all(told)
                told.clear()
                outcome = yield effect
            else:
                answer = answers.next(effect)
                if isinstance(answer, Raised):
                    answers.raised = answer.error
                    raise answer.error
                if answer is not None:
                    outcome = answer
                elif may_ask(effect):
                    outcome = yield effect
                elif answers.fold.broken is not None:
                    error = NoAnswerError(answers.fold.broken)
                    outcome = CallFailed(error, ends_visit=True)
                else:
                    raise StaleError
    except StopIteration as stop:
        yield from _all(told)
        result: _Result = stop.value
        return result


def _all(told: Sequence[Emit]) -> Generator[Effect, object, None]:
    for one in told:  # noqa: UP028  # outcomes are sent, and a list's own iterator takes none
        yield one


def background_fields(fold: BackgroundFold, waited: float = 0.0) -> dict[str, Any]:
    """What the events have that tell of a fold beside the agent.

    Args:
        fold: the fold.
        waited: seconds that the visit waited for it.
    """
    return {"background": True, "duration": round(fold.seconds, 3), "waited": round(waited, 3)}
