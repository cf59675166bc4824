"""The texts in content blocks, wherever a provider's format puts them, and their sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph_compaction.view.blocks import (
    block_kind,
    is_call,
    is_media,
    is_reasoning,
    is_server_call,
    server_result_id,
    unboxed,
    visible_text,
)
from langgraph_compaction.view.json import safe_json

LONG_BASE64 = re.compile(r"(?:data:[\w/.+;=-]*,)?[A-Za-z0-9+/_-]{200,}+={0,2}")
"""Data, not words: no spaces, and longer than any name."""
DEEPEST = 20
"""Blocks in blocks below which what is there is read as JSON."""

_HOLDERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "tool_result": (("content",),),
    "search_result": (("content",),),
    "function_call_output": (("output",),),
    "toolResult": (("toolResult", "content"),),
    "compaction": (("content",),),
    "document": (("source", "data"), ("source", "content"), ("document", "source", "text")),
}
"""Where a block of a type has a text or more blocks; a type-less one (Bedrock's) by its key."""


class Place(NamedTuple):
    """Where in a block its text stands, or the blocks that it holds.

    Attributes:
        path: keys that lead there.
        held: the text, or the list of blocks.
    """

    path: tuple[str, ...]
    held: str | list[Any]


def place_in(block: Any) -> Place | None:
    """Where a block has its text, or blocks with text; None: nowhere that is known."""
    if isinstance(block, str):
        return Place((), block)
    if not isinstance(block, Mapping):
        return None
    inner = unboxed(block)
    boxed = () if inner is block else ("value",)
    if visible_text(inner) is not None:
        key = next((key for key in ("text", "refusal") if isinstance(inner.get(key), str)), None)
        return None if key is None else Place((*boxed, key), inner[key])
    for path in _HOLDERS.get(block_kind(inner), ()):
        held = _at(inner, path)
        # The data of a document is text only where its source says so.
        is_text = path[-1] != "data" or _at(inner, ("source", "type")) == "text"
        if is_text and isinstance(held, str | list):
            return Place((*boxed, *path), held)
    return None


def _at(block: Any, path: Sequence[str]) -> Any:
    for key in path:
        block = block.get(key) if isinstance(block, Mapping) else None
    return block


def written(block: Any, path: Sequence[str], held: Any) -> Any:
    """A copy of the block with something else at that place."""
    if not path:
        return held
    return {**block, path[0]: written(block[path[0]], path[1:], held)}


def unknown_text(block: Any) -> str | None:
    """A block of an unknown type as JSON, without encoded data; None: its type is known.

    What a provider would miss is known, too: reasoning, calls, and what answers its own calls.
    """
    if (
        not isinstance(block, Mapping)
        or place_in(block) is not None
        or visible_text(block) is not None
        or is_media(block)
        or is_reasoning(block)
        or is_call(block)
        or is_server_call(block)
        or server_result_id(block) is not None
    ):
        return None
    return LONG_BASE64.sub("", safe_json(unboxed(block)))


def texts_in(block: Any, depth: int = 0) -> list[str] | None:
    """The texts that a reader of the block gets, in order; None: none, such as of an image.

    Those of the blocks in it, and a block of an unknown type as JSON.
    """
    if isinstance(block, dict) and block.get("type") == "text":  # the most common by far
        text = block.get("text")
        if isinstance(text, str):
            return [text]
    place = place_in(block)
    if place is None:
        text = unknown_text(block)
        if text is None:
            return [""] if visible_text(block) is not None else None
        return [text]
    if isinstance(place.held, str):
        return [place.held]
    if depth >= DEEPEST:
        return [safe_json(place.held)]
    inside = [texts_in(one, depth + 1) for one in place.held]
    found = [text for texts in inside if texts is not None for text in texts]
    return found if found or not inside else None


def text_bytes(block: Any) -> int | None:
    """UTF-8 bytes of the texts in a block; None: it has none."""
    texts = texts_in(block)
    return None if texts is None else sum(map(byte_length, texts))


def content_bytes(content: Any) -> int:
    """UTF-8 bytes of the texts in a message's content."""
    if isinstance(content, list):
        return sum(text_bytes(block) or 0 for block in content)
    return byte_length(content) if isinstance(content, str) else 0


def byte_length(text: str) -> int:
    """Bytes of a text in UTF-8; a lone surrogate has three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
