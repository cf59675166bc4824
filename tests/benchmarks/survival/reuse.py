"""Real transcripts: what later messages use again, and whether the view still has it then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage

from tests.benchmarks.survival.counting import joined, tokens
from tests.benchmarks.survival.facts import Fact
from tests.benchmarks.survival.matching import holds
from tests.benchmarks.survival.systems import System

_URL = re.compile(r"https?://[^\s<>\"'`)\]}|\\]+")
_PATH = re.compile(r"(?<![\w/:.@~+<-])(?:(?:~|\.{0,2})/(?:[\w.@+-]+/)*|(?:[\w.@+-]+/)+)[\w.@+-]*\w")
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,.]*\d(?![\w-])")
LEAST_DIGITS = 3
"""Digits of a number that counts: shorter ones recur by chance."""
MOST_CHARS = 200
"""Characters of the longest reference: what is longer is data."""


def references(text: str, *more: re.Pattern[str]) -> list[str]:
    """The URLs, paths and numbers of a text, each once, in the order of the text.

    Args:
        text: any text.
        more: what else counts, looked for in what is left.
    """
    found: list[tuple[int, str]] = []
    rest = text
    for pattern in (_URL, _PATH, _NUMBER, *more):
        for match in pattern.finditer(rest):
            name = match.group().rstrip(".,;:")
            if _counts(name, pattern):
                found.append((match.start(), name))
        # What was taken is blanked: the path within a URL is none of its own.
        rest = pattern.sub(lambda match: " " * len(match.group()), rest)
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _counts(name: str, pattern: re.Pattern[str]) -> bool:
    if len(name) > MOST_CHARS:
        return False
    if pattern is _NUMBER:
        return sum(map(str.isdigit, name)) >= LEAST_DIGITS
    if pattern is _PATH:
        named = re.search(r"\.\w{1,5}$", name) is not None
        return any(map(str.isalpha, name)) and (named or name.count("/") > 1)
    return True


def facts_of(messages: Sequence[BaseMessage]) -> tuple[Fact, ...]:
    """The references of a transcript as facts, numbered in the order of their first mention."""
    names = dict.fromkeys(name for message in messages for name in references(joined([message])))
    return tuple(
        Fact(number, "reference", "result", name, name, name) for number, name in enumerate(names)
    )


@dataclass
class Reuse:
    """What was found in one transcript under one system.

    Attributes:
        uses: references in messages of the agent that stood in an earlier message.
        seen: of these, those in the view for which the message was written.
        hidden: those whose earlier messages were not in the view, or not with them.
        recalled: of these, those in the view all the same: the digest has them.
        view_tokens: of all views together.
        views: how many.
    """

    uses: int = 0
    seen: int = 0
    hidden: int = 0
    recalled: int = 0
    view_tokens: int = 0
    views: int = 0

    def cell(self) -> str:
        """Percent of all uses and of the hidden ones, and the view's tokens on the average."""
        seen = f"{100 * self.seen / self.uses:.1f}" if self.uses else "–"
        recalled = f"{100 * self.recalled / self.hidden:.0f}" if self.hidden else "–"
        return f"{seen} / {recalled} of {self.hidden} ({self.view_tokens / self.views:,.0f})"


def replay(messages: Sequence[BaseMessage], system: System) -> Reuse:
    """Visit the system before every message of the agent and see what that message uses again."""
    reuse = Reuse()
    known: set[str] = set()
    ids = {message.id for message in messages}
    waiting: list[BaseMessage] = []
    for message in messages:
        used = references(joined([message]))
        if isinstance(message, AIMessage) and waiting:
            view = system.visit(waiting)
            waiting = []
            text = joined(view)
            original = joined(shown for shown in view if shown.id in ids)
            reuse.views += 1
            reuse.view_tokens += tokens(view)
            for name in used:
                if name in known:
                    _note(reuse, seen=holds(text, name), shown=holds(original, name))
        known.update(used)
        waiting.append(message)
    return reuse


def _note(reuse: Reuse, *, seen: bool, shown: bool) -> None:
    reuse.uses += 1
    reuse.seen += seen
    reuse.hidden += not shown
    reuse.recalled += seen and not shown
