"""Segments for tests of the chain."""

from collections.abc import Sequence
from typing import Any

from langgraph_compaction.digest.segments import seal
from langgraph_compaction.record import DigestSegment


def sealed(text: str, first: int, last: int, **more: Any) -> DigestSegment:
    return seal(
        text,
        first_index=first,
        last_index=last,
        last_id=f"m{last}",
        step=7,
        source_tokens=500,
        model="small",
        count=len,
        **more,
    )


def chain(*sizes: tuple[int, int]) -> list[DigestSegment]:
    """Segments of (level, tokens)."""
    made = []
    for number, (level, tokens) in enumerate(sizes):
        segment = sealed("x", number, number)
        made.append(DigestSegment(**{**segment, "level": level, "tokens": tokens}))
    return made


def sizes_of(segments: Sequence[DigestSegment]) -> list[int]:
    """Tokens of each."""
    return [one["tokens"] for one in segments]
