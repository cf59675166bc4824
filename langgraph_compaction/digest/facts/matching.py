"""Where a name stands in a text by itself: ``v1.2`` does not in ``v1.23`` or ``v1.2.3``."""

from __future__ import annotations

from collections.abc import Iterator


def stands(text: str, name: str) -> bool:
    """Whether it stands in the text by itself anywhere."""
    return next(_places(text, name), -1) >= 0


def last_place(text: str, name: str) -> int:
    """Index of its last place in the text, -1 where it does not stand there by itself."""
    return max(_places(text, name), default=-1)


def _places(text: str, name: str) -> Iterator[int]:
    at = text.find(name) if name else -1
    while at >= 0:
        before, after = text[max(0, at - 2) : at], text[at + len(name) :][:2]
        inside = _in_word(name[0]) and (
            _in_word(before[-1:]) or (before[-1:] in {".", ","} and before[:1].isdigit())
        )
        longer = _in_word(name[-1]) and (
            _in_word(after[:1]) or (after[:1] in {".", ","} and after[1:].isdigit())
        )
        if not inside and not longer:
            yield at
        at = text.find(name, at + 1)


def _in_word(character: str) -> bool:
    """Whether neighbours of this kind make one word; CJK stands without spaces around it."""
    return character == "_" or (character.isascii() and character.isalnum())
