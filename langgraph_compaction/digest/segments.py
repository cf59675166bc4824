"""Sealing a text into a segment, and choosing which segments to condense."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from langgraph_compaction.record import EDITED, LEAST_SEGMENT_TOKENS, DigestSegment
from langgraph_compaction.view.digest import FOOTER, HEADER

ROOM_SHARE = 0.75
"""Share of the digest's budget that condensing brings it down to: with less room below the budget
every fold would condense again, with more the oldest text would lose detail at once."""
CONDENSED_SHARE = 0.5
"""Tokens of a condensed segment as a share of what it replaces, at most."""
LEAST_SHARE = 16
"""The smallest condensed segment may always have this fraction (one in 16) of the digest's budget,
or ``min_segment_tokens`` if that is less: below that a record says nothing."""


_HEADING = re.compile(r"^[ \t]*#+[ \t]*(?=Messages \d)", re.MULTILINE)


def defused(text: str, frame: Sequence[str] = (HEADER, FOOTER)) -> str:
    """``text`` without lines that could pass for the digest's own: its frame, its headings.

    What a summariser copies from a hostile span must not end the digest and go on as the user.
    """
    for mark in frame:
        text = text.replace(mark, "[...]")
    return _HEADING.sub("- ", text)


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
    absorbed: Sequence[tuple[str, int]] = (),
    frame: Sequence[str] = (HEADER, FOOTER),
) -> DigestSegment:
    """A segment of level 0.

    Args:
        text: what the summariser wrote.
        first_index: position of the first message covered, inclusive.
        last_index: position of the last message covered, inclusive.
        last_id: its id.
        step: AI messages of the thread when the fold was made.
        source_tokens: tokens of what the segment replaces.
        model: who wrote the text.
        count: tokens of a text.
        quoted: the user's newest message, word for word.
        absorbed: keys and positions of earlier kept messages that the segment took in.
        frame: the lines that open and close the digest; no text may contain them.
    """
    heading = f"# Messages {first_index} to {last_index} (folded after step {step})"
    parts = [heading, defused(text, frame)]
    if quoted is not None:
        parts.append(f"The user's newest message here, word for word:\n{defused(quoted, frame)}")
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
    if quoted is not None:
        segment["quoted"] = True
    _note_absorbed(segment, absorbed)
    return segment


def joined(
    old: Sequence[DigestSegment],
    text: str,
    *,
    model: str,
    count: Callable[[str], int],
    frame: Sequence[str] = (HEADER, FOOTER),
) -> DigestSegment:
    """The segment that replaces neighbouring ones, one level above the highest of them."""
    first, last = old[0], old[-1]
    heading = f"# Messages {first['first_index']} to {last['last_index']} (condensed)"
    sealed = f"{heading}\n{defused(text, frame)}"
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
    # What lies within the joined range comes back with it; only what lies before has to be named.
    outside = [
        (name, index)
        for one in old
        for name, index in zip(
            one.get("absorbed_ids", ()), one.get("absorbed_indexes", ()), strict=False
        )
        if index < segment["first_index"]
    ]
    _note_absorbed(segment, outside)
    return segment


def _note_absorbed(segment: DigestSegment, absorbed: Sequence[tuple[str, int]]) -> None:
    if absorbed:
        segment["absorbed_ids"] = [name for name, _ in absorbed]
        segment["absorbed_indexes"] = [index for _, index in absorbed]


def condensed_cap(old: Sequence[DigestSegment], budget: int, least: int) -> int:
    """Tokens that the condensed text of some neighbours may have: half of theirs, at most.

    Each level has half the room of the level below: a quarter of the budget for one segment of
    level 1, an eighth for one of level 2, and so on. So the levels fit the budget together, and
    the thread may grow without end.

    Args:
        old: the segments to condense.
        budget: tokens that all segments together may have.
        least: tokens that a segment may always have, see `LEAST_SHARE`.
    """
    total = sum(one["tokens"] for one in old)
    level = max(segment["level"] for segment in old) + 1
    half = int(total * CONDENSED_SHARE)
    floor = max(LEAST_SEGMENT_TOKENS, min(least, budget // LEAST_SHARE))
    return max(1, min(half, max(budget >> (level + 1), floor)))


def neighbours(segments: Sequence[DigestSegment], budget: int, least: int) -> slice | None:
    """The neighbouring segments to condense next, or None while the chain is within its budget.

    The oldest of the lowest level that has two neighbours, as many as are needed to come down to
    `ROOM_SHARE` of the budget; the newest segment is left alone while there are others. So a text
    is condensed a logarithmic number of times, as levels merge in a log-structured store. What a
    person edited and the newest quoted request are never condensed.

    Args:
        segments: the chain, oldest first.
        budget: tokens that all segments together may have.
        least: as in `condensed_cap`.
    """
    total = sum(one["tokens"] for one in segments)
    if total <= budget or len(segments) < 2:
        return None
    found = _lowest_run(segments)
    if found is None:
        return None
    start, stop = found
    for end in range(start + 2, stop):
        old = segments[start:end]
        saved = sum(one["tokens"] for one in old) - condensed_cap(old, budget, least)
        if total - saved <= budget * ROOM_SHARE:
            return slice(start, end)
    return slice(start, stop)


def _lowest_run(segments: Sequence[DigestSegment]) -> tuple[int, int] | None:
    """Start and stop of the run of one level to condense from; at least two segments long.

    What a person wrote is in no run, and neither is the newest quoted request: a correction and
    the work in hand must not fade.
    """
    quotes = [index for index, segment in enumerate(segments) if segment.get("quoted")]
    fixed = {index for index, segment in enumerate(segments) if segment["model"] == EDITED}
    fixed.update(quotes[-1:])
    runs: list[tuple[int, int, int]] = []
    pairs: list[int] = []
    start = 0
    for index in range(1, len(segments) + 1):
        level = segments[index - 1]["level"]
        if index < len(segments) and not fixed & {index - 1, index}:
            pairs.append(index - 1)
            if segments[index]["level"] == level:
                continue
        runs.append((level, start, index))
        start = index
    for _, first, stop in sorted(runs):
        older = min(stop, len(segments) - 1)
        if older - first >= 2:
            return first, older
    # No two neighbours of one level beside the newest segment: the two oldest join.
    return (pairs[0], pairs[0] + 2) if pairs else None
