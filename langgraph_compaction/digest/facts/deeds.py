"""What was done: the calls of a span that had an effect, each as one line with its outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage, SystemMessage

from langgraph_compaction.digest.actions import Action, reads_as_error
from langgraph_compaction.digest.calls import RESULT_SENTENCE_CHARS, Calls, is_agent
from langgraph_compaction.digest.facts.layout import Parts, unlabelled
from langgraph_compaction.digest.fences import without_code
from langgraph_compaction.digest.rendering import RESULT_CHARS, message_text
from langgraph_compaction.digest.sentences import Sentence, sampled, sentences

SAID_CHARS = 20_000
"""Characters read of one message of the agent, for commands that it writes as code."""
MOST_DEEDS = 1_000
"""Calls of a span that are looked at, the best: no segment has room for more lines."""

_TOLD = re.compile(
    r"(?P<call>.*) → (?P<outcome>ok|error|no result)(?P<detail>: .*?)??"
    r"(?: \(×(?P<times>\d{1,9})\))?"
)
_NAME = re.compile(r"(?:\A|, )([^\s,=()][^,=()]{0,59})=")
_RANKS = {"ok": 2, "no result": 1, "": 1, "error": 0}
"""Successes come before what has no result, and both before failures."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Equal calls with equal outcomes.

    Attributes:
        call: the call on one line.
        outcome: "ok", "error" or "no result".
        detail: the start of the last one's result, after ": "; or "".
        times: how many there were.
    """

    call: str
    outcome: str
    detail: str = ""
    times: int = 1

    @classmethod
    def of(cls, line: str) -> Deed:
        """What a line tells, as `Action.told` writes it; any other counts as a call."""
        found = _TOLD.fullmatch(line)
        if found is None:
            return cls(line, "")
        return cls(found["call"], found["outcome"], found["detail"] or "", int(found["times"] or 1))

    @property
    def short(self) -> str:
        """The deed without the detail and the number."""
        return f"{self.call} → {self.outcome}" if self.outcome else self.call

    @property
    def line(self) -> str:
        """The deed on one line."""
        return f"{self.short}{self.detail}" + (f" (×{self.times})" if self.times > 1 else "")

    @property
    def rank(self) -> int:
        """How much it counts, by its outcome."""
        return _RANKS[self.outcome]

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.call.partition("(")[0]

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Names and values of the arguments, as far as the line shows them.

        A name of "" where the line does not have it.
        """
        given = self.call.partition("(")[2].removesuffix(")")
        first, *named = _NAME.split(given)
        return [*([("", first)] if first else []), *zip(named[::2], named[1::2], strict=True)]


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
        line = unlabelled(" ".join(redact(action.told()).split()))
        if line:
            told.append(replace(Deed.of(line), times=times))
    found: dict[tuple[str, str], Deed] = {}
    for deed in told:
        before = found.pop((deed.call, deed.outcome), None)
        times = deed.times + (before.times if before else 0)
        found[deed.call, deed.outcome] = replace(deed, times=times)
    return list(found.values())


def _effects(messages: Sequence[BaseMessage]) -> list[tuple[Action, int]]:
    """The calls with an effect, equal ones as the last of them with their number."""
    found: dict[tuple[str, str], tuple[Action, str, int]] = {}
    for action, result in _actions(messages):
        key = (action.line, action.outcome)
        times = found.pop(key)[-1] if key in found else 0
        found[key] = (action, result, times + 1)
    order = sorted(found, key=lambda key: _RANKS[key[1]])
    best = frozenset(order[-MOST_DEEDS:])
    effects = []
    for key, (action, result, times) in found.items():
        if key in best:
            if action.outcome:
                parts = [Sentence.of(part) for part in sentences(result, RESULT_SENTENCE_CHARS)]
                action.finish(parts, failed=action.outcome == "error")
            effects.append((action, times))
    return effects


def _actions(messages: Sequence[BaseMessage]) -> Iterator[tuple[Action, str]]:
    """The calls with an effect and what their results say, as much as is read of it."""
    calls = Calls()
    results: dict[int, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            continue
        text = message_text(message)
        if is_agent(message):
            for _ in calls.made(index, message, without_code(sampled(text, SAID_CHARS))[1]):
                pass
        elif (action := calls.answered(message, text)) and action.effect:
            said = sampled(text, RESULT_CHARS)
            failed = getattr(message, "status", "success") == "error" or reads_as_error(said)
            action.outcome = "error" if failed else "ok"
            results[id(action)] = said
    return ((one, results.get(id(one), "")) for one in calls.actions if one.effect)
