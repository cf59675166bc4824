"""Which calls change something: known by the command or request in them, else by the tool's name.

Such a call is never to be made again for the sake of its result. Lists of names are never complete:
a tool whose name has no known verb counts as one that only looks something up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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


def has_effect(name: str, arguments: Any) -> bool:
    """Whether a call changes something, judged by its command or request, else by its name.

    Args:
        name: of the tool; "" makes the arguments a command.
        arguments: of the call.
    """
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


def only_reads(name: str) -> bool:
    """Whether the first verb in a tool's name is one of looking something up."""
    return not _READS.isdisjoint(_known_verbs(name)[:1])


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
