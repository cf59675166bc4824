"""How much a sentence or a reference says, in comparison with the others of its span.

Sentences are ranked as by Edmundson ("New methods in automatic extracting", 1969): cue words, term
frequency, position, and in place of his title words literals (numbers, paths, names). The small
libraries for it do not fit: sumy needs nltk with downloaded data and lxml, summa (last released in
2019) and lexrank need scipy, pytextrank spaCy; their graphs grow with the square of the
number of sentences; and none of them tells a sentence from a log line.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from langgraph_compaction.digest.references import references
from langgraph_compaction.digest.sentences import Sentence

_LITERAL = re.compile(r"[\d/\\`@#_]+")
_QUANTITY = re.compile(r"[#$€£¥]|\d[\d,.]*\D{1,3}\Z")


class Ranking:
    """How much each sentence of a span says, in comparison with the others."""

    def __init__(self, span: Sequence[Sentence], messages: int) -> None:
        """Count the terms of the span.

        Args:
            span: all its sentences, in order.
            messages: how many messages it has.
        """
        self._messages = max(1, messages)
        counts: Counter[str] = Counter()
        spread: Counter[str] = Counter()
        for _, group in itertools.groupby(span, key=lambda sentence: sentence.message):
            terms = list(itertools.chain.from_iterable(sentence.words for sentence in group))
            counts.update(terms)
            spread.update(set(terms))
        # Frequent in the span, but not in every message: that keeps function words low in any
        # language without a list of them.
        weights = {
            term: math.log1p(number) * math.log(1 + self._messages / spread[term])
            for term, number in counts.items()
        }
        top = max(weights.values(), default=1.0)
        self._weights = {term: weight / top for term, weight in weights.items()}

    def score(self, sentence: Sentence, cue: float = 0.0) -> float:
        """The rank of a sentence of the span.

        It is cue + frequency + half of position, literals and recency. Every part but the cue
        lies between 0 and 1. Frequency is the mean weight of the terms, lower for short
        sentences; position falls with each sentence before it in its message; literals are
        numbers, paths and names, up to four.
        """
        terms = set(sentence.words)
        frequency = sum(map(self._weights.__getitem__, terms)) / (len(terms) + 4)
        literals = min(4, len(_LITERAL.findall(sentence.text))) / 4
        position = 1 / (1 + sentence.position)
        recency = sentence.message / self._messages
        return cue + frequency + 0.5 * (position + literals + recency)


def has_literal(sentence: Sentence) -> bool:
    """Whether it holds a number, a path or a name in code."""
    return _LITERAL.search(sentence.text) is not None


def similar(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sentences say the same: four of five words shared, and every number equal.

    Nothing is similar to a text without words.
    """
    less, more = sorted((len(one), len(other)))
    if not less or less < 0.8 * more or len(one & other) < 0.8 * len(one | other):
        return False
    return not any(any(map(str.isdigit, word)) for word in one ^ other)


SPEAKERS = {"user": 3.0, "agent": 2.0, "call": 1.5, "result": 0.0}
"""How much a reference counts by who mentions it: what was said over what was printed."""


class RankedReference(NamedTuple):
    """A reference, its rank, and whether it stands in results alone."""

    name: str
    score: float
    printed: bool


class ReferenceRanking:
    """The references of a span, by who mentions them, how often and how lately."""

    def __init__(self) -> None:
        self._speaker: dict[str, float] = {}
        self._mentions: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._known: dict[str, list[str]] = {}

    def add(self, speaker: str, message: int, *texts: str) -> None:
        """Take in what ``speaker`` (a key of `SPEAKERS`) mentions in a message."""
        weight = SPEAKERS[speaker]
        for text in texts:
            for reference in references(text, self._known):
                if weight < SPEAKERS["agent"] and _QUANTITY.match(reference):
                    continue  # sizes, times and percentages are legion in code and output
                self._speaker[reference] = max(weight, self._speaker.get(reference, 0.0))
                if self._last.get(reference) != message:
                    # What a program prints at every run does not gain by it.
                    self._mentions[reference] += 1 if weight else 0
                    self._last[reference] = message

    def ranked(self, messages: int) -> list[RankedReference]:
        """The references in order of first mention, in a span of ``messages`` messages."""
        return [
            RankedReference(
                name,
                weight + math.log2(1 + self._mentions[name]) + self._last[name] / messages,
                printed=weight == SPEAKERS["result"],
            )
            for name, weight in self._speaker.items()
        ]
