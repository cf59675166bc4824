"""Cases: one function for each kind of answer that a provider gives, or fails to give."""

import json
from collections.abc import Mapping
from functools import partial
from itertools import cycle
from typing import Any

from tests.support.openai_server.server import Case, Exchange
from tests.support.openai_server.wire import Json, Message, error_body

# Answers that are what they should be, or are empty in one of the ways in which answers are.


def _says(message: Message) -> Case:
    return lambda exchange: exchange.say(message)


def text(
    content: str,
    *,
    prompt_tokens: int | None = None,
    cached_tokens: int = 0,
    completion_tokens: int | None = None,
) -> Case:
    """A plain answer. Numbers of tokens that are not given are worked out from the lengths."""
    return _says(
        Message(
            content,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            completion_tokens=completion_tokens,
        )
    )


def empty(content: str | None = "") -> Case:
    """An answer without text: content "", or with None null and no output item."""
    return _says(Message(content))


def refusal(message: str = "I'm sorry, but I can't help with that.") -> Case:
    """A refusal in the field that is meant for it."""
    return _says(Message(refusal=message))


def reasoning_only(reasoning: str = "The user wants a summary. First") -> Case:
    """Reasoning, and then no answer."""
    return _says(Message(reasoning=reasoning))


def cut_off(content: str) -> Case:
    """An answer that met the limit of output tokens."""
    return _says(Message(content, finish="length"))


def content_filter(content: str = "") -> Case:
    """An answer that the provider's filter ended."""
    return _says(Message(content, finish="content_filter"))


def tool_call(name: str, args: Json | str) -> Case:
    """A call of a tool; arguments given as text are sent as they are, valid or not."""
    arguments = args if isinstance(args, str) else json.dumps(args)
    return _says(Message(call=(name, arguments), finish="tool_calls"))


# HTTP statuses, with OpenAI's codes (platform.openai.com/docs/guides/error-codes).


def status(code: int, body: Any = None, headers: Mapping[str, str] | None = None) -> Case:
    """Any HTTP status with any body: JSON, HTML text, or none at all."""
    return lambda exchange: exchange.send(code, body, headers or {})


def unauthorized() -> Case:
    return status(401, error_body("Incorrect API key provided: unused.", code="invalid_api_key"))


def forbidden() -> Case:
    code = "unsupported_country_region_territory"
    return status(403, error_body("Country not supported.", "request_forbidden", code=code))


def not_found() -> Case:
    return status(404, error_body("The model `m` does not exist.", code="model_not_found"))


def unsupported(param: str) -> Case:
    """A parameter that the model does not take, as OpenAI's reasoning models say it."""
    message = f"Unsupported parameter: '{param}' is not supported with this model."
    return status(400, error_body(message, param=param, code="unsupported_parameter"))


def rate_limited(retry_after_seconds: float) -> Case:
    message = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29500, Requested 900."
    body = error_body(message, "tokens", code="rate_limit_exceeded")
    return status(429, body, {"retry-after": str(retry_after_seconds)})


def server_error() -> Case:
    body = error_body("The server had an error processing your request.", "server_error")
    return status(500, body)


def unavailable() -> Case:
    body = error_body("The engine is currently overloaded.", "service_unavailable_error")
    return status(503, body)


def not_json() -> Case:
    """Status 200 with a web page, as from a proxy or a wrong `base_url`."""
    return status(200, "<html><body>Bad gateway</body></html>")


# Faults of time and of the connection.

_LONG = Message("This answer takes its time, and it never comes to its end, however long you wait.")


def silent() -> Case:
    """The request is taken, and nothing is ever answered."""
    return lambda exchange: exchange.hold()


def slow(case: Case, seconds: float) -> Case:
    """A case that comes late."""

    def late(exchange: Exchange) -> None:
        exchange.hold(seconds)
        case(exchange)

    return late


def stalled_stream(words: str, then: float | None = None) -> Case:
    """Words, and then nothing; a whole answer stops in the middle of its body.

    Args:
        words: the text that is sent.
        then: seconds after which the answer comes to its end after all; None: it never does.
    """
    message = Message(words)
    return lambda exchange: exchange.say(message, partial(exchange.hold, then))


def trickle(seconds_between: float) -> Case:
    """Word after word, for ever: no time-out between two reads ever ends it.

    A whole answer sends white space before its body, as DeepSeek does to keep connections alive
    (api-docs.deepseek.com/quick_start/rate_limit).
    """

    def drip(exchange: Exchange) -> None:
        wire = exchange.wire(_LONG)
        exchange.stream("text/event-stream" if exchange.streamed else "application/json")
        if exchange.streamed:
            exchange.events(wire.opening)
        for word in cycle(wire.words):
            exchange.hold(seconds_between)
            if exchange.streamed:
                exchange.events([word])
            else:
                exchange.chunk(b"\n")

    return drip


def dropped() -> Case:
    """The connection closes without an answer."""
    return lambda exchange: exchange.drop()


def dropped_midway() -> Case:
    """The connection closes in the middle of the body or the stream."""
    return lambda exchange: exchange.say(_LONG, exchange.drop)


def refused_url() -> str:
    """A URL on which nothing listens: only the administrator could open port 1 (RFC 1078)."""
    return "http://127.0.0.1:1/v1"
