"""Which texts answer a query best: BM25, from the library bm25s (the ``recall`` extra).

bm25s is MIT-licensed, kept up, and needs numpy alone. It is given words, not text: its own
tokenizer drops one-letter words and knows no script without spaces.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from langgraph_compaction.digest.sentences import words
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.recall.comparing import comparable

MOST_WORDS = 64
"""Words of a query that count; the rest is left out."""


def require() -> None:
    """Check that a search is possible.

    Raises:
        ConfigurationError: bm25s is not installed.
    """
    if find_spec("bm25s") is None:
        raise ConfigurationError(
            "create_recall_tool: searching by words needs the library bm25s. Install it: "
            'pip install "langgraph-compaction[recall]". Or pass search=False: originals are then '
            "found by id and position."
        )


def query_words(query: str) -> list[str]:
    """The words of a query, each once."""
    return list(dict.fromkeys(words(comparable(query))))[:MOST_WORDS]


def ranked(texts: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Indexes of the texts that have at least one of the words, the best first.

    Args:
        texts: what is searched.
        wanted: of `query_words`. Two that stand side by side count as one more word where they do
            so in a text, too: "invoice 5" is not just any invoice with a 5 in it. Of texts that are
            equally good the later one comes first.
    """
    plain = [comparable(text) for text in texts]
    # Only those that can match are cut into words: a quick look is a hundred times as fast.
    chosen = [index for index, text in enumerate(plain) if any(word in text for word in wanted)]
    corpus = [_words(plain[index], wanted) for index in chosen]
    if not any(corpus):
        return []
    pairs = set(pairwise(wanted))
    index = _index_class()()
    index.index([[*one, *_pairs(one, pairs)] for one in corpus], show_progress=False)
    scores = index.get_scores([*wanted, *_pairs(wanted, pairs)])
    best = sorted(range(len(chosen)), key=lambda n: (-float(scores[n]), -chosen[n]))
    return [chosen[n] for n in best if scores[n] > 0]


def holding(texts: Sequence[str], part: str) -> list[int]:
    """Indexes of the texts in which ``part`` stands, inside of words too; the last one first.

    Args:
        texts: what is searched.
        part: as `comparable` gives it.
    """
    return [n for n in reversed(range(len(texts))) if part in comparable(texts[n])]


def _words(text: str, wanted: Sequence[str]) -> list[str]:
    """The words of a text, and what is wanted of a script that is cut into pairs of characters."""
    found = words(text)
    for one in wanted:
        if len(one) == 1 and len(words(one * 3)) > 1:
            found += [one] * (text.count(one) - found.count(one))
    return found


def _pairs(found: Sequence[str], wanted: Collection[tuple[str, str]]) -> list[str]:
    """The wanted pairs of words that stand side by side, each as one word."""
    return [" ".join(pair) for pair in pairwise(found) if pair in wanted]


def _index_class() -> Any:
    log = logging.getLogger("bm25s")
    level = log.level
    import bm25s

    log.setLevel(level)  # when it is loaded it has every line of its log pass
    return bm25s.BM25
