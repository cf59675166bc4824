"""Pages, excerpts and ranking, each for itself."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.recall.paging import excerpt, pages
from langgraph_compaction.recall.ranking import query_words, ranked

COUNT = token_counter("estimate").text


@given(st.text(max_size=4_000), st.integers(1, 300), st.sampled_from([len, COUNT]))
def test_pages_are_the_text_and_within_the_budget(text: str, budget: int, count: object) -> None:
    assert callable(count)
    found = pages(text, budget, count)
    assert "".join(found) == text
    assert all(count(page) <= budget or len(page) == 1 for page in found)


def test_pages_end_with_lines_and_long_lines_between_words() -> None:
    lines = "".join(f"line number {n}\n" for n in range(100))
    assert all(page.endswith("\n") for page in pages(lines, 200, len))
    line = "word " * 1_000
    assert all(page.endswith(" ") for page in pages(line, 700, len))


def test_a_page_whose_parts_take_more_together_is_divided() -> None:
    def together(text: str) -> int:
        return len(text) + text.count("\n") ** 2

    found = pages("abc\n" * 40, 30, together)
    assert "".join(found) == "abc\n" * 40
    assert max(map(together, found)) <= 30


def test_pages_of_nothing_are_one() -> None:
    assert pages("", 10, len) == [""]


@given(st.text(max_size=2_000), st.text(max_size=20), st.integers(20, 200))
def test_an_excerpt_is_a_piece_of_the_text_within_the_budget(
    text: str, query: str, budget: int
) -> None:
    piece = excerpt(text, budget, COUNT, query_words(query))
    assert COUNT(piece) <= budget
    assert piece.strip("…\n") in text


def test_an_excerpt_is_around_the_words() -> None:
    text = "\n".join(f"line {n} of the log" for n in range(500))
    piece = excerpt(text.replace("line 300", "the needle 300"), 40, COUNT, ["needle"])
    assert "the needle 300 of the log" in piece
    assert piece.startswith("…")
    assert piece.endswith("…")


def test_the_rarer_word_and_the_denser_text_count_for_more() -> None:
    texts = ["pump " * 3, "pump and valve", "nothing", "pump " + "of the plant " * 50]
    assert ranked(texts, query_words("pump valve")) == [1, 0, 3]
    assert ranked(["same text", "same text"], ["same"]) == [1, 0]


@pytest.mark.parametrize("texts", [[], [""], ["...", "!"], ["apple"]])
def test_nothing_is_found_where_there_is_nothing(texts: list[str]) -> None:
    assert ranked(texts, query_words("pear")) == []
    assert ranked(texts, []) == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("データベースのパスワード", "パスワード"),
        ("рабочее давление насоса", "ДАВЛЕНИЕ"),
        ("it\u2019s open", "it's"),
        ("src/auth_token.py:12", "auth_token.py"),
        ("ERR-4711", "err 4711"),
    ],
)
def test_words_of_any_script_are_found(text: str, query: str) -> None:
    assert ranked(["other words", text], query_words(query)) == [1]


@given(st.lists(st.text(max_size=60), max_size=12), st.text(max_size=60))
def test_any_texts_are_ranked_by_any_query(texts: list[str], query: str) -> None:
    found = ranked(texts, query_words(query))
    assert len(set(found)) == len(found)
    assert set(found) <= set(range(len(texts)))


def test_a_search_writes_nothing_to_an_application_s_log() -> None:
    program = (
        "import logging; logging.basicConfig(level=logging.INFO);"
        "from langgraph_compaction.recall.ranking import ranked; print(ranked(['a b'], ['a']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[0]\n", "")
