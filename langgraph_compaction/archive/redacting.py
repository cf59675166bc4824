"""Originals as they may be stored where a hook takes secrets out of texts.

More than a summariser sees goes into an archive: artifacts, what a provider added, reasoning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.redaction import Redact, redacted_message, redacted_text
from langgraph_compaction.view.blocks import is_reasoning

_ELSEWHERE = frozenset(
    "content name type id tool_calls invalid_tool_calls tool_call_id status usage_metadata".split()
)
"""Fields of messages that `redacted_message` looks after, and those that hold no text."""
_DATA = frozenset("data base64 file_data signature encrypted_content".split())
"""Keys of what is data and no text."""


def redacted_originals(messages: Iterable[BaseMessage], redact: Redact | None) -> list[BaseMessage]:
    """The messages with every text in them redacted, metadata included.

    What is neither text nor plain JSON (an object in an artifact) is left out, by the name of its
    type: no hook can look into it.

    Args:
        messages: any messages; they are not changed.
        redact: the hook; None: none.

    Raises:
        RedactionError: the hook raised, or did not return a str.
    """
    return [_redacted(message, redact) for message in messages]


def _redacted(message: BaseMessage, redact: Redact | None) -> BaseMessage:
    if redact is None:
        return message
    shown = redacted_message(message, redact)
    found: dict[str, Any] = {}
    for name, value in shown:
        if name not in _ELSEWHERE:
            found[name] = _walked(value, redact)
    if isinstance(shown.content, list):
        found["content"] = [
            _walked(block, redact) if is_reasoning(block) else block for block in shown.content
        ]
    return shown.model_copy(update=found)


def _walked(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return value if value[:5].casefold() == "data:" else redacted_text(value, redact)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {
            redacted_text(str(key), redact): held if key in _DATA else _walked(held, redact)
            for key, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walked(item, redact) for item in value]
    return f"[{type(value).__name__}]"
