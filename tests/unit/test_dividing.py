"""Every folded message reaches a summariser, in as many calls as it takes.

Systems that trim what is too long to be summarised write digests of 4% of the history. Here a span
is divided, and a message that is too long by itself is read in pieces: nothing is left out, nothing
is read twice, and no call is larger than the window it goes to.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction.digest.dividing import (
    LEAST_ROOM,
    MARGIN,
    context,
    pack,
    pieces,
    room,
    without_small,
)
from langgraph_compaction.digest.rendering import escaped

sizes = st.lists(st.integers(0, 50), max_size=30)
chunks = st.lists(st.text(alphabet="ab\n 請👩", max_size=60), min_size=1, max_size=12)


# ---- room


def test_room_is_what_instructions_and_answer_leave_of_the_window() -> None:
    assert room(None, prompt=500, answer=1_000) is None
    assert room(10_000, prompt=500, answer=1_000) == int(10_000 * MARGIN) - 1_500
    assert room(1_000, prompt=900, answer=900) == LEAST_ROOM


# ---- packing


@pytest.mark.parametrize(
    ("given_sizes", "limit", "runs"),
    [
        ([], 10, []),
        ([], None, []),
        ([5, 5, 5], None, [(0, 3)]),
        ([5, 5, 5], 10, [(0, 2), (2, 3)]),
        ([5, 6, 5], 10, [(0, 1), (1, 2), (2, 3)]),
        ([50, 1, 1], 10, [(0, 1), (1, 3)]),
        ([1, 50, 1], 10, [(0, 1), (1, 2), (2, 3)]),
        ([0, 0], 0, [(0, 2)]),
    ],
)
def test_neighbours_are_packed_up_to_the_limit(
    given_sizes: list[int], limit: int | None, runs: list[tuple[int, int]]
) -> None:
    assert [(run.start, run.stop) for run in pack(given_sizes, limit)] == runs


@given(sizes, st.integers(1, 60))
def test_packing_covers_everything_once_in_order(given_sizes: list[int], limit: int) -> None:
    runs = pack(given_sizes, limit)
    assert [i for run in runs for i in range(run.start, run.stop)] == list(range(len(given_sizes)))
    for run in runs:
        assert sum(given_sizes[run]) <= limit or run.stop - run.start == 1


# ---- pieces


def test_without_a_limit_there_is_one_piece() -> None:
    assert pieces(["a", "b" * 999], None, len) == [["a", "b" * 999]]


def test_a_long_message_is_cut_where_a_line_ends() -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    found = pieces([text], 200, len)
    assert all(piece.endswith("\n") for run in found for piece in run)
    assert "".join(piece for run in found for piece in run) == text


@given(chunks, st.integers(1, 40))
def test_no_character_is_lost_or_read_twice_and_every_call_fits(
    texts: list[str], limit: int
) -> None:
    found = pieces(texts, limit, len)
    assert "".join(piece for run in found for piece in run) == "".join(texts)
    assert all(sum(map(len, run)) <= limit for run in found)
    assert all(found)


@given(chunks, st.integers(8, 60))
def test_the_same_holds_where_a_character_takes_several_tokens(
    texts: list[str], limit: int
) -> None:
    def count(text: str) -> int:
        return len(text.encode())

    found = pieces(texts, limit, count)
    assert "".join(piece for run in found for piece in run) == "".join(texts)
    assert all(sum(map(count, run)) <= limit for run in found)


def test_a_character_that_does_not_fit_is_read_all_the_same() -> None:
    assert pieces(["ab"], 5, lambda text: 10 * len(text)) == [["a"], ["b"]]


def test_a_huge_line_is_cut_in_bounded_time() -> None:
    found = pieces(["x" * 1_000_000], 10_000, len)
    assert sum(len(piece) for run in found for piece in run) == 1_000_000
    assert len(found) <= 2 * 100 + 1


# ---- pieces of messages

OPENING = '<message n="7" role="user">'
AGAIN = '<message n="7" role="user" continued="yes">'
ELEMENT = re.compile(r"<(message|result|record)\b[^<>\n]*>\n.*\n</\1>", re.DOTALL)


def element(text: str) -> str:
    return f"{OPENING}\n{text}\n</message>"


def flat(texts: list[str], limit: int) -> list[str]:
    return [piece for run in pieces(texts, limit, len) for piece in run]


def bodies(found: list[str]) -> str:
    """What stands between the tags of some pieces."""
    return "".join(piece.partition("\n")[2].rpartition("\n")[0] for piece in found)


def test_every_piece_of_a_message_stands_between_its_tags() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    first, *rest = flat([element(text)], 200)
    assert first.startswith(f"{OPENING}\nword0 ")
    assert len(rest) > 5
    for piece in rest:
        assert piece.startswith(f"{AGAIN}\n")
    for piece in (first, *rest):
        assert piece.endswith("\n</message>")
        assert len(piece) <= 200
    assert bodies([first, *rest]) == text


def test_no_word_is_cut_in_two_where_there_are_several() -> None:
    text = " ".join(f"word{number:05}" for number in range(500))
    for piece in flat([element(text)], 150):
        assert re.fullmatch(r"(?:word\d{5} ?)+", piece.split("\n")[1])


def test_text_without_spaces_is_cut_behind_its_stops() -> None:
    text = "這是一個很長的句子。" * 60
    found = flat([element(text)], 150)
    assert all(piece.split("\n")[1].endswith("。") for piece in found)
    assert bodies(found) == text


def test_a_group_is_divided_between_its_messages_first() -> None:
    results = [f'<result n="{n}" of="t" outcome="ok">\n{"x" * 80}\n</result>' for n in range(6)]
    found = pieces(["\n".join(results)], 300, len)
    assert [piece for run in found for piece in run] == results
    assert [len(run) for run in found] == [2, 2, 2]


def test_a_long_call_is_cut_into_calls() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    found = flat([element(f'Look.\n<call>write {{"text": "{text}"}}</call>')], 200)
    assert len(found) > 10
    assert "Look." in found[0]
    for piece in found:
        assert piece.count("<call>") == piece.count("</call>") <= 1
        assert len(piece) <= 200
    assert text in bodies(found).replace("<call>", "").replace("</call>", "")


def test_a_short_call_beside_long_text_stays_whole() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    found = flat([element(f"{text}\n<call>ls {{}}</call>\n<call>write {text}</call>")], 200)
    assert sum(piece.count("<call>ls {}</call>") for piece in found) == 1
    assert "&lt;" not in "".join(found)


def test_an_earlier_record_that_is_too_long_is_cut_between_its_tags() -> None:
    lines = [f"- line {number} of the record" for number in range(60)]
    found = flat(["<record>\n" + "\n".join(lines) + "\n</record>"], 200)
    assert found[0].startswith("<record>\n")
    for piece in found[1:]:
        assert piece.startswith('<record continued="yes">\n')
    assert bodies(found).split("\n") == lines


@pytest.mark.parametrize("word", ["<messages", "</transcripts", "<\uff4dessages"])
@pytest.mark.parametrize("limit", range(60, 90))
def test_half_a_word_is_no_tag(word: str, limit: int) -> None:
    for text in (word * 60, f"<call>f {word * 60}</call>"):
        for piece in flat([element(text)], limit):
            body = piece.partition("\n")[2].rpartition("\n")[0]
            inner = re.sub("</?call>", "\n", body)
            assert escaped(inner) == inner


@given(
    st.lists(st.text(alphabet="ab\n <>/請", max_size=80), min_size=1, max_size=6),
    st.integers(60, 120),
)
def test_messages_in_pieces_lose_no_character(texts: list[str], limit: int) -> None:
    whole = [element(escaped(text)) for text in texts]
    found = pieces(["\n".join(whole)], limit, len)
    for piece in (piece for run in found for piece in run):
        assert ELEMENT.fullmatch(piece), piece
    read = "\n".join(piece for run in found for piece in run)
    between = f"\n</message>\n{AGAIN}\n"
    assert read.replace(between, "") == "\n".join(whole)


# ---- context


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, "aaaa\n\nbbb\n\ncc"),
        (9, "aaaa\n\nbbb\n\ncc"),
        (8, "bbb\n\ncc"),
        (4, "cc"),
        (1, None),
        (0, None),
    ],
)
def test_of_the_digest_so_far_the_newest_that_fit_are_shown(
    limit: int | None, expected: str | None
) -> None:
    assert context(["aaaa", "bbb", "cc"], limit, len) == expected


def test_there_may_be_no_digest_yet() -> None:
    assert context([], None, len) is None
    assert context([], 100, len) is None


@pytest.mark.parametrize(
    ("sizes", "limit", "least", "runs"),
    [
        ([5, 500], 100, 20, [(0, 2)]),  # a few words are read with what follows
        ([500, 5], 100, 20, [(0, 2)]),  # or with what comes before
        ([30, 500, 30], 100, 20, [(0, 1), (1, 2), (2, 3)]),
        ([5], 100, 20, [(0, 1)]),
        ([], 100, 20, []),
        ([5, 5, 5], 8, 20, [(0, 3)]),
    ],
)
def test_no_part_is_too_small_to_be_told_shorter(
    sizes: list[int], limit: int, least: int, runs: list[tuple[int, int]]
) -> None:
    found = without_small(pack(sizes, limit), sizes, least)
    assert [(run.start, run.stop) for run in found] == runs
