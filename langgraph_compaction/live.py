"""Live state as text: channels by name, or whatever a function makes of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.state import optional_channel
from langgraph_compaction.view.json import safe_json

LiveState = str | Sequence[str] | Callable[[Any], str | None]
"""Names of channels, or a function from the graph's state to a text."""


def checked_live_state(given: Any) -> Callable[[Any], object]:
    """The function from a state to what is shown of it; its text is anybody's, and not checked yet.

    Raises:
        ConfigurationError: ``given`` is no `LiveState`.
    """
    if given is None:
        return _nothing
    if callable(given):
        function: Callable[[Any], object] = given
        return function
    keys = [given] if isinstance(given, str) else given
    if not _are_names(keys):
        raise ConfigurationError(
            f"live_state: {given!r} has to be the name of a channel such as "
            '"todos", a list of names, or a function from the state to a text.'
        )
    return lambda state: "\n".join(_told(state, keys))


def missing_channels(given: LiveState | None, state: Any) -> list[str]:
    """The named channels of which a state has nothing, not even an empty value."""
    if given is None or callable(given):
        return []
    keys = [given] if isinstance(given, str) else given
    return [key for key in keys if optional_channel(state, key) is None]


def _nothing(_: Any) -> str:
    return ""


def _are_names(keys: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(keys, Sequence) and all(isinstance(key, str) and key for key in keys)


def _told(state: Any, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        value = optional_channel(state, key)
        if value:
            yield f"{key}:{_value(value)}"


def _value(value: Any) -> str:
    """A channel's value; a list has a line for each entry."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return f" {safe_json(value)}"
    return "".join(f"\n- {_entry(one)}" for one in value)


def _entry(one: Any) -> str:
    """An entry; of a to-do list, as LangChain's middleware keeps it, the state and the words."""
    if isinstance(one, Mapping) and {*one} == {"content", "status"}:
        return f"[{one['status']}] {one['content']}"
    return safe_json(one)
