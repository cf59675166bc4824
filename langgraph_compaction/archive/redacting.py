"""Originals as they may be stored where a hook takes secrets out of texts.

More than a summariser sees goes into an archive: artifacts, what a provider added, reasoning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.archive.jsonable import jsonable
from langgraph_compaction.digest.redaction import Redact, redacted_message
from langgraph_compaction.view.blocks import is_reasoning

_ELSEWHERE = frozenset(
    "content name type id tool_calls invalid_tool_calls tool_call_id status usage_metadata".split()
)
"""Fields of messages that `redacted_message` looks after, and those that hold no text."""


def redacted_originals(messages: Iterable[BaseMessage], redact: Redact | None) -> list[BaseMessage]:
    """The messages with every text in them redacted, metadata included.

    What is neither text nor plain JSON (an object in an artifact) is left out, by the name of its
    type: no hook can look into it. See `jsonable`.

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
            found[name] = jsonable(value, redact)
    if isinstance(shown.content, list):
        found["content"] = [
            jsonable(block, redact) if is_reasoning(block) else block for block in shown.content
        ]
    return shown.model_copy(update=found)
