"""Summarisers: what a user may pass, turned into tiers that can be called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import SecretStr

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import Described, SummaryRequest, TierInfo
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.view.blocks import visible_text


class Tier(Described, Protocol):
    """One way to have a digest written, synchronously and asynchronously."""

    def call(self, request: SummaryRequest, config: RunnableConfig, /) -> Reply:
        """Ask for a text; raises whatever the summariser raises."""

    async def acall(self, request: SummaryRequest, config: RunnableConfig, /) -> Reply:
        """The same, asynchronously."""


def tiers_of(model: Any, *, count: Callable[[str], int]) -> list[Tier]:
    """The cascade from what a user passed: one summariser or a list of them.

    Args:
        model: the name of a ChatOpenAI model (or ``provider:name``, with the ``langchain``
            extra), a chat model or other Runnable from messages to a message or text, an
            `ExtractiveSummarizer`, a callable from messages to text or a message (it may be
            async), or a list of these.
        count: tokens of a text.

    Raises:
        ConfigurationError: something in it is none of these, or there is nothing in it.
    """
    listed = model if isinstance(model, list | tuple) else [model]
    if not listed:
        raise ConfigurationError(
            "model: the list of summarisers is empty. Name a chat model, or pass "
            "ExtractiveSummarizer() to do without one."
        )
    return [_tier_of(one, count) for one in listed]


def _tier_of(model: Any, count: Callable[[str], int]) -> Tier:
    if isinstance(model, str) and model.strip():
        return _NamedTier(model.strip())
    if isinstance(model, ExtractiveSummarizer):
        return _ExtractiveTier(model, count)
    if isinstance(model, type):
        raise ConfigurationError(
            f"model: {model.__name__} is a class; pass an instance, such as {model.__name__}(...)."
        )
    if isinstance(model, Runnable):
        return _RunnableTier(model)
    if callable(model):
        # As a RunnableLambda it runs under the config of the call: models that it calls itself
        # are traced and tagged, and their tokens reach no user.
        name = getattr(model, "__name__", type(model).__name__)
        return _RunnableTier(RunnableLambda(model, name=name))
    raise ConfigurationError(
        f"model: {model!r} cannot write digests. Pass a model name, a chat model, "
        "ExtractiveSummarizer(), a callable from messages to text, or a list of these."
    )


class _RunnableTier:
    def __init__(self, model: Runnable[Any, Any]) -> None:
        self._model = model

    @property
    def info(self) -> TierInfo:
        return TierInfo(name=model_name(self._model), window=model_limits(self._model)[0])

    def call(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return reply_of(self._model.invoke(list(request.messages), config))

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return reply_of(await self._model.ainvoke(list(request.messages), config))


class _NamedTier:
    """A model that is built when it is first needed: no client and no key at construction."""

    def __init__(self, name: str) -> None:
        self._name = name
        if _has_provider(name):
            _need_langchain(name)

    @cached_property
    def _tier(self) -> _RunnableTier:
        return _RunnableTier(named_model(self._name))

    @property
    def info(self) -> TierInfo:
        try:
            return TierInfo(self._name, self._tier.info.window)
        except Exception:  # noqa: BLE001  # no key, say: the call itself will fail and report it
            return TierInfo(self._name, None)

    def call(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return self._tier.call(request, config)

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return await self._tier.acall(request, config)


class _ExtractiveTier:
    def __init__(self, summarizer: ExtractiveSummarizer, count: Callable[[str], int]) -> None:
        self._summarizer = summarizer
        self._count = count
        self.info = TierInfo("extractive", None)

    def call(self, request: SummaryRequest, _: RunnableConfig) -> Reply:
        limits: dict[str, Any] = {"max_tokens": request.max_tokens, "count": self._count}
        if request.texts:
            text = self._summarizer.condense(request.texts, **limits)
        else:
            text = self._summarizer.summarize(request.span, **limits)
        return Reply(text, verbatim=True)

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return await asyncio.to_thread(self.call, request, config)


def reply_of(result: Any) -> Reply:
    """What a summariser returned, reduced to text blocks, finish reason and calls.

    Raises:
        TypeError: the result is neither text nor a message.
    """
    if isinstance(result, str):
        return Reply(result)
    if not isinstance(result, BaseMessage):
        raise TypeError(f"a summariser returned {type(result).__name__}, not text or a message")
    if isinstance(result.content, str):
        text = result.content
    else:
        blocks = [visible_text(block) for block in result.content]
        text = "\n".join(block for block in blocks if block)
    called = isinstance(result, AIMessage) and bool(result.tool_calls or result.invalid_tool_calls)
    return Reply(text, _finish_reason(result.response_metadata), called)


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    """Chat Completions and Gemini: finish_reason; Anthropic: stop_reason; Ollama: done_reason.

    OpenAI's Responses API says ``status: incomplete`` instead.
    """
    if metadata.get("status") == "incomplete":
        return "incomplete"
    for key in ("finish_reason", "stop_reason", "done_reason"):
        if isinstance(metadata.get(key), str):
            return str(metadata[key])
    return None


def _has_provider(name: str) -> bool:
    # A fine-tuned OpenAI model is named ft:base:organisation::id.
    return ":" in name and not name.startswith("ft:")


def _need_langchain(name: str) -> None:
    if find_spec("langchain") is None:
        raise ConfigurationError(
            f"{name!r} names a provider, which takes the langchain extra: "
            'pip install "langgraph-compaction[langchain]". Without it, pass the name of an '
            "OpenAI model or a chat model object."
        )


def agent_model_of(model: Any) -> Any:
    """The agent's model as an object; a name is built only to look up its profile.

    Raises:
        ConfigurationError: it cannot be built by that name.
    """
    if not isinstance(model, str):
        return model
    try:
        if _has_provider(model):
            return named_model(model)
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=model, api_key=SecretStr("only its profile is read"))
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"agent_model: {model!r} cannot be built to look up its window ({error}). Pass the "
            "chat model itself, or context_window=."
        ) from error


def named_model(name: str) -> BaseChatModel:
    """Build the chat model of that name: ChatOpenAI, or init_chat_model for ``provider:name``.

    Raises:
        ConfigurationError: ``provider:name`` without the ``langchain`` extra.
    """
    if _has_provider(name):
        _need_langchain(name)
        from langchain.chat_models import init_chat_model

        built: BaseChatModel = init_chat_model(name)
        return built
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=name)


def model_name(model: Any) -> str:
    """A name for a model: its model name where it has one, else its class."""
    for attribute in ("model_name", "model", "name"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__


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
