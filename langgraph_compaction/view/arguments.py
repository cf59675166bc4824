"""Long arguments of calls, shortened: valid JSON, the same keys, and what was left out in numbers.

A model that wrote a file of 50,000 characters by a call pays for them at every later call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from langgraph_compaction.view.blocks import ARGUMENT_KEYS, call_in, unboxed
from langgraph_compaction.view.json import safe_json

HEAD_CHARS = 100
"""Characters that a long text in the arguments keeps: what it begins with tells what it was."""
HEAD_ITEMS = 10
"""Items that a long list keeps."""
DEEPEST = 20
"""Levels of nesting below which a value is left out."""


def shortened_calls(
    message: AIMessage, limit: int, again: Callable[[str | None], str] | None = None
) -> AIMessage | None:
    """The message with arguments of more than ``limit`` characters shortened; None: as it was.

    Args:
        message: an AI message whose calls have been answered.
        limit: characters that the arguments of one call may have as JSON; 0 or less: any number.
        again: what to do to see the arguments of the call with an id; None: nothing brings them
            back.
    """
    if limit <= 0 or not message.tool_calls:
        return None
    shorter: dict[str | None, Any] = {}
    calls = []
    for call in message.tool_calls:
        found = _shorter(call, limit, again)
        calls.append(call if found is None else {**call, "args": found})
        if found is not None:
            shorter[call.get("id")] = found
    if not shorter:
        return None
    update: dict[str, Any] = {"tool_calls": calls}
    if isinstance(message.content, list):
        update["content"] = [_block(block, shorter) for block in message.content]
    if "tool_calls" in message.additional_kwargs:  # the same again, as it came from the provider
        kept = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
        update["additional_kwargs"] = kept
    return message.model_copy(update=update)


def _shorter(call: Mapping[str, Any], limit: int, again: Callable[[str | None], str] | None) -> Any:
    arguments = call["args"]
    written = safe_json(arguments)
    if len(written) <= limit:
        return None
    remedy = f" {again(call.get('id'))}" if again else ""
    found = _shortened(arguments, 0, remedy)
    return found if len(safe_json(found)) < len(written) else None


def _shortened(value: Any, depth: int, remedy: str) -> Any:
    if depth > DEEPEST:
        return "[... cleared ...]"
    if isinstance(value, str):
        mark = f"[... {len(value) - HEAD_CHARS:,} characters cleared ...{remedy}]"
        return value[:HEAD_CHARS] + mark if len(value) > HEAD_CHARS + len(mark) else value
    if isinstance(value, Mapping):
        return {key: _shortened(item, depth + 1, remedy) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_shortened(item, depth + 1, remedy) for item in value[: HEAD_ITEMS + 1]]
        if len(value) <= HEAD_ITEMS + 1:
            return items
        return [*items[:HEAD_ITEMS], f"[... {len(value) - HEAD_ITEMS:,} items cleared ...{remedy}]"]
    return value


def _block(block: Any, shorter: Mapping[str | None, Any]) -> Any:
    """A content block that repeats a call, with the call's shorter arguments."""
    call = call_in(block)
    if call is None or call["id"] not in shorter:
        return block
    found = shorter[call["id"]]
    inner = unboxed(block)
    given = {key: found for key in ARGUMENT_KEYS if key in inner}
    if isinstance(inner.get("arguments"), str):  # OpenAI's Responses API has them as JSON text
        given["arguments"] = json.dumps(found, ensure_ascii=False)
    shown = {**inner, **given}
    return shown if inner is block else {**block, "value": shown}
