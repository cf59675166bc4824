"""What tells lists of messages apart that have no ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

FINGERPRINTED = 8
"""Messages before the boundary that a fingerprint is made of, beside the first one of the list."""


def fingerprint(messages: Sequence[BaseMessage], boundary: int) -> str:
    """A short hash of what stands before ``boundary``, for messages that have no ids.

    Made of the first message and the last few: one alone may recur ("go", "ok").
    """
    seen = [messages[0], *messages[max(0, boundary - FINGERPRINTED) : boundary]]
    text = "\0".join(f"{message.type}\0{message.content!r}" for message in seen)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
