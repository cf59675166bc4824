"""Which neighbours of the chain are condensed: level by level, a logarithmic number of times."""

from itertools import pairwise
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction.digest.chain import (
    CONDENSED_SHARE,
    LARGEST_SHARE,
    ROOM_SHARE,
    Chain,
    condensed_cap,
    neighbours,
    rolled,
)
from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.segments import joined
from langgraph_compaction.record import LEAST_SEGMENT_TOKENS, DigestSegment, tokens_of
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import CompactionSettings
from tests.support.segments import chain, sealed, sizes_of


def test_what_a_person_wrote_is_not_rolled_up() -> None:
    segments = chain(*[(0, 40)] * 4)
    assert rolled(segments) == segments
    segments[1] = {**segments[1], "model": "edited"}
    assert rolled(segments) == segments[2:]
    assert rolled([]) == []


def test_what_a_person_wrote_is_never_condensed() -> None:
    segments = chain(*[(0, 40)] * 5)
    for number in range(5):
        edited = [*segments]
        edited[number] = {**edited[number], "model": "edited"}
        found = neighbours(edited, sizes_of(edited), 100, 100)
        assert found is not None
        assert number not in range(found.start, found.stop)
    edited = [{**one, "model": "edited"} for one in segments]
    assert neighbours(edited, sizes_of(edited), 100, 100) is None


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
        # As many as one segment can hold at half their size.
        ([(0, 20)] * 8, 100, (0, 4)),
        ([(1, 60), *[(0, 20)] * 4], 110, (1, 4)),
        # No two of a level beside the newest: the two oldest.
        ([(2, 60), (1, 60), (0, 60)], 100, (0, 2)),
        ([(3, 60), (0, 60)], 100, (0, 2)),
    ],
)
def test_the_oldest_of_the_lowest_level_are_condensed(
    segments: list[tuple[int, int]], budget: int, chosen: tuple[int, int] | None
) -> None:
    found = neighbours(chain(*segments), sizes_of(chain(*segments)), budget, budget)
    assert (None if found is None else (found.start, found.stop)) == chosen


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 500)), max_size=15), st.integers(1, 3_000)
)
def test_a_choice_is_two_neighbours_at_least(sizes: list[tuple[int, int]], budget: int) -> None:
    segments = chain(*sizes)
    found = neighbours(segments, sizes_of(segments), budget, budget)
    total = sum(tokens for _, tokens in sizes)
    assert (found is None) == (total <= budget or len(segments) < 2)
    if found is not None:
        assert 0 <= found.start < found.stop - 1 < len(segments)
        if len(segments) > 2:
            assert found.stop < len(segments)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 500)), min_size=2, max_size=9),
    st.integers(200, 20_000),
)
def test_a_condensed_text_has_half_the_room_of_its_sources_at_most(
    sizes: list[tuple[int, int]], budget: int
) -> None:
    total = sum(tokens for _, tokens in sizes)
    cap = condensed_cap(chain(*sizes), sizes_of(chain(*sizes)), budget)
    assert 1 <= cap <= max(1, int(total * CONDENSED_SHARE))
    assert cap <= max(LEAST_SEGMENT_TOKENS, int(budget * LARGEST_SHARE))
    higher = chain(*((level + 1, tokens) for level, tokens in sizes))
    assert condensed_cap(higher, sizes_of(higher), budget) <= cap


@pytest.mark.parametrize("budget", [2_400, 4_000, 16_000])
@pytest.mark.parametrize("source", [1_000, 5_000, 100_000])
def test_over_a_long_thread_a_text_is_condensed_a_logarithmic_number_of_times(
    budget: int, source: int
) -> None:
    folds, calls = 500, 0
    rules = resolved(CompactionSettings(trigger=None, max_digest_tokens=budget))
    segments: list[DigestSegment] = []
    for number in range(folds):
        size = rules.segment_cap(source, tokens_of(segments))
        segments += [DigestSegment(**{**sealed("x", number, number), "tokens": size})]
        goal = budget
        while (chosen := neighbours(segments, sizes_of(segments), budget, goal)) is not None:
            goal = int(budget * ROOM_SHARE)
            old = segments[chosen]
            one = joined(old, "x", model="m", count=len)
            one["tokens"] = condensed_cap(old, sizes_of(old), budget)
            segments[chosen] = [one]
            calls += 1
        assert tokens_of(segments) <= budget
    # The chain covers the whole thread without a gap.
    assert (segments[0]["first_index"], segments[-1]["last_index"]) == (0, folds - 1)
    for before, after in pairwise(segments):
        assert after["first_index"] == before["last_index"] + 1
    # A level is added by each condensing.
    assert max(segment["level"] for segment in segments) <= log2(folds)
    assert calls <= folds


def test_a_new_segment_follows_its_source_and_what_is_left_of_the_budget() -> None:
    rules = resolved(CompactionSettings(trigger=None, max_digest_tokens=8_000))
    assert rules.segment_cap(5_000) == 1_000  # a fifth of its source
    assert rules.segment_cap(100_000) == 2_400  # three tenths of the budget
    assert rules.segment_cap(100_000, 4_000) == 1_200  # three tenths of what is left ...
    assert rules.segment_cap(100_000, 7_900) == 1_000  # ... and an eighth of it all at least
    assert rules.segment_cap(60) == 59  # below its source


def test_directives_widen_a_condensed_segment_within_their_share() -> None:
    rules = [f"Never touch the table rule{n}." for n in range(40)]
    parts = Parts("Text.", rules[:20])
    old = [
        DigestSegment(**{**sealed(parts.text(), n, n), "level": 1, "tokens": 900}) for n in range(2)
    ]
    found = Chain.of(old, 4_000, lambda text: len(text) // 4)
    assert found.held == [150, 150]
    bare = condensed_cap(old, [750, 750], 3_700)
    assert found.cap(slice(0, 2), 0, 0) == bare
    assert bare + 300 < found.cap(slice(0, 2), 320, 0) <= bare + 1_000
    assert found.cap(slice(0, 2), 50_000, 50_000) <= bare + 1_000 + 400
    assert found.cap(slice(0, 1), 50_000, 50_000) <= 855  # shorter than what it replaces


def test_what_a_person_wrote_leaves_half_of_the_budget_to_the_rest() -> None:
    long = DigestSegment(**{**sealed("x", 0, 1), "tokens": 5_000, "model": "edited"})
    found = Chain.of([long, *chain((0, 300), (0, 200))], 1_000, len)
    assert found.whole == 5_500
    assert found.next(1.0) is None
