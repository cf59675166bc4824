"""What a message still says to its provider about the context it was made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.view.blocks import block_type, is_reasoning, unboxed

COMPACTED = "[The provider compacted the conversation here; the record covers what it covered.]"
"""Stands for an AI message that said nothing else: providers refuse one without content."""


def detached(message: BaseMessage) -> BaseMessage:
    """An AI message made under another view, without the id that continues its response.

    langchain-openai's ``use_previous_response_id`` looks for the newest ``response_metadata["id"]``
    that starts with ``resp_`` and has the server put the whole earlier conversation in front again:
    the folded messages would be back, and billed. Other messages are returned as they are.
    """
    if not isinstance(message, AIMessage):
        return message
    continuation = message.response_metadata.get("id")
    if not (isinstance(continuation, str) and continuation.startswith("resp_")):
        return message
    metadata = {key: value for key, value in message.response_metadata.items() if key != "id"}
    return message.model_copy(update={"response_metadata": metadata})


def is_compaction(block: Any) -> bool:
    """Whether in this block the provider has compacted the conversation before it.

    Blocks of type "compaction" of OpenAI's Responses API ("Compaction": items before the newest
    one may be dropped) and of Anthropic's Messages API ("Compaction": content before the block is
    ignored); langchain-openai and langchain-anthropic hand both over as blocks of the content.
    One without content is a failed compaction, which Anthropic takes for none.
    """
    if block_type(block) != "compaction":
        return False
    inner = unboxed(block)
    held = (inner.get("content"), inner.get("encrypted_content"))
    return any(isinstance(one, str) and one for one in held)


def compacts(message: BaseMessage) -> bool:
    """Whether the provider compacted the conversation before this message, in its answer."""
    return (
        isinstance(message, AIMessage)
        and isinstance(message.content, list)
        and any(map(is_compaction, message.content))
    )


def newest_compaction(messages: Sequence[BaseMessage]) -> int | None:
    """Index of the newest message in which the provider compacted the conversation; None: none.

    The provider reads that message and what follows it, and system messages.
    """
    indexes = reversed(range(len(messages)))
    return next((index for index in indexes if compacts(messages[index])), None)


def without_compaction(message: BaseMessage) -> BaseMessage:
    """A kept message of a covered span, without compaction items.

    The provider would ignore the digest before them, which covers more than they do. A message
    that is not covered keeps its own: they cover all that the digest does.
    """
    if not compacts(message):
        return message
    rest = [block for block in message.content if block_type(block) != "compaction"]
    # Reasoning alone is refused by OpenAI.
    says = message.tool_calls or not all(map(is_reasoning, rest))  # type: ignore[attr-defined]
    return message.model_copy(update={"content": rest if says else COMPACTED})
