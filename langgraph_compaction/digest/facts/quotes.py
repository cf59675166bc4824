"""What the user said in a span, sentence by sentence, word for word: directives first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.rendering import spoken_text
from langgraph_compaction.digest.sentences import (
    Sentence,
    sentences,
    without_code,
    without_examples,
)

SENTENCE_CHARS = 400
"""Characters of one quote; a longer sentence is cut between clauses."""
MESSAGE_CHARS = 40_000
"""Characters read of the prose of one message, half from its head and half from its tail; of what
stands between as many, of lines with a directive alone."""
CODE_SHARE = 0.1
"""Marks of code among the characters of a directive that is no full sentence ("Only tests!"), at
most: more of them are code that happens to have such a word (``return only[x]``)."""
_CODE = frozenset("{}();=<>|\\$[]")

BINDING_SHARE, WISHES_SHARE, QUOTE_SHARE = 0.5, 0.35, 0.2
"""Shares of a segment's cap that the user's words may take: what binds (never, must, only), that
and wishes (please, rather), all of them. What binds is worth half a digest; small talk is not."""


class Quote(NamedTuple):
    """A sentence of the user.

    Attributes:
        text: as it was written, on one line.
        share: of a segment's cap that it and all of higher rank may take.
        rank: directives over wishes over requests over the rest, then the newer over the older.
    """

    text: str
    share: float
    rank: float


def user_sentences(messages: Sequence[BaseMessage]) -> list[str]:
    """The user's sentences in a span, oldest first.

    Args:
        messages: the span, oldest first. Only what is said in prose counts: observations, too,
            may come in the user's name.
    """
    found: list[str] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            prose, _ = without_code(without_examples(spoken_text(message)))
            for text, wanted in _read(prose):
                split = sentences(text, SENTENCE_CHARS, wrapped=True)
                found += [part for part in split if wanted(Sentence.of(part))]
    return found


def _read(prose: str) -> list[tuple[str, Callable[[Sentence], bool]]]:
    """What is read of a message's prose, in order, and which sentences of it count.

    A directive in the middle of a document that somebody pasted binds as well as one at its end.
    """
    if len(prose) <= MESSAGE_CHARS:
        return [(prose, _says_something)]
    head = prose[: MESSAGE_CHARS // 2].rpartition("\n")[0] or prose[: MESSAGE_CHARS // 2]
    tail = prose[-MESSAGE_CHARS // 2 :]
    binding: list[str] = []
    left = MESSAGE_CHARS
    for line in prose[len(head) : -MESSAGE_CHARS // 2].splitlines():
        if cues.FIRM(Sentence.of(line)):
            binding.append(line[:left])
            left -= len(line)
            if left <= 0:
                break
    middle = "\n\n".join(binding)
    return [(head, _says_something), (middle, _directs), (tail, _says_something)]


def ranked(texts: Sequence[str]) -> list[Quote]:
    """Sentences of the user with their ranks, oldest first; of equal ones the last remains."""
    newest = {text: order for order, text in enumerate(texts)}
    total = max(1, len(texts))
    quotes = []
    for text, order in sorted(newest.items(), key=lambda item: item[1]):
        part = Sentence.of(text)
        binds, wishes = cues.FIRM(part), cues.SOFT(part)
        weight = 4.0 * binds + 2.0 * wishes + 1.0 * cues.REQUEST(part)
        share = BINDING_SHARE if binds else WISHES_SHARE if wishes else QUOTE_SHARE
        quotes.append(Quote(text, share, weight + order / total))
    return quotes


def _directs(part: Sentence) -> bool:
    return cues.FIRM(part) and _says_something(part)


def _says_something(part: Sentence) -> bool:
    if part.is_prose():
        return True
    directs = bool(cues.FIRM(part) or cues.SOFT(part))
    marks = sum(map(_CODE.__contains__, part.text))
    return directs and len(part.words) > 1 and marks <= CODE_SHARE * len(part.text)
