"""Sealing a text into a segment, and choosing which segments to condense."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langgraph_compaction.state import DigestSegment

ROOM_SHARE = 0.75
"""Share of the digest's budget that condensing brings it down to. Some room below the budget, so
that not every fold condenses again."""
CONDENSED_SHARE = 0.5
"""Tokens of a condensed segment as a share of what it replaces, at most."""


def seal(
    text: str,
    *,
    first_index: int,
    last_index: int,
    last_id: str | None,
    step: int,
    source_tokens: int,
    model: str,
    count: Callable[[str], int],
    quoted: str | None = None,
    absorbed_ids: Sequence[str] = (),
) -> DigestSegment:
    """A segment of level 0; ``quoted`` is the user's newest message, word for word."""
    heading = f"# Messages {first_index} to {last_index} (through step {step})"
    parts = [heading, text]
    if quoted is not None:
        parts.append(f"The user's newest message here, word for word:\n{quoted}")
    sealed = "\n".join(parts)
    segment = DigestSegment(
        text=sealed,
        first_index=first_index,
        last_index=last_index,
        last_id=last_id,
        level=0,
        tokens=count(sealed),
        source_tokens=source_tokens,
        model=model,
    )
    if absorbed_ids:
        segment["absorbed_ids"] = list(absorbed_ids)
    return segment


def joined(
    old: Sequence[DigestSegment], text: str, *, model: str, count: Callable[[str], int]
) -> DigestSegment:
    """The segment that replaces neighbouring ones, one level above the highest of them."""
    first, last = old[0], old[-1]
    sealed = f"# Messages {first['first_index']} to {last['last_index']} (condensed)\n{text}"
    segment = DigestSegment(
        text=sealed,
        first_index=first["first_index"],
        last_index=last["last_index"],
        last_id=last["last_id"],
        level=max(one["level"] for one in old) + 1,
        tokens=count(sealed),
        source_tokens=sum(one["source_tokens"] for one in old),
        model=model,
    )
    absorbed = [name for one in old for name in one.get("absorbed_ids", ())]
    if absorbed:
        segment["absorbed_ids"] = absorbed
    return segment


def neighbours(segments: Sequence[DigestSegment], budget: int) -> slice | None:
    """The neighbouring segments to condense next, or None while the chain is within its budget.

    The oldest of the lowest level that has two neighbours, as many as are needed to come down to
    `ROOM_SHARE` of the budget; the newest segment is left alone while there are others. So a text
    is condensed a logarithmic number of times, as levels merge in a log-structured store.

    Args:
        segments: the chain, oldest first.
        budget: tokens that all segments together may have.
    """
    total = sum(segment["tokens"] for segment in segments)
    if total <= budget or len(segments) < 2:
        return None
    start, stop = _lowest_run(segments)
    saved, end = 0, start
    while end < stop and (end - start < 2 or total - saved > budget * ROOM_SHARE):
        saved += int(segments[end]["tokens"] * (1 - CONDENSED_SHARE))
        end += 1
    return slice(start, end)


def _lowest_run(segments: Sequence[DigestSegment]) -> tuple[int, int]:
    """Start and stop of the run of equal level to condense from; at least two segments long."""
    runs: list[tuple[int, int, int]] = []
    start = 0
    for index in range(1, len(segments) + 1):
        if index == len(segments) or segments[index]["level"] != segments[start]["level"]:
            runs.append((segments[start]["level"], start, index))
            start = index
    newest = len(segments) - 1
    for _, first, stop in sorted(runs):
        older = min(stop, newest)
        if older - first >= 2:
            return first, older
    # No two neighbours of one level beside the newest segment: the two oldest join.
    return 0, 2
