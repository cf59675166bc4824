"""What the user said in a span, sentence by sentence, word for word: directives first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.fences import fenced_prose, without_code, without_examples
from langgraph_compaction.digest.rendering import spoken_text
from langgraph_compaction.digest.sentences import (
    Sentence,
    pieces,
    sentences,
    unwrapped,
)
from langgraph_compaction.view.marks import is_by_user

SENTENCE_CHARS = 400
"""Characters of one quote; a longer sentence is cut between clauses."""
MESSAGE_CHARS = 40_000
"""Characters read of the prose of one message, half from its head and half from its tail; of what
stands between as many, of lines with a directive alone."""
LONG_LINE = 10_000
"""Characters of a line in a long message above which it is read in pieces, cut between clauses."""
CODE_SHARE = 0.1
"""Marks of code among the characters of a directive that is no full sentence ("Only tests!"), at
most: more of them are code that happens to have such a word (``return only[x]``)."""
_CODE = frozenset("{}();=<>|\\$[]")

BINDING_SHARE, WISHES_SHARE, QUOTE_SHARE = 0.5, 0.35, 0.2
"""Shares of a segment's cap that the user's words may take: what binds (never, must, only), that
and wishes (please, rather), all of them. What binds is worth half a digest; small talk is not."""


CONDENSED_BINDING_SHARE, CONDENSED_SHARE = 0.9, 0.1
"""The same where segments are condensed, for what binds and for all: of what was said long ago only
directives are sure to count still."""


class Quote(NamedTuple):
    """A sentence of the user.

    Attributes:
        text: as it was written, on one line.
        share: of a segment's cap that it and all of higher rank may take.
        rank: directives over wishes over requests over the rest, then the newer over the older.
        binds: whether it is a directive that holds.
    """

    text: str
    share: float
    rank: float
    binds: bool = False


def user_sentences(messages: Sequence[BaseMessage]) -> list[str]:
    """The user's sentences in a span, oldest first.

    Args:
        messages: the span, oldest first. Only what is said in prose counts: observations, too,
            may come in the user's name.
    """
    found: list[str] = []
    for message in messages:
        if is_by_user(message):
            text = without_examples(spoken_text(message))
            prose, _ = without_code(text)
            apart = (fenced_prose(text)[:MESSAGE_CHARS], _rules)
            for piece, wanted in [*_read(prose), apart]:
                split = sentences(piece, SENTENCE_CHARS, wrapped=True)
                found += [part for part in split if wanted(Sentence.of(part))]
    return found


def _read(prose: str) -> list[tuple[str, Callable[[Sentence], bool]]]:
    """What is read of a message's prose, in order, and which sentences of it count.

    A directive in the middle of a document that somebody pasted binds as well as one at its end.
    """
    if len(prose) <= MESSAGE_CHARS:
        return [(prose, _says_something)]
    units = list(_units(prose))
    head = _longest(units, MESSAGE_CHARS // 2)
    tail = _longest(units[head:][::-1], MESSAGE_CHARS // 2)
    between = units[head : len(units) - tail]
    binding = [unit for unit in between if cues.FIRM(Sentence.of(unit))]
    return [
        ("\n".join(units[:head]), _says_something),
        ("\n\n".join(binding[: _longest(binding, MESSAGE_CHARS)]), _directs),
        ("\n".join(units[len(units) - tail :]), _says_something),
    ]


def _units(prose: str) -> Iterator[str]:
    """The lines of a text, those joined that were wrapped by hand; long ones by sentence."""
    for line in unwrapped(prose.splitlines()):
        if len(line) <= LONG_LINE:
            yield line
        else:  # whose sentences take longer to find than its length tells
            for piece in pieces(line, LONG_LINE):
                binds = cues.FIRM(Sentence.of(piece))
                yield from sentences(piece, SENTENCE_CHARS) if binds else [piece]


def _longest(units: Sequence[str], most: int) -> int:
    """How many of the first units have at most so many characters together."""
    return sum(total <= most for total in accumulate(len(unit) + 1 for unit in units))


def directive_tokens(quotes: Sequence[str], count: Callable[[str], int]) -> int:
    """Tokens of the directives among quotes."""
    return sum(count(f"- {quote}\n") for quote in quotes if cues.STRICT(Sentence.of(quote)))


def ranked(
    texts: Sequence[str],
    *,
    condensing: bool = False,
    outdated: Callable[[str], bool] | None = None,
) -> list[Quote]:
    """Sentences of the user with their ranks, oldest first; of equal ones the last remains.

    Args:
        texts: the sentences, oldest first.
        condensing: whether segments are condensed.
        outdated: whether all values in a sentence have passed: then it ranks last, unless it is a
            directive whatever its value.
    """
    most = (
        (CONDENSED_BINDING_SHARE, WISHES_SHARE, CONDENSED_SHARE)
        if condensing
        else (BINDING_SHARE, WISHES_SHARE, QUOTE_SHARE)
    )
    newest = {text: order for order, text in enumerate(texts)}
    total = max(1, len(texts))
    quotes = []
    for text, order in sorted(newest.items(), key=lambda item: item[1]):
        part = Sentence.of(text)
        binds, wishes = cues.FIRM(part), cues.SOFT(part)
        if outdated is not None and not cues.STRICT(part) and outdated(text):
            quotes.append(Quote(text, most[2], order / total - 1))
            continue
        weight = 4.0 * binds + 2.0 * wishes + 1.0 * cues.REQUEST(part)
        share = most[0] if binds else most[1] if wishes else most[2]
        quotes.append(Quote(text, share, weight + order / total, binds))
    return quotes


def _directs(part: Sentence) -> bool:
    return cues.FIRM(part) and _says_something(part)


def _rules(part: Sentence) -> bool:
    """Whether a sentence in a fenced block is a rule: people set off what must hold."""
    return cues.FIRM(part) and part.is_prose()


def _says_something(part: Sentence) -> bool:
    if part.is_prose():
        return True
    directs = bool(cues.FIRM(part) or cues.SOFT(part))
    marks = sum(map(_CODE.__contains__, part.text))
    return directs and len(part.words) > 1 and marks <= CODE_SHARE * len(part.text)
