"""Taking earlier digests apart again, so that one can be made of several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.actions import tells_a_look_up
from langgraph_compaction.digest.calls_told import ARROW
from langgraph_compaction.digest.extractive.extracts import USER, Bullet, Origin
from langgraph_compaction.digest.extractive.filling import NOTE, SHORT_NOTE
from langgraph_compaction.digest.extractive.ranking import has_literal
from langgraph_compaction.digest.fences import unfenced
from langgraph_compaction.digest.headings import headings
from langgraph_compaction.digest.prompts import (
    CONSTRAINTS,
    DECISIONS,
    DONE,
    FINDINGS,
    GOAL,
    NEXT,
    OPEN,
    REFERENCES,
    SECTIONS,
    STATE,
)
from langgraph_compaction.digest.references import references
from langgraph_compaction.digest.sentences import (
    Sentence,
    sentences,
)

_QUOTE = re.compile(r"the user.{0,60}word for word:", re.IGNORECASE)
_KEYWORDS = (
    ("goal", GOAL), ("objective", GOAL), ("constraint", CONSTRAINTS), ("preference", CONSTRAINTS),
    ("user", CONSTRAINTS), ("decision", DECISIONS), ("open", OPEN), ("commitment", OPEN),
    ("pending", OPEN), ("reference", REFERENCES), ("artifact", REFERENCES), ("finding", FINDINGS),
    ("done", DONE), ("completed", DONE), ("next", NEXT), ("state", STATE),
)  # fmt: skip
_PRINTED = re.compile(rf"[\w.:-]+{ARROW}")
# A capital within a sentence or a word, or something in quotation marks; not "I".
_NAMES = re.compile(r"\w[,;]? [('‘]*[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]\w|[a-z][A-Z]|[\"“”«„「『]\w")
_BULLETS = 100_000  # more than a digest has


def merged(texts: Sequence[str], limit: int) -> dict[str, list[Bullet]]:
    """The extracts of several digests by section.

    The newer rank higher; but constraints, open items and references count by what they say, the
    first goal comes first, and only the newest state and next step remain. Facts outlast the state
    that they stood in: they become findings.

    Args:
        texts: the digests, oldest first.
        limit: characters of one extract.
    """
    found: dict[str, list[Bullet]] = {name: [] for name in SECTIONS}
    for age, text in enumerate(texts):
        newest: dict[str, list[Bullet]] = {name: [] for name in SECTIONS}
        for number, (section, part) in enumerate(_parsed(text, limit)):
            sentence = Sentence.of(part)
            score = _score(section, sentence, age, len(texts)) - number / _BULLETS
            order = age * _BULLETS + number
            words = () if section in (DONE, REFERENCES) else sentence.words
            origin = _origin(section, part)
            newest[section].append(Bullet(part, order, score, frozenset(words), origin))
            if origin == "printed":
                # The line may go; what it refers to takes less room.
                newest[REFERENCES] += [
                    Bullet(name, order, score / len(texts))
                    for name in dict.fromkeys(references(part))
                ]
        for section, bullets in newest.items():
            if bullets and section in (STATE, NEXT):
                # The user's words outlast the state they stood in.
                said = [one for one in found[section] if one.text.startswith(USER)]
                found[CONSTRAINTS] += said
                if section == STATE:
                    found[FINDINGS] += [one for one in found[STATE] if _outlasts_state(one)]
                found[section] = bullets
            else:
                found[section] += bullets
    if not any(found.values()):
        found[STATE] = [Bullet(f"{len(texts)} records without text.", 0, 0.0)]
    return found


def _origin(section: str, part: str) -> Origin:
    if section == DONE:
        return "printed" if tells_a_look_up(part) else "said"
    return "printed" if section == FINDINGS and _PRINTED.match(part) else "said"


def _outlasts_state(bullet: Bullet) -> bool:
    """Whether a line of an earlier state is a fact: it holds a number, a path, a name."""
    if bullet.text.startswith(USER):
        return False
    return has_literal(Sentence.of(bullet.text)) or _NAMES.search(bullet.text) is not None


def _score(section: str, sentence: Sentence, age: int, ages: int) -> float:
    if section == GOAL:
        return 2.0 * ages if age == 0 else float(age)
    if section in (CONSTRAINTS, OPEN, REFERENCES):
        return age / ages + 2.0 * cues.FIRM(sentence) + cues.SOFT(sentence)
    return float(age)


def _parsed(text: str, limit: int) -> Iterator[tuple[str, str]]:
    """Section and text of each extract of a digest."""
    section = FINDINGS
    plain = unfenced(text)
    for row, heading in zip(plain.splitlines(), headings(plain), strict=True):
        if _QUOTE.fullmatch(row.strip()):
            section = CONSTRAINTS
            continue
        if heading is not None:
            section = heading.section or _nearest(heading.title)
        line = row if heading is None else heading.rest
        if line.strip() not in (NOTE, SHORT_NOTE):
            parts = list(sentences(line, limit))
            whole = " ".join(parts)
            for part in [whole] if len(whole) <= limit else parts:
                if part:
                    yield section, part


def _nearest(title: str) -> str:
    """The section that a heading of another name comes nearest to."""
    words = title.casefold()
    return next((section for word, section in _KEYWORDS if word in words), FINDINGS)
