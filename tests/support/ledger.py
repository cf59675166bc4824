"""What a view has to show, told from outside: by what the summariser has read.

Each digest of a `Ledger` bears a number, and the ledger knows what it was written from. So no
record has to be believed: a message that stands neither in the view nor in what was read for a
digest that stands there is lost.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

from langchain_core.messages import BaseMessage, SystemMessage

from tests.support.doubles import DIGEST_WORD, digest, transcript
from tests.support.replay import absent

MARK_CHARS = 40
"""Characters by which a message is known in a prompt: each has to begin with a text of its own."""
RECORD = "<record>"
"""Stands in what was read where there were digests in it."""
_ENTRY = re.compile(rf"{DIGEST_WORD} entry (\d+):")
_ADDED = re.compile(r"summarization|:gap$|:unanswered:")  # in ids of what the view itself puts in


class Ledger:
    """A summariser whose digests are accepted, and that knows what each was written from.

    It may be called from several threads at once, as by nodes that run side by side.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._read: dict[int, str] = {}

    def __call__(self, messages: list[BaseMessage]) -> str:
        return digest(self.entered(transcript(messages)))

    def entered(self, read: str) -> int:
        """The number of a new entry, for a digest that was written from what was read."""
        number = next(self._numbers)
        self._read[number] = read
        return number

    def read_for(self, text: str) -> str:
        """What was read for the digest that a text is; "" for one that bears no number."""
        numbers = _ENTRY.findall(text)
        return self._read[int(numbers[-1])] if numbers else ""

    @property
    def folds(self) -> list[str]:
        """What was read for each fold; what was read to condense digests is not among it."""
        return [text for text in self._read.values() if RECORD not in text]

    def covers(self, view: Iterable[BaseMessage]) -> str:
        """What was read for the digests that a view shows, and for those that these condense."""
        waiting = {int(number) for message in view for number in _ENTRY.findall(message.text)}
        found: dict[int, str] = {}
        while waiting:
            number = waiting.pop()
            found[number] = self._read[number]
            waiting |= {int(one) for one in _ENTRY.findall(found[number])} - found.keys()
        return "\n".join(found.values())

    def faults(self, messages: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> list[str]:
        """What a view of messages with ids loses, changes, moves or makes up."""
        covered = self.covers(view)
        read = {index for index, one in enumerate(messages) if mark(one) in covered}
        places = {message.id: index for index, message in enumerate(messages)}
        found = [f"{messages[index].id} is lost" for index in absent(messages, view, read)]
        order = []
        for message in view:
            place = places.get(message.id)
            if place is None:
                if not _ADDED.search(message.id or ""):
                    found.append(f"{message.id} is shown and is not there")
            elif message != messages[place]:
                found.append(f"{message.id} is not shown as it is")
            elif not isinstance(message, SystemMessage):
                order.append(place)
        return found if order == sorted(order) else [*found, f"out of order: {order}"]

    def read_twice(self, messages: Iterable[BaseMessage]) -> list[str]:
        """Marks of the messages that were read for more than one fold.

        Messages of the same text cannot be told apart, and are left out.
        """
        marks = Counter(map(mark, messages))
        folds = self.folds
        return [
            one
            for one, times in marks.items()
            if times == 1 and sum(one in text for text in folds) > 1
        ]


def mark(message: BaseMessage) -> str:
    """What stands in a prompt that has this message, and in no other."""
    return message.text.partition("\n")[0][:MARK_CHARS].strip()
