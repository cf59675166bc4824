"""The cascade: which summarisers are tried, in which order, each once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd
from pydantic import SecretStr

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.run.options import bound_model
from langgraph_compaction.run.tiers import ModelTier, Tier, tier_of

_TOOLS = frozenset(
    "tools tool_choice tool_config functions function_call parallel_tool_calls".split()
)
_OPENAI = "https://api.openai.com/v1"


def tiers_of(
    model: Any,
    *,
    agent_model: Any = None,
    agent_window: int | None = None,
    count: Callable[[str], int],
) -> list[Tier]:
    """The cascade from what a user passed: each model once, the agent's own last.

    The agent's own is not added where an `ExtractiveSummarizer` is listed: that one always
    answers, and says that no other model is wanted.

    Args:
        model: one summariser or a list of them, see `ModelTier`.
        agent_model: the agent's own model or its name, None where it was not named.
        agent_window: tokens of its window, None where unknown.
        count: tokens of a text.

    Raises:
        ConfigurationError: something in it is no summariser, or there is nothing in it.
    """
    listed = list(model) if isinstance(model, list | tuple) else [model]
    if not listed:
        raise ConfigurationError(
            "model: the list of summarisers is empty. Name a chat model, or pass "
            "ExtractiveSummarizer() to do without one."
        )
    specs = [one if isinstance(one, ModelTier) else ModelTier(one) for one in listed]
    own = _without_tools(agent_model)
    found: list[ModelTier] = []
    for spec in specs:
        # The same model twice with another timeout, say, is a second try that was asked for.
        rest = replace(spec, model=None)
        if not any(
            _same(spec.model, other.model) and rest == replace(other, model=None) for other in found
        ):
            found.append(spec)
    writes = isinstance(own, str) or isinstance(bound_model(own)[0], BaseChatModel)
    known = any(
        isinstance(spec.model, ExtractiveSummarizer) or _same(spec.model, own) for spec in specs
    )
    if writes and not known:
        found.append(ModelTier(own, window=agent_window))
    return [tier_of(spec, count) for spec in found]


def build_models(tiers: Sequence[Tier]) -> None:
    """Build every model of a cascade that is known by its name alone; none is called.

    Args:
        tiers: the cascade.

    Raises:
        ConfigurationError: some cannot be built; it names each of them.
    """
    wrong: list[str] = []
    for tier in tiers:
        try:
            tier.build()
        except ConfigurationError as error:
            wrong.append(" ".join(str(error).split()))
    if wrong:
        raise ConfigurationError(
            f"model: {len(wrong)} of {len(tiers)} summarisers cannot be asked.\n"
            + "\n".join(f"- {one.removeprefix('model: ')}" for one in wrong)
        )


def _without_tools(model: Any) -> Any:
    """A model as it writes text: the agent's own may have tools bound to it."""
    chat, bound = bound_model(model)
    if not any(name in bound for name in _TOOLS):
        return model
    rest = {name: value for name, value in bound.items() if name not in _TOOLS}
    return chat.bind(**rest) if rest else chat


def _same(one: Any, other: Any) -> bool:
    one, other = _plain(one), _plain(other)
    if one is other:
        return True
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    if isinstance(other, str):
        return _is_named(one, other)
    if isinstance(one, str):
        return _is_named(other, one)
    # Two objects of one configuration are one model; their clients are never equal.
    return (
        isinstance(one, BaseChatModel)
        and type(one) is type(other)
        and bool(dumpd(one) == dumpd(other))
        and _secrets(one) == _secrets(other)
    )


def _secrets(model: BaseChatModel) -> list[tuple[str, str]]:
    """Keys of a model, which its serialised form leaves out."""
    found = ((name, getattr(model, name)) for name in type(model).model_fields)
    return [(name, key.get_secret_value()) for name, key in found if isinstance(key, SecretStr)]


def _plain(model: Any) -> Any:
    """A name without what goes without saying, a model without bindings that bind nothing."""
    if isinstance(model, str):
        return model.strip().removeprefix("openai:")
    inner, bound = bound_model(model)
    return model if bound else inner


def _is_named(model: Any, name: str) -> bool:
    """Whether a model is what a bare name stands for: OpenAI's, at its own address."""
    from langchain_openai import ChatOpenAI

    if type(model) is not ChatOpenAI or model.model_name != name:
        return False
    base = (model.openai_api_base or _OPENAI).rstrip("/")
    return base == (os.environ.get("OPENAI_API_BASE") or _OPENAI).rstrip("/")
