"""Arguments of calls as JSON, whatever a client put into them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def safe_json(value: Any) -> str:
    """A value as the JSON that is sent; what JSON cannot hold counts by its strings."""
    if isinstance(value, str):
        return value
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return " ".join(_leaves(value))


def _no_json(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return ""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # of a class of anybody's, or an integer of 4,300 digits
        return f"[{type(value).__name__}]"


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_no_json)
"""Made once: ``json.dumps`` makes one for every call that asks for anything but its defaults."""


def _leaves(value: Any) -> Iterator[str]:
    """The strings in a value of any depth, each container's once."""
    pending, seen = [value], set[int]()
    while pending:
        item = pending.pop()
        if not isinstance(item, Mapping | list | tuple):
            yield _no_json(item)
        elif id(item) not in seen:
            seen.add(id(item))
            pending += [*item, *item.values()] if isinstance(item, Mapping) else item
