"""Decisions, commitments and constraints of older records that a newer one has lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langgraph_compaction.digest.headings import headings
from langgraph_compaction.digest.prompts import CONSTRAINTS, DECISIONS, OPEN
from langgraph_compaction.digest.sentences import words

CARRIED = (CONSTRAINTS, DECISIONS, OPEN)
"""Sections of the built-in prompt whose lines are carried over: who forgets them breaks a promise.
What was found, done or stood open in them may be told shorter."""
KEPT_SHARE = 0.6
"""Share of the words of a line that one line of the newer record has if that still says it."""
LEAST_LETTERS = 4
"""Letters of a word that counts, in scripts with spaces: shorter ones link."""

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
    sections = [found and found.section for found in headings(text)]
    for section, line in lines:
        if section in sections:
            below = sections.index(section) + 1
            rows.insert(below, f"- {line}")
            sections.insert(below, None)
        else:
            rows += [f"## {section}", f"- {line}"]
            sections += [section, None]
    return "\n".join(rows)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    section: str | None = None
    for row, found in zip(text.splitlines(), headings(text), strict=True):
        section = section if found is None else found.section
        line = row if found is None else found.rest
        if section in CARRIED and line.strip():
            yield section, _MARK.sub("", line).strip()


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
