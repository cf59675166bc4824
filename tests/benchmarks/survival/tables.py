"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from tests.benchmarks.survival.facts import KINDS
from tests.benchmarks.survival.measuring import Outcome, Outcomes
from tests.benchmarks.survival.scoring import GROUPS, NEWEST_LAST, STALE_LAST

NAMES = {
    "path": "paths",
    "url": "URLs",
    "id": "ids and hashes",
    "ticket": "e-mail and ticket names",
    "version": "versions",
    "quantity": "numbers with units",
    "date": "dates",
    "name": "quoted names, identifiers",
    "constraint": "user constraints, word for word",
    "pin": "pinned messages, word for word",
    "decision": "decisions of the agent",
    "commitment": "commitments of the agent",
    "update": "updated values: the newest",
    NEWEST_LAST: "updated values: newest stands last",
    STALE_LAST: "updated values: a stale one stands last",
    "user": "references said by the user",
    "agent": "references said by the agent",
    "arguments": "references in arguments",
    "result": "references in results",
}
"""Rows of the table as they are printed."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def survival(outcomes: Outcomes, loss: float, systems: Sequence[str], rounds: Sequence[int]) -> str:
    """Percent of the facts that survived, by type and system; a number for each of the rounds."""

    def cell(row: str, system: str) -> str:
        shares = [outcomes[loss, system, number].tally.share(row) for number in rounds]
        return " / ".join("–" if share is None else f"{100 * share:.0f}" for share in shares)

    rows = [
        [NAMES.get(row, f"**{row}**"), *(cell(row, system) for system in systems)]
        for row in (*NAMES, *GROUPS)
    ]
    return table([f"% after {' / '.join(map(str, rounds))} rounds", *systems], rows)


def budgets(outcomes: Outcomes, loss: float, systems: Sequence[str], rounds: Sequence[int]) -> str:
    """Tokens and calls by system, a number for each of the rounds."""

    def numbers(system: str, of: Callable[[Outcome], float]) -> str:
        return " / ".join(f"{of(outcomes[loss, system, number]):,.0f}" for number in rounds)

    rows = [
        [
            system,
            numbers(system, lambda one: mean(one.digests)),
            numbers(system, lambda one: max(one.digests)),
            numbers(system, lambda one: mean(one.views)),
            numbers(system, lambda one: mean(one.calls)),
            numbers(system, lambda one: sum(one.refused)),
            numbers(system, lambda one: sum(one.tally.total.get(kind, 0) for kind in KINDS)),
        ]
        for system in systems
    ]
    header = [
        f"after {' / '.join(map(str, rounds))} rounds",
        "digest, mean tokens",
        "digest, most",
        "view, mean tokens",
        "summary calls, mean",
        "texts refused, all seeds",
        "facts scored, all seeds",
    ]
    return table(header, rows)
