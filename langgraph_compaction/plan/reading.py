"""What of a view the provider reads: all of it, unless it compacted the conversation itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from langchain_core.messages import BaseMessage, SystemMessage

from langgraph_compaction.view.provider import newest_compaction


class Counter(Protocol):
    """Counts the tokens of messages and of text."""

    def messages(self, messages: Sequence[BaseMessage], /) -> int:
        """Tokens of the messages together."""

    def message(self, message: BaseMessage, /) -> int:
        """Tokens of one message."""

    def text(self, text: str, /) -> int:
        """Tokens of a plain string."""


def read_sizes(view: Sequence[BaseMessage], counter: Counter) -> list[int]:
    """Counted tokens of each message; 0 for those that the provider ignores."""
    start = newest_compaction(view) or 0
    return [
        counter.message(message) if index >= start or isinstance(message, SystemMessage) else 0
        for index, message in enumerate(view)
    ]


def read_tokens(view: Sequence[BaseMessage], counter: Counter) -> int:
    """Counted tokens of what the provider reads."""
    return sum(read_sizes(view, counter))
