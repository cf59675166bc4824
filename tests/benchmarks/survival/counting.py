"""One token count for all systems and for the summariser, so that their budgets are the same."""

import json
from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

ASCII_TOKENS = 0.25
"""Tokens of an ASCII character: four characters to a token, as everywhere."""
OTHER_TOKENS = 0.75
"""Tokens of any other character: what current vocabularies give to CJK, and a little much for
alphabets."""
MESSAGE_TOKENS = 4
"""Tokens of a message beside its text, as OpenAI's format has them."""


@lru_cache(maxsize=1 << 16)
def weight(text: str) -> float:
    """Tokens of a text before rounding; the weights of two texts add up to that of both."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters * ASCII_TOKENS + (len(text) - ascii_characters) * OTHER_TOKENS


def text_tokens(text: str) -> int:
    """Tokens of a text."""
    return ceil(weight(text))


def message_text(message: Any) -> str:
    """What of a message a model reads: its text, then each call's name and arguments as JSON."""
    parts = [message.text] if message.text else []
    if isinstance(message, AIMessage):
        parts += [
            f"{call['name']} {json.dumps(call['args'], ensure_ascii=False)}"
            for call in message.tool_calls
        ]
    return "\n".join(parts)


def tokens(messages: Iterable[Any]) -> int:
    """Tokens of messages; the convention of LangChain's ``token_counter``."""
    return sum(MESSAGE_TOKENS + text_tokens(message_text(message)) for message in messages)


def joined(messages: Iterable[BaseMessage]) -> str:
    """All that a model reads of the messages, white space collapsed."""
    return " ".join(" ".join(message_text(message) for message in messages).split())
