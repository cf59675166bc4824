"""Filling a digest with extracts, section by section, within a budget of tokens."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from langgraph_compaction.digest.extractive.extracts import USER, Bullet, Origin
from langgraph_compaction.digest.extractive.ranking import similar
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
from langgraph_compaction.digest.sentences import clipped
from langgraph_compaction.errors import ConfigurationError

NOTE = "Extracts from the conversation, selected without a model."
SHORT_NOTE = "Extracts, no model."
"""First line where ``NOTE`` would take more than a fifth of the budget."""

SHARES = {
    GOAL: 0.12,
    STATE: 0.07,
    NEXT: 0.04,
    CONSTRAINTS: 0.25,
    REFERENCES: 0.16,
    OPEN: 0.08,
    DONE: 0.11,
    DECISIONS: 0.08,
    FINDINGS: 0.09,
}
"""Share of the budget that a section may take at first, in order of precedence: the task and where
it stands, the user's words, what later work needs verbatim. What is left over is offered in the
same order, with doubled shares, with fourfold ones, and then without limit. Tried out on 37 real
transcripts, cut at 60%: of the mentions of references in the rest, 800 tokens cover 9 of 10."""

ROUNDS: Sequence[tuple[float, Origin]] = (
    (1.0, "said"),
    (1.0, "found"),
    (2.0, "said"),
    (4.0, "said"),
    (math.inf, "said"),
    (math.inf, "printed"),
)
"""How often the shares are offered, and to whose extracts. What was said goes first; but without a
first share, ids that only results hold and that later work needs would be lost (4 of 100 of the
references that were used again, at 400 tokens). They get no more than that share: a log holds any
number of ids that nobody ever names. Quotes and mere look-ups can be had again: last."""

LEAST_TOKENS = 20
"""Allowance, in tokens, below which a section is opened only for the goal or newest request: its
heading would be most of it."""
LEAST_CHARS = 24
"""Characters below which a shortened extract says nothing."""
MISSES = 8
"""Extracts in a row of one section that do not fit before the next section has its turn."""


def fill(sections: Mapping[str, list[Bullet]], max_tokens: int, count: Callable[[str], int]) -> str:
    """The digest: of every section the best extracts that fit, in their original order.

    Args:
        sections: extracts by section, in any order.
        max_tokens: tokens that the text may have.
        count: tokens of a text.

    Raises:
        ConfigurationError: not even the first line fits.
    """
    page = _Page(sections, max_tokens, count)
    for scale, origin in ROUNDS:
        for section, share in SHARES.items():
            page.take(section, scale * share * max_tokens, origin=origin)
    return page.finished()


def _holds(text: str, name: str) -> bool:
    """Whether ``name`` stands in ``text`` by itself: ``LIMIT_1`` does not in ``LIMIT_10``."""
    at = text.find(name)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if not any(one == "_" or (one.isascii() and one.isalnum()) for one in around):
            return True
        at = text.find(name, at + 1)
    return False


class _Page:
    """A digest that is being filled."""

    def __init__(
        self, sections: Mapping[str, list[Bullet]], max_tokens: int, count: Callable[[str], int]
    ) -> None:
        # What is long for the budget ranks lower: two short extracts say more than one long.
        size = 2.0 * max_tokens
        self._waiting: dict[tuple[str, Origin], list[Bullet]] = defaultdict(list)
        for name, bullets in sections.items():
            for bullet in sorted(
                bullets, key=lambda one: (len(one.text) / size - one.score, -one.order)
            ):
                self._waiting[name, bullet.origin].append(bullet)
        self._max = max_tokens
        self._count = count
        self._note = NOTE if 5 * count(NOTE) <= max_tokens else SHORT_NOTE
        self._left = max_tokens - self._cost(self._note)
        self._chosen: list[tuple[str, Bullet]] = []
        self._spent: Counter[str] = Counter()

    def take(self, section: str, allowance: float, *, origin: Origin) -> None:
        """Choose the section's best extracts while it has spent less than ``allowance`` tokens.

        The first may take half of what is left, and is shortened to it.
        """
        key = section, origin
        waiting = self._waiting[key]
        if not (waiting and (self._spent[section] or self._may_open(key, allowance))):
            return
        self._waiting[key] = []
        misses = 0
        for number, bullet in enumerate(waiting):
            if misses == MISSES or self._left <= 0:
                self._waiting[key] += waiting[number:]
                return
            if self._repeats(section, bullet):
                continue
            room = int(min(self._left, allowance - self._spent[section]))
            chosen = bullet
            if not self._spent[section]:
                room = max(room, self._left // 2 if self._chosen else self._left)
                chosen = self._shortened(section, bullet, room)
            cost = self._bullet_cost(section, chosen.text)
            if cost > room or not chosen.text:
                misses += 1
                self._waiting[key].append(bullet)
                continue
            self._drop_listed(section, chosen)
            self._chosen.append((section, chosen))
            self._spent[section] += cost
            self._left -= cost
            misses = 0

    def _may_open(self, key: tuple[str, Origin], allowance: float) -> bool:
        users = key[0] == GOAL or self._waiting[key][0].text.startswith(USER)
        return users or allowance >= LEAST_TOKENS

    def _cost(self, text: str) -> int:
        # A counter may add a constant to every text: that is paid once, for the whole digest.
        return self._count(f"{text}\n") - self._count("")

    def _bullet_cost(self, section: str, text: str) -> int:
        heading = "" if self._spent[section] else f"\n## {section}\n"
        return self._cost(f"{heading}- {text}")

    def _shortened(self, section: str, bullet: Bullet, room: int) -> Bullet:
        """The extract, cut to fit ``room`` tokens; without text where too little would remain."""
        if self._bullet_cost(section, bullet.text) <= room:
            return bullet
        if self._chosen and section in (DONE, REFERENCES):
            return replace(bullet, text="")
        least, most = 0, len(bullet.text) - 1
        while least < most:
            size = (least + most + 1) // 2
            if self._bullet_cost(section, clipped(bullet.text, size)) <= room:
                least = size
            else:
                most = size - 1
        if least < (LEAST_CHARS if self._chosen else 2):
            return replace(bullet, text="")
        return replace(bullet, text=clipped(bullet.text, least))

    def _repeats(self, section: str, bullet: Bullet) -> bool:
        """Whether the page says it already; a reference may stand inside another extract."""
        for name, chosen in self._chosen:
            if section == REFERENCES and _holds(chosen.text, bullet.text):
                return True
            if bullet.text == chosen.text:
                return True
            if section == name and similar(bullet.words, chosen.words):
                return True
        return False

    def _drop_listed(self, section: str, bullet: Bullet) -> None:
        """Take back the references that ``bullet`` holds; their tokens are free again."""
        if section == REFERENCES:
            return
        for listed in [one for name, one in self._chosen if name == REFERENCES]:
            if _holds(bullet.text, listed.text):
                self._chosen.remove((REFERENCES, listed))
                cost = self._bullet_cost(REFERENCES, listed.text)
                self._spent[REFERENCES] -= cost
                self._left += cost

    def finished(self) -> str:
        """The text, within the budget also where the whole has more tokens than its lines."""
        text = self._text()
        while self._chosen and self._count(text) > self._max:
            section, last = self._chosen.pop()
            if not self._chosen and len(last.text) > LEAST_CHARS:  # shorter, but not nothing
                shorter = clipped(last.text, len(last.text) * 9 // 10)
                self._chosen.append((section, replace(last, text=shorter)))
            text = self._text()
        if self._count(text) > self._max:
            raise ConfigurationError(
                f"max_tokens={self._max} is too small for an extractive digest: its first line "
                f"alone has {self._count(text)} tokens. Give at least 40."
            )
        return text

    def _text(self) -> str:
        lines = [self._note]
        for section in SECTIONS:
            bullets = [bullet for name, bullet in self._chosen if name == section]
            if bullets:
                lines += ["", f"## {section}"]
                lines += [f"- {one.text}" for one in sorted(bullets, key=lambda one: one.order)]
        return "\n".join(lines)
