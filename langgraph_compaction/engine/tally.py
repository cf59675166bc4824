"""What a visit comes to: its calls and their texts, how its steps ended, what changes by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langgraph_compaction.digest.verifying import Verdict
from langgraph_compaction.record import CompactionRecord


class Outcome(NamedTuple):
    """How a step ended, folding a span or condensing the chain.

    Attributes:
        record: the new record, or the old one where nothing changed.
        failed: whether some text was needed that no tier wrote. The record may have changed all
            the same: by what was finished before, or by extracts.
    """

    record: CompactionRecord
    failed: bool


class Change(NamedTuple):
    """What a visit changes in the state.

    Attributes:
        record: the new record.
        removed: ids of the messages that leave the channel.
    """

    record: CompactionRecord
    removed: tuple[str, ...] = ()


@dataclass(slots=True)
class Tally:
    """The calls of one visit, counted.

    Attributes:
        calls: how many there were so far.
        failures: one line for each that brought no acceptable text.
        condensed: segments that were condensed into others.
        candidates: what was found of each text that a tier returned, in order, as plain JSON
            values: its tier, "accepted", "repaired" (by a second answer, which counts) or
            "rejected", and why.
    """

    calls: int = 0
    failures: list[str] = field(default_factory=list)
    condensed: int = 0
    candidates: list[dict[str, Any]] = field(default_factory=list)

    def note(self, tier: str, verdict: Verdict, outcome: str, reason: str | None = None) -> None:
        """Add a candidate; its problem, if it has one, is the outcome and the reason."""
        self.candidates.append(
            {
                "tier": tier,
                "verdict": "rejected" if verdict.problem else outcome,
                "reason": verdict.problem or reason,
                "missing": list(verdict.missing),
                "tokens": verdict.tokens,
                "max_tokens": verdict.max_tokens,
            }
        )
