"""What a message counts: every block type by its rule, each message once, any content at all.

Faults repaired here: tool-call arguments counted as nothing when the content is a list, a megabyte
of base64 as a quarter of a million tokens, `<|endoftext|>` in a message bricking the thread, a
million spaces crawling, a vocabulary asked of an absent network at every message.
"""

import base64
import gc
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import bpe_openai
import pytest
import tiktoken
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan import vocabulary
from langgraph_compaction.plan.counting import TokenCounter, token_counter
from langgraph_compaction.plan.estimate import estimate_tokens
from langgraph_compaction.plan.media import IMAGE_UNKNOWN
from tests.benchmarks.counting_error import SAMPLES
from tests.unit.test_estimate import jpeg, png

FRAMING = 4  # three and the role
COUNTER = token_counter("tiktoken")
WORDS = "The nightly export failed for the third time this week."
MEGABYTE = base64.b64encode(bytes(750_000)).decode()


def tokens(*texts: str) -> int:
    return sum(map(COUNTER.text, texts))


def human(*blocks: Any) -> HumanMessage:
    return HumanMessage(content=list(blocks))


class Stub:
    """Counts a text as its length and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


# Texts


@pytest.mark.parametrize("kind", SAMPLES)
def test_text_is_counted_as_another_tokenizer_counts_it(kind: str) -> None:
    other = bpe_openai.get_encoding("o200k_base")
    assert COUNTER.text(SAMPLES[kind]) == len(other.encode(SAMPLES[kind]))


@pytest.mark.parametrize("name", ["<|endoftext|>", "<|endofprompt|>", "<|im_start|>"])
def test_names_of_special_tokens_are_plain_text(name: str) -> None:
    assert COUNTER.text(name) > 1
    assert COUNTER.message(HumanMessage(name)) == FRAMING + COUNTER.text(name)


@pytest.mark.parametrize("kind", ["English", "Python", "JSON, indented", "log lines"])
def test_a_long_text_is_cut_where_it_changes_no_count(kind: str) -> None:
    text = SAMPLES[kind] * (3 * vocabulary.CHUNK_CHARACTERS // len(SAMPLES[kind]) + 1)
    assert len(text) > 2 * vocabulary.CHUNK_CHARACTERS
    whole = len(bpe_openai.get_encoding("o200k_base").encode(text))
    assert COUNTER.text(text) == whole


@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "=", "\u4e2d", "\U0001f600", "aB1", "\u0e01\u0e31", "ab "]
)
def test_a_million_characters_take_bounded_time(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    COUNTER.text("loaded")
    start = time.thread_time()
    assert 5_000 < COUNTER.text(text) <= 1_000_000
    assert time.thread_time() - start < 3.0


def test_where_the_tokenizer_gives_up_the_estimate_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class GivesUp:
        def encode_ordinary(self, text: str) -> list[int]:
            if text.startswith(" "):
                raise ValueError("regex stack")
            return [0] * 7

    monkeypatch.setitem(vocabulary._loaded, "o200k_base", GivesUp())
    spaces = " " * vocabulary.CHUNK_CHARACTERS
    counter = token_counter()
    assert counter.text(spaces + "rest") == estimate_tokens(spaces) + 7
    assert counter.exact


# Messages


@pytest.mark.parametrize("kind", [HumanMessage, AIMessage, SystemMessage])
def test_a_plain_message_is_its_text_and_its_framing(kind: type[BaseMessage]) -> None:
    assert COUNTER.message(kind(content=WORDS)) == FRAMING + tokens(WORDS)


def test_a_name_is_sent_with_the_message() -> None:
    named = HumanMessage(WORDS, name="alice")
    assert COUNTER.message(named) == FRAMING + 1 + tokens("alice", WORDS)


def test_messages_add_up() -> None:
    messages = [HumanMessage(WORDS), AIMessage("Yes."), HumanMessage("Thanks!")]
    assert COUNTER.messages(messages) == sum(map(COUNTER.message, messages))
    assert COUNTER.messages(iter(messages)) == COUNTER.messages(messages)
    assert COUNTER.messages([]) == 0


ARGUMENTS = {"path": "/srv/app/tax.py", "lines": [41, 47], "note": WORDS}
CALL: Any = {"name": "read_file", "args": ARGUMENTS, "id": "call_1"}
CALLED = 9 + tokens("read_file", json.dumps(ARGUMENTS))


@pytest.mark.parametrize("content", ["", [], [{"type": "text", "text": ""}]])
def test_a_call_counts_whatever_the_content_is(content: Any) -> None:
    message = AIMessage(content=content, tool_calls=[CALL])
    assert COUNTER.message(message) == FRAMING + CALLED


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "call_1", "name": "read_file", "input": ARGUMENTS},
        {"type": "tool_call", "id": "call_1", "name": "read_file", "args": ARGUMENTS},
        {
            "type": "function_call",
            "id": "fc_9",
            "call_id": "call_1",
            "name": "read_file",
            "arguments": json.dumps(ARGUMENTS),
        },
        {"toolUse": {"toolUseId": "call_1", "name": "read_file", "input": ARGUMENTS}},
    ],
    ids=["Anthropic", "LangChain", "OpenAI Responses", "Bedrock"],
)
def test_a_call_that_the_content_repeats_counts_once(block: dict[str, Any]) -> None:
    text = {"type": "text", "text": WORDS}
    both = AIMessage(content=[text, block], tool_calls=[CALL])
    assert COUNTER.message(both) == FRAMING + tokens(WORDS) + CALLED
    alone = AIMessage(content=[text, block])
    assert COUNTER.message(alone) == FRAMING + tokens(WORDS) + CALLED


def test_another_call_in_the_content_counts_too() -> None:
    block = {"type": "tool_use", "id": "call_2", "name": "read_file", "input": ARGUMENTS}
    message = AIMessage(content=[block], tool_calls=[CALL])
    assert COUNTER.message(message) == FRAMING + 2 * CALLED


def test_the_deltas_of_a_streamed_call_count_once() -> None:
    delta = {"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS), "index": 1}
    chunk: Any = {"name": "read_file", "args": json.dumps(ARGUMENTS), "id": "call_1", "index": 1}
    message = AIMessageChunk(content=[delta], tool_call_chunks=[chunk])
    assert message.tool_calls
    assert COUNTER.message(message) == FRAMING + CALLED


def test_an_invalid_call_counts_as_it_is_sent() -> None:
    broken = {"name": "read_file", "args": '{"path": "/srv', "id": "c", "error": WORDS}
    message = AIMessage(content="", invalid_tool_calls=[broken])
    assert COUNTER.message(message) == FRAMING + 9 + tokens("read_file", '{"path": "/srv')


@pytest.mark.parametrize("key", ["tool_calls", "function_call"])
def test_calls_in_additional_kwargs_count_where_nothing_else_has_them(key: str) -> None:
    function = {"name": "read_file", "arguments": json.dumps(ARGUMENTS)}
    extra = {
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        "function_call": function,
    }
    message = AIMessage(content="")
    message.additional_kwargs = {key: extra[key]}
    assert COUNTER.message(message) == FRAMING + CALLED
    message.tool_calls = [CALL]
    assert COUNTER.message(message) == FRAMING + CALLED


def test_a_result_counts_without_its_id() -> None:
    long_id = ToolMessage(WORDS, tool_call_id="toolu_" + "x9" * 40)
    assert COUNTER.message(long_id) == FRAMING + 7 + tokens(WORDS)
    named = ToolMessage([{"type": "text", "text": WORDS}], tool_call_id="1", name="search")
    assert COUNTER.message(named) == FRAMING + 7 + 1 + tokens("search", WORDS)


def test_reported_usage_is_not_used() -> None:
    usage = {"input_tokens": 9_000, "output_tokens": 900, "total_tokens": 9_900}
    message = AIMessage(WORDS, usage_metadata=usage)
    assert COUNTER.message(message) == FRAMING + tokens(WORDS)


# Blocks

PHOTO = base64.b64encode(jpeg(2048, 4096)).decode()
PICTURE = base64.b64encode(png(1024, 1024)).decode() + "A" * 1_000_000


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


# The memory


def test_every_message_is_measured_once() -> None:
    count = Stub()
    counter = TokenCounter("stub", count)
    messages: list[BaseMessage] = []
    for turn in range(50):
        messages.append(HumanMessage(f"text {turn}", id=f"h{turn}"))
        messages.append(AIMessage([{"type": "text", "text": f"answer {turn}"}], id=f"a{turn}"))
        counter.messages(messages)
        counter.messages([message.model_copy(deep=True) for message in messages])
    assert len(count.asked) == len(set(count.asked)) == 100


CHANGES: list[tuple[str, Callable[[AIMessage], object]]] = [
    ("content", lambda m: setattr(m, "content", "another text")),
    ("content's block", lambda m: setattr(m, "content", [{"type": "text", "text": WORDS}])),
    ("name", lambda m: setattr(m, "name", "bob")),
    ("arguments in place", lambda m: m.tool_calls[0]["args"].update(path="/another/path")),
    ("nested arguments", lambda m: m.tool_calls[0]["args"]["deep"].append(WORDS)),
    ("tool name", lambda m: m.tool_calls[0].update({"name": "another_tool"})),
    ("no calls", lambda m: setattr(m, "tool_calls", [])),
    (
        "invalid calls",
        lambda m: m.invalid_tool_calls.append(
            {"name": "f", "args": "{", "id": "2", "error": None, "type": "invalid_tool_call"}
        ),
    ),
]


@pytest.mark.parametrize("change", [change for _, change in CHANGES], ids=[c[0] for c in CHANGES])
def test_an_edited_message_is_measured_anew(change: Callable[[AIMessage], object]) -> None:
    call = {"name": "f", "args": {"path": "/p", "deep": [1, {"x": None}]}, "id": "1"}
    message = AIMessage("text", id="same", tool_calls=[call])
    counter = token_counter("tiktoken")
    before = counter.message(message)
    change(message)
    after = counter.message(message)
    assert after == token_counter("tiktoken").message(message)
    assert after != before


def test_legacy_calls_that_appear_are_measured() -> None:
    message = AIMessage("", id="same")
    counter = token_counter("tiktoken")
    before = counter.message(message)
    message.additional_kwargs["function_call"] = {"name": "f", "arguments": "{}"}
    assert counter.message(message) == before + 9 + tokens("f", "{}")


def test_the_memory_holds_no_text() -> None:
    counter = token_counter("tiktoken")
    secret = "a secret that must not outlive its message " * 3
    counter.messages(
        [
            HumanMessage(secret, id="h"),
            AIMessage(
                [{"type": "text", "text": secret}], tool_calls=[CALL | {"args": {"k": secret}}]
            ),
            ToolMessage(secret, tool_call_id="1", id="t"),
        ]
    )
    pending: list[Any] = [counter]
    seen: set[int] = set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        assert not (isinstance(thing, str) and "secret" in thing)
        pending += gc.get_referents(thing)
    assert len(seen) > 10


def test_the_memory_is_bounded_and_keeps_what_is_in_use() -> None:
    count = Stub()
    counter = TokenCounter("stub", count, cache_size=100)
    in_use = [HumanMessage(f"in use {n}", id=f"u{n}") for n in range(20)]
    for round_ in range(30):
        counter.messages(in_use)
        counter.messages([HumanMessage(f"once {round_} {n}") for n in range(20)])
        assert len(counter._young) + len(counter._old) <= 100
    assert sum(text.startswith("in use") for text in count.asked) == 20


def test_the_smallest_memory_still_counts_right() -> None:
    counter = token_counter("estimate", cache_size=0)
    messages = [HumanMessage(WORDS), HumanMessage("b"), HumanMessage(WORDS)]
    assert counter.messages(messages) == token_counter("estimate").messages(messages)


def test_many_threads_count_alike() -> None:
    counter = token_counter("tiktoken", cache_size=64)
    messages = [AIMessage(f"{WORDS} {n}", id=str(n), tool_calls=[CALL]) for n in range(200)]
    expected = token_counter("tiktoken").messages(messages)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: counter.messages(messages), range(16))) == {expected}


# Which counter


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        (None, "o200k_base"),
        ("", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("openai:gpt-4", "cl100k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("ft:gpt-3.5-turbo:acme::1", "cl100k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("claude-sonnet-4-5", "o200k_base"),
        ("anthropic:claude", "o200k_base"),
        ("text-davinci-003", "p50k_base"),
    ],
)
def test_the_vocabulary_is_the_models_own(model: str | None, encoding: str) -> None:
    assert token_counter(model_name=model).name == f"tiktoken:{encoding}"
    assert token_counter("tiktoken", model_name=model).name == f"tiktoken:{encoding}"


def test_an_older_model_is_counted_by_its_own_vocabulary() -> None:
    chinese = SAMPLES["Chinese"]
    older = token_counter(model_name="gpt-4")
    assert older.text(chinese) == len(bpe_openai.get_encoding("cl100k_base").encode(chinese))
    assert older.text(chinese) > 1.2 * COUNTER.text(chinese)


def test_the_estimate_by_name() -> None:
    counter = token_counter("estimate")
    assert (counter.name, counter.exact, counter.notice()) == ("estimate", False, None)
    assert counter.message(HumanMessage(WORDS)) == FRAMING + estimate_tokens(WORDS)


def test_langchains_approximation_by_name() -> None:
    counter = token_counter("approximate")
    messages = [
        HumanMessage(WORDS),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage(WORDS * 9, tool_call_id="call_1"),
    ]
    assert counter.messages(messages) == count_tokens_approximately(messages)
    assert (counter.name, counter.exact) == ("approximate", False)
    assert counter.text("12345") == 2


def test_stagewises_rule_by_name() -> None:
    counter = token_counter("chars/4+400")
    assert (counter.name, counter.exact) == ("chars/4+400", False)
    assert counter.message(HumanMessage("12345678")) == 102
    assert counter.message(HumanMessage("123456789")) == 103
    assert counter.message(HumanMessage("")) == 100
    assert counter.text("12345678") == 2
    image = {"type": "image", "base64": PHOTO, "mime_type": "image/jpeg"}
    assert counter.message(human(image, "12345678")) == 102 + 1_105


def test_a_callable_is_given_each_message_once() -> None:
    asked: list[list[BaseMessage]] = []

    def count(messages: list[BaseMessage]) -> int:
        asked.append(messages)
        return 10 * len(messages)

    counter = token_counter(count)
    messages = [HumanMessage("a", id="1"), HumanMessage("b", id="2")]
    assert counter.messages(messages) == counter.messages(messages) == 20
    assert asked == [[messages[0]], [messages[1]]]
    assert counter.text("some text") == 10
    assert (counter.name, counter.exact, counter.notice()) == ("custom", False, None)


def test_a_callables_fraction_is_rounded_up() -> None:
    assert token_counter(lambda messages: len(messages) / 4).text("x") == 1  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("answer", [None, -1, "7", float("nan"), float("inf")])
def test_a_callable_that_answers_no_number_is_named(answer: Any) -> None:
    def bad_counter(messages: list[BaseMessage]) -> Any:
        return answer

    with pytest.raises(ConfigurationError, match=r"token_counter: .*bad_counter.* returned .*"):
        token_counter(bad_counter).message(HumanMessage("x"))


def test_a_counter_is_taken_as_it_is() -> None:
    assert token_counter(COUNTER, model_name="gpt-4", cache_size=3) is COUNTER


@pytest.mark.parametrize("spec", ["tokens", "", "TIKTOKEN", 4, ["estimate"]])
def test_an_unknown_counter_is_refused(spec: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        token_counter(spec)
    for part in ("token_counter", repr(spec), "tiktoken", "estimate", "approximate", "chars/4+400"):
        assert part in str(error.value)


# Loading


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_loaded", {})


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, nothing_loaded: None) -> None:
    monkeypatch.setattr(vocabulary, "find_spec", lambda name: None)


def test_nothing_is_loaded_at_import_or_construction() -> None:
    program = """
import sys, tiktoken.registry
from langgraph_compaction.plan import counting, vocabulary
counting.token_counter(), counting.token_counter("tiktoken", model_name="gpt-4")
assert not vocabulary._loaded, vocabulary._loaded
assert not tiktoken.registry.ENCODINGS and "bpe_openai" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.usefixtures("nothing_loaded")
def test_the_wheel_is_read_before_any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> tiktoken.Encoding:
        raise AssertionError(f"{name} was asked of tiktoken")

    monkeypatch.setattr(tiktoken, "get_encoding", refuse)
    counter = token_counter()
    assert counter.text(WORDS) == tokens(WORDS)
    assert (counter.name, counter.exact, counter.notice()) == ("tiktoken:o200k_base", True, None)


@pytest.mark.usefixtures("no_wheel")
def test_without_the_wheel_tiktoken_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    other = tiktoken.Encoding(
        "bytes", pat_str=".", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: other)
    counter = token_counter()
    assert counter.text("abc") == 3
    assert counter.exact


@pytest.mark.usefixtures("no_wheel")
def test_without_a_vocabulary_the_estimate_counts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def fail(name: str) -> tiktoken.Encoding:
        asked.append(name)
        raise ConnectionError("no route to the vocabulary's host")

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    counters = [token_counter(), token_counter()]
    assert counters[0].notice() is None
    with caplog.at_level(logging.WARNING, "langgraph_compaction"):
        for counter in counters:
            assert counter.message(HumanMessage(WORDS)) == FRAMING + estimate_tokens(WORDS)
            assert counter.text(WORDS) == estimate_tokens(WORDS)
            assert (counter.name, counter.exact) == ("estimate", False)
    assert asked == ["o200k_base"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    notice = counters[1].notice()
    assert notice is not None
    assert caplog.records[0].getMessage() == notice
    for part in ("o200k_base", "no route", "langgraph-compaction[offline]", "TIKTOKEN_CACHE_DIR"):
        assert part in notice


@pytest.fixture
def hanging_download(monkeypatch: pytest.MonkeyPatch, no_wheel: None) -> Iterator[None]:
    go_on = threading.Event()

    def hang(name: str) -> tiktoken.Encoding:
        go_on.wait(30)
        raise ConnectionError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", hang)
    monkeypatch.setattr(vocabulary, "LOAD_SECONDS", 0.05)
    yield
    go_on.set()


@pytest.mark.usefixtures("hanging_download")
def test_a_download_that_hangs_is_given_up() -> None:
    counter = token_counter()
    start = time.monotonic()
    assert counter.text(WORDS) == estimate_tokens(WORDS)
    assert time.monotonic() - start < 10
    assert "no answer" in str(counter.notice())


@pytest.mark.usefixtures("nothing_loaded")
def test_threads_that_count_first_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    from_wheel = vocabulary._from_wheel

    def slow(name: str) -> tiktoken.Encoding | None:
        loads.append(name)
        time.sleep(0.05)
        return from_wheel(name)

    monkeypatch.setattr(vocabulary, "_from_wheel", slow)
    counter = token_counter()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: counter.text(WORDS), range(8))) == {tokens(WORDS)}
    assert loads == ["o200k_base"]


@pytest.mark.parametrize("damage", ["checksum", "no file", "no gzip"])
@pytest.mark.usefixtures("nothing_loaded")
def test_a_damaged_wheel_is_passed_over(
    damage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    if damage == "checksum":
        pattern, _ = vocabulary._WHEEL["cl100k_base"]
        monkeypatch.setitem(vocabulary._WHEEL, "cl100k_base", (pattern, "0" * 64))
    else:
        (tmp_path / "data").mkdir()
        if damage == "no gzip":
            (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(b"damaged")
        place = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
        monkeypatch.setattr(vocabulary, "find_spec", lambda name: place)
    assert vocabulary._from_wheel("cl100k_base") is None
