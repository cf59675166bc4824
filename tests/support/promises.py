"""What the package promises of any thread, and a tally of how often it was kept."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Promise(StrEnum):
    """A rule that has to hold after every step of any history."""

    COVERED = "What is hidden or pruned stands in a digest."
    PRESENT = "A fold is applied only to messages that are there and as they were read."
    ONCE = "No message stands in two segments."
    STAYS = "Task, pins, newest request and newest group are not folded."
    VERBATIM = "What is shown is shown word for word."
    SYSTEM = "Every system message is shown."
    VALID = (
        "Calls and results are paired, and no other rule of a provider is broken by the view alone."
    )
    FILLED = "The view is not empty where the thread is not, and shows nothing twice."
    WINDOW = "After a visit the view is within the window."
    PREFIX = "While the record stays the same, each view extends the one before."
    PURE = "The view follows from messages and record, and changes neither."
    SAME_VIEW = "The node's view is `model_view`."
    RECORD = "The record is JSON that can be read back."
    FORWARD = "Within an epoch the position does not go back, and each change is a revision."
    CHANNEL = "Nothing but people and prunes changes the messages."
    MERGED = "In which order updates of parallel nodes come makes no difference."
    IDLE = "A second visit changes nothing."
    BY_HAND = "What a person corrects, restores or forgets is so, and raises the epoch."
    FOUND = "What was pruned is found by the recall tool, until it is forgotten or cleared."
    RESTARTED = "Another process finds the thread as it was."
    OFF = "A refusal of the provider reaches the caller only where compaction is off."
    NO_ERROR = "No step raises, but BudgetError where nothing fits."


class Fault(NamedTuple):
    """One broken promise, and how it shows."""

    promise: Promise
    detail: str


class BrokenPromiseError(AssertionError):
    """A promise was broken; carries all faults that were found."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(f"{fault.promise.name}: {fault.detail}" for fault in faults))
        self.faults = faults


def expect(promise: Promise, *, holds: bool, detail: str) -> None:
    """Raise a BrokenPromiseError where a promise does not hold."""
    if not holds:
        raise BrokenPromiseError([Fault(promise, detail)])


@dataclass
class Tally:
    """What was driven, and what was found.

    Attributes:
        histories: threads that were begun.
        steps: steps by the name of their rule.
        happened: what came of them, by name.
        checks: states that were checked.
        broken: histories in which a promise was broken, by promise and first detail.
    """

    histories: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    checks: int = 0
    broken: dict[Promise, list[str]] = field(default_factory=dict)

    def note(self, faults: Iterable[Fault], told: str) -> None:
        """Count a history that ended with these faults; ``told`` says how it came to them."""
        for promise, detail in {fault.promise: fault.detail for fault in faults}.items():
            self.broken.setdefault(promise, []).append(f"{detail}\n{told}")

    @property
    def lines(self) -> list[str]:
        """The tally as a report."""
        total = sum(self.steps.values())
        found = [f"{self.histories} histories, {total} steps, {self.checks} states checked", ""]
        for title, counts in ("steps", self.steps), ("what came of them", self.happened):
            found += [f"{title}:", *(f"  {n:>7} {name}" for name, n in counts.most_common()), ""]
        found.append("histories that broke a promise:")
        for promise in Promise:
            told = self.broken.get(promise, [])
            found.append(f"  {len(told):>7} {promise.name}: {promise.value}")
        return found
