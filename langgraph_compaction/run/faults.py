"""What a failed call means for the calls after it, by the error that it raised."""

from __future__ import annotations

from langchain_core.exceptions import ContextOverflowError

from langgraph_compaction.errors import ConfigurationError

REFUSING = frozenset({401, 403, 404})
"""HTTP: not authenticated, not permitted, no such model. Asking again brings the same answer."""
_REFUSING_NAMES = frozenset({"AuthenticationError", "PermissionDeniedError", "NotFoundError"})

_PROGRAMMING = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    NotImplementedError,
    ConfigurationError,
)

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
"""OpenAI's code, and the type that llama.cpp's server gives."""
_OVERFLOW_TEXTS = (
    "maximum context length",  # OpenAI, vLLM, Together, DeepSeek
    "context_length_exceeded",
    "prompt is too long",  # Anthropic
    "exceeds the maximum number of tokens",  # Gemini
    "input is too long for requested model",  # Bedrock
    "exceeds the available context size",  # llama.cpp
    "exceeds the context window",  # OpenAI's Responses API
    "too large for model with",  # Mistral
    "exceeds the model's context",
)


def is_refused(error: BaseException) -> bool:
    """Whether the provider refuses this caller or this model: no retry helps."""
    status = getattr(error, "status_code", None)
    return status in REFUSING or type(error).__name__ in _REFUSING_NAMES


def is_programming_error(error: BaseException) -> bool:
    """Whether the error is of the program or its configuration, not of the network."""
    return isinstance(error, _PROGRAMMING)


def is_overflow(error: BaseException) -> bool:
    """Whether a provider says that the prompt exceeds its model's window.

    With openai 3 its error is no `ContextOverflowError` of LangChain, and other servers have
    codes and texts of their own.
    """
    if isinstance(error, ContextOverflowError):
        return True
    if {getattr(error, "code", None), getattr(error, "type", None)} & _OVERFLOW_CODES:
        return True
    try:
        said = str(error).lower()
    except Exception:  # noqa: BLE001  # an error that cannot even say what it is
        return False
    return any(text in said for text in _OVERFLOW_TEXTS)
