"""A fold that is written beside the agent: begun at one visit, applied at a later one.

What runs beside is the ordinary step, over the messages as they were; only the answers of the
models are kept of it. A later visit makes the same step over the messages as they are then, and
takes an answer from there where the very same is asked. So what is applied is an answer about
exactly what it replaces: where a message was edited, deleted or pinned, or a person changed the
digest, the question is another one, and the answers are dropped.

    trigger fires → begin, and let the agent go on → later: apply the answers, or drop them, say so,
    and begin anew
    the hard limit is exceeded → wait, apply what there is, and ask for what is missing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from langgraph_compaction.engine import VETOED, Steps, compaction_steps, skipped
from langgraph_compaction.engine.effects import (
    Awaited,
    AwaitFold,
    BeginFold,
    CallModel,
    DropFold,
    Effect,
    Emit,
    Propose,
)
from langgraph_compaction.engine.events import common_fields
from langgraph_compaction.engine.tally import Change, Spent
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.boundaries import Span, Until
from langgraph_compaction.plan.decision import Decision, decide, decide_to_wait
from langgraph_compaction.record import message_key

OTHER = "messages of its span, the digest before it or the settings are not what they were"
"""Why answers are dropped: the same question would be another one now."""
NO_END = "it did not come to its end"
"""Why answers are dropped: they did not come in time, or their event loop has gone."""


class Raised(NamedTuple):
    """An answer that was an error which the settings let end the run."""

    error: BaseException


class Ahead(Protocol):
    """A fold that was begun beside the agent.

    Attributes:
        told: whether the events of a visit that applied it have told of it.
    """

    told: bool

    @property
    def until(self) -> Until:
        """Where its span ends."""

    @property
    def epoch(self) -> int:
        """Of the record that it began with."""

    @property
    def running(self) -> bool:
        """Whether its answers are still to come."""

    @property
    def complete(self) -> bool:
        """Whether all that it had to ask was answered."""

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


def background_steps(visit: Visit, ahead: Ahead | None) -> Steps:
    """Look at a thread once; folds that are not urgent are left to run beside the agent.

    Args:
        visit: what is looked at.
        ahead: the thread's fold that was begun before, None where there is none.

    Returns:
        As `compaction_steps`; raises the same.
    """
    if ahead is not None:
        if _waits(visit, ahead) is not None:
            return None
        there = replace(visit, until=ahead.until)
        decision = decide(there)
        found = yield from _applied(there, decision, ahead)
        if isinstance(found, _Applied):
            return found.change
        if decision.need != "none":
            if not ahead.told:
                yield Emit(_dropped(visit, decision, ahead, found))
            yield DropFold()
    decision = decide(visit)
    if not _may_wait(visit, decision) or decision.span is None:
        return (yield from compaction_steps(visit))
    common = {**common_fields(decision), "background": True}
    if (yield Propose({"type": "compaction.started", **common})):
        yield Emit({"type": "compaction.skipped", **common, "reason": VETOED})
        return skipped(decision, visit.record, visit.run)
    until = _until(decision, decision.span)
    apart = replace(
        visit,
        messages=list(visit.messages),  # as they are now: the run goes on with its own list
        until=until,
        policy=replace(visit.policy, prune=False),
    )
    yield BeginFold(until, visit.record.get("epoch", 0), compaction_steps(apart))
    return None


def due(visit: Visit, ahead: Ahead | None) -> Decision:
    """What a visit would do, with an action of "none" while a fold runs that it would leave alone.

    Args:
        visit: what is looked at.
        ahead: the thread's fold that was begun before, None where there is none.
    """
    if ahead is None:
        return decide(visit)
    waiting = _waits(visit, ahead)
    if waiting is not None:
        return waiting
    decision = decide(replace(visit, until=ahead.until))
    return decision if decision.action == "fold" else decide(visit)


def question_of(call: CallModel) -> bytes:
    """What tells one question to a summariser from all others."""
    request = call.request
    said = [(message.type, message.content) for message in request.messages]
    asked = (call.tier, said, list(request.texts), request.max_tokens, request.room)
    return sha256(repr(asked).encode("utf-8", "surrogatepass")).digest()


def _waits(visit: Visit, ahead: Ahead) -> Decision | None:
    """The decision to leave a fold alone that runs; None where its time is over or has come."""
    if not ahead.running:
        return None
    reason = f"Messages up to {ahead.until.position} are being folded beside the agent."
    return decide_to_wait(visit, reason)


def _may_wait(visit: Visit, decision: Decision) -> bool:
    """Whether there is time for the fold, and anything that it would have to wait for."""
    if decision.need != "soft" or decision.action != "fold":
        return False
    return not all(tier.info.local for tier in visit.tiers)


def _until(decision: Decision, span: Span) -> Until:
    layout = decision.layout
    kept = (message_key(layout.messages[index], index) for index in span.kept)
    return Until(layout.anchor.position_of(span.stop) - 1, frozenset(kept))


class _Applied(NamedTuple):
    change: Change | None


class _Dropped(NamedTuple):
    """Why answers cannot be applied, and the seconds that the visit waited for them."""

    why: str
    waited: float = 0.0


class _StaleError(Exception):
    """Another question is asked than was answered."""


def _applied(
    visit: Visit, decision: Decision, ahead: Ahead
) -> Generator[Effect, object, _Applied | _Dropped]:
    """Make the step with the answers that are there, unless they are about something else."""
    if decision.action != "fold" or decision.need not in {"soft", "hard"}:
        asked = decision.need == "asked"
        return _Dropped("another one was asked for" if asked else "its span is not to be folded")
    waited = 0.0
    if ahead.running:
        outcome = yield AwaitFold()
        over, waited = Awaited(*outcome)  # type: ignore[misc]  # as AwaitFold says
        if not over:
            return _Dropped(NO_END, waited)
    answers = _Answers(ahead, waited)
    try:
        change = yield from _answered(
            compaction_steps(visit), visit, answers, urgent=decision.need == "hard"
        )
    except _StaleError:
        return _Dropped(OTHER if ahead.complete else NO_END, waited)
    except Exception:
        yield DropFold()  # the run ends with it, and the next one asks again
        raise
    if change is not None and "failures" in change.record:
        yield DropFold()  # it is counted now, and must not be counted again
    if not answers.taken and ahead.answered and not ahead.told:
        # Above the hard limit what does not fit is asked for anew, at once.
        yield Emit(_dropped(visit, decision, ahead, _Dropped(OTHER, waited)))
    # It stays: if the update does not reach the state, the next visit applies it once more.
    ahead.told = True
    return _Applied(change)


def _dropped(visit: Visit, decision: Decision, ahead: Ahead, found: _Dropped) -> dict[str, Any]:
    """The event of answers that are not applied."""
    corrected = visit.record.get("epoch", 0) != ahead.epoch
    why = "the digest was corrected since it began" if corrected else found.why
    return {
        "type": "compaction.dropped",
        **common_fields(decision),
        "reason": f"The fold that was made beside the agent is not applied: {why}.",
        "attempts": ahead.answered,
        **ahead.spent.fields(),
        **_beside(ahead, found.waited),
    }


def _answered(steps: Steps, visit: Visit, answers: _Answers, *, urgent: bool) -> Steps:
    """Steps whose questions are answered from what was kept.

    Nothing is told before it is sure that the answers fit.

    Raises:
        _StaleError: a question has no answer here, and it is not urgent.
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
                told.append(Emit({**effect.event, **_beside(answers.ahead, answers.waited)}))
            elif not isinstance(effect, CallModel):
                yield from _all(told)
                told.clear()
                outcome = yield effect
            else:
                answer = answers.next(effect)
                if isinstance(answer, Raised):
                    raise answer.error
                if answer is not None:
                    outcome = answer
                elif urgent or visit.tiers[effect.tier].info.local:
                    outcome = yield effect
                else:
                    raise _StaleError
    except StopIteration as stop:
        yield from _all(told)
        change: Change | None = stop.value
        return change


def _all(told: Sequence[Emit]) -> Generator[Effect, object, None]:
    for one in told:  # noqa: UP028  # outcomes are sent, and a list's own iterator takes none
        yield one


@dataclass
class _Answers:
    """The answers of a fold, each of which is taken once.

    Attributes:
        ahead: the fold.
        waited: seconds that the visit waited for it.
        taken: how many were taken.
    """

    ahead: Ahead
    waited: float
    taken: int = 0
    _used: Counter[bytes] = field(default_factory=Counter)

    def next(self, call: CallModel) -> object | None:
        """The next answer to a question, None where there is none."""
        question = question_of(call)
        answers, nth = self.ahead.answers(question), self._used[question]
        self._used[question] += 1
        if nth >= len(answers):
            return None
        self.taken += 1
        return answers[nth]


def _beside(ahead: Ahead, waited: float) -> dict[str, Any]:
    """What the events have that tell of a fold beside the agent."""
    return {"background": True, "duration": round(ahead.seconds, 3), "waited": round(waited, 3)}
