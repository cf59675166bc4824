"""What the scripted summariser writes: lines under the headings that it was asked for."""

import re
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tests.benchmarks.survival.counting import text_tokens, weight
from tests.benchmarks.survival.facts import USERS

GIST = "gist"
GIST_EVERY = 8
"""One line in so many of what was read is noted beside the facts."""
GIST_SHARE = 0.2
"""Share of the length asked for that such notes may take, whatever the length; the last of the text
come first. They never take the room of a fact."""
GIST_CHARS = 90
"""Characters of such a note."""
GIST_LEAST = 50
"""Characters of a line worth a note."""

_PLACES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (USERS, ("constraint", "intent")),
    (("decision",), ("decision", "summary")),
    (("commitment",), ("commitment", "next")),
    (("update",), ("finding", "state", "summary")),
    ((GIST,), ("finding", "done", "summary")),
    ((), ("reference", "artifact")),
)
"""Words of the headings under which a kind belongs; the last entry is for all other kinds."""
_ALWAYS = (
    ("goal", "Go through the pipeline part by part, as the user asked."),
    ("intent", "Go through the pipeline part by part, as the user asked."),
    ("state", "The work is under way."),
    ("next", "Go on with the next part."),
)
"""What stands under the headings that no span of work is without."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a digest.

    Attributes:
        text: what it says.
        kind: of the fact, or `GIST`.
        number: of the fact; the greater is the newer.
        mentions: how often its value stood in what was read.
    """

    text: str
    kind: str
    number: int = 0
    mentions: int = 1

    @property
    def rank(self) -> tuple[bool, int, int]:
        """What goes in first: what the user demands, then the most mentioned, then the newest."""
        return (self.kind not in USERS, -self.mentions, -self.number)


def gist(source: str, known: Collection[str]) -> list[Line]:
    """Short notes of what else was read: some of its lines, shortened.

    Args:
        source: what was read.
        known: values of facts; lines with one of them are no gist.

    Returns:
        Each line once, the last of the text first.
    """
    found = []
    for line in map(str.strip, source.splitlines()):
        plain = len(line) >= GIST_LEAST and not re.search(r"[<>{}`#|]", line)
        if plain and zlib.crc32(line.encode()) % GIST_EVERY == 0:
            note = re.sub(r"^[-\s]*(?:Noted: )?", "", line)[:GIST_CHARS].rstrip()
            if not any(value in line for value in known):
                found.append(Line(f"Noted: {note}", GIST))
    return list(dict.fromkeys(reversed(found)))


def fitted(lines: Sequence[Line], headings: Sequence[str], limit: int) -> str:
    """The digest: as many of the lines, in their order, as ``limit`` tokens have room for.

    Args:
        lines: the most important first.
        headings: to sort them under; none: a plain list.
        limit: tokens of the text.
    """
    always = [
        (heading, text)
        for heading in headings
        for text in [next((t for word, t in _ALWAYS if word in heading.casefold()), None)]
        if text is not None
    ]
    frame = sum(weight(f"## {heading}\n") for heading in headings)
    left = limit - frame - sum(weight(f"- {text}\n") for _, text in always)
    notes = GIST_SHARE * limit
    chosen: list[Line] = []
    for line in lines:
        cost = weight(f"- {line.text}\n")
        if cost <= min(left, notes if line.kind == GIST else left):
            chosen.append(line)
            left -= cost
            notes -= cost if line.kind == GIST else 0
    chosen.sort(key=lambda line: line.number)
    text = _assembled(chosen, always, headings)
    while text_tokens(text) > limit:
        text = text[: len(text) // 2].rstrip()
    return text


def _assembled(
    chosen: Sequence[Line], always: Sequence[tuple[str, str]], headings: Sequence[str]
) -> str:
    if not headings:
        return "\n".join(f"- {line.text}" for line in chosen) or "- Nothing to record."
    sections: dict[str, list[str]] = {heading: [] for heading in headings}
    for heading, text in always:
        sections[heading].append(f"- {text}")
    for line in chosen:
        sections[_place(line.kind, headings)].append(f"- {line.text}")
    return "\n".join(
        "\n".join([f"## {heading}", *texts]) for heading, texts in sections.items() if texts
    )


def _place(kind: str, headings: Sequence[str]) -> str:
    words = next(words for kinds, words in _PLACES if kind in kinds or not kinds)
    for word in words:
        for heading in headings:
            if word in heading.casefold():
                return heading
    return headings[-1]
