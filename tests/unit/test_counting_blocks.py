"""What blocks count: every type by its rule, and any content at all.

A fault repaired here: a megabyte of base64 counted as a quarter of a million tokens.
"""

import base64
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.media import IMAGE_UNKNOWN
from tests.unit.counted import (
    CALL,
    COUNTER,
    FRAMING,
    MEGABYTE,
    PHOTO,
    PICTURE,
    WORDS,
    human,
    tokens,
)
from tests.unit.test_estimate import png

# Blocks


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}, 765),
        ({"type": "image_url", "image_url": f"data:image/jpeg;base64,{PHOTO}"}, 1_105),
        ({"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}, IMAGE_UNKNOWN),
        ({"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "low"}}, 85),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}, 765),
        ({"type": "input_image", "file_id": "file-1", "detail": "low"}, 85),
        ({"type": "image", "source": {"type": "base64", "data": PHOTO}}, 1_105),
        ({"type": "image", "base64": PHOTO, "mime_type": "image/jpeg"}, 1_105),
        ({"type": "image", "source_type": "base64", "data": PHOTO}, 1_105),
        ({"type": "media", "mime_type": "image/png", "data": png(512, 512)}, 255),
        ({"image": {"format": "png", "source": {"bytes": png(512, 512)}}}, 255),
        (
            {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{MEGABYTE}"}},
            22_500,
        ),
        ({"type": "document", "source": {"type": "base64", "data": MEGABYTE}}, 22_500),
        ({"type": "file", "base64": MEGABYTE, "mime_type": "application/pdf"}, 22_500),
        ({"type": "input_file", "file_data": f"data:application/pdf;base64,{MEGABYTE}"}, 22_500),
        ({"type": "file", "file": {"file_id": "file-1"}}, 11_250),
        ({"type": "input_audio", "input_audio": {"data": MEGABYTE, "format": "mp3"}}, 1_500),
        ({"type": "audio", "base64": MEGABYTE, "mime_type": "audio/mpeg"}, 1_500),
        ({"type": "media", "mime_type": "audio/mpeg", "file_uri": "gs://a/b"}, 1_920),
        ({"type": "video", "base64": MEGABYTE, "mime_type": "video/mp4"}, 900),
        ({"type": "video", "url": "https://a.b/c.mp4"}, 18_000),
        ({"type": "redacted_thinking", "data": MEGABYTE}, 0),
        ({"type": "reasoning", "encrypted_content": MEGABYTE, "summary": []}, 0),
    ],
)
def test_media_count_by_their_size_not_by_their_base64(
    block: dict[str, Any], expected: int
) -> None:
    assert COUNTER.message(human(block)) == FRAMING + expected


DATA_OF_WORDS = base64.b64encode(WORDS.encode()).decode()


@pytest.mark.parametrize(
    "block",
    [
        WORDS,
        {"type": "text", "text": WORDS, "cache_control": {"type": "ephemeral"}},
        {"type": "input_text", "text": WORDS},
        {"type": "output_text", "text": WORDS, "annotations": [{"type": "citation"}]},
        {"type": "refusal", "refusal": WORDS},
        {"text": WORDS},
        {"type": "text-plain", "text": WORDS, "mime_type": "text/plain"},
        {"type": "text-plain", "base64": DATA_OF_WORDS, "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": WORDS}},
        {"type": "document", "source": {"type": "content", "content": WORDS}},
        {"type": "document", "source": {"content": [{"type": "text", "text": WORDS}]}},
        {"type": "file", "base64": DATA_OF_WORDS, "mime_type": "text/csv"},
        {"type": "thinking", "thinking": WORDS, "signature": MEGABYTE},
        {"type": "reasoning", "reasoning": WORDS, "extras": {"signature": MEGABYTE}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": WORDS}]},
        {"type": "reasoning_content", "reasoning_content": {"text": WORDS, "signature": "x"}},
        {"type": "tool_result", "tool_use_id": "x", "content": WORDS},
        {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": WORDS}]},
    ],
)
def test_every_form_of_text_counts_as_the_text(block: Any) -> None:
    assert COUNTER.message(human(block)) == FRAMING + tokens(WORDS)


def test_a_documents_title_counts_with_it() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": WORDS}
    message = human({"type": "document", "source": source, "title": "Export", "context": "Ops"})
    assert COUNTER.message(message) == FRAMING + tokens(WORDS, "Export", "Ops")


def test_a_server_side_call_counts_as_a_call() -> None:
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    expected = FRAMING + 9 + tokens("web_search", json.dumps({"query": "x"}))
    assert COUNTER.message(AIMessage(content=[block])) == expected


def test_an_unknown_block_counts_as_its_json_without_its_data() -> None:
    known = {"type": "web_search_tool_result", "content": [{"title": WORDS, "page_age": None}]}
    with_data = json.loads(json.dumps(known))
    with_data["content"][0]["encrypted_content"] = MEGABYTE
    plain, full = COUNTER.message(human(known)), COUNTER.message(human(with_data))
    assert plain == FRAMING + tokens(json.dumps(known))
    assert plain < full < plain + 20


# Any content at all


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"word": WORDS}
    value["self"] = value
    return value


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"word": WORDS}
    for _ in range(levels):
        value = {"next": value}
    return value


class Opaque:
    def __repr__(self) -> str:
        return WORDS


@pytest.mark.parametrize("spec", ["tiktoken", "estimate", "chars/4+400"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "\x00" * 100,
        "\ud800 lone \udfff",
        "<|endoftext|>" * 50,
        [],
        ["a", "b"],
        [""],
        [{}],
        [{"type": None}],
        [{"type": "text"}],
        [{"type": "text", "text": None}],
        [{"type": "text", "text": 7}],
        [{"type": "image_url"}],
        [{"type": "image_url", "image_url": None}],
        [{"type": "image", "base64": "\u4e2d\u6587"}],
        [{"type": "image", "source": None}],
        [{"type": "file", "file": {"file_data": 7}}],
        [{"type": "document", "source": {"type": "text"}}],
        [{"type": "input_audio", "input_audio": {"data": ""}}],
        [{"type": "media", "mime_type": None}],
        [{"type": "tool_use"}],
        [{"type": "tool_use", "id": ["list"], "name": 5, "input": None}],
        [{"type": "tool_result", "content": None}],
        [{"type": "reasoning", "summary": None, "content": [None, 5]}],
        [{"toolUse": None}],
        [{"type": "strange", "when": Opaque(), "raw": b"\xff\xfe", ("a", 1): {2, 3}}],
        [{1: 2}],
    ],
    ids=repr,
)
def test_no_content_raises(spec: str, content: Any) -> None:
    counter = token_counter(spec)
    assert 4 <= counter.message(HumanMessage(content=content)) < 20_000
    assert 4 <= counter.message(AIMessage(content=content)) < 20_000


def test_content_that_is_missing_counts_as_none() -> None:
    message = AIMessage(content="")
    message.content = None  # type: ignore[assignment]
    assert COUNTER.message(message) == FRAMING


@pytest.mark.parametrize("arguments", [cyclic(), deep(5_000), {"when": Opaque(), "raw": b"\xff"}])
def test_arguments_that_json_cannot_hold_count_by_their_strings(arguments: dict[str, Any]) -> None:
    message = AIMessage(content="")
    message.tool_calls = [{"name": "f", "args": arguments, "id": "1", "type": "tool_call"}]
    count = COUNTER.message(message)
    assert count == COUNTER.message(message)
    assert count >= FRAMING + 9 + (tokens(WORDS) if "raw" not in arguments else 0)


def test_counting_changes_no_message() -> None:
    block = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    message = AIMessage(content=[block, {"type": "tool_use", "id": "1"}], tool_calls=[CALL])
    before = message.model_copy(deep=True)
    COUNTER.message(message)
    assert message == before
