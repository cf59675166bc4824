"""The test server must be believed: what it stands for is what the real ChatOpenAI makes of it.

Every case is asked for by both APIs, whole and streamed, synchronously and asynchronously. Where
langchain-openai drops what came over the wire, the official client is asked instead.
"""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, reduce
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.openai_server import (
    LOOKALIKES,
    OVERFLOWS,
    Case,
    OpenAIServer,
    content_filter,
    cut_off,
    dropped,
    dropped_midway,
    empty,
    forbidden,
    not_json,
    overflow,
    rate_limited,
    reasoning_only,
    refusal,
    refused_url,
    server_error,
    silent,
    slow,
    stalled_stream,
    status,
    text,
    tool_call,
    trickle,
    unauthorized,
    unavailable,
)

TIMEOUT = 1.0  # seconds, for a connection and between two reads
SENTENCE = " Seven words, and\n\nnot one  is lost.\n"

each_api = pytest.mark.parametrize("api", ["chat", "responses"])
each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
whole_or_streamed = pytest.mark.parametrize("way", ["invoke", "stream"])
every_second = pytest.mark.parametrize(
    ("api", "way"),
    [("chat", "invoke"), ("chat", "astream"), ("responses", "ainvoke"), ("responses", "stream")],
)


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer) -> Iterator[OpenAIServer]:
    """One server for all tests: a new address costs ChatOpenAI a tenth of a second."""
    running.requests.clear()
    yield running
    running.release()


@cache
def model(url: str, api: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-5-mini",
        base_url=url,
        api_key=SecretStr("unused"),
        use_responses_api=api == "responses",
        **{"max_retries": 0, "timeout": TIMEOUT, **options},
    )


def ask(server: OpenAIServer | str, api: str, way: str, **options: Any) -> AIMessage:
    chat = model(server if isinstance(server, str) else server.url, api, **options)

    async def collected() -> Any:
        return reduce(add, [chunk async for chunk in chat.astream("Hi")])

    ways: dict[str, Callable[[], Any]] = {
        "invoke": lambda: chat.invoke("Hi"),
        "ainvoke": lambda: asyncio.run(chat.ainvoke("Hi")),
        "stream": lambda: reduce(add, chat.stream("Hi")),
        "astream": lambda: asyncio.run(collected()),
    }
    return ways[way]()


def client(server: OpenAIServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="unused", max_retries=0, timeout=TIMEOUT)


def seen(error: BaseException) -> str:
    """All that a caller can read of an error: its text and the body that came with it."""
    return f"{error} {getattr(error, 'body', None)}"


# Answers


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
    short = model(server.url, "chat").invoke("x").usage_metadata
    long = model(server.url, "chat").invoke("x" * 4_000).usage_metadata
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
    completions = client(server).chat.completions
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
        (rate_limited(7), openai.RateLimitError, "rate_limit_exceeded"),
        (server_error(), openai.InternalServerError, None),
        (unavailable(), openai.InternalServerError, None),
        (status(409, {"error": {"code": "x"}}), openai.ConflictError, "x"),
    ],
    ids=["401", "403", "429", "500", "503", "409"],
)
def test_statuses(
    server: OpenAIServer, *, case: Case, raised: Any, code: str | None, api: str, way: str
) -> None:
    server.answer(case)
    with pytest.raises(raised) as caught:
        ask(server, api, way)
    assert caught.value.code == code
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


# What a caller can tell a context overflow by, beside its text: HTTP status, code, type.
EXCEEDED, INVALID = "context_length_exceeded", "invalid_request_error"
REFUSED: dict[str, tuple[int, str | None, str | None]] = {
    "openai": (400, EXCEEDED, INVALID),
    "openai input": (400, EXCEEDED, INVALID),
    "openai window": (400, EXCEEDED, INVALID),
    "azure": (400, EXCEEDED, INVALID),
    "llama.cpp": (400, "400", "exceed_context_size_error"),
    "llama.cpp 500": (500, "500", "exceed_context_size_error"),
    "vllm": (400, "400", "BadRequestError"),
    "vllm top": (400, "400", "BadRequestError"),
    "sglang": (400, "400", "BadRequestError"),
    "anthropic": (400, None, INVALID),
    "anthropic output": (400, None, INVALID),
    "anthropic size": (413, None, "request_too_large"),
    "gemini": (400, "400", None),
    "gemini list": (400, None, None),
    "mistral": (400, "3051", "invalid_request_invalid_args"),
    "bedrock": (400, None, None),
    "together": (400, None, INVALID),
    "deepseek": (400, INVALID, INVALID),
    "groq": (400, EXCEEDED, INVALID),
    "cerebras": (400, None, None),
    "cerebras no body": (413, None, None),
    "xai": (400, None, None),
    "openrouter": (400, "400", None),
    "lm studio": (400, None, None),
    "moonshot": (400, None, INVALID),
    "dashscope": (400, "invalid_parameter_error", INVALID),
    "minimax": (400, None, "bad_request_error"),
    "copilot": (400, "model_max_prompt_tokens_exceeded", None),
    "litellm": (400, "400", None),
    "proxy": (413, None, None),
    "output limit": (400, None, INVALID),
    "long parameter": (400, "string_above_max_length", INVALID),
    "rate": (413, "rate_limit_exceeded", "tokens"),
}
# The same where an answer that began well turns out to be an error: of Chat Completions whole and
# streamed, of Responses whole and streamed, as langchain-openai 1.7 raises it. "status": as above;
# "stream": an APIError with code and type alone; "value": a ValueError, its text is all there is.
LATE = {
    "openai midway": ("status", "stream", "status", "stream"),
    "openai failed": ("status", "status", "value", "value"),
    "openrouter 200": ("value", "stream", "value", "stream"),
    "lm studio midway": ("status", "stream", "status", "stream"),
}
COLUMNS = [("chat", "invoke"), ("chat", "stream"), ("responses", "invoke"), ("responses", "stream")]


def test_every_shape_has_its_test() -> None:
    assert set(REFUSED) | set(LATE) == set(OVERFLOWS) | set(LOOKALIKES)
    assert all(overflow(shape) is case for shape, case in OVERFLOWS.items())


@pytest.mark.parametrize(("api", "way"), [("chat", "invoke"), ("responses", "stream")])
@pytest.mark.parametrize("shape", REFUSED)
def test_overflow_by_status(server: OpenAIServer, shape: str, api: str, way: str) -> None:
    server.answer((OVERFLOWS | LOOKALIKES)[shape])
    with pytest.raises(openai.APIStatusError) as caught:
        ask(server, api, way)
    error = caught.value
    assert (error.status_code, error.code, error.type) == REFUSED[shape]
    told = re.search(r"token|context|length|long|large|size", seen(error).lower())
    assert bool(told) is (shape != "cerebras no body")


@pytest.mark.parametrize("column", range(4), ids=[" ".join(names) for names in COLUMNS])
@pytest.mark.parametrize("shape", LATE)
def test_overflow_after_a_good_start(server: OpenAIServer, shape: str, column: int) -> None:
    server.answer(OVERFLOWS[shape])
    with pytest.raises((openai.APIError, ValueError)) as caught:
        ask(server, *COLUMNS[column])
    kinds = {"status": openai.APIStatusError, "stream": openai.APIError, "value": ValueError}
    assert next(k for k, v in kinds.items() if isinstance(caught.value, v)) == LATE[shape][column]
    assert "context" in seen(caught.value)


# Time and connections


@each_api
@each_way
@pytest.mark.parametrize(
    "case",
    [silent(), slow(text("Yes."), 9), stalled_stream(SENTENCE)],
    ids=["none", "late", "stop"],
)
def test_silence_ends_in_a_timeout(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    with pytest.raises(openai.APITimeoutError):
        ask(server, api, way, timeout=0.05)


@each_api
def test_a_stalled_stream_shows_its_words_first(server: OpenAIServer, api: str) -> None:
    server.answer(stalled_stream(SENTENCE))
    shown: list[str] = []

    def watch() -> None:
        for chunk in model(server.url, api, timeout=0.3).stream("Hi"):
            shown.append(chunk.text)  # noqa: PERF401 (it ends with an error)

    with pytest.raises(openai.APITimeoutError):
        watch()
    assert "".join(shown) == SENTENCE


@every_second
@pytest.mark.parametrize(
    "case", [slow(text(SENTENCE), 0.1), stalled_stream(SENTENCE, then=0.1)], ids=["slow", "stalled"]
)
def test_what_is_late_but_in_time(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    started = time.monotonic()
    assert ask(server, api, way, timeout=2).text == SENTENCE
    assert time.monotonic() - started >= 0.1


@each_api
def test_a_trickle_meets_no_timeout(server: OpenAIServer, api: str) -> None:
    server.answer(trickle(0.02))
    chat = model(server.url, api, timeout=0.3)
    started, words = time.monotonic(), 0
    stream = chat.stream("Hi")
    while time.monotonic() - started < 0.6:
        words += bool(next(stream).text)
    stream.close()
    assert words > 5
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(chat.ainvoke("Hi"), 0.6))


@every_second
@pytest.mark.parametrize("case", [dropped(), dropped_midway()], ids=["dropped", "midway"])
def test_lost_connections(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    with pytest.raises(openai.APIConnectionError) as caught:
        ask(server, api, way)
    assert not isinstance(caught.value, openai.APITimeoutError)


@every_second
def test_a_refused_connection(api: str, way: str) -> None:
    with pytest.raises(openai.APIConnectionError) as caught:
        ask(refused_url(), api, way)
    assert not isinstance(caught.value, openai.APITimeoutError)


# The server itself


def test_cases_are_answered_in_order_and_the_last_one_repeats(server: OpenAIServer) -> None:
    server.answer(text("one"), text("two"))
    assert [ask(server, "chat", "invoke").text for _ in range(3)] == ["one", "two", "two"]
    server.answer(text("three"))
    answers = [ask(server, api, "invoke") for api in ("chat", "chat", "responses", "responses")]
    assert [answer.text for answer in answers] == ["three"] * 4
    assert len({answer.response_metadata["id"] for answer in answers}) == 4
    assert [request["_path"] for request in server.requests] == [
        *["/v1/chat/completions"] * 5,
        *["/v1/responses"] * 2,
    ]
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Hi"}]
    assert server.requests[6]["input"][0]["role"] == "user"
    assert server.requests[0]["_headers"]["authorization"] == "Bearer unused"


@every_second
def test_a_client_that_retries(server: OpenAIServer, api: str, way: str) -> None:
    server.answer(rate_limited(0.05), rate_limited(0.05), text("at last"))
    started = time.monotonic()
    assert ask(server, api, way, max_retries=2).text == "at last"
    assert time.monotonic() - started >= 0.1
    assert len(server.requests) == 3


def test_requests_at_the_same_time(server: OpenAIServer) -> None:
    server.answer(slow(text("Yes."), 0.2))
    started = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ask(server, "chat", "invoke"), range(20)))
    assert [answer.text for answer in answers] == ["Yes."] * 20
    assert len(server.requests) == 20
    assert time.monotonic() - started < 20 * 0.2


def wait_for_held(server: OpenAIServer, count: int) -> None:
    """Wait until the server holds so many answers back."""
    deadline = time.monotonic() + 5
    while len(server.held) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_release_ends_what_is_held_back(server: OpenAIServer) -> None:
    server.answer(silent(), slow(text("Yes."), 9), stalled_stream("Yes"), trickle(9))
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server, "chat", "invoke", timeout=9) for _ in range(4)]
        wait_for_held(server, 4)
        server.release()
        errors = [future.exception(timeout=1) for future in asked]
    assert all(isinstance(error, openai.APIConnectionError) for error in errors)
    assert not any(isinstance(error, openai.APITimeoutError) for error in errors)


def test_no_thread_outlives_the_server() -> None:
    before = set(threading.enumerate())
    with ThreadPoolExecutor(2) as pool:
        with OpenAIServer() as server:
            idle = socket.create_connection(server.server_address)
            server.answer(silent(), trickle(0.001))
            asked = [pool.submit(ask, server, "chat", "invoke", timeout=9) for _ in range(2)]
            wait_for_held(server, 1)
        errors = [future.exception(timeout=1) for future in asked]
    with idle:
        assert idle.recv(1) == b""
    assert all(isinstance(error, openai.APIConnectionError) for error in errors)
    assert set(threading.enumerate()) <= before


def test_a_client_that_hangs_up_frees_its_thread() -> None:
    with OpenAIServer() as server:
        server.answer(silent())
        with pytest.raises(openai.APITimeoutError):
            ask(server, "chat", "invoke", timeout=0.05)
        deadline = time.monotonic() + 5
        while server.held:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_fault_of_the_test_is_not_hidden() -> None:
    with (
        pytest.raises(RuntimeError, match="no answer is queued"),
        OpenAIServer() as server,
        pytest.raises(openai.APIConnectionError),
    ):
        ask(server, "chat", "invoke")


def test_other_paths_are_unknown(server: OpenAIServer) -> None:
    server.answer(text("Yes."))
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        client(server).embeddings.create(model="m", input="x")
