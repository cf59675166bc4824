"""What may be passed as a summariser, and which models the cascade then asks, each once.

A model that is asked twice is paid twice for one failure; one that is taken for a duplicate leaves
a thread without its fallback; with its tools still bound the agent's own model calls them.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import fields
from functools import partial
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from pydantic import Field, SecretStr

from langgraph_compaction import ConfigurationError, ExtractiveSummarizer, ModelTier
from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import SummaryRequest
from langgraph_compaction.run import names
from langgraph_compaction.run.cascade import tiers_of
from langgraph_compaction.run.tiers import Tier

REQUEST = SummaryRequest((SystemMessage("Summarise."), HumanMessage("Hi.")), (), (), 100)
KEY = SecretStr("unused")


class Chat(BaseChatModel):
    """Answers "ok", and keeps the arguments it was called with."""

    label: str = "chat"
    seen: list[dict[str, Any]] = Field(default_factory=list)
    _llm_type = "fake"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.seen.append({"stop": stop, **kwargs})
        return ChatResult(generations=[ChatGeneration(message=AIMessage("ok"))])


class OnlyStreams(Chat):
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="ok"))


class OnlyCalls(SimpleChatModel):
    _llm_type = "only calls"

    def _call(self, *args: Any, **kwargs: Any) -> str:
        return "ok"


class OnlyInvokes(Runnable[Any, str]):
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        return "ok"


class Writer:
    def __call__(self, messages: Any) -> str:
        return "ok"


def write(messages: Any) -> str:
    return "ok"


async def awrite(messages: Any) -> str:
    return "ok"


def openai(name: str = "gpt-4o-mini", **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model=name, **{"api_key": KEY, **options})


def cascade(model: Any, agent_model: Any = None, window: int | None = None) -> list[Tier]:
    return tiers_of(model, agent_model=agent_model, agent_window=window, count=len)


def asked(model: Any, agent_model: Any = None) -> list[str]:
    return [tier.info.name for tier in cascade(model, agent_model)]


# ---- ModelTier

NAN, INF = float("nan"), float("inf")
NO_COUNTS, TOKENS = [0, -1, 1.5, 1e3, "7", True, [], NAN, "auto"], "whole number of tokens above 0"
WRONG: list[tuple[str, list[Any], str]] = [
    ("model", [ModelTier("x"), ["x"], ("x", "y"), []], "the tiers in a list"),
    ("timeout", [0, -1, -0.5, "30", True, NAN, INF, [], "auto"], "seconds above 0"),
    ("window", NO_COUNTS, TOKENS),
    ("max_output", NO_COUNTS, TOKENS),
    ("temperature", [-0.1, 2.1, "0.1", True, NAN, INF, -INF, []], "from 0 to 2"),
]


@pytest.mark.parametrize(
    ("name", "value", "remedy"), [(n, value, r) for n, values, r in WRONG for value in values]
)
def test_a_wrong_value_is_named_with_the_remedy(name: str, value: Any, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: ") as caught:
        ModelTier(**{"model": "gpt-5-mini", name: value})
    assert repr(value) in str(caught.value)
    assert remedy in str(caught.value)


def test_every_value_is_checked_and_none_can_be_changed_later() -> None:
    assert [name for name, _, _ in WRONG] == [field.name for field in fields(ModelTier)]
    tier = ModelTier("x", timeout=None, temperature=None, window=None, max_output=None)
    with pytest.raises(AttributeError):
        tier.timeout = -1  # type: ignore[misc]


# ---- what may be passed

NO_MODEL = [None, 7, True, "", " \n", b"gpt-5", {"model": "x"}, {"x"}, HumanMessage(""), iter("x")]


@pytest.mark.parametrize("model", NO_MODEL)
@pytest.mark.parametrize("listed", [False, True])
def test_what_cannot_write_is_named_with_what_can(model: Any, listed: bool) -> None:
    with pytest.raises(ConfigurationError, match=r"^model: ") as caught:
        cascade([write, model] if listed else model)
    assert repr(model) in str(caught.value)
    assert "model name, a chat model, ExtractiveSummarizer(), a callable" in str(caught.value)


@pytest.mark.parametrize("kind", [ExtractiveSummarizer, ChatOpenAI, Writer, str])
def test_a_class_is_no_instance(kind: type) -> None:
    with pytest.raises(ConfigurationError, match=rf"^model: {kind.__name__} is a class"):
        cascade(kind)


def test_an_empty_list_says_how_to_do_without_a_model() -> None:
    for empty, agent_model in (([], None), ((), Chat())):
        with pytest.raises(ConfigurationError, match=r"^model: .*empty.*ExtractiveSummarizer\(\)"):
            cascade(empty, agent_model)
    with pytest.raises(ConfigurationError, match=r"^model: \['x'\] cannot stand in a ModelTier"):
        cascade([["x"]])


# Model, its name, whether it awaits by itself.
GOOD: dict[str, tuple[Any, str, bool]] = {
    "function": (write, "write", False),
    "method": (Writer().__call__, "__call__", False),
    "object": (Writer(), "Writer", False),
    "message": (lambda _: AIMessage([{"type": "text", "text": "ok"}]), "<lambda>", False),
    "both": (RunnableLambda(write, afunc=awrite, name="both"), "both", True),
    "chat": (Chat(name="c"), "c", False),
    "bound chat": (Chat(name="c").bind(stop=["x"]), "c", False),
    "configured": (RunnableLambda(write).with_config(tags=["x"]), "write", False),
    "only calls": (OnlyCalls(name="o"), "o", False),
    "only invokes": (OnlyInvokes(), "OnlyInvokes", False),
    "only streams": (OnlyStreams(name="s"), "s", False),
    "sequence": (RunnableLambda(write) | StrOutputParser(), "RunnableSequence", False),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", GOOD)
def test_whatever_can_write_is_asked_under_its_name(kind: str, wrapped: bool) -> None:
    model, name, awaits = GOOD[kind]
    [tier] = cascade([ModelTier(model, window=500)] if wrapped else model)
    assert (tier.info.name, tier.info.window) == (name, 500 if wrapped else None)
    assert tier.awaits is awaits, "what blocks has to run in a thread that can be given up"
    assert tier.call(REQUEST, {}) == asyncio.run(tier.acall(REQUEST, {})) == Reply("ok")


@pytest.mark.parametrize("model", [awrite, partial(awrite), RunnableLambda(awrite)])
async def test_what_only_awaits_fails_in_a_synchronous_run(model: Any) -> None:
    [tier] = cascade(model)
    assert tier.awaits
    assert await tier.acall(REQUEST, {}) == Reply("ok")
    with pytest.raises(TypeError):
        tier.call(REQUEST, {})


@pytest.mark.parametrize("wrap", ["with_retry", "with_config", "bind"])
def test_a_wrapped_model_keeps_name_and_window(wrap: str) -> None:
    [tier] = cascade(getattr(openai(), wrap)())
    assert (tier.info.name, tier.info.window) == ("gpt-4o-mini", 128_000)
    assert tier.awaits


# ---- each model once, the agent's own last

MINE = Chat(label="mine")
LOCAL, OTHER = {"base_url": "http://127.0.0.1:9/v1"}, {"base_url": "http://127.0.0.1:8/v1"}
SAME: dict[str, tuple[Any, Any]] = {
    "object": (MINE, MINE),
    "name": ("gpt-5-mini", " gpt-5-mini "),
    "tier": (ModelTier("gpt-5-mini", timeout=1, window=9), "gpt-5-mini"),
    "configuration": (openai(temperature=0, **LOCAL), openai(temperature=0, **LOCAL)),
    "name and object": ("gpt-5-mini", openai("gpt-5-mini", temperature=0.5)),
    "OpenAI's address": ("gpt-5", openai("gpt-5", base_url="https://api.openai.com/v1")),
    "provider and name": ("openai:gpt-5-mini", "gpt-5-mini"),
    "tools": (MINE, MINE.bind(tools=[{}])),
    "config": (MINE, MINE.with_config(tags=["agent"])),
}
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "objects": (MINE, Chat(label="yours")),
    "temperature": (openai(temperature=0), openai(temperature=0.5)),
    "address": (openai(**LOCAL), openai(**OTHER)),
    "headers": (openai(default_headers={"x": "1"}), openai(default_headers={"x": "2"})),
    "account": (openai(), openai(api_key=SecretStr("another account's"))),
    "name and local object": ("gpt-5-mini", openai("gpt-5-mini", **LOCAL)),
    "name and gateway": ("gpt-5", type("Gateway", (ChatOpenAI,), {})(model="gpt-5", api_key=KEY)),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_agents_own_model_is_not_asked_twice(kind: str) -> None:
    one, same = SAME[kind]
    assert len(cascade(one, same)) == 1
    assert len(cascade([write, one, write, one], same)) == 2


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_only_looks_alike_is_asked_too(kind: str) -> None:
    one, other = DIFFERENT[kind]
    for tiers in (cascade([one, other]), cascade([one, other, one], other), cascade(one, other)):
        assert len(tiers) == 2


def test_a_name_is_built_at_the_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", LOCAL["base_url"])
    assert len(cascade("gpt-5-mini", openai("gpt-5-mini"))) == 1


def test_the_agents_own_model_comes_last() -> None:
    assert asked([write, "gpt-5"], "gpt-5-mini") == ["write", "gpt-5", "gpt-5-mini"]
    assert asked(["gpt-5-mini", write], "gpt-5-mini") == ["gpt-5-mini", "write"]
    assert cascade(write, MINE, 777)[-1].info.window == 777
    for extracts in ([write, ExtractiveSummarizer()], [ModelTier(ExtractiveSummarizer()), write]):
        assert len(cascade(extracts, MINE)) == 2
    for no_model in (None, write, RunnableLambda(write), MINE | StrOutputParser()):
        assert asked("gpt-5", no_model) == ["gpt-5"]
    assert len(cascade([ModelTier(MINE, timeout=5), ModelTier(MINE, timeout=60)], MINE)) == 2


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return place


GEMINI: dict[str, Any] = {"tool_config": {"retrieval_config": {"language_code": "en"}}}
BOUND: dict[str, tuple[Any, dict[str, Any]]] = {
    "OpenAI": (openai(), {"parallel_tool_calls": False, "strict": True}),
    "Anthropic": (ChatAnthropic.model_validate({"model": "claude-opus-4-5", "api_key": KEY}), {}),
    "Google": (ChatGoogleGenerativeAI(model="gemini-2.5-flash", api_key=KEY), GEMINI),
}


@pytest.mark.parametrize("kind", BOUND)
def test_the_agents_own_model_is_asked_without_its_tools(kind: str) -> None:
    model, options = BOUND[kind]
    bound, chat = model.bind_tools([look], tool_choice="any", **options), Chat()
    agent = chat.bind(stop=["END"]).bind(**bound.kwargs).with_config(tags=["agent"])
    own = cascade(write, agent)[-1]
    own.call(REQUEST, {})
    asyncio.run(own.acall(REQUEST, {}))
    assert chat.seen == [{"stop": ["END"]}] * 2


# ---- models by name


def test_a_name_is_built_when_it_is_first_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    [tier] = cascade("gpt-4o-mini")
    assert (tier.info.name, tier.info.window) == ("gpt-4o-mini", None)
    with pytest.raises(ConfigurationError, match=r"'gpt-4o-mini' cannot be built.*key"):
        tier.call(REQUEST, {})
    monkeypatch.setenv("OPENAI_API_KEY", "set meanwhile")
    assert tier.info.window == 128_000
    assert [tier._tier] == [tier._tier], "built at every call"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["nosuch:model", "anthropic.claude:0"])
async def test_a_name_that_cannot_be_built_is_named(name: str) -> None:
    [tier] = cascade(name)
    with pytest.raises(ConfigurationError, match=f"'{name}' cannot be built"):
        await tier.acall(REQUEST, {})


def test_a_fine_tuned_model_has_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "find_spec", lambda _: None)  # without langchain
    assert asked("ft:gpt-4o-mini:acme::id") == ["ft:gpt-4o-mini:acme::id"]
