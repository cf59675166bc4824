"""What a thread's calls cost where the provider caches the prefix of its prompts.

All prices are in units of one uncached input token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.plan.counting import TokenCounter

READ = 0.1
"""A token read from the cache."""
WRITE = 1.25
"""A token written to it: whatever is new since the last call."""
SUMMARISER_INPUT = 1.0
"""A token that a summariser reads: the agent's own model, and nothing cached."""
OUTPUT = 5.0
"""A token that it writes: between the four and eight times of common price lists."""


@dataclass
class Bill:
    """The input of one agent's calls, and of its summariser.

    Attributes:
        counter: counts tokens.
        calls: of the agent.
        shown: tokens of all its views.
        cached: of these, the tokens whose whole prefix is that of the call before.
        summaries: calls of the summariser.
        read: tokens of its prompts.
        written: tokens of its answers.
    """

    counter: TokenCounter
    calls: int = 0
    shown: int = 0
    cached: int = 0
    summaries: int = 0
    read: int = 0
    written: int = 0
    _last: Sequence[BaseMessage] = field(default_factory=list)

    def call(self, view: Sequence[BaseMessage]) -> int:
        """The agent's model is called with ``view``; returns its tokens."""
        size = self.counter.messages(view)
        self.calls += 1
        self.shown += size
        self.cached += common_tokens(self._last, view, self.counter)
        self._last = view
        return size

    def summary(self, prompt: Sequence[BaseMessage], answer: str) -> None:
        """The summariser answers a prompt."""
        self.summaries += 1
        self.read += self.counter.messages(prompt)
        self.written += self.counter.text(answer)

    @property
    def agent(self) -> float:
        """Price of the agent's input."""
        return READ * self.cached + WRITE * (self.shown - self.cached)

    @property
    def summariser(self) -> float:
        """Price of the summariser's input and output."""
        return SUMMARISER_INPUT * self.read + OUTPUT * self.written


def common_tokens(
    before: Sequence[BaseMessage], view: Sequence[BaseMessage], counter: TokenCounter
) -> int:
    """Tokens at the beginning of ``view`` that are the same in the view before it.

    Of the first message that differs, the text up to the difference: a new segment stands at the
    end of the digest's message, and what is before it stays cached.
    """
    same = 0
    for old, new in zip(before, view, strict=False):
        if _sent(old) != _sent(new):
            if old.type == new.type:
                start = os.path.commonprefix([old.text, new.text])  # noqa: RUF071  # of any texts
                same += min(counter.text(start), counter.message(new))
            return same
        same += counter.message(new)
    return same


def _sent(message: BaseMessage) -> tuple[Any, ...]:
    """What of a message a provider is sent."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return message.type, message.name, message.content, calls, getattr(message, "tool_call_id", "")
