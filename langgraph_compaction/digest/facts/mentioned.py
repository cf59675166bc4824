"""What a span mentions, ranked: said by the user over the agent, over arguments, over results."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langgraph_compaction.digest.calls_told import ARROW
from langgraph_compaction.digest.facts.arguments import (
    ARGUMENT_SAID,
    OPERANDS,
    argument_texts,
    operand,
)
from langgraph_compaction.digest.facts.deeds import Deed
from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.facts.mentions import OF, Known, Mention, mentions
from langgraph_compaction.digest.facts.series import Series
from langgraph_compaction.digest.fences import without_code
from langgraph_compaction.digest.rendering import spoken_text
from langgraph_compaction.digest.sentences import CUT
from langgraph_compaction.view.blocks import attachment_names, unnamed_media
from langgraph_compaction.view.marks import is_summary
from langgraph_compaction.view.pairing import calls_of

Speaker = Literal["user", "agent", "call", "result"]
WEIGHTS: Mapping[Speaker, float] = {"user": 3.0, "agent": 2.0, "call": 1.5, "result": 0.0}
"""How much a mention counts by who made it: what was said over what was printed."""
LABELLED = 1.0
"""What a printed value counts more that stands after a name ("total: 12 rows")."""
MOST_MEDIA = 5
"""Images and files without a name that are listed, the newest: there may be one at each step."""
PASSED = 2.0
"""What a value counts less once the same thing has another."""
_TOLD = re.compile(rf"\s*[-*]?\s*[\w.:-]+(?P<called>\(.*\))?{ARROW}")
"""How extracts quote a result ("shell → 3 passed") and tell of a call ("write(path=a) → ok")."""


@dataclass(slots=True)
class Entry:
    """One name or value, and how it was mentioned.

    Attributes:
        mention: as it was mentioned last.
        weight: the greatest of those who mentioned it.
        times: texts of user, agent and calls that mention it.
        last: number of the last text that does.
        order: place of the last mention among all.
    """

    mention: Mention
    weight: float
    times: int = 0
    last: int = -1
    order: int = 0


@dataclass(slots=True)
class Mentioned:
    """The mentions of a text or span.

    Attributes:
        before: values by subject that somebody said before, the newest last.
        entries: by name, or by subject and name where the name alone says nothing.
        series: values by subject, also those from before.
    """

    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    _said: set[str] = field(default_factory=set)
    _here: set[str] = field(default_factory=set)
    _texts: int = 0
    _order: int = 0
    _told: bool = False
    _known: Known = field(default_factory=dict)
    _outcomes: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.series = Series(self.before)
        self._said.update(self.before)

    def read(self, messages: Sequence[BaseMessage], *, told: bool = False) -> None:
        """Take in messages, oldest first, as they are: nothing is clamped yet.

        Args:
            messages: of the span, or of another.
            told: whether a segment tells of them already: then only the order of values counts.
        """
        self._told = told
        self._read(messages)
        self._told = False

    def _read(self, messages: Sequence[BaseMessage]) -> None:
        calls: dict[str, str] = {}
        media = [
            (message.type, marker)
            for message in messages
            for marker in unnamed_media(message.content)
            if not isinstance(message, SystemMessage)
        ]
        for kind, marker in media[-MOST_MEDIA:]:
            # Below what was said: that there was an image is a fact, but its marker says little.
            self._add("result" if kind == "tool" else "call", [Mention(marker)])
        for message in messages:
            if isinstance(message, SystemMessage):  # it stays in the view word for word
                continue
            text = "\n".join([spoken_text(message), *attachment_names(message.content)])
            if isinstance(message, ToolMessage):
                self.add("result", text, scope=calls.get(message.tool_call_id, ""))
                continue
            prose, blocks = without_code(text)
            self.add(
                "agent" if isinstance(message, AIMessage) or is_summary(message) else "user", prose
            )
            for block in blocks:
                self.add("call", block)
            if isinstance(message, AIMessage):
                for call in calls_of(message):
                    calls[str(call.get("id"))] = operand(call.get("args"))
                    for argument in argument_texts(call.get("args")):
                        self.add("call", argument)

    def read_parts(self, parts: Parts) -> None:
        """Take in an earlier segment.

        Its parts are read in the order in which they stand: of the values of one thing the newest
        stands last in a segment, see `Facts`.
        """
        invented = frozenset(parts.unsourced)
        for row in parts.body.split("\n"):
            told = _TOLD.match(row)
            found = mentions(row, said=not told, known=self._known)
            named = (one for one in found if one.name not in invented)
            if told:  # it tells what a call or a result has; what is the value of what, it may not
                speaker: Speaker = "call" if told["called"] else "result"
                self._add(speaker, (Mention(one.name) for one in named if one.telling))
                if told["called"]:
                    self._came_out(Deed.of(row.lstrip(" -*")), invented)
            else:
                self._add("agent", named)
        for quote in parts.quotes:
            self.add("user", quote)
        for line in parts.done:
            self._done(Deed.of(line))
        for name in parts.mentioned:
            self._listed("agent", name)
        for name in parts.printed:
            self._listed("result", name)
        if parts.newest:
            self.add("user", parts.newest)
        for name in parts.since:
            self._listed("agent", name)

    def _done(self, deed: Deed) -> None:
        """Take in a deed: what a result set to a value stands elsewhere, if it counts."""
        found = mentions(deed.line, said=False, known=self._known)
        self._add("call", (one for one in found if one.telling and not one.subject))
        for name, value in deed.arguments:
            self.add("call", f"{name}{OF}{value}" if name else value)
        self._came_out(deed)

    def _came_out(self, deed: Deed, invented: Collection[str] = ()) -> None:
        """Take in the values in a deed's outcome: only their order counts.

        And only where the call is about nothing that they may be values of: see ``scope`` of `add`.

        Args:
            deed: as a segment tells of it.
            invented: names that do not count.
        """
        # A line has the only argument without its name, if that says what the call is about.
        about = operand({name or "target": value for name, value in deed.arguments})
        if about or CUT in deed.call:
            return
        found = list(mentions(deed.detail, said=False, known=self._known))
        for one in found[:-1] if deed.detail.endswith(CUT) else found:
            if one.name in invented:
                continue
            if one.subject in self.series:
                self.series.add(one.subject, one.name, past=one.past)
            elif one.subject:  # nobody said yet that it matters
                self._outcomes.setdefault(one.subject, []).append(one.name)

    def add(self, speaker: Speaker, text: str, *, scope: str = "") -> None:
        """Take in one text.

        Args:
            speaker: who wrote it.
            text: any text.
            scope: what a call was about that printed it: of four files each may have a port.
        """
        said = speaker in ("user", "agent") or (
            speaker == "call" and len(text) <= ARGUMENT_SAID and "\n" not in text
        )
        self._add(speaker, mentions(text, said=said, known=self._known), scope)

    def _listed(self, speaker: Speaker, name: str) -> None:
        subject, colon, value = name.partition(OF)
        if colon:
            found = mentions(value, said=True, known=self._known)
            tells = any(one.name == value and one.telling for one in found)
            self._add(speaker, [Mention(value, subject, tells)])
        else:
            self._add(speaker, [Mention(name)])

    def _add(self, speaker: Speaker, found: Iterable[Mention], scope: str = "") -> None:
        self._texts += 1
        weight = WEIGHTS[speaker]
        for one in found:
            mention = one
            if speaker == "call" and one.telling and one.subject in OPERANDS:
                mention = one._replace(subject="")
            elif scope and one.subject and one.subject not in self._said:
                mention = one._replace(subject=f"{one.subject} ({scope})")
            if self._told:
                if mention.subject in self.series:
                    self.series.add(mention.subject, mention.name, past=mention.past)
                continue
            self._order += 1
            key = ("" if mention.telling else mention.subject, mention.name)
            entry = self.entries.setdefault(key, Entry(mention, weight))
            entry.weight = max(entry.weight, weight)
            # What a program prints at every run does not gain by it.
            entry.times += bool(weight) and entry.last != self._texts
            entry.last, entry.order = self._texts, self._order
            if mention.subject:
                if weight:
                    self._said.add(mention.subject)
                entry.mention = mention
                self._here.add(mention.subject)
                if mention.subject not in self.series:
                    for name in self._outcomes.pop(mention.subject, ()):
                        self.series.add(mention.subject, name)
                self.series.add(mention.subject, mention.name, past=mention.past)

    def ranked(self) -> list[Entry]:
        """The entries, best first.

        A new value of what earlier segments show counts as if the user had said it, wherever it
        stands.
        """

        def rank(entry: Entry) -> float:
            changed = self.changed(entry)
            weight = max(entry.weight, WEIGHTS["user"]) if changed else entry.weight
            often = math.log2(1 + max(entry.times, changed))
            labelled = LABELLED if not weight and entry.mention.subject else 0.0
            lately = entry.last / max(1, self._texts)
            return weight + labelled + often + lately - PASSED * self.passed(entry)

        return sorted(self.entries.values(), key=rank, reverse=True)

    def changed(self, entry: Entry) -> bool:
        """Whether it is a new value of what stands before with another."""
        earlier = self.before.get(entry.mention.subject, ())
        return not self.passed(entry) and any(old != entry.mention.name for old in earlier)

    def printed(self, entry: Entry) -> bool:
        """Whether it stands in results alone, and is no new value of a known thing."""
        return not entry.weight and not self.changed(entry)

    def said(self) -> list[Entry]:
        """The entries that user, agent or calls mention, in no order."""
        return [entry for entry in self.entries.values() if entry.weight]

    def listable(self, entry: Entry) -> bool:
        """Whether it may be listed: a counter that calls and output went through may not."""
        counted = not entry.mention.telling and entry.weight < WEIGHTS["agent"]
        return not (counted and self.passed(entry))

    def passed(self, entry: Entry) -> bool:
        """Whether there is a newer value of the same thing."""
        return self.series.passed(entry.mention.subject, entry.mention.name)

    def newest_of(self, subject: str) -> Entry:
        """The newest value of a subject, as that subject's: others may have it, too."""
        name = self.series.newest(subject)
        entry = self.entries.get((subject, name)) or self.entries.get(("", name))
        if entry is None:  # it stands in an earlier segment alone
            entry = Entry(Mention(name, telling=False), WEIGHTS["agent"], order=self._order)
        return replace(entry, mention=entry.mention._replace(subject=subject))

    def newest(self, *, here: bool = True) -> list[Entry]:
        """The newest values of all that had another value before.

        Args:
            here: whether only what was mentioned counts, and not what earlier segments have alone.
        """
        return [
            self.newest_of(series)
            for series in self.series
            if len(self.series.values(series)) > 1 and (series in self._here or not here)
        ]

    def outdated(self, text: str) -> bool:
        """Whether a text states values, and only such as have passed."""
        found = [one for one in mentions(text, said=True, known=self._known) if one.subject]
        return bool(found) and all(self.series.passed(one.subject, one.name) for one in found)

    def said_values(self) -> dict[str, list[str]]:
        """The values of what somebody said, by subject, the newest last."""
        return {subject: self.series.values(subject) for subject in sorted(self._said)}
