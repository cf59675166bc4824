"""What a span mentions, ranked: said by the user over the agent, over arguments, over results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.facts.mentions import OF, Known, Mention, mentions
from langgraph_compaction.digest.rendering import spoken_text
from langgraph_compaction.digest.sentences import without_code
from langgraph_compaction.view.blocks import attachment_names
from langgraph_compaction.view.pairing import calls_of

Speaker = Literal["user", "agent", "call", "result"]
WEIGHTS: Mapping[Speaker, float] = {"user": 3.0, "agent": 2.0, "call": 1.5, "result": 0.0}
"""How much a mention counts by who made it: what was said over what was printed."""
LABELLED = 1.0
"""What a printed value counts more that stands after a name ("total: 12 rows")."""
PASSED = 2.0
"""What a value counts less once the same thing has another."""
_TOLD = re.compile(r"\s*[-*]?\s*[\w.:-]+(?P<called>\(.*\))? → ")
"""How extracts quote a result ("shell → 3 passed") and tell of a call ("write(path=a) → ok")."""
ARGUMENT_SAID = 80
"""Characters of an argument up to which it is read as if it were said: a name, a value."""

SERIES = 100
"""Values of one subject that are remembered: a log may count to a million."""


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
        before: values by subject that stand before it in the digest, the newest last.
        entries: by name, or by subject and name where the name alone says nothing.
        series: values of one subject, also those from before, the newest last.
    """

    before: Mapping[str, Iterable[str]] = field(default_factory=dict)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    series: dict[str, dict[str, None]] = field(default_factory=dict)
    _subjects: set[str] = field(default_factory=set)
    _texts: int = 0
    _order: int = 0
    _known: Known = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.series = {subject: dict.fromkeys(names) for subject, names in self.before.items()}

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Take in the messages of a span, oldest first, as they are: nothing is clamped yet."""
        for message in messages:
            if isinstance(message, SystemMessage):  # it stays in the view word for word
                continue
            text = "\n".join([spoken_text(message), *attachment_names(message.content)])
            if isinstance(message, ToolMessage):
                self.add("result", text)
                continue
            prose, blocks = without_code(text)
            self.add("agent" if isinstance(message, AIMessage) else "user", prose)
            for block in blocks:
                self.add("call", block)
            if isinstance(message, AIMessage):
                for call in calls_of(message):
                    for argument in _arguments(call.get("args")):
                        self.add("call", argument)

    def read_parts(self, parts: Parts) -> None:
        """Take in an earlier segment.

        Its parts are read in the order in which they stand: of the values of one thing the newest
        stands last in a segment, see `Facts`.
        """
        invented = frozenset(parts.unsourced)
        for row in parts.body.split("\n"):
            told = _TOLD.match(row)
            if told:  # a record that quotes a result or tells of a call says it of another's words
                speaker: Speaker = "call" if told["called"] else "result"
                found = mentions(row, said=False, known=self._known)
            else:
                speaker = "agent"
                found = mentions(row, said=True, known=self._known)
            self._add(speaker, (one for one in found if one.name not in invented))
        for quote in parts.quotes:
            self.add("user", quote)
        for name in parts.mentioned:
            self._listed("agent", name)
        for name in parts.printed:
            self._listed("result", name)
        if parts.newest:
            self.add("user", parts.newest)
        for name in parts.since:
            self._listed("agent", name)

    def add(self, speaker: Speaker, text: str) -> None:
        """Take in one text."""
        said = speaker in ("user", "agent") or (
            speaker == "call" and len(text) <= ARGUMENT_SAID and "\n" not in text
        )
        self._add(speaker, mentions(text, said=said, known=self._known))

    def _listed(self, speaker: Speaker, name: str) -> None:
        subject, colon, value = name.partition(OF)
        if colon:
            found = mentions(value, said=True, known=self._known)
            tells = any(one.name == value and one.telling for one in found)
            self._add(speaker, [Mention(value, subject, tells)])
        else:
            self._add(speaker, [Mention(name)])

    def _add(self, speaker: Speaker, found: Iterable[Mention]) -> None:
        self._texts += 1
        weight = WEIGHTS[speaker]
        for mention in found:
            self._order += 1
            key = ("" if mention.telling else mention.subject, mention.name)
            entry = self.entries.setdefault(key, Entry(mention, weight))
            entry.weight = max(entry.weight, weight)
            # What a program prints at every run does not gain by it.
            entry.times += bool(weight) and entry.last != self._texts
            entry.last, entry.order = self._texts, self._order
            if mention.subject:
                entry.mention = mention
                self._subjects.add(mention.subject)
                names = self.series.setdefault(mention.subject, {})
                names.pop(mention.name, None)  # what is said again becomes the newest
                names[mention.name] = None
                if len(names) > SERIES:
                    del names[next(iter(names))]

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
        """Whether its subject has a newer value."""
        names = self.series.get(entry.mention.subject)
        return names is not None and _last(names) != entry.mention.name

    def older(self) -> set[str]:
        """The values that have passed, and are the newest of nothing."""
        names = {name for names in self.series.values() for name in names}
        return names - {_last(names) for names in self.series.values()}

    def older_than_newest(self, subject: str) -> list[str]:
        """The values of a subject but the newest, oldest first."""
        return list(self.series[subject])[:-1]

    def newest_of(self, subject: str) -> Entry:
        """The newest value of a subject, as that subject's: others may have it, too."""
        name = _last(self.series[subject])
        entry = self.entries.get((subject, name)) or self.entries["", name]
        return replace(entry, mention=entry.mention._replace(subject=subject))

    def newest(self) -> list[Entry]:
        """The newest values of all subjects mentioned that had another before."""
        changed = (subject for subject in self.series if subject in self._subjects)
        return [self.newest_of(subject) for subject in changed if len(self.series[subject]) > 1]


def _last(names: dict[str, None]) -> str:
    return next(reversed(names))


def _arguments(arguments: Any) -> Iterator[str]:
    """The values in a call's arguments, short ones with their names: ``timeout: 45 s``."""
    waiting: list[tuple[str, Any]] = [("", arguments)]
    seen: set[int] = set()  # they may contain themselves
    while waiting:
        name, item = waiting.pop()
        if isinstance(item, str | int | float):
            text = str(item)
            yield f"{name}{OF}{text}" if name and len(name + text) <= ARGUMENT_SAID else text
        elif isinstance(item, Mapping | Sequence) and id(item) not in seen:
            seen.add(id(item))
            inside = item.items() if isinstance(item, Mapping) else ((name, one) for one in item)
            waiting += [(str(key), one) for key, one in reversed([*inside])]
