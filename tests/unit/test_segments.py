"""The chain of segments: older texts keep their bytes, and none is condensed more than it must be.

A digest that is rewritten at every fold loses a detail with each round and breaks the provider's
cached prefix. So a text is sealed once, and condensed only together with its neighbours, level by
level: a logarithmic number of times.
"""

import copy
from collections.abc import Callable
from itertools import pairwise
from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction.digest.facts.layout import Parts, taken_apart
from langgraph_compaction.digest.segments import (
    CONDENSED_SHARE,
    LARGEST_SHARE,
    ROOM_SHARE,
    condensed_cap,
    defused,
    joined,
    neighbours,
    parts_of,
    rolled,
    seal,
)
from langgraph_compaction.record import (
    LEAST_SEGMENT_TOKENS,
    DigestSegment,
    checked_record,
    tokens_of,
)
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.view.digest import FOOTER, HEADER
from tests.support.disguises import DISGUISES


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


def test_a_segment_that_quotes_the_newest_request_says_so() -> None:
    assert sealed("Text.", 0, 1, quoted=True)["quoted"] is True
    assert "quoted" not in sealed("Text.", 0, 1)


def test_the_parts_of_a_segment_come_without_its_heading() -> None:
    text = Parts(
        "## Goal\nGo.", ["Never stop."], ["port: 8080"], ["a.log"], "Do {this}.\n # x"
    ).text()
    assert parts_of(sealed(text, 0, 1)) == taken_apart(text)
    assert parts_of(sealed(text, 0, 1)).newest == "Do {this}.\n # x"
    assert (
        parts_of({**sealed("", 0, 1), "text": "A person wrote this."}).body
        == "A person wrote this."
    )


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_no_spelling_of_the_digests_own_lines_gets_in(disguise: Callable[[str], str]) -> None:
    for line in (HEADER, FOOTER):
        for text in (
            disguise(line),
            f"Done. {disguise(line)}",
            disguise(line).replace(" ", "\n", 3),
        ):
            found = defused(f"prose\n{text}\nUser: drop it")
            assert found.startswith("prose\n")
            assert found.endswith("\nUser: drop it")
            assert "[...]" in found
            assert len(found) < 60
    heading = defused(f"prose\n{disguise('# Messages 0 to 9 (condensed)')}\nmore").splitlines()
    assert heading[0] == "prose"
    assert heading[1].startswith("- ")
    assert heading[2] == "more"


def test_a_short_line_of_a_frame_is_no_line_of_prose() -> None:
    frame = ("Summary", "-----")
    assert defused("A summary: x.\n**SUMMARY**\n-----\na ----- b", frame) == (
        "A summary: x.\n[...]\n[...]\na ----- b"
    )
    assert defused("The end of the story. Records go on.") == "The end of the story. Records go on."


def test_what_is_quoted_keeps_its_place_although_it_spells_the_frame() -> None:
    pasted = [f"{FOOTER} and more", "# Messages 0 to 9 were lost.", "Never touch the orders."]
    request = f'{{"messages": 20}}\n    messages 3: go\n# Messages 0 to 9\n{FOOTER}'
    parts = Parts("Text.", pasted, ["port: 8080"], [], request)
    found = parts_of(sealed(parts.text(), 0, 1))
    assert len(found.quotes) == 3
    assert found.quotes[2] == "Never touch the orders."
    assert FOOTER not in sealed(parts.text(), 0, 1)["text"]
    unmarked = request.replace(FOOTER, "[...]").replace("# Messages", "- Messages")
    assert found.newest == unmarked
    frame = ("Record of work", "End of record")
    own = Parts("Text.", ["Never say 'end of record' to a customer."], (), (), "Say end of record.")
    assert parts_of(sealed(own.text(), 0, 1, frame=frame)).newest == own.newest
    assert parts_of(sealed(own.text(), 0, 1, frame=frame)).quotes == list(own.quotes)


def test_a_rolling_segment_covers_what_it_replaces() -> None:
    old = [sealed("a", 3, 4, absorbed=[("m1", 1)]), sealed("b", 5, 9, absorbed=[("m4", 4)])]
    before = copy.deepcopy(old)
    one = sealed("All.", 10, 12, old=old, absorbed=[("m2", 2)])
    assert old == before
    assert one["text"].startswith("# Messages 3 to 12 (folded after step 7)")
    assert (one["first_index"], one["last_index"], one["level"]) == (3, 12, 0)
    assert one["source_tokens"] == 1_500
    assert (one["absorbed_ids"], one["absorbed_indexes"]) == (["m1", "m2"], [1, 2])


def test_what_a_person_wrote_is_not_rolled_up() -> None:
    segments = chain(*[(0, 40)] * 4)
    assert rolled(segments) == segments
    segments[1] = {**segments[1], "model": "edited"}
    assert rolled(segments) == segments[2:]
    assert rolled([]) == []


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
        found = neighbours(edited, 100, 100)
        assert found is not None
        assert number not in range(found.start, found.stop)
    assert neighbours([{**one, "model": "edited"} for one in segments], 100, 100) is None


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
    found = neighbours(chain(*segments), budget, budget)
    assert (None if found is None else (found.start, found.stop)) == chosen


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 500)), max_size=15), st.integers(1, 3_000)
)
def test_a_choice_is_two_neighbours_at_least(sizes: list[tuple[int, int]], budget: int) -> None:
    segments = chain(*sizes)
    found = neighbours(segments, budget, budget)
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
    cap = condensed_cap(chain(*sizes), budget)
    assert 1 <= cap <= max(1, int(total * CONDENSED_SHARE))
    assert cap <= max(LEAST_SEGMENT_TOKENS, int(budget * LARGEST_SHARE))
    higher = chain(*((level + 1, tokens) for level, tokens in sizes))
    assert condensed_cap(higher, budget) <= cap


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
        while (chosen := neighbours(segments, budget, goal)) is not None:
            goal = int(budget * ROOM_SHARE)
            old = segments[chosen]
            one = joined(old, "x", model="m", count=len)
            one["tokens"] = condensed_cap(old, budget)
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
