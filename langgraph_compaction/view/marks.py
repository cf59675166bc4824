"""Marks of messages: pinned, and written in a user's place."""

from __future__ import annotations

from typing import TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.errors import ConfigurationError

PIN_MARK = "compaction_pinned"
"""Key in ``additional_kwargs`` that marks a pinned message. Chat models do not send it."""

SUMMARY_SOURCE = "summarization"
"""``additional_kwargs["lc_source"]`` of a summary that stands in the transcript as a human message:
LangChain's ``SummarizationMiddleware`` leaves one where it removed the messages."""

Message = TypeVar("Message", bound=BaseMessage)


def pin(message: Message, *, pinned: bool = True) -> Message:
    """A copy of ``message`` that no fold takes (or, with ``pinned=False``, may take again).

    Write the copy to the messages channel: it has the same id and so replaces the original. A
    pinned AI message with tool calls, and a pinned tool message, keep their whole call group. A
    message that is folded already stays folded until its segment is restored.

    Args:
        message: any message; it is not changed.
        pinned: False removes the mark.

    Raises:
        ConfigurationError: it is no message.
    """
    if not isinstance(message, BaseMessage):
        raise ConfigurationError(
            f"pin: {message!r:.200} is no message. Pass one, such as HumanMessage(...), or a "
            'message of state["messages"]; what matches a rule is pinned by pinned=.'
        )
    marks = {k: v for k, v in message.additional_kwargs.items() if k != PIN_MARK}
    if pinned:
        marks[PIN_MARK] = True
    return message.model_copy(update={"additional_kwargs": marks})


def is_by_user(message: BaseMessage) -> bool:
    """Whether a human message is what a user said, and no summary that stands in its place."""
    return isinstance(message, HumanMessage) and not is_summary(message)


def is_summary(message: BaseMessage) -> bool:
    """Whether a message is a summary of others that somebody else put in their place."""
    return message.additional_kwargs.get("lc_source") == SUMMARY_SOURCE


def is_marked(message: BaseMessage) -> bool:
    """Whether a message is pinned by its mark."""
    return bool(message.additional_kwargs.get(PIN_MARK))
