"""What a message still says to its provider about the context it was made in."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.view.blocks import block_type

COMPACTED = "[The provider compacted the conversation here; the record covers what it covered.]"
"""Stands for an AI message that said nothing else: providers refuse one without content."""


def detached(message: BaseMessage) -> BaseMessage:
    """An AI message made before the last fold, without what brings back or drops other messages.

    - The id that continues its response: langchain-openai's ``use_previous_response_id`` looks for
      the newest ``response_metadata["id"]`` that starts with ``resp_``, and has the server put the
      whole earlier conversation in front again. The folded messages would be back, and billed.
    - Its compaction items: the provider ignores what stands before one, the digest included.

    Other messages are returned as they are.
    """
    if not isinstance(message, AIMessage):
        return message
    update = dict[str, object]()
    continuation = message.response_metadata.get("id")
    if isinstance(continuation, str) and continuation.startswith("resp_"):
        metadata = {key: value for key, value in message.response_metadata.items() if key != "id"}
        update["response_metadata"] = metadata
    if compacts(message):
        rest = [block for block in message.content if block_type(block) != "compaction"]
        update["content"] = rest if rest or message.tool_calls else COMPACTED
    return message.model_copy(update=update) if update else message


def compacts(message: BaseMessage) -> bool:
    """Whether the provider made this message's turn compact the conversation before it.

    Blocks of type "compaction" of OpenAI's Responses API ("Compaction": items before the newest
    one may be dropped) and of Anthropic's Messages API ("Compaction": content before the block is
    ignored); langchain-openai and langchain-anthropic hand both over as blocks of the content.
    """
    return (
        isinstance(message, AIMessage)
        and isinstance(message.content, list)
        and any(block_type(block) == "compaction" for block in message.content)
    )


def read_from(view: Sequence[BaseMessage]) -> int:
    """Index into the view of the first message that the provider reads, but for system messages.

    That is the newest one in which it compacted the conversation; 0 where it did not.
    """
    return next((index for index in reversed(range(len(view))) if compacts(view[index])), 0)
