"""The test server's context overflows reach a caller as they do from each provider."""

import re

import openai
import pytest

from tests.support.openai_server import LOOKALIKES, OVERFLOWS, OpenAIServer, overflow
from tests.support.openai_server.clients import ask


def seen(error: BaseException) -> str:
    """All that a caller can read of an error: its text and the body that came with it."""
    return f"{error} {getattr(error, 'body', None)}"


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
