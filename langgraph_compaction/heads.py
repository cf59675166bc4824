"""Heads: the keys of the newest archived items, from which all that were archived are found.

Parallel branches prune side by side, and each writes a chain of its own. So that no chain is lost
with the record that loses the merge, heads are merged as a set and not with the rest of the record.
A head is out of the set once a newer one leads to it; the record remembers such heads for a while,
since a branch that does not know yet may bring one back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph_compaction.record import CompactionRecord

HEADS_REMEMBERED = 32
"""Heads that a record names, those that newer ones lead to included."""

MOST_DIGITS = 15
"""Digits of the number of prunes in an entry; where there are more, no prune wrote it."""

FIELDS = frozenset(
    {"archived", "archived_prunes", "archived_also", "archived_before", "forgotten_epoch"}
)
"""Fields of the record that are merged here, apart from all others."""


def heads_of(record: CompactionRecord) -> tuple[str, ...]:
    """Keys of the items that lead to everything archived, the one to go on from first."""
    return tuple(filter(None, map(_key, sorted(_entries(record), reverse=True))))


def continued(record: CompactionRecord, head: str) -> CompactionRecord:
    """The record once a chain that leads to all of its heads ends in ``head``."""
    heads = _entries(record)
    if head in {_key(entry) for entry in heads}:
        return record  # nothing was added
    passed = heads | set(record.get("archived_before", ()))
    count = max((_prunes(entry) for entry in passed), default=0)
    return _with(record, {_entry(head, count + 1)}, passed, record.get("forgotten_epoch", 0))


def united(
    winner: CompactionRecord, one: CompactionRecord, other: CompactionRecord
) -> CompactionRecord:
    """The record that won a merge, with the heads of both; itself where they add nothing.

    What was archived before a `forget` is forgotten. The newest of a union are the newest of the
    unions of its parts, so the order of merges makes no difference.
    """
    if FIELDS.isdisjoint(one) and FIELDS.isdisjoint(other):
        return winner
    forgotten = max(record.get("forgotten_epoch", 0) for record in (one, other))
    known: set[str] = set()
    passed: set[str] = set()
    for record in (one, other):
        if record.get("forgotten_epoch", 0) == forgotten:
            known |= _entries(record)
            passed |= set(record.get("archived_before", ()))
    return _with(winner, known, passed, forgotten)


def _entry(key: str, prunes: int) -> str:
    """A head as the lists have it: in the order of the prunes, since positions may start again."""
    return f"{prunes:06d}-{key}"


def _key(entry: str) -> str:
    return entry.partition("-")[2]


def _prunes(entry: str) -> int:
    count = entry.partition("-")[0]
    return int(count) if count.isdecimal() and len(count) <= MOST_DIGITS else 0


def _entries(record: CompactionRecord) -> set[str]:
    found = set(record.get("archived_also", ()))
    if "archived" in record:
        found.add(_entry(record["archived"], record.get("archived_prunes", 0)))
    return found


def _with(
    record: CompactionRecord, known: Iterable[str], passed: Iterable[str], forgotten: int
) -> CompactionRecord:
    before = set(passed)
    newest = sorted({*known, *before})[-HEADS_REMEMBERED:]
    heads = [entry for entry in newest if entry not in before]
    fields: dict[str, Any] = {
        "archived": _key(heads[-1]) if heads else None,
        "archived_prunes": _prunes(heads[-1]) if heads else 0,
        "archived_also": heads[:-1],
        "archived_before": [entry for entry in newest if entry in before],
        "forgotten_epoch": forgotten,
    }
    fields = {name: value for name, value in fields.items() if value}
    rest: dict[str, Any] = {name: held for name, held in record.items() if name not in FIELDS}
    merged: Any = {**rest, **fields}
    return record if merged == record else merged
