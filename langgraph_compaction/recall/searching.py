"""A search by words: the passages that have them, those of one original together on a page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from langgraph_compaction.recall import paging, ranking
from langgraph_compaction.recall.comparing import comparable
from langgraph_compaction.recall.originals import Original

RESULTS = 5
"""Passages on one page, at most."""
OF_ONE = 3
"""Passages of one original on one page, at most: a long one is not to hide the others."""
PASSAGE_CHARS = 1_500
"""Characters of the passages that are ranked."""
LEAST_EXCERPT = 40
"""Tokens that a page has for each of its passages, if it holds more than one: with fewer the words
would stand without what is said of them."""
LEAST_PART = 3
"""Characters of a query that are also looked for inside of words, if no text has one of its words:
fewer stand in every other word."""
NEXT = "\n[next passage]\n"
"""Stands between passages of one original; there may be text between them or not."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of an original.

    Attributes:
        original: index of the original.
        place: which of its pieces it is, from 0.
        text: of the piece.
    """

    original: int
    place: int
    text: str


@dataclass(frozen=True, slots=True)
class Search:
    """A search for words; where they are found nowhere, for the query as it stands.

    Args:
        originals: what is searched; those that the agent sees anyway are left out.
        tool: name of the recall tool.
        query: the words.
        room: tokens that the excerpts of one page may take, with their labels.
        count: tokens of a text.
    """

    originals: Sequence[Original]
    tool: str
    query: str
    room: int
    count: paging.Count
    _words: list[str] = field(init=False, repr=False)
    _part: str = field(init=False, repr=False)
    _labels: dict[int, tuple[bool, int]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_words", ranking.query_words(self.query))
        object.__setattr__(self, "_part", comparable(self.query).strip())

    def pages(self) -> list[list[Passage]]:
        """All passages that have one of the words, in pages; none where nothing was found."""
        passages = [
            Passage(index, place, text)
            for index, one in enumerate(self.originals)
            if not one.seen
            for place, text in enumerate(paging.pages(one.searched(self.tool), PASSAGE_CHARS, len))
        ]
        texts = [passage.text for passage in passages]
        best = ranking.ranked(texts, self._words)
        # A mark, a part of a name, a script whose words nothing parts.
        if not best and self._part and (not self._words or len(self._part) >= LEAST_PART):
            best = ranking.holding(texts, self._part)
        return grouped([passages[index] for index in best], self._fits)

    def shown(self, page: Sequence[Passage]) -> list[str]:
        """The excerpts of one page, labelled, one for each original.

        The best original comes first; its passages are in the order of its text.
        """
        left = self._left(page)
        wanted = [*self._words, self._part]
        cuts: dict[Passage, str] = {}
        # What the short ones do not need is left to the long ones.
        for known, passage in enumerate(sorted(page, key=lambda one: len(one.text))):
            share = left // (len(page) - known)
            if share > 0:
                text = passage.text.strip("\n")
                cuts[passage] = paging.excerpt(text, share, self.count, wanted)
                left -= self.count(cuts[passage])
        parts: dict[int, list[Passage]] = {}
        for passage in (one for one in page if one in cuts):
            parts.setdefault(passage.original, []).append(passage)
        return [
            self._labelled(
                index, NEXT.join(cuts[one] for one in sorted(own, key=lambda one: one.place))
            )
            for index, own in parts.items()
        ]

    def _fits(self, page: Sequence[Passage]) -> bool:
        return self._left(page) >= LEAST_EXCERPT * len(page)

    def _left(self, page: Sequence[Passage]) -> int:
        """Tokens that labels leave for the passages of a page."""
        originals = {passage.original for passage in page}
        between = self.count(NEXT) * (len(page) - len(originals))
        return self.room - between - sum(self._label(index)[1] for index in originals)

    def _labelled(self, index: int, text: str) -> str:
        return self.originals[index].excerpt(text, named=self._label(index)[0])

    def _label(self, index: int) -> tuple[bool, int]:
        """Whether the label of an original has its id and name, and how many tokens it takes."""
        if index not in self._labels:
            for named in (True, False):  # with them it may take all the room that there is
                label = self.originals[index].excerpt("", named=named)
                self._labels[index] = named, self.count(label)
                if self._labels[index][1] + LEAST_EXCERPT <= self.room:
                    break
        return self._labels[index]


def grouped(
    ranked: Sequence[Passage], fits: Callable[[Sequence[Passage]], bool]
) -> list[list[Passage]]:
    """Passages in pages, each of them on one.

    A page takes the best that are left, but of one original no more than `OF_ONE`; what it leaves
    is first on the next.

    Args:
        ranked: the best first.
        fits: whether passages have room on one page; one alone has in any case.
    """
    ranks: dict[int, deque[int]] = {}
    for rank, passage in enumerate(ranked):
        ranks.setdefault(passage.original, deque()).append(rank)
    best = [own.popleft() for own in ranks.values()]  # of each original; ascending, so a heap
    pages: list[list[Passage]] = []
    while best:
        page: list[Passage] = []
        later: list[int] = []
        while best and len(page) < RESULTS and (not page or fits([*page, ranked[best[0]]])):
            passage = ranked[heappop(best)]
            page.append(passage)
            own = ranks[passage.original]
            full = sum(one.original == passage.original for one in page) == OF_ONE
            if own and full:
                later.append(own.popleft())
            elif own:
                heappush(best, own.popleft())
        for rank in later:
            heappush(best, rank)
        pages.append(page)
    return pages
