"""Dividing what a summariser has to read so that every call fits its window.

Nothing is dropped to make it fit: a span that is too long becomes several parts, and a message
that is too long by itself is read in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

MARGIN = 0.9
"""Share of a summariser's window that is planned for: its tokenizer may count differently."""
CONTEXT_SHARE = 0.25
"""Share of a summariser's window that the digest so far may take as context."""
ANSWER_SHARE = 4
"""One part in this many of a summariser's window is kept free for its answer at most."""
LEAST_ROOM = 200
"""Tokens of transcript in a call at least, whatever the window."""


def room(window: int | None, *, prompt: int, answer: int) -> int | None:
    """Tokens of transcript and context that one call may carry; None: no limit.

    Args:
        window: tokens of the summariser's context window.
        prompt: tokens of its instructions.
        answer: tokens kept free for its answer.
    """
    if window is None:
        return None
    return max(LEAST_ROOM, int(window * MARGIN) - prompt - min(answer, window // ANSWER_SHARE))


def pack(sizes: Sequence[int], limit: int | None) -> list[slice]:
    """Divide a sequence into runs whose sizes sum up to at most ``limit``.

    A single size above the limit is a run of its own.
    """
    runs: list[slice] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if limit is not None and index > start and total + size > limit:
            runs.append(slice(start, index))
            start, total = index, 0
        total += size
    if start < len(sizes):
        runs.append(slice(start, len(sizes)))
    return runs


def pieces(
    chunks: Sequence[str], limit: int | None, count: Callable[[str], int]
) -> list[list[str]]:
    """Rendered chunks divided over as many calls as it takes, each at most ``limit`` tokens.

    A chunk that is longer is cut, at a line's end where there is one.
    """
    if limit is None:
        return [list(chunks)]
    small = [piece for chunk in chunks for piece in _cut(chunk, limit, count)]
    runs = pack([count(piece) for piece in small], limit)
    return [small[run] for run in runs]


def _cut(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    tokens = count(text)
    if tokens <= limit or len(text) < 2:
        return [text]
    # The middle by characters is near enough to the middle by tokens; halving ends where both fit.
    middle = len(text) // 2
    newline = text.rfind("\n", middle // 2, middle)
    middle = newline + 1 if newline > 0 else middle
    return [*_cut(text[:middle], limit, count), *_cut(text[middle:], limit, count)]


def context(texts: Sequence[str], limit: int | None, count: Callable[[str], int]) -> str | None:
    """The newest of the digest's segments that fit ``limit`` tokens; None where none does."""
    shown: list[str] = []
    total = 0
    for text in reversed(texts):
        total += count(text)
        if limit is not None and total > limit:
            break
        shown.append(text)
    return "\n\n".join(reversed(shown)) or None
