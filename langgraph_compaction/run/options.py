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

_LENGTHS = ("max_tokens", "max_output_tokens")
"""Fields for the longest answer: of most chat models, and of Google's."""
_BOUND_LENGTHS = {*_LENGTHS, "max_completion_tokens"}
_TIMEOUTS = ("request_timeout", "default_request_timeout", "timeout")
"""Fields for a client's patience: OpenAI's, Anthropic's, Google's. A call takes it as timeout."""


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
    fields, given = type(chat).model_fields, chat.model_fields_set
    options: dict[str, Any] = {}
    # A default of the class is nobody's wish. Anthropic refuses a temperature to a model that
    # thinks, and names no parameter.
    thinks = bool(bound.get("thinking") or getattr(chat, "thinking", None))
    wished = "temperature" in given and chat.temperature is not None  # type: ignore[attr-defined]
    if (
        temperature is not None
        and "temperature" in fields
        and not (wished or thinks or "temperature" in bound)
        and profile.get("temperature", True)
    ):
        options["temperature"] = temperature
    length = next((name for name in _LENGTHS if name in fields), None)
    if length is not None and not bound.keys() & _BOUND_LENGTHS:
        configured = getattr(chat, length)
        cap = _output_cap(request, profile, max_output)
        # Anthropic's integration fills in the profile's; a tier's own limit is a wish.
        if cap is not None and (configured is None or (max_output and cap < configured)):
            options[length] = cap
    patience = next((name for name in _TIMEOUTS if name in fields), None)
    free = patience is not None and getattr(chat, patience) is None and "timeout" not in bound
    if timeout is not None and free:
        options["timeout"] = timeout  # an abandoned call ends sooner with it
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
