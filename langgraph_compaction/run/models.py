"""Chat models by name, and what is known of one: its name, its window, its longest output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.run.names import check_name, has_provider

_KEY = "_API_KEY"
_IN_PLACE_OF_KEYS = ("_AUTH_TOKEN", "_BASE_URL", "_API_BASE", "_API_URL")
"""Ends of variables with another proof of who calls, or with a server that may ask for none."""


def named_model(name: str) -> BaseChatModel:
    """Build the chat model of that name: ChatOpenAI, or init_chat_model for ``provider:name``.

    Raises:
        ConfigurationError: it cannot be built: no such provider, its package or key is missing,
            or as `check_name`.
    """
    check_name(name)
    try:
        if has_provider(name):
            from langchain.chat_models import init_chat_model

            built: BaseChatModel = init_chat_model(name)
            return built
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=name)
    except Exception as error:
        raise ConfigurationError(
            f"model: the chat model {name!r} cannot be built ({error}). Set its key in the "
            "environment, install its provider's package, or pass a chat model object."
        ) from error


def missing_key(model: Any) -> str | None:
    """The variable with the key that a chat model built by its name lacks; None: it lacks none.

    Some clients are built without one and fail at the first call, Anthropic's for one.
    """
    if not isinstance(model, BaseChatModel):
        return None
    for field, variable in model.lc_secrets.items():
        key = getattr(model, field, None)
        if not variable.endswith(_KEY) or not isinstance(key, SecretStr) or key.get_secret_value():
            continue
        vendor = variable.removesuffix(_KEY)
        if not any(os.environ.get(vendor + other) for other in _IN_PLACE_OF_KEYS):
            return variable
    return None


def agent_model_of(model: Any) -> Any:
    """The agent's model as an object; a name is built only to look up its profile.

    Raises:
        ConfigurationError: it cannot be built by that name.
    """
    if not isinstance(model, str):
        return model
    check_name(model, "agent_model")
    try:
        if has_provider(model):
            return named_model(model)
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=model, api_key=SecretStr("only its profile is read"))
    except Exception as error:
        raise ConfigurationError(
            f"agent_model: {model!r} cannot be built to look up its window ({error}). Pass the "
            "chat model itself, or context_window=."
        ) from error


def model_name(model: Any) -> str:
    """A name for a model: its model name where it has one, else its class."""
    for attribute in ("model_name", "model", "name"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__


def tier_name(model: Any) -> str:
    """A name for a summariser: the one it was given as a Runnable, else its model's."""
    given = getattr(model, "name", None)
    return given if isinstance(given, str) and given else model_name(model)


def model_limits(model: Any) -> tuple[int | None, int | None]:
    """Tokens of a model's window and of its longest output, None where its profile is unknown.

    The profile is LangChain's (``BaseChatModel.profile``); the output limit that the model was
    configured with counts if it is smaller.
    """
    profile = getattr(model, "profile", None) or {}
    window, output = profile.get("max_input_tokens"), profile.get("max_output_tokens")
    configured = getattr(model, "max_tokens", None)
    outputs: Sequence[int] = [n for n in (output, configured) if isinstance(n, int) and n > 0]
    return window if isinstance(window, int) else None, min(outputs) if outputs else None
