"""A search by words: which passages stand on which page, and what is shown of them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import create_recall_tool
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.recall.ranking import query_words, ranked
from langgraph_compaction.recall.searching import OF_ONE, RESULTS, Passage, grouped
from tests.support.runtimes import runtime
from tests.support.segments import sealed

FILLER = "The pump ran at the usual speed, and nobody wrote anything else down.\n"


def passages(originals: list[int]) -> list[Passage]:
    return [Passage(original, place, "") for place, original in enumerate(originals)]


def always(_: Any) -> bool:
    return True


def test_two_words_side_by_side_are_wanted_side_by_side() -> None:
    """Each invoice has a 5 in it somewhere, and longer ones have more of them."""
    lines = " ".join(f"5 pieces of part {n} at 5 EUR, checked by clerk 5." for n in range(6))
    texts = [f"Invoice {n} of supplier S{n % 7}. {lines * (n % 3 + 1)}" for n in range(1, 30)]
    for asked in ("invoice 5", "total of Invoice 5", "Invoice 5 total"):
        assert ranked(texts, query_words(asked))[0] == 4
    ordered = ["pump 7 and valve 3", "valve 7 and pump 3", "pump, 7 or 3"]
    assert ranked(ordered, query_words("valve 7"))[0] == 1


@given(st.lists(st.integers(0, 7), max_size=60), st.integers(1, 6))
def test_every_passage_is_on_one_page_and_few_of_one_original(
    originals: list[int], most: int
) -> None:
    ranked = passages(originals)
    pages = grouped(ranked, lambda page: len(page) <= most)
    assert sorted((one for page in pages for one in page), key=ranked.index) == ranked
    for page in pages:
        assert 1 <= len(page) <= min(RESULTS, most)
        ranks = [ranked.index(one) for one in page]
        assert ranks == sorted(ranks)
        assert max(sum(one.original == other.original for other in page) for one in page) <= OF_ONE
    # The best that is left opens each page.
    left = list(ranked)
    for page in pages:
        assert page[0] == left[0]
        left = [one for one in left if one not in page]


def test_a_page_goes_on_with_others_where_one_original_has_its_share() -> None:
    pages = grouped(passages([0, 0, 0, 0, 0, 1, 0, 2, 0, 3]), always)
    assert [[one.original for one in page] for page in pages] == [
        [0, 0, 0, 1, 2],
        [0, 0, 0, 3],
        [0],
    ]


def test_many_passages_of_one_original_are_grouped_in_little_time() -> None:
    pages = grouped(passages([0] * 30_000), always)
    assert len(pages) == 10_000


def log(needles: int, between: int) -> str:
    """A long text with numbered lines to find, each in a passage of its own."""
    return "".join(f"needle number {n:03}\n{FILLER * between}" for n in range(needles))


def answers(
    messages: list[BaseMessage], record: Any = None, query: str = "needle", **options: Any
) -> list[str]:
    """All pages of a search; each is within the cap."""
    given = {"name": "recall", "max_tokens": 2_000, "token_counter": "estimate", **options}
    tool: Any = create_recall_tool(**given)
    count = token_counter(given["token_counter"]).text
    asked = runtime({"messages": messages, "compaction": record or {}}, {})
    found: list[str] = []
    while True:
        answer = tool.invoke({"query": query, "page": len(found) + 1, "runtime": asked})
        assert count(answer) <= given["max_tokens"]
        found.append(answer)
        foot = re.search(r"^\[Page (\d+) of (\d+)[.,].*\]$", answer, re.MULTILINE)
        if foot is None or foot[1] == foot[2]:
            return found
        assert int(foot[1]) == len(found)


def needles(text: str) -> list[str]:
    return re.findall(r"needle number (\d+)", text)


def test_what_stands_in_one_long_result_is_all_found_three_passages_a_page() -> None:
    pages = answers([ToolMessage(log(20, 40), tool_call_id="c", name="read", id="t")])
    assert [len(needles(page)) for page in pages] == [3] * 6 + [2]
    assert sorted(needles("".join(pages))) == [f"{n:03}" for n in range(20)]
    assert [page.count("<excerpt ") for page in pages] == [1] * 7
    for page in pages:
        assert needles(page) == sorted(needles(page))  # in the order of the text
        assert page.count("\n[next passage]\n") == len(needles(page)) - 1


def test_a_long_result_hides_no_other_message() -> None:
    messages = [
        ToolMessage("A needle of my own. " * 20, tool_call_id="b", name="read", id="h"),
        ToolMessage(log(20, 40), tool_call_id="c", name="read", id="t"),
    ]
    first = answers(messages)[0]
    assert "A needle of my own." in first
    assert len(needles(first)) == 3


def test_what_a_short_passage_does_not_need_is_left_to_a_long_one() -> None:
    long = "needle " + "word " * 290
    record = {
        "version": 1,
        "revision": 1,
        "segments": [sealed("Text.", 0, 4)],
        "last_summarized_index": 4,
        "last_summarized_id": "m4",
        "boundary_hint": 5,
        "first_id": "m0",
    }
    texts = [long, "A needle.", "One needle.", "That needle.", "My needle."]
    messages = [HumanMessage(text, id=f"m{n}") for n, text in enumerate(texts)]
    (answer,) = answers([*messages, HumanMessage("Now.", id="m5")], record, max_tokens=1_000)
    assert long.strip() in answer


ids = st.sampled_from(["t", "a-b-c-d" * 14, "二" * 98, "run--0198f7a2-7c4e-7bd1-9f65-3a1c2b4d5e6f"])


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(60, 80), ids), min_size=1, max_size=5),
    st.integers(300, 800),
    st.sampled_from(["estimate", "chars/4+400", "tiktoken"]),
    st.sampled_from(["recall", "look_up_" * 8]),
)
def test_every_passage_is_reached_within_any_cap(
    logs: list[tuple[int, int, str]], cap: int, counter: str, name: str
) -> None:
    messages: list[BaseMessage] = [HumanMessage("Read.", id="h")]
    for n, (count, between, made_up) in enumerate(logs):
        call = {"name": "read", "args": {}, "id": f"c{n}"}
        messages.append(AIMessage("", id=f"a{n}", tool_calls=[call]))
        text = log(count, between).replace("number ", f"number {n}")
        messages.append(ToolMessage(text, tool_call_id=f"c{n}", name="read", id=f"{made_up}{n}"))
    pages = answers(messages, max_tokens=cap, token_counter=counter, name=name)
    expected = [f"{n}{m:03}" for n, (count, _, _) in enumerate(logs) for m in range(count)]
    shown = [one for page in pages for one in needles(page)]
    assert sorted(shown) == expected


def test_a_label_makes_room_for_the_passage_where_a_page_is_small() -> None:
    made_up = "二" * 98
    messages = [ToolMessage(log(4, 60), tool_call_id="c", name="read", id=made_up)]
    pages = answers(messages, query=f"needle {made_up[:90]}", max_tokens=300)
    assert sorted(needles("".join(pages))) == ["000", "001", "002", "003"]
    assert f'id="{made_up}"' not in pages[0]
    assert "position=0 type=tool mark=" in pages[0]
    assert f'position=0 id="{made_up}" type=tool name=read mark=' in answers(messages)[0]


@pytest.mark.parametrize("counter", ["estimate", "chars/4+400", "tiktoken"])
def test_an_ordinary_cap_has_room_for_full_pages(counter: str) -> None:
    messages = [
        ToolMessage(log(1, 80), tool_call_id=f"c{n}", name="read", id=f"lc_run--{n:036}")
        for n in range(12)
    ]
    pages = answers(messages, token_counter=counter)
    assert [page.count("<excerpt ") for page in pages] == [5, 5, 2]
