"""langchain-openai's client for the server, and four ways to ask it."""

import asyncio
import time
from collections.abc import Callable
from functools import cache, reduce
from operator import add
from typing import Any

from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.openai_server.server import OpenAIServer

TIMEOUT = 10.0
"""Seconds for a connection and between two reads: enough for a busy machine, and no more."""
APIS = ("chat", "responses")
WAYS = ("invoke", "ainvoke", "stream", "astream")
WIRES = ("chat-whole", "chat-streamed", "responses-whole", "responses-streamed")
"""The forms in which an answer comes."""
HALF = list(zip(WIRES, ("invoke", "ainvoke", "ainvoke", "invoke"), strict=True))
"""Half of the combinations of form and way: any two of API, wholeness and way in every pairing."""
OTHER_HALF = list(zip(WIRES, ("ainvoke", "invoke", "invoke", "ainvoke"), strict=True))


@cache
def chat_model(url: str, api: str, **options: Any) -> ChatOpenAI:
    """A chat model; always the same for the same arguments, since its first call takes 0.1 s."""
    given = {"model": "gpt-5-mini", "max_retries": 0, "timeout": TIMEOUT, **options}
    return ChatOpenAI(
        base_url=url,
        api_key=SecretStr("unused"),
        use_responses_api=api == "responses",
        **given,
    )


def wire_model(server: OpenAIServer | str, wire: str, name: str, **options: Any) -> ChatOpenAI:
    """A model that is answered in one of the forms of `WIRES`, and has no time-out of its own."""
    api, _, form = wire.partition("-")
    url = server if isinstance(server, str) else server.url
    given = {"model": name, "timeout": None, "streaming": form == "streamed", **options}
    return chat_model(url, api, **given)


def ask(server: OpenAIServer | str, api: str, way: str, **options: Any) -> AIMessage:
    """One of the `APIS` asked in one of the `WAYS`; a stream's chunks are added up."""
    chat = chat_model(server if isinstance(server, str) else server.url, api, **options)

    async def collected() -> Any:
        return reduce(add, [chunk async for chunk in chat.astream("Hi")])

    ways: dict[str, Callable[[], Any]] = {
        "invoke": lambda: chat.invoke("Hi"),
        "ainvoke": lambda: asyncio.run(chat.ainvoke("Hi")),
        "stream": lambda: reduce(add, chat.stream("Hi")),
        "astream": lambda: asyncio.run(collected()),
    }
    answer: AIMessage = ways[way]()
    return answer


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that a thread of the server or of a client does."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so within {TIMEOUT} seconds")
        time.sleep(0.005)
