"""An original as plain text: what a search goes through, and what an agent is shown of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.digest.rendering import compact_arguments, message_text
from langgraph_compaction.view.blocks import blocks_of, is_server_call

CALL = "[call] "
"""Opens the line that shows a call: name and arguments follow."""

_DATA = re.compile(r"[A-Za-z0-9+/=_-]{400,}")


def full_text(message: BaseMessage, call_id: str | None = None) -> str:
    """The text of a message and a line for each call it makes, word for word.

    Images, files and audio are markers; a model's reasoning is left out.

    Args:
        message: any message.
        call_id: of a call that the message makes; then nothing but this call.
    """
    calls = list(calls_in(message))
    if call_id is not None:
        chosen = [call for call in calls if call.get("id") == call_id]
        if chosen:
            return "\n".join(map(_line, chosen))
    text = message_text(message)
    return "\n".join([*([text] if text else []), *map(_line, calls)])


def plain_text(message: BaseMessage) -> str:
    """The same for a search: with its name, and without long runs of encoded data."""
    parts = [message.name or "", full_text(message)]
    return _DATA.sub("[data]", "\n".join(filter(None, parts)))


def calls_in(message: BaseMessage) -> Iterator[Mapping[str, Any]]:
    """The calls of a message with their arguments, the provider's own included."""
    if not isinstance(message, AIMessage):
        return
    yield from message.tool_calls
    yield from message.invalid_tool_calls
    for block in blocks_of(message.content):
        if is_server_call(block):
            given = (block[key] for key in ("input", "args", "arguments") if key in block)
            yield {"id": block.get("id"), "name": block.get("name"), "args": next(given, {})}


def _line(call: Mapping[str, Any]) -> str:
    return f"{CALL}{call.get('name')} {compact_arguments(call.get('args'))}"
