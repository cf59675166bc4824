"""The chain of segments: older texts keep their bytes, and none is condensed more than it must be.

A digest that is rewritten at every fold loses a detail with each round and breaks the provider's
cached prefix. So a text is sealed once, and condensed only together with its neighbours, level by
level: a logarithmic number of times.
"""

import copy
from collections.abc import Callable

import pytest

from langgraph_compaction.digest.facts.layout import Parts, taken_apart
from langgraph_compaction.digest.segments import (
    defused,
    joined,
    parts_of,
)
from langgraph_compaction.record import (
    checked_record,
)
from langgraph_compaction.view.digest import FOOTER, HEADER
from tests.support.disguises import DISGUISES
from tests.support.segments import sealed

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


# ---- choosing
