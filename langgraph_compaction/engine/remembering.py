"""A ``redact`` function that says the same where a fold is begun and where it is applied.

A function that numbers what it finds, or asks a model, answers otherwise the second time. The
question would be another one then, and the answer that was paid for would never fit.
"""

from __future__ import annotations

from hashlib import sha256

from langgraph_compaction.digest.redaction import Redact


class RememberedRedact:
    """What ``redact`` made of each text, by a hash: no secret is kept.

    Args:
        redact: the function. What it raises is passed on, and not remembered; nor is what it
            returns that is no text.

    Attributes:
        chars: characters that are kept.
    """

    def __init__(self, redact: Redact) -> None:
        self.chars = 0
        self._redact = redact
        # None: it stays as it is, which is true of most texts.
        self._found: dict[bytes, str | None] = {}

    def __call__(self, text: str) -> str:
        """The text as the function returned it the first time."""
        key = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if key in self._found:
            kept = self._found[key]
            return text if kept is None else kept
        found = self._redact(text)
        if isinstance(found, str):
            self._found[key] = None if found == text else found
            self.chars += 0 if found == text else len(found)
        return found


def remembered(redact: Redact | None) -> RememberedRedact | None:
    """The function, with a memory that begins now; None stands for none."""
    return None if redact is None else RememberedRedact(redact)
