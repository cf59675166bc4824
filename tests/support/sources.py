"""Which messages each text of a digest stands for, told from what its writer was given."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.record import EDITED, DigestSegment
from tests.support.doubles import DIGEST_WORD, digest
from tests.support.ledger import RECORD, Ledger

_MARK = re.compile(r"\b(m\d+)\.\d+:")
"""What each message begins with: its id, and how often it was edited."""
_VERSION = re.compile(r"\b(m\d+\.\d+):")


@dataclass
class Extracts:
    """Writes extracts as the package does, and a number in place of their first line.

    By the number the ledger knows what they were written from.
    """

    ledger: Ledger

    def write(
        self,
        texts: Sequence[str],
        messages: Sequence[BaseMessage],
        *,
        max_tokens: int,
        count: Callable[[str], int],
    ) -> str:
        """As `ExtractiveSummarizer.write`."""
        text = ExtractiveSummarizer().write(texts, messages, max_tokens=max_tokens, count=count)
        read = [f"{RECORD}\n{one}" for one in texts] + [str(one.content) for one in messages]
        number = self.ledger.entered("\n".join(read))
        rows = [f"{DIGEST_WORD} entry {number}:", *text.splitlines()[1:]]
        while len(rows) > 1 and count("\n".join(rows)) > max_tokens:
            rows.pop()
        return "\n".join(rows)


@dataclass
class Sources:
    """Which messages each text of a segment stands for, by their ids.

    Every text bears a number by which the ledger knows what it was written from.

    Attributes:
        ledger: of the summariser, of extracts and of corrections by hand.
        known: ids by text.
    """

    ledger: Ledger = field(default_factory=Ledger)
    known: dict[str, set[str]] = field(default_factory=dict)

    def of(self, segment: DigestSegment) -> set[str]:
        """The messages that a segment stands for."""
        return self.known.get(segment["text"], set())

    def outdated(self, segment: DigestSegment, messages: Iterable[BaseMessage]) -> list[str]:
        """What a new segment was folded from, and is not in the messages or reads otherwise."""
        if segment["model"] == EDITED or segment["level"] > 0 or segment["text"] in self.known:
            return []
        read = self.ledger.read_for(segment["text"])
        if RECORD in read:
            return []
        present = {str(message.content).partition(":")[0] for message in messages}
        return sorted(set(_VERSION.findall(read)) - present)

    def corrected(self, segment: DigestSegment) -> str:
        """A text that a person writes in place of a segment's, and that says the same."""
        text = digest(self.ledger.entered(segment["text"]))
        self.known[text] = self.of(segment)
        return text

    def note(self, segments: Iterable[DigestSegment]) -> None:
        """Learn what new segments stand for: what was read for their texts, and no more."""
        for segment in segments:
            if segment["text"] not in self.known:
                read = self.ledger.covers([AIMessage(segment["text"])])
                self.known[segment["text"]] = set(_MARK.findall(read))
