"""Fenced blocks and examples in a text: what a person pasted or set apart, and what they said."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

# An opening of backquotes has none behind it, a closing has nothing behind it (CommonMark 4.5).
_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>.*)$", re.MULTILINE)
_PROSE = frozenset(("", "text", "txt", "plain", "md", "markdown"))
"""Languages of fenced blocks that are none."""
_EXAMPLE = re.compile(r"<(\w{0,40}?example\w{0,40})>", re.IGNORECASE)
EXAMPLE_CHARS = 4_000
"""Characters between tags such as ``<format_example>`` that are left out, at most."""


def without_code(text: str) -> tuple[str, list[str]]:
    """``text`` without its fenced code blocks, and the blocks' contents.

    A block of one short line after a colon stays in the text as part of that line ("run exactly
    this: …"). A fence that is never closed is dropped alone; what follows it counts as prose.
    """
    if "```" not in text and "~~~" not in text:
        return text, []
    prose: list[str] = []
    blocks: list[str] = []
    position = 0
    for opening, closing in _fenced(text):
        before = text[position : opening.start()]
        block = text[opening.end() : closing.start()].strip() if closing else ""
        if closing and block:
            blocks.append(block)
        short = 0 < len(block) <= 200 and "\n" not in block
        if short and before.rstrip().endswith((":", "：")):
            before = f"{before.rstrip()} {block}"
        prose.append(before)
        position = (closing or opening).end()
    return "".join([*prose, text[position:]]), blocks


def _fenced(text: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """The opening of each fenced block and its closing; None where it is never closed."""
    unclosed = {"`": math.inf, "~": math.inf}  # marks of such a length and more have no closing
    position = 0
    while opening := _FENCE.search(text, position):
        mark = opening["mark"]
        closing = None
        if len(mark) < unclosed[mark[0]]:
            closing = next(
                (
                    one
                    for one in _FENCE.finditer(text, opening.end())
                    if one["mark"].startswith(mark) and not one["info"].strip()
                ),
                None,
            )
        if closing is None:
            unclosed[mark[0]] = min(len(mark), unclosed[mark[0]])
        yield opening, closing
        position = (closing or opening).end()


def without_examples(text: str) -> str:
    """``text`` without what stands between tags such as ``<format_example>``."""
    kept: list[str] = []
    position = 0
    lowered = text.lower() if "xample" in text.lower() else ""
    if len(lowered) != len(text):  # no example, or letters whose small form is longer
        return text
    while opening := _EXAMPLE.search(text, position):
        closing = f"</{opening[1].lower()}>"
        end = lowered.find(closing, opening.end(), opening.end() + EXAMPLE_CHARS)
        kept.append(text[position : opening.start() if end >= 0 else opening.end()])
        position = opening.end() if end < 0 else end + len(closing)
    return "".join([*kept, text[position:]])


def fenced_prose(text: str) -> str:
    """The contents of the fenced blocks of ``text`` that are not marked as code."""
    return "\n".join(
        text[opening.end() : closing.start()].strip("\n")
        for opening, closing in _fenced(text)
        if closing and opening["info"].strip().casefold() in _PROSE
    )


def unfenced(text: str) -> str:
    """``text`` without the marks of its code fences."""
    return _FENCE.sub("", text)
