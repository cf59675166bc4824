"""Any value as JSON holds it, with its texts redacted: what an archive can keep of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from langgraph_compaction.digest.redaction import Redact, enters, free_key, redacted_text

_DATA = frozenset("data base64 file_data signature encrypted_content".split())
"""Keys of what is data and no text."""


def jsonable(value: Any, redact: Redact | None = None, within: tuple[int, ...] = ()) -> Any:
    """``value`` as JSON holds it; what it cannot hold, by the name of its type in brackets.

    That is an object, a container that contains itself, one nested deeper than
    `digest.redaction.DEEPEST` levels, and a number that Python refuses to write out.

    Args:
        value: of any kind; it is not changed.
        redact: the hook that texts and keys go through; None: none.
        within: ids of the containers around the value.

    Raises:
        RedactionError: the hook raised, or did not return a str.
    """
    if isinstance(value, str):
        return value if value[:5].casefold() == "data:" else redacted_text(value, redact)
    nested = isinstance(value, Mapping | list | tuple | set | frozenset)
    members = _members(value) if nested and enters(value, within) else None
    if members is None:
        return value if _is_scalar(value) else _type_of(value)
    inside = (*within, id(value))
    if not isinstance(value, Mapping):
        return [jsonable(held, redact, inside) for held in members]
    found: dict[str, Any] = {}
    for key, held in members:
        free = free_key(redacted_text(_text_of(key), redact), found)
        data = key in _DATA and isinstance(held, str)
        found[free] = held if data else jsonable(held, redact, inside)
    return found


def _members(value: Any) -> Iterable[Any] | None:
    """What a container holds; None where it does not say."""
    with suppress(Exception):  # of a mapping of anybody's
        return list(value.items() if isinstance(value, Mapping) else value)
    return None


def _is_scalar(value: Any) -> bool:
    if not (value is None or isinstance(value, int | float)):
        return False
    with suppress(ValueError):  # an integer of more digits than Python writes
        json.dumps(value)
        return True
    return False


def _text_of(key: Any) -> str:
    with suppress(Exception):  # of an object of anybody's
        return str(key)
    return _type_of(key)


def _type_of(value: Any) -> str:
    return f"[{type(value).__name__}]"
