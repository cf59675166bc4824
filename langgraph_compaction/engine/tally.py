"""What a visit comes to: its calls and their texts, how its steps ended, what changes by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langgraph_compaction.digest.verifying import Usage, Verdict
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
class Spent:
    """Tokens of summary calls, as events have them.

    Attributes:
        input_tokens: of the prompts.
        output_tokens: of the answers.
        calls: how many were added; 0: there was no call.
        estimated: those of them whose tokens no provider reported.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    estimated: int = 0

    def add(self, usage: Usage, *, reported: bool) -> None:
        """Add a call."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.calls += 1
        self.estimated += not reported

    def add_told(self, event: Mapping[str, Any]) -> None:
        """Add what an event tells, if it tells of calls."""
        if event.get("usage") is not None:
            usage = Usage(event["input_tokens"], event["output_tokens"])
            self.add(usage, reported=event["usage"] == "reported")

    def fields(self) -> dict[str, Any]:
        """The fields of an event."""
        usage = None if not self.calls else "estimated" if self.estimated else "reported"
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage": usage,
        }


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
        spent: tokens of the calls that no event has told yet.
    """

    calls: int = 0
    failures: list[str] = field(default_factory=list)
    condensed: int = 0
    candidates: list[dict[str, Any]] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)

    def told(self) -> dict[str, Any]:
        """The fields of an event for the tokens that no other one has told: each is told once."""
        spent, self.spent = self.spent, Spent()
        return spent.fields()

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
