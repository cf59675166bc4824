"""The test server's answers and statuses are what the real ChatOpenAI takes them for.

Every case is asked for by both APIs, whole and streamed, synchronously and asynchronously. Where
langchain-openai drops what came over the wire, the official client is asked instead.
"""

from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage

from tests.support.openai_server import (
    Case,
    OpenAIServer,
    content_filter,
    cut_off,
    empty,
    forbidden,
    not_found,
    not_json,
    rate_limited,
    reasoning_only,
    refusal,
    server_error,
    status,
    text,
    tool_call,
    unauthorized,
    unavailable,
    unsupported,
)
from tests.support.openai_server.clients import APIS, TIMEOUT, WAYS, ask, chat_model

SENTENCE = " Seven words, and\n\nnot one  is lost.\n"

each_api = pytest.mark.parametrize("api", APIS)
each_way = pytest.mark.parametrize("way", WAYS)
whole_or_streamed = pytest.mark.parametrize("way", ["invoke", "stream"])
every_second = pytest.mark.parametrize(
    ("api", "way"),
    [("chat", "invoke"), ("chat", "astream"), ("responses", "ainvoke"), ("responses", "stream")],
)


@each_api
@each_way
def test_text_arrives_word_for_word(server: OpenAIServer, api: str, way: str) -> None:
    server.answer(text(SENTENCE))
    answer = ask(server, api, way)
    assert answer.text == SENTENCE
    state = {"chat": ("finish_reason", "stop"), "responses": ("status", "completed")}
    key, value = state[api]
    assert answer.response_metadata[key] == value
    assert server.requests[0].get("stream", False) is way.endswith("stream")


@each_api
def test_a_model_that_always_streams(server: OpenAIServer, api: str) -> None:
    server.answer(text(SENTENCE))
    assert ask(server, api, "invoke", streaming=True).text == SENTENCE
    assert server.requests[0]["stream"] is True


@each_api
@whole_or_streamed
def test_usage_as_given(server: OpenAIServer, api: str, way: str) -> None:
    server.answer(text("Yes.", prompt_tokens=100, cached_tokens=60, completion_tokens=5))
    usage = ask(server, api, way, stream_usage=True).usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (100, 5, 105)
    assert usage["input_token_details"] == {"cache_read": 60}


def test_streamed_chat_reports_usage_only_when_asked(server: OpenAIServer) -> None:
    server.answer(text("Yes."))
    assert ask(server, "chat", "stream").usage_metadata is None
    assert ask(server, "chat", "stream", stream_usage=True).usage_metadata is not None
    assert ask(server, "responses", "stream").usage_metadata is not None


def test_usage_follows_the_lengths(server: OpenAIServer) -> None:
    server.answer(text("word " * 40))
    short = chat_model(server.url, "chat").invoke("x").usage_metadata
    long = chat_model(server.url, "chat").invoke("x" * 4_000).usage_metadata
    assert short is not None
    assert long is not None
    assert short["output_tokens"] == 50
    assert long["input_tokens"] - short["input_tokens"] == pytest.approx(1_000, abs=1)


@every_second
@pytest.mark.parametrize(
    "case", [empty(), empty(None), reasoning_only(), refusal()], ids=["''", "null", "thought", "no"]
)
def test_answers_without_text(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    answer = ask(server, api, way)
    assert answer.text == ""
    assert answer.tool_calls == []


@each_api
def test_a_refusal_and_a_thought_are_on_the_wire(server: OpenAIServer, api: str) -> None:
    def kinds(answer: AIMessage) -> list[Any]:
        return [block["type"] for block in answer.content if isinstance(block, dict)]

    server.answer(refusal("No."), refusal("No."), reasoning_only("Hm"), reasoning_only("Hm"))
    if api == "responses":
        assert kinds(ask(server, api, "invoke")) == kinds(ask(server, api, "stream")) == ["refusal"]
        assert kinds(ask(server, api, "invoke")) == ["reasoning"]
        assert kinds(ask(server, api, "stream")) == ["reasoning"]
        return
    assert ask(server, api, "invoke").additional_kwargs["refusal"] == "No."
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    client = openai.OpenAI(base_url=server.url, api_key="unused", timeout=TIMEOUT)
    completions = client.chat.completions
    deltas = [chunk.choices[0].delta for chunk in completions.create(**asked, stream=True)]
    assert "".join(delta.refusal or "" for delta in deltas) == "No."
    message: Any = completions.create(**asked).choices[0].message
    assert (message.content, message.reasoning_content) == (None, "Hm")
    deltas = [chunk.choices[0].delta for chunk in completions.create(**asked, stream=True)]
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == "Hm"


@every_second
@pytest.mark.parametrize(
    ("case", "finish", "reason"),
    [
        (cut_off("Half of"), "length", "max_output_tokens"),
        (content_filter("Half of"), "content_filter", "content_filter"),
    ],
)
def test_answers_that_were_ended(
    server: OpenAIServer, *, case: Case, finish: str, reason: str, api: str, way: str
) -> None:
    server.answer(case)
    answer = ask(server, api, way)
    assert answer.text == "Half of"
    if api == "chat":
        assert answer.response_metadata["finish_reason"] == finish
    else:
        assert answer.response_metadata["status"] == "incomplete"
        assert answer.response_metadata["incomplete_details"] == {"reason": reason}


@every_second
def test_calls(server: OpenAIServer, api: str, way: str) -> None:
    server.answer(tool_call("work", {"n": 1, "why": "as asked"}), tool_call("work", "n is 1"))
    (good,) = ask(server, api, way).tool_calls
    (bad,) = ask(server, api, way).invalid_tool_calls
    assert (good["name"], good["args"]) == ("work", {"n": 1, "why": "as asked"})
    assert (bad["name"], bad["args"]) == ("work", "n is 1")
    assert good["id"] != bad["id"]


# Errors


@every_second
@pytest.mark.parametrize(
    ("case", "raised", "code"),
    [
        (unauthorized(), openai.AuthenticationError, "invalid_api_key"),
        (forbidden(), openai.PermissionDeniedError, "unsupported_country_region_territory"),
        (not_found(), openai.NotFoundError, "model_not_found"),
        (unsupported("temperature"), openai.BadRequestError, "unsupported_parameter"),
        (rate_limited(7), openai.RateLimitError, "rate_limit_exceeded"),
        (server_error(), openai.InternalServerError, None),
        (unavailable(), openai.InternalServerError, None),
        (status(409, {"error": {"code": "x"}}), openai.ConflictError, "x"),
    ],
    ids=["401", "403", "404", "400", "429", "500", "503", "409"],
)
def test_statuses(
    server: OpenAIServer, *, case: Case, raised: Any, code: str | None, api: str, way: str
) -> None:
    server.answer(case)
    with pytest.raises(raised) as caught:
        ask(server, api, way)
    assert caught.value.code == code
    assert caught.value.param == ("temperature" if code == "unsupported_parameter" else None)
    assert caught.value.request_id == "req_1"
    assert caught.value.response.headers.get("retry-after") == (
        "7" if raised is openai.RateLimitError else None
    )


@every_second
def test_a_web_page_is_an_error_of_no_particular_kind(
    server: OpenAIServer, api: str, way: str
) -> None:
    server.answer(not_json())
    with pytest.raises((ValueError, AttributeError), match=r"str|No generation chunks"):
        ask(server, api, way)
