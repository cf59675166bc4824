"""The computed part of a segment: the user's words, and what the text lost, within the cap.

A model writes prose; what must not depend on its grace is added here. Sentences of the user stand
word for word. Calls with an effect, names and values that the text lost are listed. Where earlier
records are condensed, decisions, commitments and constraints that the new text lost are carried
over. And of the values of one thing the newest stands last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.digest.facts.carrying import lost_lines, with_lines
from langgraph_compaction.digest.facts.deeds import Deed, deeds_of
from langgraph_compaction.digest.facts.doing import Doing
from langgraph_compaction.digest.facts.layout import (
    MENTIONS,
    QUOTES,
    Parts,
    unlabelled,
)
from langgraph_compaction.digest.facts.listing import MISSES, Listing, shown
from langgraph_compaction.digest.facts.mentioned import Mentioned
from langgraph_compaction.digest.facts.mentions import BETWEEN
from langgraph_compaction.digest.facts.quotes import Quote, ranked, user_sentences
from langgraph_compaction.digest.facts.sourcing import unsourced
from langgraph_compaction.digest.headings import sections_in, without_empty
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.record import LEAST_SEGMENT_TOKENS

CARRY_SHARE = 0.3
"""Share of a segment's cap that lines carried over from earlier records may take."""
LISTED_SHARE, LISTED_CONDENSED_SHARE = 0.1, 0.3
"""Share of a segment's cap that is kept free for names and values, however long the text, where
messages are folded and where segments are condensed: the shorter the text has to be, the more it
loses, and a list of names takes half the room of sentences about them."""
EXTRACTS_SHARE = 0.9
"""Share of what the quotes leave that extracts may have."""
CHANGED_SHARE = 0.25
"""Share of a segment's cap that is kept free at most for the newest values of what changed: a text
that only has an old one is wrong."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a segment must not lose.

    Attributes:
        quotes: sentences of the user that fit their budget, oldest first.
        mentioned: names and values of the source.
        deeds: calls with an effect, by the last time, oldest first.
        old: texts that a summariser condenses; empty where messages are folded.
        messages: those that are folded.
        earlier: the parts of all segments before, of those that are condensed, too.
        newest: the user's newest message, to be quoted in full; "" if it is not due.
        cap: tokens that text and facts may have together, beside ``newest``.
        count: tokens of a text.
        redact: takes secrets out of what is put together here.
    """

    quotes: Sequence[str]
    mentioned: Mentioned
    deeds: Sequence[Deed]
    old: Sequence[str]
    messages: Sequence[BaseMessage]
    earlier: Sequence[Parts]
    newest: str
    cap: int
    count: Callable[[str], int]
    redact: Callable[[str], str] = str

    @property
    def room(self) -> int:
        """Tokens that the summariser's text may have."""
        left = self._free - self._listed - self._doing.due
        return max(left, min(self._free, LEAST_SEGMENT_TOKENS))

    @property
    def extracts(self) -> int:
        """Tokens that extracts may have: they choose names by themselves and need no long list."""
        return max(int(self._free * EXTRACTS_SHARE), min(self._free, LEAST_SEGMENT_TOKENS))

    @property
    def _free(self) -> int:
        """Tokens beside the quotes."""
        quoted = self.count("\n" + Parts("", self.quotes).text()) if self.quotes else 0
        return max(1, self.cap - quoted)

    @property
    def _listed(self) -> int:
        """Tokens that are kept free for names and values."""
        said = [shown(entry) for entry in self.mentioned.said()]
        share = LISTED_CONDENSED_SHARE if self.old else LISTED_SHARE
        listed = max(min(int(share * self.cap), self.count(BETWEEN.join(said))), self._changed)
        return listed + self.count(f"\n{MENTIONS}") if listed else 0

    @property
    def _changed(self) -> int:
        """Tokens of them for the newest values of what changed."""
        changed = [shown(entry) for entry in self.mentioned.newest()]
        return min(int(CHANGED_SHARE * self.cap), self._listing.cost(changed))

    @property
    def _doing(self) -> Doing:
        return Doing(self.deeds, self.cap, self.count)

    @property
    def _listing(self) -> Listing:
        return Listing(self.mentioned, self.cap, self.count, self.redact)

    @property
    def fullness(self) -> float:
        """Share of that room that the texts to condense would fill as they are."""
        return self.count("\n".join(self.old)) / self.room

    def completed(self, text: str) -> str:
        """The text with the facts: what stands in the segment below its heading."""
        parts = Parts(_without(unlabelled(text), self.quotes), self.quotes)
        left = self.cap - self.count(parts.text())
        carried: list[tuple[str, str]] = []
        share = int(CARRY_SHARE * self.cap)
        standing = sections_in(parts.body)
        for section, lost in lost_lines(self.old, parts.text()):
            line = _line(self.redact(lost))
            cost = self.count(f"- {line}\n")
            if section not in standing:
                cost += self.count(f"\n## {section}")
            if cost <= min(left, share):
                carried.append((section, line))
                left, share = left - cost, share - cost
                standing.add(section)
        parts = replace(parts, body=with_lines(parts.body, carried)) if carried else parts
        # Where the text took what was kept free, names get no less than calls; values come first.
        spare = max(left - self._listed, min(self._doing.due, (left - self._changed) // 2))
        parts = replace(self._doing.added(parts, spare), newest=self.newest)
        return self._listing.added(parts).text()

    def unsourced(self, text: str) -> list[str]:
        """The names of a summariser's text that nothing it was made from has."""
        known = {name for _, name in self.mentioned.entries} if self.messages else ()
        return unsourced(text, self.messages, self.earlier, known)


def facts_of(
    old: Sequence[Parts],
    messages: Sequence[BaseMessage],
    *,
    before: Sequence[Parts],
    cap: int | Callable[[int, int], int],
    count: Callable[[str], int],
    newest: str = "",
    absorbed: Sequence[tuple[BaseMessage, bool]] = (),
    redact: Callable[[str], str] = str,
) -> Facts:
    """The facts of segments, of messages, or of both, in this order.

    Args:
        old: the parts of segments that are condensed, oldest first.
        messages: those that are folded, as they were said, oldest first.
        before: the parts of the segments that stand before, oldest first.
        cap: tokens that text and facts may have together, beside ``newest``; or what gives them
            for the tokens that directives and the newest values of what stands before take.
        count: tokens of a text.
        newest: the user's newest message where it is quoted in full, else "".
        absorbed: those of the messages that are older than the segments before, since they were
            kept until now, and those between them of which the segments tell; oldest first, each
            with whether it is folded now.
        redact: takes secrets out of what is put together from words of the messages.
    """
    mentioned = Mentioned(_values(before))
    said: list[str] = []
    for parts in old:
        mentioned.read_parts(parts)
        said += parts.quotes
        if parts.newest != newest:
            said += user_sentences([HumanMessage(parts.newest)])
    for message, now in absorbed:
        mentioned.read([message], told=not now)
    mentioned.read(messages[sum(now for _, now in absorbed) :])
    said += user_sentences([one for one in messages if redact(message_text(one)) != newest])
    lines = [_line(redact(text)) for text in said]
    quotes = ranked(lines, condensing=not messages, outdated=mentioned.outdated)
    if callable(cap):
        changed = filter(mentioned.changed, mentioned.newest())
        due = sum(count(shown(entry) + BETWEEN) for entry in changed if entry.weight)
        cap = cap(sum(count(f"- {one.text}\n") for one in quotes if one.binds), due)
    return Facts(
        quotes=_fitting(quotes, cap, count),
        mentioned=mentioned,
        deeds=deeds_of(old, messages, redact),
        old=[parts.body for parts in old],
        messages=messages,
        earlier=[*before, *old],
        newest=newest,
        cap=cap,
        count=count,
        redact=redact,
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _values(before: Iterable[Parts]) -> Mapping[str, Sequence[str]]:
    """The values that somebody said in earlier segments, by subject, the newest last."""
    mentioned = Mentioned()
    for parts in before:
        mentioned.read_parts(parts)
    return mentioned.said_values()


def _fitting(quotes: Sequence[Quote], cap: int, count: Callable[[str], int]) -> list[str]:
    """The quotes that fit their shares of the cap, oldest first."""
    chosen: set[str] = set()
    most = cap - LEAST_SEGMENT_TOKENS - count(f"\n{QUOTES}\n")  # the text finds room, too
    spent = misses = 0
    for quote in sorted(quotes, key=lambda quote: quote.rank, reverse=True):
        cost = count(f"- {quote.text}\n")
        if spent + cost <= min(cap * quote.share, most):
            chosen.add(quote.text)
            spent += cost
        else:
            misses += 1
            if misses > MISSES:
                break
    return [quote.text for quote in quotes if quote.text in chosen]


def _without(text: str, quotes: Sequence[str]) -> str:
    """The text without lines that only repeat a quote, and without headings of nothing else."""
    repeated = {f"{mark}{quote}" for quote in quotes for mark in ("", "- ", "- User: ")}
    rows = text.splitlines()
    kept = [row for row in rows if row.strip() not in repeated]
    return text if len(kept) == len(rows) else without_empty("\n".join(kept))
