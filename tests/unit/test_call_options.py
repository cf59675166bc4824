"""What a summary call asks for beside the prompt, as it stands in the request to each provider.

The user's own configuration wins over what a tier would ask for, however it was given; what a
model does not take is not asked of it, for the request would be refused at every fold.
"""

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.retry import RunnableRetry
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from openai import BadRequestError
from pydantic import SecretStr

from langgraph_compaction import ModelTier
from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import SummaryRequest
from langgraph_compaction.run.options import (
    OUTPUT_FACTOR,
    REASONING_TOKENS,
    bound_model,
    call_options,
)
from langgraph_compaction.run.tiers import Tier, tier_of

PROMPT = (SystemMessage("Summarise."), HumanMessage("Hi."))
KEY = SecretStr("unused")


def openai(name: str = "gpt-4o-mini", **options: Any) -> Any:
    return ChatOpenAI(model=name, **{"api_key": KEY, **options})


def anthropic(**options: Any) -> Any:
    return ChatAnthropic(**{"model": "claude-sonnet-4-5", "api_key": KEY, **options})


def google(**options: Any) -> Any:
    return ChatGoogleGenerativeAI(model="gemini-2.5-flash", api_key=KEY, **options)


def asked(model: Any, room: int | None = None, **how: Any) -> dict[str, Any]:
    request = SummaryRequest(PROMPT, (), (), max_tokens=100, room=room)
    defaults = {"temperature": 0.1, "timeout": 30.0, "max_output": None}
    return call_options(model, request, **{**defaults, **how})


def sent(model: Any, **how: Any) -> tuple[Any, Any, Any]:
    """Temperature, most output tokens and seconds, as they stand in the provider's request."""
    chat, bound = bound_model(model)
    options = {**bound, **asked(model, **how)}
    if isinstance(chat, ChatGoogleGenerativeAI):
        config = chat._prepare_request(list(PROMPT), **options)["config"]
        milliseconds = config.http_options.timeout
        seconds = None if milliseconds is None else milliseconds / 1000
        return config.temperature, config.max_output_tokens, seconds
    body = chat._get_request_payload(list(PROMPT), **options)
    body = {**body, **(body.get("extra_body") or {})}
    caps = [body[key] for key in body if key.startswith("max_")]
    assert len(caps) < 2
    return body.get("temperature"), caps[0] if caps else None, body.get("timeout")


# ---- each provider

GOOGLE = google()  # to make one takes a fifth of a second
UNKNOWN = 100 * OUTPUT_FACTOR + REASONING_TOKENS
PLAIN: dict[str, tuple[Any, tuple[Any, Any, Any]]] = {
    "OpenAI": (openai(), (0.1, 100 * OUTPUT_FACTOR, 30)),
    "OpenAI, reasoning": (openai("gpt-5-mini"), (None, None, 30)),
    "unknown model": (openai("local"), (0.1, UNKNOWN, 30)),
    "Responses API": (openai("local", use_responses_api=True), (0.1, UNKNOWN, 30)),
    "Anthropic": (anthropic(), (0.1, 64_000, 30)),  # LangChain's own cap: the API needs one
    "Google": (GOOGLE, (0.1, None, 30)),
}


@pytest.mark.parametrize("which", range(3), ids=["temperature", "cap", "timeout"])
@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_model_is_asked_for_a_calm_short_and_prompt_answer(kind: str, which: int) -> None:
    model, expected = PLAIN[kind]
    for same in (model, model.with_config(tags=["x"]), model.with_retry()):
        assert sent(same)[which] == expected[which]


@pytest.mark.parametrize("kind", PLAIN)
def test_the_tiers_own_limit_reaches_every_provider(kind: str) -> None:
    assert sent(PLAIN[kind][0], max_output=150)[1] == 150


@pytest.mark.parametrize("kind", PLAIN)
def test_none_leaves_the_providers_own(kind: str) -> None:
    model = PLAIN[kind][0]
    assert not {"temperature", "timeout"} & set(asked(model, temperature=None, timeout=None))


@pytest.mark.parametrize("bound", [False, True])
def test_a_model_that_was_told_to_think_gets_no_temperature(bound: bool) -> None:
    # Anthropic: "`temperature` may only be set to 1 when thinking is enabled".
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    model = anthropic().bind(thinking=thinking) if bound else anthropic(thinking=thinking)
    assert sent(model)[0] is None


# ---- what the user configured

TEMPERATURE, TOKENS, SECONDS = 0, 1, 2
WARM = openai().bind(temperature=1)
OWN: list[tuple[str, Any, int, Any]] = [
    ("argument", openai(temperature=0), TEMPERATURE, 0),
    ("binding", openai().bind(temperature=0.9), TEMPERATURE, 0.9),
    ("outer one", RunnableRetry(bound=WARM, kwargs={}).bind(temperature=0), TEMPERATURE, 0),
    ("inner one", openai().bind(temperature=0.9).with_retry(), TEMPERATURE, 0.9),
    ("argument", openai(max_tokens=77), TOKENS, 77),
    ("binding", openai().bind(max_tokens=77), TOKENS, 77),
    ("OpenAI's name", openai().bind(max_completion_tokens=77), TOKENS, 77),
    ("Responses", openai(use_responses_api=True).bind(max_output_tokens=77), TOKENS, 77),
    ("argument", openai(timeout=5), SECONDS, None),  # the client has it
    ("binding", openai().bind(timeout=5), SECONDS, 5),
    ("Anthropic", anthropic(temperature=0), TEMPERATURE, 0),
    ("Anthropic binding", anthropic().bind(temperature=0.9), TEMPERATURE, 0.9),
    ("Anthropic", anthropic(max_tokens=77), TOKENS, 77),
    ("Anthropic binding", anthropic().bind(max_tokens=77), TOKENS, 77),
    ("Anthropic", anthropic(timeout=5), SECONDS, None),
    ("Google's default, written out", google(temperature=0.7), TEMPERATURE, 0.7),
    ("Google binding", GOOGLE.bind(temperature=0.9), TEMPERATURE, 0.9),
    ("Google binding", GOOGLE.bind(max_output_tokens=77), TOKENS, 77),
    ("Google", google(timeout=5), SECONDS, 5),
    ("Google binding", GOOGLE.bind(timeout=5), SECONDS, 5),
]


@pytest.mark.parametrize(
    ("model", "which", "value"), [case[1:] for case in OWN], ids=[case[0] for case in OWN]
)
def test_what_the_model_or_a_binding_has_wins(model: Any, which: int, value: Any) -> None:
    assert sent(model)[which] == value


def test_one_value_of_the_users_leaves_the_others_to_us() -> None:
    assert sent(openai(temperature=0)) == (0, 200, 30)
    assert sent(openai(max_tokens=77)) == (0.1, 77, 30)
    assert sent(openai().bind(timeout=5)) == (0.1, 200, 5)


# ---- models of other makers


class Fake(BaseChatModel):
    temperature: float | None = None
    max_tokens: int | None = None
    _llm_type = "fake"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("ok"))])


def profiled(**profile: Any) -> Any:
    return Fake.model_validate({"profile": profile})


NOTHING = [lambda _: "ok", RunnableLambda(lambda _: "ok"), FakeListChatModel(responses=["ok"])]


@pytest.mark.parametrize("model", [*NOTHING, Fake() | StrOutputParser(), None, "gpt-5-mini"])
def test_what_has_no_such_parameter_is_asked_for_nothing(model: Any) -> None:
    assert asked(model, max_output=50) == {}


def test_the_profile_decides_on_the_temperature() -> None:
    assert "temperature" not in asked(profiled(temperature=False))
    for knows_nothing in (Fake(), profiled(), profiled(temperature=True), openai("local")):
        assert asked(knows_nothing)["temperature"] == 0.1
        assert asked(knows_nothing, temperature=0)["temperature"] == 0


SHORT = profiled(reasoning_output=False)
REASONS = profiled(reasoning_output=True)


@pytest.mark.parametrize(
    ("model", "max_output", "room", "cap"),
    [
        (Fake(), None, None, UNKNOWN),
        (Fake(), 150, None, 150),
        (Fake(), 100_000, None, UNKNOWN),
        (Fake(), None, 1_200, 1_200),
        (Fake(), 150, 90, 90),
        (SHORT, None, None, 100 * OUTPUT_FACTOR),
        (SHORT, 100_000, 100_000, 100 * OUTPUT_FACTOR),
        (SHORT, None, 90, 90),
        (SHORT, None, 0, 1),
        (SHORT, None, -500, 1),
        (REASONS, None, None, None),
        (REASONS, None, 90, None),
        (REASONS, 5_000, None, 5_000),
        (REASONS, 5_000, 90, 90),
        (REASONS, 50, -1, 1),
        (Fake(max_tokens=7), 150, 90, 7),
    ],
)
def test_the_cap_is_the_least_of_all_limits(
    model: Fake, max_output: int | None, room: int | None, cap: int | None
) -> None:
    found = asked(model, max_output=max_output, room=room)
    assert found.get("max_tokens", model.max_tokens) == cap
    assert "timeout" not in found


# ---- a provider that refuses a parameter


class Server:
    """Refuses some parameters as OpenAI does, by name; keeps the bodies it was sent."""

    def __init__(self, *refused: str, named: str | None = "") -> None:
        self.refused, self.named = refused, named
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        bad = [name for name in self.refused if name in body]
        if bad:
            param = bad[0] if self.named == "" else self.named
            error = {"message": f"Unsupported: {bad[0]}", "param": param, "code": "unsupported"}
            return httpx2.Response(400, json={"error": error})
        message = {"role": "assistant", "content": "ok"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        known = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx2.Response(200, json={**known, "choices": [choice]})

    def tier(self, **options: Any) -> Tier:
        transport = httpx2.MockTransport(self)
        clients = {
            "http_client": httpx2.Client(transport=transport),
            "http_async_client": httpx2.AsyncClient(transport=transport),
        }
        return tier_of(ModelTier(openai("local", max_retries=0, **clients, **options)), len)

    def keys(self) -> list[set[str]]:
        ours = {"temperature", "max_completion_tokens"}
        return [ours & set(body) for body in self.bodies]


async def ask(tier: Tier, way: str) -> Reply:
    request = SummaryRequest(PROMPT, (), (), max_tokens=100)
    return tier.call(request, {}) if way == "sync" else await tier.acall(request, {})


T, M = "temperature", "max_completion_tokens"
LESS: list[tuple[Sequence[str], list[set[str]]]] = [
    ([], [{T, M}, {T, M}]),
    ([T], [{T, M}, {M}, {M}]),
    ([M], [{T, M}, {T}, {T}]),
    ([M, T], [{T, M}, {T}, set(), set()]),
]
ways = pytest.mark.parametrize("way", ["sync", "async"])


@ways
@pytest.mark.parametrize(("refused", "keys"), LESS)
async def test_a_refused_parameter_is_left_out_from_then_on(
    way: str, refused: Sequence[str], keys: list[set[str]]
) -> None:
    server = Server(*refused)
    tier, other = server.tier(), server.tier()
    assert await ask(tier, way) == await ask(tier, way) == Reply("ok", "stop")
    assert server.keys() == keys
    assert await ask(other, way) == Reply("ok", "stop")
    assert server.keys()[len(keys)] == {T, M}, "another model may take it"


@ways
@pytest.mark.parametrize("named", [None, "messages", "max_retries_of_ours", "stop", 7])
async def test_a_refusal_of_anything_else_is_a_failed_call(way: str, named: Any) -> None:
    server = Server(T, named=named)
    tier = server.tier(max_tokens=50)
    with pytest.raises(BadRequestError):
        await ask(tier, way)
    assert len(server.bodies) == 1


@ways
async def test_what_the_user_configured_is_never_left_out(way: str) -> None:
    server = Server(T, M)
    with pytest.raises(BadRequestError):
        await ask(server.tier(temperature=0.9, max_tokens=50), way)
    assert server.keys() == [{T, M}]
