"""Tiers: what a user may pass as a summariser, turned into something that can be called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine.effects import Described, SummaryRequest, TierInfo
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.run.models import missing_key, model_limits, named_model, tier_name
from langgraph_compaction.run.names import check_name
from langgraph_compaction.run.options import bound_model, call_options
from langgraph_compaction.run.replies import reply_of
from langgraph_compaction.settings import check_seconds


@dataclass(frozen=True, slots=True)
class ModelTier:
    """One summariser of a cascade, and how it is to be called.

    Examples:
        >>> compact = CompactionNode(
        ...     [ModelTier("gpt-5-nano", timeout=10), ExtractiveSummarizer()],
        ...     context_window=128_000,
        ... )

    Attributes:
        model: a model's name, a chat model or other Runnable, a callable, or an
            `ExtractiveSummarizer`, as `CompactionNode` takes them.
        timeout: seconds that one attempt may take. None: no limit of its own.
        window: tokens of its context window. None: from LangChain's profile of the model, and no
            limit where that is unknown.
        max_output: tokens of its longest answer. None: twice what is asked for.
        temperature: for its answers, where the model takes one and was given none itself. None:
            the provider's own.

    Raises:
        ConfigurationError: a number is out of range, or the model is a `ModelTier` itself.
    """

    model: Any
    timeout: float | None = 30.0
    window: int | None = None
    max_output: int | None = None
    temperature: float | None = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.model, ModelTier | list | tuple):
            raise ConfigurationError(
                f"model: {self.model!r} cannot stand in a ModelTier. Pass one model in each tier, "
                "and the tiers in a list."
            )
        check_seconds("timeout", self.timeout)
        for name in ("window", "max_output"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if value is not None and not whole:
                raise ConfigurationError(
                    f"{name}: {value!r} has to be a whole number of tokens above 0, or None."
                )
        heat = self.temperature
        number = isinstance(heat, int | float) and not isinstance(heat, bool)
        if heat is not None and not (number and 0 <= heat <= 2):
            raise ConfigurationError(f"temperature: {heat!r} has to be from 0 to 2, or None.")


class Tier(Described, Protocol):
    """One way to have a digest written, synchronously and asynchronously.

    Attributes:
        abandoned: calls that did not come back in time and may still be under way.
    """

    abandoned: list[Future[Reply] | asyncio.Future[Reply]]

    @property
    def timeout(self) -> float | None:
        """Seconds that one attempt may take, None: no limit of its own."""

    @property
    def awaits(self) -> bool:
        """Whether `acall` awaits; otherwise `call` is to be run in a thread instead."""

    def build(self) -> None:
        """Build what is built at the first call; raises a ConfigurationError where it cannot be."""

    def call(self, request: SummaryRequest, config: RunnableConfig, /) -> Reply:
        """Ask for a text; raises whatever the summariser raises."""

    async def acall(self, request: SummaryRequest, config: RunnableConfig, /) -> Reply:
        """The same, asynchronously."""


def tier_of(spec: ModelTier, count: Callable[[str], int]) -> Tier:
    """A tier that calls what the spec names.

    Args:
        spec: the summariser and how to call it.
        count: tokens of a text.

    Raises:
        ConfigurationError: the spec's model is no summariser.
    """
    model = spec.model
    if isinstance(model, str) and model.strip():
        return _NamedTier(model.strip(), spec)
    if isinstance(model, ExtractiveSummarizer):
        return _ExtractiveTier(model, count)
    if isinstance(model, type):
        raise ConfigurationError(
            f"model: {model.__name__} is a class; pass an instance, such as {model.__name__}(...)."
        )
    if isinstance(model, Runnable):
        return _RunnableTier(model, spec)
    if callable(model):
        # As a RunnableLambda it runs under the config of the call: models that it calls itself
        # are traced and tagged, and their tokens reach no user.
        name = getattr(model, "__name__", type(model).__name__)
        return _RunnableTier(RunnableLambda(model, name=name), spec)
    raise ConfigurationError(
        f"model: {model!r} cannot write digests. Pass a model name, a chat model, "
        "ExtractiveSummarizer(), a callable from messages to text, or a list of these."
    )


def _awaits(model: Runnable[Any, Any]) -> bool:
    """Whether a model's ``ainvoke`` awaits, rather than run its ``invoke`` in a thread of a pool.

    Such a thread cannot be told from one that hangs, and fills the pool that all share.
    """
    inner, _ = bound_model(model)
    if isinstance(inner, BaseChatModel):
        # LangChain's own way of overriding; its two defaults run in a thread of the pool.
        defaults = (BaseChatModel._agenerate, SimpleChatModel._agenerate)  # noqa: SLF001
        return type(inner)._agenerate not in defaults  # noqa: SLF001
    if isinstance(inner, RunnableLambda):
        return hasattr(inner, "afunc")
    if isinstance(inner, RunnableSequence):
        return all(map(_awaits, inner.steps))
    if isinstance(inner, RunnableWithFallbacks):
        return all(map(_awaits, inner.runnables))
    return type(inner).ainvoke is not Runnable.ainvoke


class _RunnableTier:
    def __init__(self, model: Runnable[Any, Any], spec: ModelTier) -> None:
        self.model = model
        self._spec = spec
        self._refused: set[str] = set()
        self.timeout = spec.timeout
        self.awaits = _awaits(model)
        self.abandoned: list[Future[Reply] | asyncio.Future[Reply]] = []

    @property
    def info(self) -> TierInfo:
        inner, _ = bound_model(self.model)
        return TierInfo(tier_name(inner), self._spec.window or model_limits(inner)[0])

    def build(self) -> None:
        """Nothing: it was given as an object."""

    def call(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        while True:
            options = self._options(request)
            try:
                return reply_of(self.model.invoke(list(request.messages), config, **options))
            except Exception as error:
                if not self._drops(error, options):
                    raise

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        while True:
            options = self._options(request)
            try:
                answer = await self.model.ainvoke(list(request.messages), config, **options)
                return reply_of(answer)
            except Exception as error:
                if not self._drops(error, options):
                    raise

    def _options(self, request: SummaryRequest) -> dict[str, Any]:
        spec = self._spec
        options = call_options(
            self.model,
            request,
            temperature=spec.temperature,
            timeout=spec.timeout,
            max_output=spec.max_output,
        )
        return {name: value for name, value in options.items() if name not in self._refused}

    def _drops(self, error: Exception, options: dict[str, Any]) -> bool:
        """Whether the provider refuses one of our options, which then is left out from now on.

        OpenAI names the parameter in ``param``: models without a profile may take no temperature.
        """
        refused = str(getattr(error, "param", None) or "")
        name = "max_tokens" if refused.startswith("max_") else refused
        if name not in options:
            return False
        self._refused.add(name)
        return True


class _NamedTier:
    """A model that is built when it is first needed: no client and no key at construction."""

    def __init__(self, name: str, spec: ModelTier) -> None:
        self._name = name
        self._spec = spec
        self.timeout = spec.timeout
        self.abandoned: list[Future[Reply] | asyncio.Future[Reply]] = []
        check_name(name)

    @cached_property
    def _tier(self) -> _RunnableTier:
        return _RunnableTier(named_model(self._name), self._spec)

    @property
    def info(self) -> TierInfo:
        try:
            return TierInfo(self._name, self._tier.info.window)
        except ConfigurationError:  # no key, say: the call itself will fail and report it
            return TierInfo(self._name, self._spec.window)

    @property
    def awaits(self) -> bool:
        try:
            return self._tier.awaits
        except ConfigurationError:
            return True

    def build(self) -> None:
        variable = missing_key(self._tier.model)
        if variable is not None:
            raise ConfigurationError(
                f"model: the chat model {self._name!r} has no key. Set {variable} in the "
                "environment, or pass a chat model object."
            )

    def call(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return self._tier.call(request, config)

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return await self._tier.acall(request, config)


class _ExtractiveTier:
    timeout = None
    awaits = False  # it computes: in a thread of its own, not one of the loop's pool

    def __init__(self, summarizer: ExtractiveSummarizer, count: Callable[[str], int]) -> None:
        self._summarizer = summarizer
        self._count = count
        self.info = TierInfo("extractive", None, local=True)
        self.abandoned: list[Future[Reply] | asyncio.Future[Reply]] = []

    def build(self) -> None:
        """Nothing: it has no model."""

    def call(self, request: SummaryRequest, _: RunnableConfig) -> Reply:
        text = self._summarizer.write(
            request.texts,
            request.span,
            max_tokens=request.max_tokens,
            count=self._count,
        )
        return Reply(text, verbatim=True)

    async def acall(self, request: SummaryRequest, config: RunnableConfig) -> Reply:
        return self.call(request, config)  # not asked for: it does not await
