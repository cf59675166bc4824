"""What texts and messages count, and by which counter.

Faults repaired here: tool-call arguments counted as nothing when the content is a list,
`<|endoftext|>` in a message bricking the thread, a million spaces crawling.
"""

import json
import time
from typing import Any

import bpe_openai
import pytest
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
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.estimate import estimate_tokens
from tests.benchmarks.counting_error import SAMPLES
from tests.unit.counted import (
    ARGUMENTS,
    CALL,
    CALLED,
    COUNTER,
    FRAMING,
    PHOTO,
    WORDS,
    human,
    tokens,
)

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
