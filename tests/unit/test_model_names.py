"""A wrong name of a model is found when the node is made, a wrong key when somebody checks.

Else both are found at the first fold, which may be hours later, and end nothing: a log tells.
"""

import sys
from typing import Any

import pytest
from langchain.chat_models import base as init_chat_models
from langchain_openai import ChatOpenAI

from langgraph_compaction import CompactionNode, ConfigurationError, ExtractiveSummarizer, ModelTier
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.run import names
from langgraph_compaction.run.names import FOREIGN, OWN_SERVER, PROVIDERS, check_name

KEYS = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*KEYS, *OWN_SERVER, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"):
        monkeypatch.delenv(variable, raising=False)


def node(model: Any, **options: Any) -> CompactionNode:
    return CompactionNode(model, context_window=8_000, **options)


# ---- names


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "google_genai:gemini-2.5-pro"),
        ("grok-4", "xai:grok-4"),
        ("antropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("Anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("google-genai:gemini-2.5-pro", "google_genai:gemini-2.5-pro"),
    ],
)
def test_a_name_of_elsewhere_is_refused_with_the_right_one(name: str, right: str) -> None:
    for given in (name, f" {name}", [ExtractiveSummarizer(), name], ModelTier(name)):
        with pytest.raises(ConfigurationError, match=f'^model: .*"{right}"'):
            node(given)
    with pytest.raises(ConfigurationError, match=f'^agent_model: .*"{right}"'):
        node(ExtractiveSummarizer(), agent_model=name)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-5-mini", "o3", "chatgpt-4o-latest", "ft:gpt-4o-mini:acme::id", "codex-mini-latest"),
        *("claude", "my-claude-like-model", "anthropic/claude-sonnet-4-5"),
        *("openai:gpt-5", "anthropic:claude-haiku-4-5", "google_genai:gemini-2.5-pro"),
        *("anthropic.claude-haiku-4-5-v1:0", "brandnew:model"),
    ],
)
def test_any_other_name_is_taken(name: str) -> None:
    node(name)


@pytest.mark.parametrize("variable", OWN_SERVER)
def test_a_server_of_ones_own_may_have_any_names(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://localhost:4000/v1")
    node("claude-sonnet-4-5")


@pytest.mark.parametrize("name", [":x", "openai:", ":"])
def test_half_a_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"provider:name"):
        node(name)


def test_a_package_that_is_missing_is_named_and_nothing_is_imported() -> None:
    before = set(sys.modules)
    with pytest.raises(ConfigurationError, match=r"pip install langchain-mistralai\.$"):
        check_name("mistralai:mistral-large")
    check_name("anthropic:claude-haiku-4-5")
    assert set(sys.modules) == before


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"langgraph-compaction\[langchain\]"):
        node([ExtractiveSummarizer(), "anthropic:claude-sonnet-4-5"])


def test_the_providers_are_those_of_langchain() -> None:
    """Their list is private: what is known here has to agree with it, as far as both know it."""
    theirs = {
        provider: module.partition(".")[0]
        for provider, (module, *_) in init_chat_models._BUILTIN_PROVIDERS.items()
    }
    both = PROVIDERS.keys() & theirs.keys()
    assert len(both) > 20
    assert {name: PROVIDERS[name] for name in both} == {name: theirs[name] for name in both}
    assert set(FOREIGN.values()) <= both
    unknown = theirs.keys() - PROVIDERS.keys()
    for name in unknown:  # is not taken for a slip of the pen
        check_name(f"{name}:model")


# ---- check


@pytest.mark.parametrize("kind", [CompactionNode, CompactionMiddleware])
def test_check_lists_every_model_that_cannot_be_built(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = ["gpt-5-mini", "anthropic:claude-haiku-4-5", "brandnew:model", ExtractiveSummarizer()]
    compact = kind(listed, context_window=8_000)
    with pytest.raises(ConfigurationError) as caught:
        compact.check()
    first, *lines = str(caught.value).splitlines()
    assert first == "model: 3 of 4 summarisers cannot be asked."
    openai, anthropic, unknown = lines
    assert openai.startswith("- the chat model 'gpt-5-mini' cannot be built (")
    assert "OPENAI_API_KEY" in openai
    assert anthropic.startswith("- the chat model 'anthropic:claude-haiku-4-5' has no key. Set A")
    assert "'brandnew:model' cannot be built" in unknown
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "none")
    with pytest.raises(ConfigurationError, match=r"^model: 1 of 4 .*\n- .*brandnew:model.*$"):
        compact.check()


def test_check_builds_the_agents_model_where_it_may_be_asked() -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)1 of 2 .*'gpt-5'"):
        node(lambda _: "", agent_model="gpt-5").check()
    node(ExtractiveSummarizer(), agent_model="gpt-5").check()


def test_check_calls_nothing_and_keeps_what_it_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: Any) -> str:
        raise AssertionError("a summariser was called")

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(ChatOpenAI, "_generate", never)
    compact = node([never, "gpt-5-mini", "anthropic:claude-haiku-4-5"][:2])
    compact.check()
    monkeypatch.delenv("OPENAI_API_KEY")
    compact.check()
