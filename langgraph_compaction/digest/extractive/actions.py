"""Tool calls as single lines: what was done, with what, and how it came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_compaction.digest.sentences import (
    clean,
    clipped,
    sampled,
)
from langgraph_compaction.view.json import safe_json

ALONE, BESIDE = 120, 50
"""Characters shown of a call's only argument, and of one among several."""

_FAILED = re.compile(
    r"\A\W*(?:error|traceback|exception|fatal|failed|failure)\b|\A\{\"error\""
    r"|^\w*(?:Error|Exception): |: (?:command not found|No such file or directory)$"
    r"|<returncode>\s*-?[1-9]|\bexit(?:ed)?[ _](?:with )?(?:code|status):? *-?[1-9]"
    r"|\"(?:exit_code|returncode)\": *-?[1-9]|\"success\": *false",
    re.IGNORECASE | re.MULTILINE,
)
_EFFECTS = frozenset(
    "write create update delete remove send book cancel edit insert replace patch apply move "
    "rename upload publish post submit pay order transfer deploy install commit push merge save "
    "add schedule exchange return modify undo set put buy refund reply assign close approve "
    "present generate".split()
)
_READS = frozenset(
    "read get list search find view ls cat grep glob fetch open head tail show lookup query "
    "check think".split()
)
_SHELL_EFFECT = re.compile(
    r"(?:^|[;&|]\s*)(?:sudo\s+)?(?:rm|mv|cp|mkdir|touch|tee|patch|chmod|ln|kill|docker|kubectl"
    r"|(?:pip3?|npm|yarn|pnpm|apt|apt-get|brew|cargo|conda)\s+(?:install|add|remove|uninstall)"
    r"|git\s+(?:add|commit|push|checkout|switch|merge|rebase|reset|revert|stash|apply|rm|mv|tag)"
    r"|sed\s+-i)\b|(?<![-=<>&\d])>{1,2}\s*[\w./~]|<<"
)
_CD = re.compile(r"cd\s+\S+\s*(?:&&|;)\s*")
_TOLD = re.compile(r"(?P<name>[\w.:-]+)\((?P<arguments>.*?)\) → (?:ok|error)\b")
_SAYS_NOTHING = re.compile(r"[\[{<(\"]|(?:ok|none|null|success\w*|done)\b", re.IGNORECASE)


@dataclass(slots=True)
class Action:
    """A tool call and what became of it.

    Attributes:
        line: the call on one line.
        message: index of the message that made it.
        effect: whether it changed something, rather than looked something up.
        outcome: "ok", "error", or "" while it is unanswered.
        detail: the start of its result, or of the error in it.
        listed: whether it is told as an action; a to-do list is told by its entries.
    """

    line: str
    message: int
    effect: bool
    outcome: str = ""
    detail: str = ""
    listed: bool = True

    @classmethod
    def of(cls, name: str, arguments: Any, message: int) -> Action:
        """The action that a call stands for; a ``name`` of "" makes the argument a command."""
        return cls(_line(name or "command", arguments), message, _has_effect(name, arguments))

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.line.partition("(")[0]

    def finish(self, detail: str, *, failed: bool) -> None:
        """Note the outcome, and as much of ``detail`` as says something."""
        self.outcome = "error" if failed else "ok"
        if failed or not _SAYS_NOTHING.match(detail):
            self.detail = clipped(detail, 120 if failed else 40)

    def told(self, times: int = 1) -> str:
        """The line with its outcome and how many ``times`` it happened."""
        detail = f": {self.detail}" if self.detail else ""
        repeated = f" (×{times})" if times > 1 else ""
        return f"{self.line} → {self.outcome or 'no result'}{detail}{repeated}"


def tells_a_look_up(line: str) -> bool:
    """Whether a line tells, as `Action.told` does, of a call that only looked something up."""
    told = _TOLD.match(line)
    if not told or _has_effect(told["name"], None):
        return False
    reads = _verbs(told["name"])[:1]
    return not _READS.isdisjoint(reads) or not _has_effect("", told["arguments"])


def reads_as_error(result: str) -> bool:
    """Whether a tool's result reads like an error, whatever its status says."""
    return _FAILED.search(result) is not None


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
        return f"{name}({_argument(next(iter(arguments.values())), ALONE)})"
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


def _has_effect(name: str, arguments: Any) -> bool:
    """Whether a call changed something, judged by its command, else by its name."""
    command = arguments if not name else None
    if isinstance(arguments, Mapping):
        command = next((arguments[key] for key in ("command", "cmd") if key in arguments), None)
    if isinstance(command, str) and command.strip():
        verb = command.split(None, 1)[0].lower()
        return not _EFFECTS.isdisjoint(verb.split("_")) or bool(
            _SHELL_EFFECT.search(command[:2_000])
        )
    verbs = _verbs(name)
    return bool(verbs) and verbs[0] not in _READS and not _EFFECTS.isdisjoint(verbs)


def _verbs(name: str) -> list[str]:
    """The words of a tool's name in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
