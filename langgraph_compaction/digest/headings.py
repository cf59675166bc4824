"""Where the sections of a digest begin, however its headings are set.

Models set headings with marks, in bold, with numbers or a colon, whatever they are asked for. What
verification, condensing and extracts take for a heading is decided here alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from langgraph_compaction.digest.prompts import SECTIONS

LONGEST_HEADING = 60
"""Characters that a heading of no known name may have: a longer line says something."""

_SET, _BARE, _TEXT = 7, 8, 9
"""Levels below those of "#" to "######": bold or before a colon; a name and nothing else; none."""
_NAMES = {name.casefold(): name for name in SECTIONS}
_MARKS = " \t#*_:.-0123456789"
_LONGEST_NAME = 80  # with its marks
_ITEM = re.compile(r"[-*•][ \t]+")
_HASHES = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*")
_BOLD = re.compile(r"(\*\*|__)([^*]{3,60}?):?\1:?")
_SENTENCE_ENDS = tuple(".!?。！？")


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that is a heading.

    Attributes:
        section: the section of the built-in prompt that it opens; None: one of another name.
        title: what it says, without its marks.
        rest: what stands behind it on its line.
        level: 1 the highest; a deeper one stands within the section above it.
    """

    section: str | None
    title: str
    rest: str
    level: int


def headings(text: str) -> list[Heading | None]:
    """For each line of the text its heading; None for a line that is no heading.

    Items of a list that begin with a section's name are its headings only where the text opens no
    section otherwise: below a heading, "- Done: the report" says something.
    """
    lines = text.splitlines()
    found = [_heading(line) for line in lines]
    if any(one is not None and one.section for one in found):
        return found
    return [_known(line.strip(), items=True) or one for line, one in zip(lines, found, strict=True)]


def sections_in(text: str) -> set[str]:
    """The sections of the built-in prompt that a text has headings of."""
    return {found.section for found in headings(text) if found is not None and found.section}


def without_empty(text: str) -> str:
    """The text without headings of the built-in prompt's sections under which nothing stands.

    Nothing: no line before the next heading or the end but blank ones. A heading of another name
    on a deeper level is something, and so is a bare name: it may be all that a section says.
    """
    rows = list(zip(text.splitlines(), headings(text), strict=True))
    kept: list[str] = []
    blank: list[str] = []
    below = 0  # the level of what stands below; the end, or a section's heading, ends every section
    for row, found in reversed(rows):
        if not row.strip():
            blank.append(row)
            continue
        opens = found is not None and found.section is not None and found.level < _BARE
        if found is not None and opens and not found.rest and below <= found.level:
            blank = []
            continue
        kept += [*blank, row]
        blank = []
        below = 0 if opens else _TEXT if found is None else found.level
    kept += blank
    return text if len(kept) == len(rows) else "\n".join(reversed(kept))


def _heading(row: str) -> Heading | None:
    line = row.strip()
    return _known(line) or _other(line)


def _known(line: str, *, items: bool = False) -> Heading | None:
    """The heading of a section that the built-in prompt names."""
    head, colon, behind = line.partition(":")
    section = _NAMES.get(head[:_LONGEST_NAME].strip(_MARKS).casefold())
    if section is None:
        return None
    item = _ITEM.match(line)
    marks = line[item.end() :] if item else line
    rest = behind.strip(" \t*_")
    hashes = len(marks) - len(marks.lstrip("#"))
    level = hashes or (_SET if colon or marks.startswith(("**", "__")) else _BARE)
    is_text = level == _BARE and line.endswith(_SENTENCE_ENDS)
    if is_text or (item and not items and (rest or level == _BARE)):
        return None
    return Heading(section, section, rest, level)


def _other(line: str) -> Heading | None:
    """A heading of any other name: only what is set as one."""
    if len(line) > LONGEST_HEADING:
        return None
    if found := _HASHES.fullmatch(line):
        return Heading(None, found[2], "", len(found[1]))
    bold = _BOLD.fullmatch(line)
    if bold is None or bold[2].endswith(_SENTENCE_ENDS):
        return None
    return Heading(None, bold[2], "", _SET)
