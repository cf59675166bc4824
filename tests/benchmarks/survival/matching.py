"""Whether a value stands in a text by itself."""

from collections.abc import Iterable, Iterator


def _in_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _places(text: str, value: str) -> Iterator[int]:
    """Where the value stands by itself, from left to right."""
    at = text.find(value)
    while at >= 0:
        before, after = text[max(0, at - 2) : at], text[at + len(value) :][:2]
        inside = _in_word(value[0]) and (
            _in_word(before[-1:]) or (before[-1:] in {".", ","} and before[:1].isdigit())
        )
        longer = _in_word(after[:1]) or (after[:1] in {".", ","} and after[1:].isdigit())
        if not (inside or longer):
            yield at
        at = text.find(value, at + 1)


def holds(text: str, value: str) -> bool:
    """Whether the exact value stands in a text, not as part of a longer one.

    ``v1.2`` does not stand in ``v1.23`` or ``v1.2.3``; white space has to be collapsed in both.
    """
    return next(_places(text, value), None) is not None


def standing_last(text: str, values: Iterable[str]) -> str | None:
    """Of several values the one that stands last in a text; None: none stands in it."""
    found = [(at, value) for value in values for at in _places(text, value)]
    return max(found)[1] if found else None
