"""What a search takes for a word, and what it leaves out as data."""

import base64
import os
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langgraph_compaction import create_recall_tool
from langgraph_compaction.archive.items import Archived, item_of
from langgraph_compaction.archive.texts import plain_text
from langgraph_compaction.recall.comparing import comparable
from langgraph_compaction.recall.paging import UNIT_CHARS, pages
from tests.support.runtimes import runtime

FILLER = "It goes on as before, and nobody wrote anything else down. " * 10
RANDOM = base64.b64encode(bytes(range(256)) * 40)


def found(text: str, query: str, **options: Any) -> bool:
    """Whether a search brings back a tool result with that text, and shows where it matches."""
    tool: Any = create_recall_tool(**options)
    call = AIMessage("", id="a", tool_calls=[{"name": "t", "args": {}, "id": "c"}])
    results = [
        ToolMessage(f"{FILLER}\n{one}\n{FILLER}", tool_call_id="c", name="t", id=f"r{n}")
        for n, one in enumerate(["Something else.", text, "And more."])
    ]
    asked = runtime({"messages": [call, *results], "compaction": {}}, {})
    answer = tool.invoke({"query": query, "runtime": asked})
    return "position=2 " in answer and "position=1 " not in answer and "position=3 " not in answer


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("/srv/" + "/".join(f"dir{n}" for n in range(90)) + "/needlefile", "needlefile"),
        ("https://x.y/" + "a" * 420 + "/needleurl", "needleurl"),
        ("https://x.y/needle/v2/" + RANDOM.decode(), "needle"),
        ("_".join(f"field{n}" for n in range(80)), "field42"),
        ("=".join(f"k{n}" for n in range(150)), "k77"),
        ("/".join(f"v{n % 10}" for n in range(150)) + "/needle", "needle"),
        ("/".join(["UserService", "getUserNameById", "toJSON"] * 20) + "/Needle", "needle"),
    ],
)
def test_a_word_in_a_long_path_or_name_is_found(text: str, query: str) -> None:
    assert found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("\u0130stanbul", "istanbul"),
        ("ISPARTA", "\u0131sparta"),
        ("cafe\u0301", "caf\u00e9"),
        ("caf\u00e9", "CAFE\u0301"),
        ("\uff21\uff22\uff23\uff11\uff12\uff13", "ABC123"),
        ("abc123", "\uff21\uff22\uff23\uff11\uff12\uff13"),
        ("Stra\u00dfe", "STRASSE"),
        ("\ufb01nance", "finance"),
        ("\uff8a\uff9f\uff9d", "\u30d1\u30f3"),  # half-width katakana
        ("soft\u00adware", "software"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647", "\u0645\u06cc\u062e\u0648\u0627\u0647"),
        ("O\u2019Brien", "o'brien"),
    ],
)
def test_what_reads_the_same_is_the_same(text: str, query: str) -> None:
    assert found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("服务器的端口是九千", "端"),
        ("服务器的端口是九千", "端 口"),
        ("データベース", "タ"),
        ("status 🚀 launched", "🚀"),
        ("I ❤ it", "\u2764\ufe0f"),
        ("fooBarBaz done", "bar"),
        ("ສະບາຍດີ", "ບາຍ"),  # Lao has no spaces between words
        ("a >>= b", ">>="),
    ],
)
def test_what_is_no_word_of_its_own_is_found_inside_of_others(text: str, query: str) -> None:
    assert found(text, query)


def test_a_word_of_two_letters_is_not_looked_for_inside_of_others() -> None:
    assert not found("An anchor.", "nc")


def test_an_excerpt_of_a_long_text_shows_what_was_found_in_another_form() -> None:
    tool: Any = create_recall_tool(max_tokens=300)
    text = f"{FILLER}\n{'x. ' * 150}\nIn \u0130STANBUL it rains.\n{'x. ' * 150}"
    messages = [ToolMessage(text, tool_call_id="c", name="t", id="r")]
    for query in ("istanbul", "tanbu"):
        asked = runtime({"messages": messages, "compaction": {}}, {})
        assert "\u0130STANBUL" in tool.invoke({"query": query, "runtime": asked})


def test_no_word_is_cut_in_two_where_a_long_line_is() -> None:
    names = [f"name{n:04}" for n in range(2_000)]
    shown = pages("/".join(names), UNIT_CHARS * 3, len)
    assert [name for page in shown for name in page.split("/") if name] == names


@pytest.mark.parametrize("url_safe", [False, True])
@given(st.integers(300, 6_000))
def test_encoded_data_is_left_out(url_safe: bool, size: int) -> None:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    for raw in (os.urandom(size), bytes(size)):
        text = plain_text(HumanMessage(f"before {encode(raw).decode()} after"))
        assert text.startswith("before ")
        assert text.endswith(" after")
        assert "[data]" in text
        # What could be a path before it may stay.
        assert len(text) < 100


@pytest.mark.parametrize("text", ["ab" * 300, os.urandom(300).hex()])
def test_a_word_that_is_too_long_to_be_one_is_data(text: str) -> None:
    assert plain_text(HumanMessage(text)) == "[data]"


@given(st.text())
def test_composed_or_not_a_text_is_the_same(text: str) -> None:
    assert comparable(normalize("NFC", text)) == comparable(normalize("NFD", text))


def test_an_item_that_left_out_more_says_the_same_as_the_message_it_was_made_of() -> None:
    """Items that were written when long paths were still taken for data."""
    message = HumanMessage("/".join(f"dir{n}" for n in range(90)), id="m")
    key, value = item_of(message, 0, None)
    assert Archived.of(key, {**value, "text": "[data]"}).says(message)
    assert not Archived.of(key, value).says(HumanMessage("dir", id="m"))
