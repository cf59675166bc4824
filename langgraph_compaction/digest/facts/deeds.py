"""What was done: the calls of a span that had an effect, each as one line with its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from langchain_core.messages import BaseMessage, SystemMessage

from langgraph_compaction.digest.actions import Action
from langgraph_compaction.digest.calls import RESULT_SENTENCE_CHARS, Calls, is_agent
from langgraph_compaction.digest.calls_told import Outcome, Told, arguments_in, parsed, tool_in
from langgraph_compaction.digest.facts.layout import Parts, unlabelled
from langgraph_compaction.digest.fences import without_code
from langgraph_compaction.digest.outcomes import Answer, answer_of
from langgraph_compaction.digest.rendering import RESULT_CHARS, message_text
from langgraph_compaction.digest.sentences import Sentence, sampled, sentences

SAID_CHARS = 20_000
"""Characters read of one message of the agent, for commands that it writes as code."""
MOST_DEEDS = 1_000
"""Calls of a span that are looked at, the best: no segment has room for more lines."""

_RANKS = {"ok": 2, "answered": 1, "no result": 1, "": 1, "error": 0}
"""Successes come before what may have been one, and both before failures."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Equal calls with equal outcomes.

    Attributes:
        call: the call on one line.
        outcome: "" where a line told of nothing but the call.
        detail: the start of the last one's result; or "".
        times: how many there were.
    """

    call: str
    outcome: Outcome | Literal[""]
    detail: str = ""
    times: int = 1

    @classmethod
    def of(cls, line: str) -> Deed:
        """What a line tells, as `Action.told` writes it; any other counts as a call."""
        told = parsed(line)
        return cls(line, "") if told is None else cls(*told)

    @classmethod
    def from_action(cls, action: Action, redact: Callable[[str], str], times: int) -> Deed | None:
        """The deed that an action was ``times`` times; None where the hook leaves no call.

        Args:
            action: with what is known of its result.
            redact: takes secrets out of what is put together here.
            times: how many equal actions there were.
        """
        call = unlabelled(_one_line(redact(action.line)))
        detail = _one_line(redact(action.detail))
        return cls(call, action.outcome or "no result", detail, times) if call else None

    @property
    def short(self) -> str:
        """The deed without the detail and the number."""
        return Told(self.call, self.outcome).line if self.outcome else self.call

    @property
    def line(self) -> str:
        """The deed on one line."""
        if not self.outcome:
            return self.call + (f" (×{self.times})" if self.times > 1 else "")
        return Told(self.call, self.outcome, self.detail, self.times).line

    @property
    def rank(self) -> int:
        """How much it counts, by its outcome."""
        return _RANKS[self.outcome]

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return tool_in(self.call)

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Names and values of the arguments, as `arguments_in` reads them."""
        return arguments_in(self.call)


def deeds_of(
    old: Iterable[Parts], messages: Sequence[BaseMessage], redact: Callable[[str], str]
) -> list[Deed]:
    """What was done in earlier segments and in messages after them, by the last time, oldest first.

    Args:
        old: the parts of segments, oldest first.
        messages: any span, oldest first.
        redact: takes secrets out of what is put together here.
    """
    told = [Deed.of(line) for parts in old for line in parts.done]
    for action, times in _effects(messages):
        deed = Deed.from_action(action, redact, times)
        if deed is not None:
            told.append(deed)
    found: dict[tuple[str, str, str], Deed] = {}
    for deed in told:
        key = _equal(deed.call, deed.outcome, deed.detail)
        before = found.pop(key, None)
        times = deed.times + (before.times if before else 0)
        found[key] = replace(deed, times=times)
    return list(found.values())


def _equal(call: str, outcome: str, said: str) -> tuple[str, str, str]:
    """What equal deeds share: where what was said is all that is known of the outcome, that too."""
    return call, outcome, said if outcome == "answered" else ""


class _Result(NamedTuple):
    """What the result of a call says, as much as is read of it, and how the call came out."""

    text: str
    answer: Answer | None


_NO_RESULT = _Result("", None)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _effects(messages: Sequence[BaseMessage]) -> list[tuple[Action, int]]:
    """The calls with an effect, equal ones as the last of them with their number."""
    found: dict[tuple[str, str, str], tuple[Action, _Result, int]] = {}
    for action, result in _actions(messages):
        key = _equal(action.line, action.outcome, result.text)
        times = found.pop(key)[-1] if key in found else 0
        found[key] = (action, result, times + 1)
    order = sorted(found, key=lambda key: _RANKS[key[1]])
    best = frozenset(order[-MOST_DEEDS:])
    effects = []
    for key, (action, result, times) in found.items():
        if key in best:
            if result.answer:
                parts = sentences(result.text, RESULT_SENTENCE_CHARS)
                action.finish([Sentence.of(part) for part in parts], result.answer)
            effects.append((action, times))
    return effects


def _actions(messages: Sequence[BaseMessage]) -> Iterator[tuple[Action, _Result]]:
    """The calls with an effect and their results."""
    calls = Calls()
    results: dict[int, _Result] = {}
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            continue
        text = message_text(message)
        if is_agent(message):
            for _ in calls.made(index, message, without_code(sampled(text, SAID_CHARS))[1]):
                pass
        elif (action := calls.answered(message, text)) and action.effect:
            answer = answer_of(message, text, effect=True)
            action.outcome = answer.outcome
            results[id(action)] = _Result(sampled(text, RESULT_CHARS), answer)
    return ((one, results.get(id(one), _NO_RESULT)) for one in calls.actions if one.effect)
