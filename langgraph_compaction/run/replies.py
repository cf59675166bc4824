"""What a summariser returned, reduced to what verification looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.digest.verifying import Reply, Usage
from langgraph_compaction.view.blocks import block_type, visible_text

FINAL_RESPONSE = "final_response"
"""Key of an answer's metadata with the text of a model that answers in fields of its own and leaves
the content empty: Webwright's summariser puts it there."""


def reply_of(result: Any) -> Reply:
    """What a summariser returned: text blocks, finish reason, calls, usage; None is an empty text.

    Raises:
        TypeError: the result is neither text nor a message.
    """
    if isinstance(result, str) or result is None:
        return Reply(result or "")
    if not isinstance(result, BaseMessage):
        raise TypeError(f"a summariser returned {type(result).__name__}, not text or a message")
    if isinstance(result.content, str):
        text = result.content
    else:
        # The Responses API has a block type for refusals: what they say is no digest.
        said = (block for block in result.content if block_type(block) != "refusal")
        blocks = [visible_text(block) for block in said]
        text = "\n".join(block for block in blocks if block)
    if not text.strip():
        text = _final_response(result) or text
    called = isinstance(result, AIMessage) and bool(result.tool_calls or result.invalid_tool_calls)
    return Reply(text, _finish_reason(result.response_metadata), called, usage=_usage(result))


def _usage(message: BaseMessage) -> Usage | None:
    """The tokens that a provider reports; servers that do not count report none, or zeros."""
    found = message.usage_metadata if isinstance(message, AIMessage) else None
    if not found or found["input_tokens"] <= 0:
        return None
    return Usage(found["input_tokens"], max(0, found["output_tokens"]))


def _final_response(result: BaseMessage) -> str:
    for metadata in (result.response_metadata, result.additional_kwargs):
        if isinstance(found := metadata.get(FINAL_RESPONSE), str) and found.strip():
            return found
    return ""


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    """Chat Completions and Gemini: finish_reason; Anthropic: stop_reason; Ollama: done_reason.

    OpenAI's Responses API says ``status: incomplete`` instead, and why.
    """
    if metadata.get("status") == "incomplete":
        details = metadata.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return reason if isinstance(reason, str) else "incomplete"
    for key in ("finish_reason", "stop_reason", "done_reason"):
        if isinstance(metadata.get(key), str):
            return str(metadata[key])
    return None
