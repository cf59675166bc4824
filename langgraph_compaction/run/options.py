"""What a summary call asks of a chat model beside the prompt: temperature, length, patience."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables.base import RunnableBindingBase

from langgraph_compaction.engine.effects import SummaryRequest

OUTPUT_FACTOR = 2
"""Times the tokens asked for that an answer may have before it is cut off: models do not count
their own words, and a cut-off text is rejected."""
REASONING_TOKENS = 2_000
"""More where it is not known whether the model reasons first, which counts as output."""


def bound_model(model: Any) -> tuple[Any, dict[str, Any]]:
    """The model inside of bindings, and what it was bound with."""
    bound: dict[str, Any] = {}
    while isinstance(model, RunnableBindingBase):
        bound = {**model.kwargs, **bound}
        model = model.bound
    return model, bound


def call_options(
    model: Any,
    request: SummaryRequest,
    *,
    temperature: float | None,
    timeout: float | None,
    max_output: int | None,
) -> dict[str, Any]:
    """Keyword arguments for a call, none of which the model was already configured with.

    Only for chat models that have the parameter, and, as far as LangChain's profile of the model
    knows, take it: reasoning models of OpenAI refuse a temperature, and their reasoning counts as
    output, so that a cap would cut off the answer.

    Args:
        model: the summariser.
        request: what is asked for.
        temperature: for the answer, None: the provider's own.
        timeout: seconds that a chat model's client may wait for the next byte, None: its own.
        max_output: tokens that an answer may have at most, None: by what is asked for.
    """
    chat, bound = bound_model(model)
    if not isinstance(chat, BaseChatModel):
        return {}
    profile: Mapping[str, Any] = chat.profile or {}

    def takes(name: str) -> bool:
        known = name in type(chat).model_fields and name not in bound
        return known and getattr(chat, name) is None

    options: dict[str, Any] = {}
    if temperature is not None and profile.get("temperature", True) and takes("temperature"):
        options["temperature"] = temperature
    if takes("max_tokens"):
        cap = _output_cap(request, profile, max_output)
        if cap is not None:
            options["max_tokens"] = cap
    # ChatOpenAI's name; an abandoned call ends sooner with it.
    if timeout is not None and takes("request_timeout") and "timeout" not in bound:
        options["timeout"] = timeout
    return options


def _output_cap(
    request: SummaryRequest, profile: Mapping[str, Any], max_output: int | None
) -> int | None:
    reasons = profile.get("reasoning_output")
    if reasons and max_output is None:
        return None
    asked = request.max_tokens * OUTPUT_FACTOR + (REASONING_TOKENS if reasons is None else 0)
    if reasons:
        asked = max_output or asked
    limits = [asked, max_output, request.room]
    return max(1, min(limit for limit in limits if limit is not None))
