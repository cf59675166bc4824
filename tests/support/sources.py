"""Which messages each text of a digest stands for, told from what its writer was given."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.record import EDITED, DigestSegment
from tests.integration.doubles import DIGEST_WORD, digest
from tests.integration.ledger import Ledger

_MARK = re.compile(r"\b(m\d+)\.\d+:")
"""What each message begins with: its id, and how often it was edited."""
_VERSION = re.compile(r"\b(m\d+\.\d+):")
_ENTRY = re.compile(rf"{DIGEST_WORD} entry (\d+):")
EXTRACTIVE = "extractive"


@dataclass
class Sources:
    """Which messages each text of a segment stands for, by their ids.

    What a summariser wrote bears a number by which the ledger knows what it was written from. An
    extract bears none: it stands for what came to be hidden with it.

    Attributes:
        ledger: the summariser's.
        known: ids by text.
    """

    ledger: Ledger = field(default_factory=Ledger)
    known: dict[str, set[str]] = field(default_factory=dict)

    def of(self, segment: DigestSegment) -> set[str]:
        """The messages that a segment stands for."""
        return self.known.get(segment["text"], set())

    def outdated(self, segment: DigestSegment, messages: Iterable[BaseMessage]) -> list[str]:
        """What a new segment was folded from, and is not in the messages or reads otherwise."""
        if segment["model"] in {EXTRACTIVE, EDITED} or segment["level"] > 0:
            return []
        numbers = _ENTRY.findall(segment["text"])
        read = self.ledger._read[int(numbers[-1])] if numbers else ""
        if "<record>" in read or segment["text"] in self.known:
            return []
        present = {str(message.content).partition(":")[0] for message in messages}
        return sorted(set(_VERSION.findall(read)) - present)

    def corrected(self, segment: DigestSegment) -> str:
        """A text that a person writes in place of a segment's, and that says the same."""
        number = next(self.ledger._numbers)
        self.ledger._read[number] = segment["text"]
        text = digest(number)
        self.known[text] = self.of(segment)
        return text

    def note(
        self,
        segments: Sequence[DigestSegment],
        before: Sequence[DigestSegment],
        hidden: Collection[str],
        order: Sequence[str],
    ) -> None:
        """Learn what new segments stand for.

        Args:
            segments: the chain as it is.
            before: the chain as it was.
            hidden: ids of the messages that are hidden now.
            order: ids of all messages of the thread, in order.
        """
        new = [one for one in segments if one["text"] not in self.known]
        replaced = [one for one in before if one not in segments]
        for segment in new:
            read = self.ledger.covers([AIMessage(segment["text"])])
            found = set(_MARK.findall(read))
            inside = [one for one in replaced if _within(one, segment)]
            for one in inside:
                # An extract has no number: that it was read shows by what it quotes.
                marks = set(_MARK.findall(one["text"]))
                quoted = one["model"] == EXTRACTIVE and (marks & found or not marks)
                if quoted or segment["model"] == EXTRACTIVE:
                    found |= self.of(one)
            replaced = [one for one in replaced if one not in inside]
            self.known[segment["text"]] = found
        left = [name for name in hidden if not any(name in self.of(one) for one in segments)]
        extracts = [one for one in new if one["model"] == EXTRACTIVE]
        for segment in extracts:
            # The older ones are condensed of what stood before; each ends with its last message.
            last, fresh = segment["last_id"], segment["level"] == 0
            end = order.index(last) + 1 if last in order and segment is not extracts[-1] else None
            within = set(order[:end])
            taken = [name for name in left if (fresh or len(extracts) == 1) and name in within]
            self.known[segment["text"]] |= set(taken)
            left = [name for name in left if name not in taken]


def _within(one: DigestSegment, other: DigestSegment) -> bool:
    return other["first_index"] <= one["first_index"] and one["last_index"] <= other["last_index"]
