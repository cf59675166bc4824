"""What an error says about the calls after it, by the errors that providers' clients raise.

A refused key taken for a bad moment is asked again at every fold; a rate limit taken for an
overflow cuts the span into ever smaller pieces, and each is one more request against the limit.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google.genai.errors import ClientError, ServerError
from langchain_anthropic import chat_models as of_anthropic
from langchain_core import exceptions as core
from langchain_google_genai import chat_models as of_google
from langchain_openai.chat_models import base as of_openai

from langgraph_compaction import BudgetError, ConfigurationError
from langgraph_compaction.run.attempts import AttemptTimeoutError
from langgraph_compaction.run.faults import is_programming_error, is_refused
from langgraph_compaction.run.overflow import is_overflow
from tests.support.openai_server import LOOKALIKES, OVERFLOWS, OpenAIServer
from tests.support.openai_server.clients import ask

HTTP = httpx2.Request("POST", "http://127.0.0.1:9/v1")


def error_of(package: Any, name: str, status: int, text: str = "No.", **fields: Any) -> Any:
    """An error of openai's or anthropic's client, with the body that the provider sends."""
    response, error = httpx2.Response(status, request=HTTP), {"message": text, **fields}
    body = error if package is openai else {"type": "error", "error": error}
    return getattr(package, name)(text, response=response, body=body)


def google(status: int, kind: str, text: str = "No.", **fields: Any) -> Any:
    error = {"code": status, "message": text, "status": kind, **fields}
    return (ServerError if status >= 500 else ClientError)(status, {"error": error})


def raised(act: Callable[[], Any]) -> Exception:
    """What an action raises, with its traceback."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # each test says which
        act()
    return caught.value


def in_langchain(error: Any) -> Exception:
    """The same error as LangChain's integration hands it on."""
    if isinstance(error, openai.BadRequestError):
        return raised(lambda: of_openai._handle_openai_bad_request(error))
    if isinstance(error, openai.APIError):
        return raised(lambda: of_openai._handle_openai_api_error(error))
    if isinstance(error, anthropic.BadRequestError):
        return raised(lambda: of_anthropic._handle_anthropic_bad_request(error))
    if isinstance(error, anthropic.APIError):
        return raised(lambda: of_anthropic._handle_anthropic_api_error(error))
    if isinstance(error, ServerError):
        return raised(lambda: of_google._handle_server_error(error))
    return raised(lambda: of_google._handle_client_error(error, {"model": "gemini"}))


def both(errors: dict[str, Any]) -> pytest.MarkDecorator:
    """Each error as the provider's client raises it, and as LangChain does."""
    cases = errors | {f"{name}, LangChain": in_langchain(error) for name, error in errors.items()}
    return pytest.mark.parametrize("error", cases.values(), ids=cases.keys())


# ---- refused

KEY = "API key not valid. Please pass a valid API key."
KEY_INVALID = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
REFUSED: dict[str, Any] = {
    f"{package.__name__} {status}": error_of(package, name, status)
    for package in (openai, anthropic)
    for name, status in (
        ("AuthenticationError", 401),
        ("PermissionDeniedError", 403),
        ("NotFoundError", 404),
    )
} | {
    "Google 401": google(401, "UNAUTHENTICATED"),
    "Google 403": google(403, "PERMISSION_DENIED"),
    "Google 404": google(404, "NOT_FOUND", "models/gemini-9 is not found"),
    "Google, bad key": google(400, "INVALID_ARGUMENT", KEY, details=KEY_INVALID),
}
PASSING: dict[str, Any] = {
    "openai 400": error_of(openai, "BadRequestError", 400),
    "openai 429": error_of(openai, "RateLimitError", 429),
    "openai 500": error_of(openai, "InternalServerError", 500),
    "openai, no line": openai.APIConnectionError(request=HTTP),
    "openai, late": openai.APITimeoutError(HTTP),
    "anthropic 400": error_of(anthropic, "BadRequestError", 400),
    "anthropic 429": error_of(anthropic, "RateLimitError", 429),
    "anthropic 529": error_of(anthropic, "OverloadedError", 529),
    "anthropic, no line": anthropic.APIConnectionError(request=HTTP),
    "Google 400": google(400, "INVALID_ARGUMENT"),
    "Google 429": google(429, "RESOURCE_EXHAUSTED"),
    "Google 503": google(503, "UNAVAILABLE"),
}


@both(REFUSED)
def test_a_refused_caller_or_model(error: Exception) -> None:
    assert is_refused(error)
    assert not is_overflow(error)
    assert not is_programming_error(error)


@both(PASSING)
def test_what_may_pass_is_none_of_the_three(error: Exception) -> None:
    assert not is_refused(error)
    assert not is_overflow(error)
    assert not is_programming_error(error)


def test_refused_in_other_words() -> None:
    for kind in ("ModelAuthenticationError", "ModelPermissionDeniedError", "ModelNotFoundError"):
        assert is_refused(getattr(core, kind)("No."))
    body = {"error": "invalid_grant", "error_description": "The token has expired."}
    assert is_refused(openai.OAuthError(response=httpx2.Response(400, request=HTTP), body=body))


def with_fields(text: str = "No.", **fields: Any) -> Exception:
    error = RuntimeError(text)
    error.__dict__.update(fields)
    return error


@pytest.mark.parametrize("odd", [None, [], {}, [401], {"code": 401}, object(), lambda: 401, "x"])
def test_fields_of_any_kind_are_looked_at_in_peace(odd: Any) -> None:
    error = with_fields(status_code=odd, code=odd, type=odd, body=odd, param=odd)
    assert not is_refused(error)
    assert not is_overflow(error)


class Mute(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("cannot even say what it is")


def test_an_error_that_cannot_speak_is_nothing_special() -> None:
    assert [is_refused(Mute()), is_overflow(Mute()), is_programming_error(Mute())] == [False] * 3


# ---- of the program


def raised_in(module: str, code: str) -> Exception:
    return raised(lambda: exec(code, {"__name__": module, "json": json}))


@pytest.mark.parametrize(
    "code",
    [
        "len(7)",
        "None.summarize()",
        "missing",
        "import no_such_module_at_all",
        "def f():\n    del x\n    x = 1\nf()",
        "raise NotImplementedError",
        "(lambda prompt: prompt)()",
        "json.dumps(object())",
    ],
)
@pytest.mark.parametrize("module", ["__main__", "my.agent", "openai_helpers", "googled.httpx"])
def test_an_error_of_the_users_program(code: str, module: str) -> None:
    assert is_programming_error(raised_in(module, code))
    assert is_programming_error(type(raised_in(module, code))("made by hand"))


@pytest.mark.parametrize("code", ["len(7)", "None.choices", "raise NotImplementedError"])
@pytest.mark.parametrize(
    "module", ["openai._base_client", "langchain_openai.chat_models.base", "google.genai.models"]
)
def test_an_answer_of_a_shape_that_the_client_did_not_expect(code: str, module: str) -> None:
    assert not is_programming_error(raised_in(module, code))


def test_a_key_that_is_missing_is_for_the_user_to_repair() -> None:
    asked = TypeError("Could not resolve authentication method. Expected one of api_key, ...")
    missing = raised(lambda: of_anthropic._raise_if_authentication_error(asked))
    assert is_programming_error(missing) or is_refused(missing)
    assert is_programming_error(ConfigurationError("model: 'gpt-5' cannot be built (no key)."))


@pytest.mark.parametrize("code", ["{}['x']", "[][0]", "1 / 0", "json.loads('<html>')", "open('')"])
def test_other_errors_may_come_of_the_answer(code: str) -> None:
    assert not is_programming_error(raised_in("my.agent", code))
    assert not is_programming_error(AttemptTimeoutError("late", ends_visit=True))
    assert not is_programming_error(BudgetError("too large", sizes={}, limit=1))


# ---- overflow

WORDS = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages resulted "
    "in 9001 tokens. Please reduce the length of the messages.",
    "OpenAI, Responses": "Your input exceeds the context window of this model.",
    "vLLM, decoder": "The decoder prompt (length 8357) is longer than the maximum model length of "
    "8192. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "vLLM, new": "You passed 8193 input tokens and requested 0 output tokens. However, the model's "
    "context length is only 8192 tokens, resulting in a maximum input length of 8192 tokens. "
    "Please reduce the length of the input prompt.",
    "vLLM, answer": "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's "
    "maximum context length is 4096 tokens and your request has 2104 input tokens.",
    "llama.cpp": "request (9000 tokens) exceeds the available context size (4096 tokens), try ...",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Anthropic, answer": "input length and `max_tokens` exceed context limit: 188059 + 20000 > "
    "200000, decrease input length or `max_tokens` and try again",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed "
    "(1048576).",
    "Mistral": "Prompt contains 40687 tokens and 0 draft tokens, too large for model with 32768 "
    "maximum context length",
    "Bedrock": "An error occurred (ValidationException) when calling the Converse operation: The "
    "model returned the following errors: Input is too long for requested model.",
    "Bedrock, Nova": "The model returned the following errors: Input Tokens Exceeded: Number of "
    "input tokens exceeds maximum length. Please update the input to try again.",
    "Bedrock, Titan": "400 Bad Request: Too many input tokens. Max input tokens: 8192, request "
    "input token count: 9279",
    "Together": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. "
    "Given: 80125 `inputs` tokens and 4096 `max_new_tokens`",
}
NEAR = {
    "OpenAI, rate": "Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): "
    "Limit 30000, Used 29000, Requested 5000. Please try again in 8s.",
    "rate": "Your request exceeds the maximum number of tokens per minute for this model.",
    "rate of input": "The input token count (70000) exceeds the maximum number of tokens per "
    "minute (60000).",
    "Anthropic, rate": "This request would exceed your organization's rate limit of 30,000 input "
    "tokens per minute. Please reduce the prompt length or try again later.",
    "Gemini, quota": "Quota exceeded for metric: generate_content_free_tier_input_token_count",
    "Bedrock, quota": "Too many tokens per day, please wait before trying again.",
    "OpenAI, answer": "max_tokens is too large: 100000. This model supports at most 16384 "
    "completion tokens, whereas you provided 100000.",
    "OpenAI, cut off": "Could not finish the message because max_tokens or model output limit was "
    "reached. Please try again with higher max_tokens.",
    "Anthropic, answer": "max_tokens: 100000 > 64000, which is the maximum allowed number of "
    "output tokens for claude-sonnet-4-5",
    "vLLM, answer": "max_tokens=300000 cannot be greater than max_model_len=max_total_tokens="
    "262144. Please request fewer output tokens.",
    "Anthropic, image": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
    "Go": 'Post "http://127.0.0.1:9/v1": context deadline exceeded',
    "no words": "",
}


def told(text: str) -> Iterator[Any]:
    """An error with this text, in the shapes in which it may arrive."""
    yield from (RuntimeError(text), RuntimeError(text.upper()), with_fields("400", body=text))
    for package in (openai, anthropic):
        yield error_of(package, "BadRequestError", 400, text, type="invalid_request_error")
        yield in_langchain(error_of(package, "BadRequestError", 400, text, code=None))
    yield in_langchain(google(400, "INVALID_ARGUMENT", text))
    yield openai.APIError("An error occurred", request=HTTP, body={"message": text})


@pytest.mark.parametrize("provider", WORDS)
def test_an_overflow_is_one_in_every_shape(provider: str) -> None:
    for error in told(WORDS[provider]):
        assert is_overflow(error), repr(error)


@pytest.mark.parametrize("provider", NEAR)
def test_what_only_sounds_like_an_overflow_is_none(provider: str) -> None:
    for error in told(NEAR[provider]):
        assert not is_overflow(error), repr(error)


def test_an_overflow_may_come_without_words() -> None:
    assert is_overflow(core.ContextOverflowError())
    assert is_overflow(with_fields(code="context_length_exceeded"))
    assert is_overflow(with_fields(type="exceed_context_size_error"))
    assert is_overflow(error_of(anthropic, "RequestTooLargeError", 413, type="request_too_large"))
    assert not is_overflow(with_fields(status_code=413, code="rate_limit_exceeded"))


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.mark.parametrize(("api", "way"), [("chat", "invoke"), ("responses", "stream")])
@pytest.mark.parametrize("shape", [*OVERFLOWS, *LOOKALIKES])
def test_over_a_real_connection(server: OpenAIServer, shape: str, api: str, way: str) -> None:
    server.answer((OVERFLOWS | LOOKALIKES)[shape])
    error = raised(lambda: ask(server, api, way))
    assert is_overflow(error) is (shape in OVERFLOWS), repr(error)
    assert not is_refused(error)
    assert not is_programming_error(error)
