"""Live state as text: channels by name, or whatever a function makes of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.state import optional_channel
from langgraph_compaction.view.json import safe_json

LiveState = str | Sequence[str] | Callable[[Any], str | None]
"""Names of channels, or a function from the graph's state to a text."""


class LiveChannels:
    """What the application holds of a thread beside its messages.

    Args:
        given: names of channels, or a function; None: nothing.

    Raises:
        ConfigurationError: it is none of these.
    """

    def __init__(self, given: LiveState | None) -> None:
        self._function: Callable[[Any], object] | None = given if callable(given) else None
        keys: Any = [given] if isinstance(given, str) else given
        if given is None or self._function is not None:
            keys = []
        elif not _are_names(keys):
            raise ConfigurationError(
                f"live_state: {given!r} has to be the name of a channel such as "
                '"todos", a list of names, or a function from the state to a text.'
            )
        self._keys: Sequence[str] = keys

    def missing(self, state: Any) -> Iterator[str]:
        """A line for each named channel of which a state has nothing, not even an empty value."""
        for key in self._keys:
            if optional_channel(state, key) is None:
                yield (
                    f"live_state: the state has no channel {key!r}, or nothing was written to it "
                    "yet, so that no view shows it."
                )

    def read(self, state: Any) -> tuple[str, str | None]:
        """The text, "" for nothing; and what is wrong, None where nothing is.

        A function of anybody's ends no run: where it fails, there is nothing to show.
        """
        if self._function is None:
            return "\n".join(_told(state, self._keys)).strip(), None
        try:
            text = self._function(state)
        except Exception as error:  # noqa: BLE001  # see above
            return (
                "",
                f"live_state: the function raised {shortened(error)}; the view is without it.",
            )
        if text is None or isinstance(text, str):
            return (text or "").strip(), None
        kind = type(text).__name__
        return "", f"live_state: the function returned a {kind}, and has to return a text or None."


def _are_names(keys: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(keys, Sequence) and all(isinstance(key, str) and key for key in keys)


def _told(state: Any, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        value = optional_channel(state, key)
        if not _is_empty(value):
            yield f"{key}:{_value(value)}"


def _is_empty(value: Any) -> bool:
    try:
        return not value
    except Exception:  # noqa: BLE001  # an array has no truth, and is not empty for that
        return False


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
