"""The mark of a pinned message."""

from __future__ import annotations

from typing import TypeVar

from langchain_core.messages import BaseMessage

PIN_MARK = "compaction_pinned"
"""Key in ``additional_kwargs`` that marks a pinned message. Chat models do not send it."""

Message = TypeVar("Message", bound=BaseMessage)


def pin(message: Message, *, pinned: bool = True) -> Message:
    """A copy of ``message`` that no fold takes (or, with ``pinned=False``, may take again).

    Write the copy to the messages channel: it has the same id and so replaces the original. A
    pinned AI message with tool calls, and a pinned tool message, keep their whole call group. A
    message that is folded already stays folded until its segment is restored.

    Args:
        message: any message; it is not changed.
        pinned: False removes the mark.
    """
    marks = {k: v for k, v in message.additional_kwargs.items() if k != PIN_MARK}
    if pinned:
        marks[PIN_MARK] = True
    return message.model_copy(update={"additional_kwargs": marks})


def is_marked(message: BaseMessage) -> bool:
    """Whether a message is pinned by its mark."""
    return bool(message.additional_kwargs.get(PIN_MARK))
