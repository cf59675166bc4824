"""What a kept message still says to its provider about the context it was made in."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage


def detached(message: BaseMessage) -> BaseMessage:
    """An AI message made before the last fold, without the id that continues its response.

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
