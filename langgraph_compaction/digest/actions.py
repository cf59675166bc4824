"""Tool calls as single lines: what was done, with what, and how it came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langgraph_compaction.digest.calls_told import Told, parsed, tool_in
from langgraph_compaction.digest.facts.arguments import OPERANDS
from langgraph_compaction.digest.outcomes import Answer, Answered, said
from langgraph_compaction.digest.sentences import (
    Sentence,
    clean,
    clipped,
    sampled,
)
from langgraph_compaction.view.effects import has_effect, only_reads
from langgraph_compaction.view.json import safe_json

ALONE, BESIDE = 120, 50
"""Characters shown of a call's only argument, and of one among several."""

_MAIN = (
    "command cmd path file_path filepath file filename url uri query pattern sql code name".split()
)
"""Names of arguments that say what a call is about, the most telling first."""
_CD = re.compile(r"cd\s+\S+\s*(?:&&|;)\s*")
_TOOL = re.compile(r"[\w.:/-]+")
_SAYS_NOTHING = re.compile(r"[\[{<(\"]|(?:ok|none|null|success\w*|done)\b", re.IGNORECASE)


@dataclass(slots=True)
class Action:
    """A tool call and what became of it.

    Attributes:
        line: the call on one line.
        message: index of the message that made it.
        effect: whether it changed something, rather than looked something up.
        outcome: "" while it is unanswered.
        detail: the start of its result, or of what in it speaks of an error.
        listed: whether it is told as an action; a to-do list is told by its entries.
    """

    line: str
    message: int
    effect: bool
    outcome: Answered | Literal[""] = ""
    detail: str = ""
    listed: bool = True

    @classmethod
    def of(cls, name: str, arguments: Any, message: int) -> Action:
        """The action that a call stands for; a ``name`` of "" makes the argument a command."""
        return cls(_line(name or "command", arguments), message, has_effect(name, arguments))

    @property
    def name(self) -> str:
        """The tool's name."""
        return tool_in(self.line)

    def finish(self, result: Sequence[Sentence], answer: Answer) -> None:
        """Note the outcome, and as much of the sentences of its result as says something."""
        self.outcome = answer.outcome
        detail = said(result, answer)
        if answer.outcome != "ok" or not _SAYS_NOTHING.match(detail):
            self.detail = clipped(detail, 40 if answer.outcome == "ok" else 120)

    def told(self, times: int = 1) -> str:
        """The line with its outcome and how many ``times`` it happened."""
        return Told(self.line, self.outcome or "no result", self.detail, times).line


def tells_a_look_up(line: str) -> bool:
    """Whether a line tells, as `Action.told` does, of a call that only looked something up."""
    told = parsed(line)
    tool = tool_in(told.call) if told else ""
    if told is None or not _TOOL.fullmatch(tool) or has_effect(tool, None):
        return False
    given = told.call[len(tool) + 1 :].removesuffix(")")
    return only_reads(tool) or not has_effect("", given)


def main_argument(arguments: Any) -> str:
    """What a call is about, on one line: its command or path, else its first text, else "".

    A command's first line, of a long path the end.
    """
    if not isinstance(arguments, Mapping):
        return _argument(arguments, ALONE) if arguments else ""
    named = (arguments[key] for key in _MAIN if isinstance(arguments.get(key), str))
    texts = (value for value in arguments.values() if isinstance(value, str))
    rest = iter(arguments.values())
    found = next((value for values in (named, texts, rest) for value in values if value), "")
    return _argument(found, ALONE)


def strings(arguments: Any, size: int) -> Iterator[str]:
    """The strings in a call's arguments, of each head and tail of at most ``size`` characters."""
    if isinstance(arguments, str):
        yield sampled(arguments, size)
    elif isinstance(arguments, Mapping):
        for item in arguments.values():
            yield from strings(item, size)
    elif isinstance(arguments, Sequence):
        for item in arguments:
            yield from strings(item, size)


def todo_list(arguments: Any) -> list[tuple[str, str]]:
    """Entries and states of the to-do list in a call's arguments, if it is one.

    The shape that to-do tools share: ``{"todos": [{"content": …, "status": …}, …]}``.
    """
    items = arguments.get("todos") if isinstance(arguments, Mapping) else None
    if not isinstance(items, list):
        return []
    return [
        (clean(str(item.get("content", ""))), clean(str(item.get("status", ""))))
        for item in items
        if isinstance(item, Mapping) and item.get("content") and item.get("status")
    ]


def _line(name: str, arguments: Any) -> str:
    """A call on one line: its name and arguments; long texts beside others are left out."""
    name = clean(name) or "tool"  # of a name nothing may be left: it is what a model wrote
    if not isinstance(arguments, Mapping):
        return f"{name}({_argument(arguments, ALONE)})"
    if len(arguments) == 1:
        ((key, value),) = arguments.items()
        # Of what the value is the tool tells, but a setting is nothing without its name.
        label = "" if key in OPERANDS else f"{clean(str(key))}="
        return f"{name}({label}{_argument(value, ALONE)})"
    shown = [f"{clean(str(key))}={_argument(value, BESIDE)}" for key, value in arguments.items()]
    short = [argument for argument in shown if not argument.endswith("=…")]
    left_out = ["…"] if len(short) < len(shown) else []
    return f"{name}({clipped(', '.join(short + left_out), 3 * BESIDE)})"


def _argument(value: Any, size: int) -> str:
    """The first line of an argument, at most ``size`` characters; of a path the end."""
    text = safe_json(value)
    lines = [line for line in map(clean, sampled(text, 2_000).splitlines()) if line]
    if len(lines) > 1 and size < ALONE:
        return "…"
    text = _CD.sub("", lines[0], count=1) if lines else ""
    if len(text) > size and "/" in text and " " not in text:
        return "…/" + text[-size:].partition("/")[2]
    return clipped(text, size) + (" …" if len(lines) > 1 else "")
