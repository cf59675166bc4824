"""Sorting what was read of a span into the digest's sections, each extract with its rank."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.actions import Action
from langgraph_compaction.digest.calls_told import ARROW
from langgraph_compaction.digest.extractive.ranking import Ranking, has_literal
from langgraph_compaction.digest.extractive.reading import Reading
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
from langgraph_compaction.digest.sentences import (
    Sentence,
    clipped,
)

Origin = Literal["said", "found", "printed"]
"""Of an extract: what user or agent said or did, a reference that stands in results alone, or a
quote of a result or a call that only looked something up."""

USER = "User: "
"""Label of what the user said where the agent's words stand, too."""

FOLLOWING = 4
"""Sentences after "Still to do:" and the like that are taken to belong to it."""

_DIGITS = re.compile(r"\d+")
_LABELLED = re.compile(r"\w[\w ./()-]{1,40}[:：] ?\S{1,60}\Z")  # "Port: 8080"
_VALUE = re.compile(
    r"`?[\w./-]{1,60}`? ?(?:=|:|→|\|) ?\S.{0,99}\Z"
)  # "LIMIT_3 = 21 (bytes)", table rows
_CODED = re.compile(
    r"`[^`]*`|\S*\w[/_.*]\S*|\S*[/_.*]\w\S*"
)  # names, paths and globs in a sentence
_OPEN_MARKS = ("[ ]", "TODO:", "FIXME:")
_LEADS = (":", "：")
_ASKS = ("?", "？")
_SETTLED = frozenset(("completed", "complete", "done", "cancelled", "canceled", "closed"))
_POSITIONS = 10_000  # more than a message has sentences


@dataclass(frozen=True, slots=True)
class Bullet:
    """One extract.

    Attributes:
        text: one line.
        order: the position it stood at.
        score: its rank within its section.
        words: what it is compared by; nothing is similar to an extract without words.
        origin: who stands behind it; what was said goes first.
    """

    text: str
    order: int
    score: float
    words: frozenset[str] = frozenset()
    origin: Origin = "said"


def sections(reading: Reading) -> dict[str, list[Bullet]]:
    """The extracts of a span by section."""
    rank = Ranking(reading.everything, reading.size)
    found: dict[str, list[Bullet]] = {name: [] for name in SECTIONS}
    _sort_user(reading, rank, found)
    _sort_agent(reading, rank, found)
    _sort_results(reading, rank, found)
    _sort_actions(reading.actions, reading.size, found)
    for order, (content, status) in enumerate(reading.todos):
        section, score = (DONE, 1.5) if status in _SETTLED else (OPEN, 3.0)
        found[section].append(Bullet(f"[{status}] {clipped(content, 200)}", order, score))
    for order, ranked in enumerate(reading.references.ranked(reading.size)):
        found[REFERENCES].append(
            Bullet(ranked.name, order, ranked.score, origin="found" if ranked.printed else "said")
        )
    if not any(found.values()):
        found[STATE] = [_bullet(part, rank.score(part)) for part in reading.everything]
    if not any(found.values()):
        found[STATE] = [Bullet(f"{reading.size} messages without text.", 0, 0.0)]
    return found


def _bullet(part: Sentence, score: float, label: str = "", origin: Origin = "said") -> Bullet:
    order = part.message * _POSITIONS + min(part.position, _POSITIONS - 1)
    return Bullet(label + part.text, order, score, frozenset(part.words), origin)


def _sort_user(reading: Reading, rank: Ranking, found: dict[str, list[Bullet]]) -> None:
    said = [part for part in reading.user if _matters(part)] or reading.user
    if not said:
        return
    times = Counter(_DIGITS.sub("0", part.text) for part in reading.user)

    def repeats(part: Sentence) -> int:
        return times[_DIGITS.sub("0", part.text)]

    goal = _asked([part for part in said if part.message == said[0].message])
    found[GOAL] = [_bullet(part, -float(number)) for number, part in enumerate(goal)]
    later = [part for part in said if part.message > said[0].message and repeats(part) == 1]
    newest = _newest(later)
    if newest:
        section = STATE if reading.last_turn > newest.message else NEXT
        found[section].append(_bullet(newest, 9.0, USER))
    for part in said:
        if part is newest:
            continue
        cue = 2.0 * cues.FIRM(part) + cues.SOFT(part) + 0.5 * cues.REQUEST(part)
        # What a program repeats at every turn is not a person's wish; a lead-in is not one either.
        if repeats(part) > 2 or part.text.endswith(_LEADS):
            cue = 0.0
        found[CONSTRAINTS].append(_bullet(part, rank.score(part, cue)))


def _matters(part: Sentence) -> bool:
    """Whether what the user said is more than "ok" or a pasted line."""
    if part.is_prose():
        return True
    directs = len(part.words) > 2 and (cues.FIRM(part) or cues.SOFT(part))
    return len(part.text) < 100 and (directs or has_literal(part))


def _asked(parts: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of one message that say what it asks for, best first, at most three.

    Its first sentence says what it is about; the others ask.
    """
    telling = [part for part in parts if part.is_prose() and not part.text.endswith(_LEADS)]
    telling = telling or list(parts)
    ranked = sorted(telling[1:], key=lambda part: (-cues.REQUEST.strength(part), part.position))
    return [telling[0], *ranked[:2]]


def _newest(later: Sequence[Sentence]) -> Sentence | None:
    """What the user asked last: observations, too, may come in the user's name."""
    asking = [
        part
        for part in later
        if part.text.endswith(_ASKS)
        or any(cue(part) for cue in (cues.REQUEST, cues.SOFT, cues.FIRM))
    ]
    if not asking:
        return later[-1] if later else None
    return _asked([part for part in later if part.message == asking[-1].message])[0]


def _sort_agent(reading: Reading, rank: Ranking, found: dict[str, list[Bullet]]) -> None:
    said = [part for part in reading.agent if _states(part) and not cues.COURTESY(part)]
    stated: list[Sentence] = []
    for part, section in _placed(said, reading.acting):
        if section not in (OPEN, None) or part.text.endswith(_ASKS):
            stated.append(part)
        if section and (section == OPEN or len(part.words) > 4 or has_literal(part)):
            cue = 0.3 * cues.ERROR(part) if section == FINDINGS else 0.0
            # What was promised long ago is probably kept by now.
            cue += 1.5 * part.message / reading.size if section == OPEN else 0.0
            found[section].append(_bullet(part, rank.score(part, cue)))
    stated = stated or said
    newest = [part for part in stated if part.message == stated[-1].message]
    found[STATE] += [_bullet(part, -float(number)) for number, part in enumerate(newest[:3])]
    asked_last = reading.user[-1].message if reading.user else -1
    intents = [part for part in said if part.message > asked_last and cues.INTENT(part)]
    found[NEXT] += [_bullet(part, 1.0) for part in intents[-1:]]


def _states(part: Sentence) -> bool:
    """Whether a line of the agent says something: a sentence, full of names or not, or a value."""
    if part.is_prose() or _LABELLED.match(part.text):
        return True
    if not has_literal(part):
        return False
    return bool(_VALUE.match(part.text)) or Sentence.of(_CODED.sub("name", part.text)).is_prose()


def _placed(
    said: Sequence[Sentence], acting: Collection[int]
) -> Iterator[tuple[Sentence, str | None]]:
    """The agent's sentences with their sections; lead-ins hand theirs on and are left out."""
    lead, led = None, 0
    for part, before in zip(said, [None, *said], strict=False):
        if before is None or before.message != part.message:
            led = 0
        section = _section_of(part, acted=part.message in acting)
        if part.text.endswith(_LEADS):
            lead, led = section, FOLLOWING
            continue
        if led and lead and section == FINDINGS:
            section = lead
        led = max(0, led - 1)
        yield part, section


def _section_of(part: Sentence, *, acted: bool) -> str | None:
    """Where a sentence of the agent belongs; None: nowhere.

    Args:
        part: the sentence.
        acted: whether its message also makes calls.
    """
    if part.text.startswith(_OPEN_MARKS):
        return OPEN
    if part.text.endswith(_ASKS):
        return None
    if cues.DECISION(part):
        return DECISIONS
    if cues.INTENT(part):
        return None if acted else OPEN  # announced and done at once, or promised
    return OPEN if cues.OPEN(part) else FINDINGS


def _sort_results(reading: Reading, rank: Ranking, found: dict[str, list[Bullet]]) -> None:
    for part, name, failed in reading.results:
        if len(part.words) > 4 and part.is_prose():
            score = rank.score(part, 0.3 if failed else -0.7)
            found[FINDINGS].append(_bullet(part, score, f"{name}{ARROW}", "printed"))


def _sort_actions(actions: Sequence[Action], size: int, found: dict[str, list[Bullet]]) -> None:
    """Equal calls with equal outcomes become one line, at the place of the last.

    Effects that were made rank first, so that none is repeated; then those that failed, and reads.
    """
    grouped: dict[tuple[str, str, str], list[Action]] = defaultdict(list)
    for action in actions:
        # Where what was answered is all that is known of the outcome, it tells calls apart.
        answer = action.detail if action.outcome == "answered" else ""
        grouped[action.line, action.outcome, answer].append(action)
    for equal in grouped.values():
        last = equal[-1]
        score = last.message / size + 0.3 * math.log2(len(equal))
        if not last.outcome:
            score += 3.0
        elif last.effect:
            score += 1.0 if last.outcome == "error" else 2.0
        section = DONE if last.outcome else OPEN
        order = last.message * _POSITIONS
        origin: Origin = "printed" if last.outcome and not last.effect else "said"
        found[section].append(Bullet(last.told(len(equal)), order, score, origin=origin))
