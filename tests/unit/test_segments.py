"""The chain of segments: older texts keep their bytes, and none is condensed more than it must be.

A digest that is rewritten at every fold loses a detail with each round and breaks the provider's
cached prefix. So a text is sealed once, and condensed only together with its neighbours, level by
level: a logarithmic number of times.
"""

import copy
from itertools import pairwise
from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction.digest.segments import (
    CONDENSED_SHARE,
    condensed_cap,
    joined,
    neighbours,
    seal,
)
from langgraph_compaction.record import DigestSegment, checked_record
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import CompactionSettings


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


# ---- sealing


def test_a_segment_says_what_it_covers_and_knows_its_size() -> None:
    segment = sealed("## Goal\nFix {it}.", 3, 9)
    assert segment["text"] == "# Messages 3 to 9 (folded after step 7)\n## Goal\nFix {it}."
    assert segment["tokens"] == len(segment["text"])
    assert (segment["first_index"], segment["last_index"], segment["last_id"]) == (3, 9, "m9")
    assert (segment["level"], segment["source_tokens"], segment["model"]) == (0, 500, "small")
    assert "absorbed_ids" not in segment
    assert checked_record({"segments": [segment], "last_summarized_index": 9})


def test_the_newest_request_is_quoted_word_for_word() -> None:
    request = "Do {this},\n  not that: \\n %s ```"
    text = sealed("Text.", 0, 1, quoted=request)["text"]
    assert text.endswith(f"word for word:\n{request}")
    assert sealed("Text.", 0, 1, quoted="")["text"].startswith("# Messages 0 to 1")


def test_absorbed_messages_are_written_down() -> None:
    found = sealed("Text.", 3, 4, absorbed=[("m1", 1), ("@2", 2)])
    assert (found["absorbed_ids"], found["absorbed_indexes"]) == (["m1", "@2"], [1, 2])


# ---- joining


def test_joined_segments_cover_what_they_covered() -> None:
    old = [
        sealed("a", 3, 4, absorbed=[("m1", 1)]),
        sealed("b", 5, 9, absorbed=[("m4", 4)]),
        sealed("c", 10, 12),
    ]
    old[1]["level"] = 2
    before = copy.deepcopy(old)
    one = joined(old, "All of it.", model="large", count=len)
    assert old == before
    assert one["text"] == "# Messages 3 to 12 (condensed)\nAll of it."
    assert (one["first_index"], one["last_index"], one["last_id"]) == (3, 12, "m12")
    assert (one["level"], one["model"]) == (3, "large")
    assert one["source_tokens"] == 1_500
    assert one["tokens"] == len(one["text"])
    # What lies within the joined range comes back with it: the list does not grow for ever.
    assert (one["absorbed_ids"], one["absorbed_indexes"]) == (["m1"], [1])
    assert "absorbed_ids" not in joined(old[2:], "x", model="m", count=len)


def test_what_a_person_wrote_is_never_condensed() -> None:
    segments = chain(*[(0, 40)] * 5)
    for number in range(5):
        edited = [*segments]
        edited[number] = {**edited[number], "model": "edited"}
        found = neighbours(edited, 100, 1)
        assert found is not None
        assert number not in range(found.start, found.stop)
    assert neighbours([{**one, "model": "edited"} for one in segments], 100, 1) is None


# ---- choosing


@pytest.mark.parametrize(
    ("segments", "budget", "chosen"),
    [
        ([], 0, None),
        ([(0, 900)], 100, None),
        ([(0, 50), (0, 50)], 100, None),
        ([(0, 60), (0, 50)], 100, (0, 2)),
        # The newest one stays as it is while two others are there.
        ([(0, 40), (0, 40), (0, 40)], 100, (0, 2)),
        # The lowest level first, and of it the oldest.
        ([(1, 40), (0, 40), (0, 40), (0, 40)], 100, (1, 3)),
        ([(2, 40), (1, 40), (1, 40), (0, 40)], 100, (1, 3)),
        ([(1, 40), (1, 40), (0, 40), (0, 40)], 100, (0, 2)),
        # All of that level at once.
        ([(0, 20)] * 8, 100, (0, 7)),
        ([(1, 60), *[(0, 20)] * 4], 110, (1, 4)),
        # No two of a level beside the newest: the two oldest.
        ([(2, 60), (1, 60), (0, 60)], 100, (0, 2)),
        ([(3, 60), (0, 60)], 100, (0, 2)),
    ],
)
def test_the_oldest_of_the_lowest_level_are_condensed(
    segments: list[tuple[int, int]], budget: int, chosen: tuple[int, int] | None
) -> None:
    found = neighbours(chain(*segments), budget, 1)
    assert (None if found is None else (found.start, found.stop)) == chosen


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 500)), max_size=15), st.integers(1, 3_000)
)
def test_a_choice_is_two_neighbours_at_least(sizes: list[tuple[int, int]], budget: int) -> None:
    segments = chain(*sizes)
    found = neighbours(segments, budget, 1)
    total = sum(tokens for _, tokens in sizes)
    assert (found is None) == (total <= budget or len(segments) < 2)
    if found is not None:
        assert 0 <= found.start < found.stop - 1 < len(segments)
        if len(segments) > 2:
            assert found.stop < len(segments)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 500)), min_size=2, max_size=9),
    st.integers(1, 20_000),
    st.integers(1, 300),
)
def test_a_condensed_text_has_half_the_room_of_its_sources_at_most(
    sizes: list[tuple[int, int]], budget: int, least: int
) -> None:
    old = chain(*sizes)
    cap = condensed_cap(old, budget, least)
    total = sum(tokens for _, tokens in sizes)
    assert 1 <= cap <= max(1, int(total * CONDENSED_SHARE))
    higher = chain(*((level + 1, tokens) for level, tokens in sizes))
    assert condensed_cap(higher, budget, least) <= cap


@pytest.mark.parametrize("budget", [1_000, 4_000, 16_000])
@pytest.mark.parametrize("source", [1_000, 5_000, 100_000])
def test_over_a_long_thread_a_text_is_condensed_a_logarithmic_number_of_times(
    budget: int, source: int
) -> None:
    folds = 500
    rules = resolved(CompactionSettings(trigger=None, max_digest_tokens=budget))
    size = rules.segment_cap(source)
    segments: list[DigestSegment] = []
    for number in range(folds):
        segments += [DigestSegment(**{**sealed("x", number, number), "tokens": size})]
        while (chosen := neighbours(segments, budget, rules.min_segment)) is not None:
            old = segments[chosen]
            one = joined(old, "x", model="m", count=len)
            one["tokens"] = condensed_cap(old, budget, rules.min_segment)
            segments[chosen] = [one]
        assert sum(segment["tokens"] for segment in segments) <= budget
    # The chain covers the whole thread without a gap.
    assert (segments[0]["first_index"], segments[-1]["last_index"]) == (0, folds - 1)
    for before, after in pairwise(segments):
        assert after["first_index"] == before["last_index"] + 1
    # A level is added by each condensing.
    assert max(segment["level"] for segment in segments) <= 2 * log2(folds)
