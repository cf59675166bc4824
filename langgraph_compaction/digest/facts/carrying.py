"""Decisions, commitments and constraints of older records that a newer one has lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langgraph_compaction.digest.prompts import SECTIONS
from langgraph_compaction.digest.sentences import words

CARRIED = ("Constraints and preferences", "Decisions", "Commitments and open items")
"""Sections of the built-in prompt whose lines are carried over: who forgets them breaks a promise.
What was found, done or stood open in them may be told shorter."""
KEPT_SHARE = 0.6
"""Share of the words of a line that one line of the newer record has if that still says it."""
LEAST_LETTERS = 4
"""Letters of a word that counts, in scripts with spaces: shorter ones link."""

_HEADING_MARKS = " \t#*_:.-0123456789"
_NAMES = {name.casefold(): name for name in SECTIONS}
_BULLET = re.compile(r"[ \t]*[-*•][ \t]")
_MARK = re.compile(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+")


def lost_lines(old: Sequence[str], text: str) -> list[tuple[str, str]]:
    """Sections and lines of earlier records that ``text`` no longer says, the newest first.

    Args:
        old: texts with the sections of the built-in prompt, oldest first; others have no such
            lines.
        text: the record that replaces them.
    """
    known = [_content(line) for line in text.splitlines()]
    found: dict[str, str] = {}
    for section, line in (pair for one in old for pair in _lines(one)):
        found.pop(line, None)
        found[line] = section
    return [(section, line) for line, section in reversed(found.items()) if not _said(line, known)]


def with_lines(text: str, lines: Sequence[tuple[str, str]]) -> str:
    """``text`` with lines added, each at the head of its section: they are older than the rest.

    Args:
        text: a record.
        lines: sections and lines, the newest first.
    """
    rows = text.splitlines()
    for section, line in lines:
        at = next((n for n, row in enumerate(rows) if _heading(row)[0] == section), None)
        if at is None:
            rows += [f"## {section}", f"- {line}"]
        else:
            rows.insert(at + 1, f"- {line}")
    return "\n".join(rows)


def sections_in(text: str) -> set[str]:
    """The sections of the built-in prompt that a text has headings of."""
    return {name for row in text.splitlines() if (name := _heading(row)[0])}


def _lines(text: str) -> Iterator[tuple[str, str]]:
    section: str | None = None
    for row in text.splitlines():
        name, rest = _heading(row)
        section = section if name is None else name
        if section in CARRIED and rest.strip():
            yield section, _MARK.sub("", rest).strip()


def _heading(row: str) -> tuple[str | None, str]:
    """The section that a row opens, "" for one of no known name, and what else stands in it.

    Models set headings with marks, in bold, with numbers or a colon, whatever they are asked for.
    """
    name = _NAMES.get(row[:80].strip(_HEADING_MARKS).casefold())
    if name is not None:
        return name, ""
    head, colon, rest = row.partition(":")
    if colon and not _BULLET.match(row):
        name = _NAMES.get(head[:80].strip(_HEADING_MARKS).casefold())
        if name is not None:
            return name, rest.strip(" \t*_")
    return ("", "") if row.lstrip()[:1] == "#" else (None, row)


def _said(line: str, known: Sequence[frozenset[str]]) -> bool:
    content = _content(line)
    return not content or any(len(content & other) >= KEPT_SHARE * len(content) for other in known)


def _content(line: str) -> frozenset[str]:
    found = words(line)
    telling = (
        word
        for word in found
        if len(word) >= LEAST_LETTERS or not word.isascii() or any(map(str.isdigit, word))
    )
    return frozenset(telling) or frozenset(found)
