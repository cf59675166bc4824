"""Tool calls as single lines: what was done, with what, and how it came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.calls_told import Told, parsed, tool_in
from langgraph_compaction.digest.facts.arguments import OPERANDS
from langgraph_compaction.digest.sentences import (
    Sentence,
    clean,
    clipped,
    sampled,
)
from langgraph_compaction.view.json import safe_json

ALONE, BESIDE = 120, 50
"""Characters shown of a call's only argument, and of one among several."""

FAILURE_CHARS = 2_000
"""Characters of a result in which an error is looked for: half at its head, half at its tail."""

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
    "present generate notify trigger start stop restart launch grant revoke enable disable "
    "register restore reset rollback terminate drop charge withdraw deposit invite share forward "
    "accept reject sign escalate reserve reschedule subscribe unsubscribe".split()
)
_READS = frozenset(
    "read get list search find view ls cat grep glob fetch open head tail show lookup query "
    "check think".split()
)
_NAMESPACE = re.compile(r"__|[.:/]")
"""Stands between a tool's own name and the server's that has it: ``mcp__github__create_issue``."""
_SHELL_EFFECT = re.compile(
    r"(?:^|[;&|\n]\s*)(?:sudo\s+)?(?:rm|mv|cp|mkdir|touch|tee|patch|chmod|ln|kill"
    r"|docker\s+(?!ps|images|logs|inspect|info|version|stats)\w+"
    r"|kubectl\s+(?!get|describe|logs|top|version|explain)\w+"
    r"|(?:pip3?|npm|yarn|pnpm|apt|apt-get|brew|cargo|conda)\s+(?:install|add|remove|uninstall"
    r"|publish)"
    r"|git\s+(?:add|commit|push|checkout|switch|merge|rebase|reset|revert|stash|apply|rm|mv|tag"
    r"|clone|pull)"
    r"|gh\s+\w+\s+(?:create|merge|close|comment|edit|delete|review)"
    r"|systemctl\s+(?:start|stop|restart|reload|enable|disable)|terraform\s+(?:apply|destroy)"
    r"|curl\s[^;&|\n]*(?:-X\s*|--request[ =])(?:POST|PUT|PATCH|DELETE)"
    r"|sed\s+-i)\b|(?<![-=<>&\d])>{1,2}\s*(?!/dev/null\b)[\w./~]|<<"
)
_SQL_EFFECT = re.compile(
    r"\s*(?:insert\s+into|update\s+\S+\s+set|delete\s+from"
    r"|(?:create|alter|drop|truncate)\s+(?:table|index|view|schema|database))\b",
    re.IGNORECASE,
)
_METHODS = {
    **dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), True),
    **dict.fromkeys(("GET", "HEAD", "OPTIONS"), False),
}
"""Methods of HTTP, and whether they change something."""
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
        detail: the start of its result, or of the error in it.
        listed: whether it is told as an action; a to-do list is told by its entries.
    """

    line: str
    message: int
    effect: bool
    outcome: Literal["ok", "error", ""] = ""
    detail: str = ""
    listed: bool = True

    @classmethod
    def of(cls, name: str, arguments: Any, message: int) -> Action:
        """The action that a call stands for; a ``name`` of "" makes the argument a command."""
        return cls(_line(name or "command", arguments), message, _has_effect(name, arguments))

    @property
    def name(self) -> str:
        """The tool's name."""
        return tool_in(self.line)

    def finish(self, result: Sequence[Sentence], *, failed: bool) -> None:
        """Note the outcome, and as much of the sentences of its result as says something."""
        self.outcome = "error" if failed else "ok"
        wrong = telling(result, failed=True)[-1:] if failed else []
        shown = wrong or telling(result, failed=False)[:1]
        detail = shown[0].text if shown else ""
        if failed or not _SAYS_NOTHING.match(detail):
            self.detail = clipped(detail, 120 if failed else 40)

    def told(self, times: int = 1) -> str:
        """The line with its outcome and how many ``times`` it happened."""
        return Told(self.line, self.outcome or "no result", self.detail, times).line


def tells_a_look_up(line: str) -> bool:
    """Whether a line tells, as `Action.told` does, of a call that only looked something up."""
    told = parsed(line)
    tool = tool_in(told.call) if told else ""
    if told is None or not _TOOL.fullmatch(tool) or _has_effect(tool, None):
        return False
    given = told.call[len(tool) + 1 :].removesuffix(")")
    return not _READS.isdisjoint(_known_verbs(tool)[:1]) or not _has_effect("", given)


def reads_as_error(text: str) -> bool:
    """Whether a text of a tool reads like an error."""
    return _FAILED.search(text) is not None


def failed(result: BaseMessage, text: str) -> bool:
    """Whether a call failed: by its result's status, or by what the result says.

    Args:
        result: the message that answers the call.
        text: what it says, of which no caller has to take a sample first: lists, extracts and
            prompts may show different parts of a result, but agree on how the call came out.
    """
    if getattr(result, "status", "success") == "error":
        return True
    return reads_as_error(sampled(text, FAILURE_CHARS))


def telling(result: Sequence[Sentence], *, failed: bool) -> list[Sentence]:
    """The sentences of a result that say something; of a failed one the last that say what."""
    found = [part for part in result if any(map(str.isalpha, part.text))]
    return [part for part in found if cues.ERROR(part)][-2:] if failed else found


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


def _has_effect(name: str, arguments: Any) -> bool:
    """Whether a call changed something, judged by its command or request, else by its name."""
    given = arguments if isinstance(arguments, Mapping) else {}
    command = _text(given, "command", "cmd") if name else arguments
    if isinstance(command, str) and command.strip():
        verb = command.split(None, 1)[0].lower()
        return not _EFFECTS.isdisjoint(verb.split("_")) or bool(
            _SHELL_EFFECT.search(command[:2_000])
        )
    if (method := _text(given, "method", "http_method").upper()) in _METHODS:
        return _METHODS[method]
    if _SQL_EFFECT.match(_text(given, "query", "sql", "statement")):
        return True
    # "get_update" only reads: the first verb is what the tool does.
    return next(iter(_known_verbs(name)), "") in _EFFECTS


def _text(arguments: Mapping[Any, Any], *names: str) -> str:
    """The first of some arguments that is given, if it is a text; else ""."""
    found = next((arguments[name] for name in names if name in arguments), "")
    return found if isinstance(found, str) else ""


def _known_verbs(name: str) -> list[str]:
    """The verbs in a tool's name; those of its server's name only where its own has none."""
    for part in (_NAMESPACE.split(name)[-1], name):
        if known := [verb for verb in _verbs(part) if verb in _EFFECTS or verb in _READS]:
            return known
    return []


def _verbs(name: str) -> list[str]:
    """The words of a tool's name in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
