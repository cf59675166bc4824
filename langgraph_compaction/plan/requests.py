"""A request for compaction, as it travels in a thread's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

REQUEST_KEY = "request"
"""Under this key of ``compaction_settings``; not a setting itself."""


LONGEST_ID = 200
"""Characters of a request's id: the record keeps it."""


class Request(NamedTuple):
    """Compact at the next visit, whatever the trigger says.

    Attributes:
        id: told from other requests by it; the record remembers the last one carried out.
        instructions: what the digest has to look after, None: nothing in particular.
    """

    id: str
    instructions: str | None


def read_request(settings: Any) -> Request | None:
    """The request in a thread's settings, carried out or not; None where there is none.

    What is malformed is no request: nothing that stands in a state may end a run.
    """
    found = settings.get(REQUEST_KEY) if isinstance(settings, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    name, instructions = found.get("id"), found.get("instructions")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID:
        return None
    said = instructions.strip() if isinstance(instructions, str) else ""
    return Request(name, said or None)
