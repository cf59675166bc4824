"""Taking secrets out of what is sent to a summariser and of what is stored.

A hook of the user's is applied to the messages themselves, before anything is cut, clamped or
escaped: half a secret is not recognised any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import iscoroutine, iscoroutinefunction, isfunction, ismethod
from pathlib import PurePath
from types import TracebackType
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction.digest.embedded import without_data
from langgraph_compaction.errors import ConfigurationError, RedactionError
from langgraph_compaction.view.block_texts import unknown_text
from langgraph_compaction.view.blocks import is_reasoning
from langgraph_compaction.view.json import safe_json

Redact = Callable[[str], str]
"""Takes a text and returns it without its secrets."""

DEEPEST = 50
"""Levels of nested values that are redacted one by one; what lies deeper, as one text."""

# Fields of content blocks that are names, ids or data and no text for a model.
_NO_TEXT = frozenset(
    "type id index tool_use_id tool_call_id call_id name signature data base64 file_data "
    "encrypted_content encrypted_index status".split()
)


def checked_redact(redact: Any) -> Redact | None:
    """The hook itself.

    Raises:
        ConfigurationError: it cannot be called, or would have to be awaited.
    """
    if redact is None:
        return None
    inner = redact.func if isinstance(redact, partial) else redact
    called = inner if isfunction(inner) or ismethod(inner) else getattr(inner, "__call__", inner)  # noqa: B004
    if not callable(redact) or isinstance(redact, type) or iscoroutinefunction(called):
        raise ConfigurationError(
            f"redact: {redact!r} has to be a plain function that takes a text and returns it "
            "without its secrets. It is called in the middle of a visit, where nothing is awaited."
        )
    checked: Redact = redact
    return checked


def redacted_text(text: str, redact: Redact | None) -> str:
    """``text`` as the hook returns it; None stands for no hook.

    Raises:
        RedactionError: the hook raised, or did not return a str.
    """
    if redact is None or not text:
        return text
    try:
        found: object = redact(text)
    except Exception as error:  # noqa: BLE001  # of a hook of anybody's
        # Not chained: the error of a hook often quotes the text that it failed on.
        raise RedactionError(
            f"redact: the hook raised {type(error).__name__}{_place(error.__traceback__)}. "
            f"{_REMEDY}"
        ) from None
    if iscoroutine(found):
        found.close()
    if not isinstance(found, str):
        raise RedactionError(
            f"redact: the hook returned {type(found).__name__} instead of str. {_REMEDY}"
        )
    return found


_REMEDY = "Nothing of this fold is sent on or stored; repair the function passed as redact=."


def _place(trace: TracebackType | None) -> str:
    """Where the hook raised: the frame behind ours, which says nothing of the text."""
    frame = trace
    while frame is not None and _is_ours(frame):
        frame = frame.tb_next
    if frame is None:
        return ""
    return f" ({PurePath(frame.tb_frame.f_code.co_filename).name}, line {frame.tb_lineno})"


def _is_ours(frame: TracebackType) -> bool:
    """Whether a frame is this package's: what remembers the hook's answers stands before it."""
    package = __name__.partition(".")[0]
    return str(frame.tb_frame.f_globals.get("__name__")).partition(".")[0] == package


def redacted_messages(messages: Iterable[BaseMessage], redact: Redact | None) -> list[BaseMessage]:
    """Messages as a digest may be made of them: all text redacted, and data in it as a marker.

    See `redacted_message` and `without_data`.
    """
    found = (redacted_message(message, redact) for message in messages)
    return [redacted_message(message, without_data) for message in found]


def redacted_message(message: BaseMessage, redact: Redact | None) -> BaseMessage:
    """A message in which every string that is text for a model went through the hook.

    Content and the text of its blocks, names of files, addresses, inputs of server-side calls;
    arguments of calls, keys and numbers included; the name of a speaker. Names of tools, ids,
    types, media data, reasoning (which no summariser sees) and metadata stay as they are.

    Args:
        message: any message; it is not changed.
        redact: the hook; None: none.

    Returns:
        A copy, or the message itself where the hook changed nothing.

    Raises:
        RedactionError: the hook raised, or did not return a str.
    """
    if redact is None:
        return message
    content: Any = message.content
    found: dict[str, Any] = {
        "content": redacted_text(content, redact)
        if isinstance(content, str)
        else _redacted_blocks(content, redact)
    }
    if message.name and not isinstance(message, ToolMessage) and message.type != "function":
        found["name"] = redacted_text(message.name, redact)
    for name in ("tool_calls", "invalid_tool_calls"):
        calls = getattr(message, name, None)
        if calls:
            found[name] = [_redacted_call(call, redact) for call in calls]
    changed = {name: value for name, value in found.items() if value != getattr(message, name)}
    return message.model_copy(update=changed) if changed else message


def _redacted_blocks(content: Any, redact: Redact) -> Any:
    if not isinstance(content, list):  # None, as some clients write it
        return content
    return [
        redacted_text(block, redact)
        if isinstance(block, str)
        else block
        if is_reasoning(block)
        else _without_secrets_in_json(_redacted_block(block, redact), redact)
        for block in content
    ]


def _without_secrets_in_json(block: Any, redact: Redact) -> Any:
    """A block; one of an unknown type as text, where its JSON, keys included, has a secret left."""
    shown = unknown_text(block)
    text = None if shown is None else redacted_text(shown, redact)
    return block if text == shown else {"type": "text", "text": text}


def _redacted_block(block: Any, redact: Redact, within: tuple[int, ...] = ()) -> Any:
    """A block with its strings redacted; inputs of calls in full, elsewhere no names or data."""
    if isinstance(block, Mapping | list) and not enters(block, within):
        return _redacted_value(block, redact, within)
    inside = (*within, id(block))
    if isinstance(block, list):
        return [_redacted_block(item, redact, inside) for item in block]
    if isinstance(block, str):
        return block if block[:5].casefold() == "data:" else redacted_text(block, redact)
    if not isinstance(block, Mapping):
        return block
    return {
        key: value
        if key in _NO_TEXT
        else _redacted_arguments(value, redact)
        if key in ("input", "args", "arguments")
        else _redacted_block(value, redact, inside)
        for key, value in block.items()
    }


def _redacted_call(call: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    found = {**call, "args": _redacted_arguments(call.get("args"), redact)}
    if isinstance(call.get("error"), str):
        found["error"] = redacted_text(call["error"], redact)
    return found


def _redacted_arguments(arguments: Any, redact: Redact) -> Any:
    """Arguments value by value, and then as the one text that a summariser reads.

    A hook may know a secret by what stands before it, as in ``"password": "..."``.
    """
    values = _redacted_value(arguments, redact, ())
    if isinstance(values, str):
        return values
    text = safe_json(values)
    found = redacted_text(text, redact)
    if found == text:
        return values
    try:
        return json.loads(found)
    except (ValueError, RecursionError):
        return found


def _redacted_value(value: Any, redact: Redact, within: tuple[int, ...]) -> Any:
    """A value with its strings redacted, given the ids of the values around it."""
    if isinstance(value, str):
        return redacted_text(value, redact)
    if value is None or isinstance(value, bool | bytes | bytearray):
        return value
    nested = isinstance(value, Mapping | list | tuple)
    if nested and enters(value, within):
        return _redacted_members(value, redact, (*within, id(value)))
    # A number, an object, or what is nested too deep or contains itself: as it would be sent.
    shown = safe_json(value) if nested else str(value)
    text = redacted_text(shown, redact)
    return value if text == shown else text


def _redacted_members(value: Any, redact: Redact, within: tuple[int, ...]) -> Any:
    if not isinstance(value, Mapping):
        items = [_redacted_value(item, redact, within) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    found: dict[Any, Any] = {}
    for key, item in value.items():
        free = free_key(_redacted_value(key, redact, within), found)
        found[free] = _redacted_value(item, redact, within)
    return found


def enters(value: Any, within: tuple[int, ...]) -> bool:
    """Whether a walk goes into a container: it ends where one contains itself, and at `DEEPEST`.

    Args:
        value: a container.
        within: ids of the containers around it.
    """
    return id(value) not in within and len(within) < DEEPEST


def free_key(key: Any, taken: Mapping[Any, Any]) -> Any:
    """A key that loses no value where the hook made two keys alike."""
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key} ({number})"
    return free
