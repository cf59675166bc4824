"""How providers say that a prompt exceeds the window of their model."""

from __future__ import annotations

import re

from langchain_core.exceptions import ContextOverflowError

from langgraph_compaction.run.faults import said_by

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI
        "exceed_context_size_error",  # llama.cpp's server, as the error's type
        "model_max_prompt_tokens_exceeded",  # GitHub Copilot
        "request_too_large",  # Anthropic, as the error's type
    }
)
_TEXTS = (
    "context_length_exceeded",
    "maximum context length",  # OpenAI, vLLM, DeepSeek
    "prompt is too long",  # Anthropic
    "request_too_large|request exceeds the maximum size",  # Anthropic
    "input length and `?max_tokens`? exceed context limit",  # Anthropic
    "input token count.{0,40}exceeds the maximum number of tokens(?! per)",  # Gemini
    "input is too long for requested model|too many input tokens",  # Bedrock
    "number of input tokens exceeds (?:the )?maximum length",  # Bedrock, Nova
    "exceeds? the (?:available )?context (?:size|window|length|limit)",  # llama.cpp, OpenAI
    "exceeds (?:the|this|your) (?:model'?s )?(?:maximum )?context",
    r"too large for model with \d+ maximum context",  # Mistral
    "longer than the (?:model's context|maximum model) length",  # SGLang, vLLM
    r"`inputs` tokens \+ `max_new_tokens` must be",  # Together, TGI
    "(?:context|prompt|input).{0,60}context overflow",
    "greater than the context length",  # LM Studio
    "maximum prompt length",  # xAI
    "range of input length should be",  # DashScope
    "context window exceeds limit",  # MiniMax
    "reduce the length of (?:the messages|your prompt|the input)",  # OpenAI, Groq, Cerebras
    "exceeded model token limit",  # Moonshot
)
_TEXT = re.compile("|".join(_TEXTS), re.IGNORECASE)
_NOT_OVERFLOW = frozenset({"rate_limit_exceeded", "string_above_max_length"})
"""Codes of errors whose texts or statuses look alike: OpenAI's and Groq's."""
CONTENT_TOO_LARGE = 413
"""HTTP: the request's body is too large; from a model server, the prompt is."""


def is_overflow(error: BaseException) -> bool:
    """Whether a provider says that the prompt exceeds its model's window.

    With openai 3 its error is no `ContextOverflowError` of LangChain; other servers have codes and
    texts of their own, and some texts stand in the answer's body alone.
    """
    if isinstance(error, ContextOverflowError):
        return True
    codes = {
        code for name in ("code", "type") if isinstance(code := getattr(error, name, None), str)
    }
    if codes & _NOT_OVERFLOW:
        return False
    status = getattr(error, "status_code", None)
    if codes & _OVERFLOW_CODES or (isinstance(status, int) and status == CONTENT_TOO_LARGE):
        return True
    try:
        body = str(getattr(error, "body", ""))
    except Exception:  # noqa: BLE001  # of anybody's class
        body = ""
    return _TEXT.search(f"{said_by(error)} {body}") is not None
