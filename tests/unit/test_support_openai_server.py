"""The test server must be believed: its silences, its broken connections, and how it ends.

What it stands for is what the real ChatOpenAI makes of it, by both APIs.
"""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage

from tests.support.openai_server import (
    Case,
    Exchange,
    OpenAIServer,
    dropped,
    dropped_midway,
    rate_limited,
    refused_url,
    silent,
    slow,
    stalled_stream,
    text,
    trickle,
)
from tests.support.openai_server.clients import APIS, TIMEOUT, WAYS, ask, chat_model, wait_until

SENTENCE = " Seven words, and\n\nnot one  is lost.\n"

each_api = pytest.mark.parametrize("api", APIS)
each_way = pytest.mark.parametrize("way", WAYS)
every_second = pytest.mark.parametrize(
    ("api", "way"),
    [("chat", "invoke"), ("chat", "astream"), ("responses", "ainvoke"), ("responses", "stream")],
)


@each_api
@each_way
@pytest.mark.parametrize(
    "case",
    [silent(), slow(text("Yes."), 99), stalled_stream(SENTENCE)],
    ids=["none", "late", "stop"],
)
def test_silence_ends_in_a_timeout(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    with pytest.raises(openai.APITimeoutError):
        ask(server, api, way, timeout=(TIMEOUT, 0.05))  # to connect, and between two reads
    wait_until(lambda: server.requests)  # else it may come in the midst of the next test


@each_api
def test_a_stalled_stream_shows_its_words_first(server: OpenAIServer, api: str) -> None:
    server.answer(stalled_stream(SENTENCE))
    stream = chat_model(server.url, api).stream("Hi")
    shown = ""
    while shown != SENTENCE:
        shown += next(stream).text
    wait_until(lambda: server.held)
    server.release()
    with pytest.raises(openai.APIConnectionError):
        shown += "".join(chunk.text for chunk in stream)
    assert shown == SENTENCE


@every_second
@pytest.mark.parametrize(
    "case", [slow(text(SENTENCE), 0.1), stalled_stream(SENTENCE, then=0.1)], ids=["slow", "stalled"]
)
def test_what_is_late_but_in_time(server: OpenAIServer, case: Case, api: str, way: str) -> None:
    server.answer(case)
    started = time.monotonic()
    assert ask(server, api, way).text == SENTENCE
    assert time.monotonic() - started >= 0.1


@each_api
def test_a_trickle_goes_on_and_on(server: OpenAIServer, api: str) -> None:
    server.answer(trickle(0.001))
    stream: Any = chat_model(server.url, api).stream("Hi")
    words = [str(chunk.text) for chunk in islice(stream, 50)]
    stream.close()
    assert words.count("never ") > 1


async def test_a_trickle_meets_no_timeout(server: OpenAIServer) -> None:
    # No read may take as long as the time-out, however busy the machine is.
    timeout = 1.2
    server.answer(trickle(0.05))
    asked: list[asyncio.Future[AIMessage]] = []
    for api, streaming in product(APIS, (False, True)):
        chat = chat_model(server.url, api, streaming=streaming, timeout=timeout)
        asked.append(asyncio.ensure_future(chat.ainvoke("Hi")))
        asked.append(asyncio.ensure_future(asyncio.to_thread(chat.invoke, "Hi")))
    await asyncio.to_thread(wait_until, lambda: len(server.requests) == len(asked))
    done, _ = await asyncio.wait(asked, timeout=timeout + 0.2)
    assert not done
    server.release()
    for error in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(error, openai.APIConnectionError)
        assert not isinstance(error, openai.APITimeoutError)


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
    all_are_here = threading.Barrier(20, timeout=TIMEOUT)

    def together(exchange: Exchange) -> None:
        all_are_here.wait()
        text("Yes.")(exchange)

    server.answer(together)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ask(server, "chat", "invoke"), range(20)))
    assert [answer.text for answer in answers] == ["Yes."] * 20
    assert len(server.requests) == 20


def test_release_ends_what_is_held_back(server: OpenAIServer) -> None:
    server.answer(silent(), slow(text("Yes."), 99), stalled_stream("Yes"), trickle(99))
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server, "chat", "invoke", timeout=99) for _ in range(4)]
        wait_until(lambda: len(server.held) == 4)
        server.release()
        errors = [future.exception(TIMEOUT) for future in asked]
    assert all(isinstance(error, openai.APIConnectionError) for error in errors)
    assert not any(isinstance(error, openai.APITimeoutError) for error in errors)


def test_no_thread_outlives_the_server() -> None:
    before = set(threading.enumerate())
    with ThreadPoolExecutor(2) as pool:
        with OpenAIServer() as server:
            idle = socket.create_connection(("127.0.0.1", server.server_address[1]))
            server.answer(silent(), trickle(0.001))
            asked = [pool.submit(ask, server, "chat", "invoke", timeout=99) for _ in range(2)]
            wait_until(lambda: server.held)
        errors = [future.exception(TIMEOUT) for future in asked]
    with idle:
        assert idle.recv(1) == b""
    assert all(isinstance(error, openai.APIConnectionError) for error in errors)
    assert set(threading.enumerate()) <= before


def test_a_client_that_hangs_up_frees_its_thread() -> None:
    with OpenAIServer() as server:
        server.answer(silent())
        with pytest.raises(openai.APITimeoutError):
            ask(server, "chat", "invoke", timeout=(TIMEOUT, 0.05))
        wait_until(lambda: server.requests and not server.held)


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
        openai.OpenAI(base_url=server.url, api_key="unused").embeddings.create(model="m", input="x")
