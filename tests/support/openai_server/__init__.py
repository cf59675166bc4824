"""A real HTTP server that speaks OpenAI's two text APIs, and misbehaves on demand.

It serves `/v1/chat/completions` and `/v1/responses`, whole and streamed, as OpenAI's API reference
describes them. A case is one answer; the server picks its form on the wire from the path and from
`stream`. As a fixture:

    @pytest.fixture
    def server() -> Iterator[OpenAIServer]:
        with OpenAIServer() as running:
            yield running
"""

from tests.support.openai_server.cases import (
    content_filter,
    cut_off,
    dropped,
    dropped_midway,
    empty,
    forbidden,
    not_found,
    not_json,
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
    unsupported,
)
from tests.support.openai_server.overflows import LOOKALIKES, OVERFLOWS, overflow
from tests.support.openai_server.server import Case, Exchange, OpenAIServer
from tests.support.openai_server.wire import Json

__all__ = [
    "LOOKALIKES",
    "OVERFLOWS",
    "Case",
    "Exchange",
    "Json",
    "OpenAIServer",
    "content_filter",
    "cut_off",
    "dropped",
    "dropped_midway",
    "empty",
    "forbidden",
    "not_found",
    "not_json",
    "overflow",
    "rate_limited",
    "reasoning_only",
    "refusal",
    "refused_url",
    "server_error",
    "silent",
    "slow",
    "stalled_stream",
    "status",
    "text",
    "tool_call",
    "trickle",
    "unauthorized",
    "unavailable",
    "unsupported",
]
