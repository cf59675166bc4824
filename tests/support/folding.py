"""A node that folds soon, a summariser that keeps its prompts, and a chat for them."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import CompactionNode

DIGEST = "## Goal\nGo on.\n## State now\nUnder way.\n## Next step\nThe next part."
"""What verification accepts of any span."""

State = dict[str, Any]


class Recorder:
    """Keeps its prompts, and answers with a function of the messages."""

    def __init__(self, answer: Callable[[list[BaseMessage]], str] = lambda _: DIGEST) -> None:
        self.calls: list[list[BaseMessage]] = []
        self.answer = answer

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.calls.append(messages)
        return self.answer(messages)

    @property
    def prompts(self) -> list[str]:
        """The text of each prompt."""
        return ["\n".join(str(message.content) for message in call) for call in self.calls]

    @property
    def read(self) -> str:
        """All that it was shown."""
        return "\n".join(self.prompts)


def accepted(messages: list[BaseMessage]) -> str:
    """A summariser that always writes the same digest."""
    return DIGEST


def failing(messages: list[BaseMessage]) -> str:
    """A summariser that is down."""
    raise ConnectionError("down")


def node(model: Any = accepted, **values: Any) -> CompactionNode:
    """A node that folds whatever is not among the newest two messages, from 600 tokens on."""
    settings: dict[str, Any] = {
        "context_window": 60_000,
        "trigger": ("tokens", 600),
        "token_counter": "estimate",
        "min_fold_tokens": 0,
        "min_fold_share": 0.0,
        "keep": ("messages", 2),
    }
    return CompactionNode(model, **(settings | values))


def chat(length: int, *, start: int = 0, words: int = 40) -> list[BaseMessage]:
    """User and agent in turns; every message has a number, an id and words of its own."""
    kinds = (HumanMessage, AIMessage)
    return [
        kinds[n % 2](f"message {n} " + f"w{n} " * words, id=f"m{n}")
        for n in range(start, start + length)
    ]


def state_of(messages: Sequence[BaseMessage], record: Any = None) -> State:
    """The state of a thread."""
    return {"messages": list(messages), "compaction": record or {}}
