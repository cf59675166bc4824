"""How providers say that a prompt exceeds the window of their model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelRefusalError,
    OutputParserException,
)
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from langgraph_compaction.errors import CompactionError
from langgraph_compaction.plan.excess import Excess
from langgraph_compaction.run.faults import is_of_client, said_by

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


_NO_ANSWERS = (
    CompactionError,
    GraphBubbleUp,
    ModelRefusalError,
    OutputParserException,
    ToolException,
    ValidationError,
)
"""What no provider's client raises for a refused call."""


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
    return _TEXT.search(_texts_of(error)) is not None


def excess_in(error: BaseException) -> Excess | None:
    """What a provider says of a call that was too long; None where the error is another one.

    Also where its error is wrapped: as the cause, as the context of an error of the program's own,
    or as a member of an exception group of nothing else.
    """
    for one in _wrapped(error):
        if isinstance(one, BaseExceptionGroup):
            found = [excess_in(member) for member in one.exceptions]
            return None if None in found else found[0]
        if is_overflow(one):
            text = _texts_of(one)[:LONGEST_SAID]
            return Excess(limit=_number(_LIMIT, text), asked=_number(_ASKED, text))
    return None


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from or while handling, the outer ones first.

    A provider's own answer was not caused by what was being handled when it came: an agent that
    asks another model after an overflow, and meets a rate limit there, has met a rate limit. An
    error of this package has the last word, and control flow is no error. What a parser or a
    validator raises quotes the text that it refuses, and that may speak of anything: so does what
    was raised from it, such as the error of a structured answer.
    """
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if any(isinstance(one, _NO_ANSWERS) for one in _causes(found)):
            return
        yield found
        seen.add(id(found))
        if found.__cause__ is not None:
            found = found.__cause__
        elif found.__suppress_context__ or is_of_client(found):
            return
        else:
            found = found.__context__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, what that was raised from, and so on."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        yield found
        seen.add(id(found))
        found = found.__cause__


def _texts_of(error: BaseException) -> str:
    """What an error says, and the body of the answer that it tells of."""
    try:
        body = str(getattr(error, "body", ""))
    except Exception:  # noqa: BLE001  # of anybody's class
        body = ""
    return f"{said_by(error)} {body}"


LONGEST_SAID = 10_000
"""Characters of an error's text that are searched for numbers."""
_LIMIT = re.compile(
    r"(?:(?:context|prompt) length is|limit (?:of|is)|token limit:|context (?:size|length) \("
    r"|allowed \(|(?:model|window) with|tokens >|\d >|must be <=|n_ctx:|\[1,) *(\d[\d,]{0,15})"
    r"|'n_ctx': (\d{1,15})",
    re.IGNORECASE,
)
"""The tokens that a call may have, in the words of `_TEXTS`' providers."""
_ASKED = re.compile(
    r"(?:resulted in|requested:?(?: about)?|request (?:has|contains)|request \(|input \("
    r"|too long:|count (?:of|\()|prompt contains|given:|current length is|n_keep:)"
    r" *(\d[\d,]{0,15})",
    re.IGNORECASE,
)
"""The tokens that the refused call had."""


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    return int(next(group for group in found.groups() if group).replace(",", ""))
