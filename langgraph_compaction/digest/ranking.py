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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langgraph_compaction.digest.sentences import Sentence, clean

_LITERAL = re.compile(r"[\d/\\`@#_]+")


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


# A word character that is not CJK: paths and ids stand in CJK text without spaces around them.
_W = r"[^\W\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
_NAME = rf"(?:{_W}|[.@+~%-])"
_REFERENCE = re.compile(
    # URL
    r"[a-z][a-z0-9+]{1,9}://[^\s<>\"'`|\[\]{}，。；、！？）」』]+"
    # e-mail address
    rf"|{_W}(?:{_W}|[.+-])*@(?:{_W}|-)+(?:\.(?:{_W}|-)+)+"
    # path: absolute, with a file ending, of three steps, or Windows
    rf"|(?:~|\.{{1,2}})?(?<!{_W})(?<!/)(?:/{_NAME}+){{2,}}/?"
    rf"|{_NAME}+(?:/{_NAME}+)*/{_NAME}*\.[A-Za-z]{_W}{{0,7}}(?!{_W})"
    rf"|{_NAME}+(?:/{_NAME}+){{2,}}"
    rf"|(?<!{_W})[A-Za-z]:(?:[/\\]{_NAME}+)+"
    # file name
    rf"|(?:{_W}|[-.])+\.(?:pyi?|md|rst|txt|jsonl?|ya?ml|toml|ini|cfg|csv|tsv|[jt]sx?|mjs|html?|css"
    rf"|scss|java|kt|go|rs|cpp|cc|c|h|hpp|cs|rb|php|swift|sh|sql|xml|lock|log|pdf|docx?|xlsx?|png"
    rf"|jpe?g|gif|svg|webp|mp[34]|wav|zip|gz|tar|ipynb|env|conf)(?!{_W})"
    # UUID, hash
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?<![A-Za-z0-9])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}(?![A-Za-z0-9])"
    # date, version or IP address
    r"|\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{4}年\d{1,2}月(?:\d{1,2}日)?"
    r"|(?<![A-Za-z0-9.])v?\d+\.\d+\.\d+(?:[-+.]?[A-Za-z0-9]+)*|(?<!\w)v\d+(?:\.\d+)+"
    # codes and ids: JG7FMM, PROJ-12, order_3817, #42
    r"|(?<!\w)(?=[A-Z0-9_-]*\d)(?=[A-Z0-9_-]*[A-Z])(?!UTF-)[A-Z0-9][A-Z0-9_-]{4,}(?!\w)"
    rf"|(?<!{_W})[A-Za-z]+(?:[_-][A-Za-z0-9]+)*(?:_\d{{2,}}|-\d{{4,}})(?!{_W})|(?<!\w)#\d+"
    # number with a unit
    r"|[$€£¥]\d[\d,.]*\d"
    r"|(?<![\w.])\d[\d,.]*(?:%|[kMGT]?i?B|ms|s|km|kg|px|USD|EUR)(?!\w)"
)
_MAY_REFER = re.compile(r"\d|[/\\@]|\w\.\w")
_DIFF_SIDE = re.compile(r"^[ab]/(?=[\w.]+/)")
_QUANTITY = re.compile(r"[#$€£¥]|\d[\d,.]*\D{1,3}\Z")
_REFERENCE_CHARS = 300
"""Characters above which a reference is data rather than a name."""


def references(text: str, known: dict[str, list[str]] | None = None) -> Iterator[str]:
    """Paths, URLs, ids, hashes, dates, versions and numbers with units, in order, repeats too.

    Args:
        text: any text.
        known: what was found in words so far; kept up to date.
    """
    known = {} if known is None else known
    for word in text.split():
        if word.isalpha() or word[:-1].isalpha() or word.isdigit():
            continue
        if word not in known:
            may_refer = len(word) <= 4 * _REFERENCE_CHARS and _MAY_REFER.search(word)
            known[word] = _references_in(word) if may_refer else []
        yield from known[word]


def _references_in(word: str) -> list[str]:
    found = []
    for match in _REFERENCE.finditer(clean(word)):
        reference = _DIFF_SIDE.sub("", match.group().rstrip(".,;:!?'*-"))
        if reference.endswith("_") and not reference.endswith("__"):
            reference = reference[:-1]  # emphasis; a dunder name ends in two
        if reference.endswith(")") and "(" not in reference:
            reference = reference.rstrip(").,")
        if 2 <= len(reference) <= _REFERENCE_CHARS:
            found.append(reference)
    return found


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
