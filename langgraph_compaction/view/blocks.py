"""What the content blocks of a message are: text, media, reasoning, calls.

Knows the block types of LangChain's standard content and of the providers' own formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_TEXT_TYPES = {"text", "input_text", "output_text", "text-plain", "refusal"}
_REASONING_TYPES = {"reasoning", "thinking", "redacted_thinking", "reasoning_content"}
_CALL_TYPES = {"tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk"}
ARGUMENT_KEYS = ("input", "args", "arguments")
"""Where the blocks of calls have their arguments."""
_MEDIA_TYPES = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "media",
}


def is_media(block: Any) -> bool:
    """Whether the block is an image, a file, audio or video; Bedrock's are told by their key."""
    return block_kind(block) in _MEDIA_TYPES


def block_kind(block: Any) -> str:
    """The block's type; of one without a type, as Bedrock's are, its first key; "" for neither."""
    kind, block = block_type(block), unboxed(block)
    return kind or (str(next(iter(block), "")) if isinstance(block, Mapping) else "")


def unboxed(block: Any) -> Any:
    """The block itself; a provider's own one that LangChain boxed as "non_standard", taken out."""
    if isinstance(block, Mapping) and block.get("type") == "non_standard":
        boxed = block.get("value")
        return boxed if isinstance(boxed, Mapping) else block
    return block


def blocks_of(content: Any) -> list[Any]:
    """The content of a message as a list of blocks, unboxed; None, which some write, as none."""
    if isinstance(content, list):
        return [unboxed(block) for block in content]
    return [content] if isinstance(content, str) else []


def block_type(block: Any) -> str:
    """The block's ``type``, unboxed; "text" for a plain string, "" where it has none."""
    if isinstance(block, str):
        return "text"
    return str(unboxed(block).get("type", "")) if isinstance(block, Mapping) else ""


def is_reasoning(block: Any) -> bool:
    """Whether the block is a model's reasoning, signed or not."""
    return block_type(block) in _REASONING_TYPES


def is_call(block: Any) -> bool:
    """Whether the block repeats a call that ``tool_calls`` holds already."""
    return block_type(block) in _CALL_TYPES


def call_in(block: Any) -> dict[str, Any] | None:
    """The complete call that a content block holds, as id, name and args; None: it holds none.

    ``args`` is None where the block has none. Those in JSON text, as OpenAI's Responses API writes
    them, are read; a text that is no JSON object stays text.
    """
    if block_type(block) not in {"tool_use", "tool_call", "function_call"}:
        return None
    block = unboxed(block)
    found = block.get("call_id", block.get("id"))
    if not isinstance(found, str):
        return None
    arguments = next((block[key] for key in ARGUMENT_KEYS if key in block), None)
    return {"id": found, "name": block.get("name"), "args": _read(arguments)}


def _read(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return read if isinstance(read, dict) else arguments


def server_call_id(block: Any) -> str | None:
    """The id of the call in this block that the provider executes itself, or None."""
    if block_type(block) in {"server_tool_use", "server_tool_call", "mcp_tool_use"}:
        return str(unboxed(block).get("id"))
    return None


def is_server_call(block: Any) -> bool:
    """Whether the block is a call that the provider executes itself."""
    return server_call_id(block) is not None


def server_result_id(block: Any) -> str | None:
    """The id of the server-side call that this block answers, or None."""
    kind, block = block_type(block), unboxed(block)
    if kind.endswith("_tool_result") or kind == "server_tool_result":
        found = block.get("tool_use_id") or block.get("tool_call_id")
        return str(found) if found else None
    return None


def visible_text(block: Any) -> str | None:
    """The text a reader sees in the block; None where it is no text block."""
    if isinstance(block, str):
        return block
    kind, block = block_type(block), unboxed(block)
    if kind in _TEXT_TYPES:
        text = block.get("text", block.get("refusal"))
        return text if isinstance(text, str) else ""
    if not kind and isinstance(block, Mapping) and isinstance(block.get("text"), str):
        return str(block["text"])  # Bedrock's have no type
    return None


def block_marker(block: Any) -> str:
    """A short stand-in for a block that is not text: kind, type and size, never the data.

    Empty for blocks that say nothing beyond ``tool_calls``.
    """
    if is_call(block):
        return ""
    kind, block = block_type(block), unboxed(block)
    if kind in _MEDIA_TYPES:
        return "[" + " ".join([_MEDIA_TYPES[kind], *_media_details(block)]) + "]"
    return f"[{kind or 'unknown'} block]"


_NAMES = ("filename", "title", "mime_type", "media_type", "format")
_DATA = ("data", "base64", "file_data")


def _media_details(block: Mapping[str, Any]) -> list[str]:
    """Names, types and sizes, wherever a provider's format puts them."""
    places = [block, *(block[key] for key in ("source", "file", "input_audio") if key in block)]
    places = [place for place in places if isinstance(place, Mapping)]
    details = [place[key][:80] for place in places for key in _NAMES if _is_text(place.get(key))]
    url = block.get("image_url", block.get("url"))
    details += _url_details(url.get("url") if isinstance(url, Mapping) else url)
    details += [
        size_of(len(place[key]) * 3 // 4)
        for place in places
        for key in _DATA
        if isinstance(place.get(key), str | bytes)
    ]
    return [detail for detail in dict.fromkeys(details) if detail]


def attachment_names(content: Any) -> list[str]:
    """The file names and titles of the media in a message's content, in order."""
    blocks = (block for block in blocks_of(content) if block_type(block) in _MEDIA_TYPES)
    places = (
        place for block in blocks for place in (block, block.get("file"), block.get("source"))
    )
    return [
        place[key]
        for place in places
        if isinstance(place, Mapping)
        for key in ("filename", "title")
        if _is_text(place.get(key))
    ]


def unnamed_media(content: Any) -> list[str]:
    """The markers of the media in a message's content that have no such name, in order."""
    media = (block for block in blocks_of(content) if block_type(block) in _MEDIA_TYPES)
    return [block_marker(block) for block in media if not attachment_names([block])]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _url_details(url: Any) -> list[str]:
    if not isinstance(url, str):
        return []
    if url[:5].casefold() != "data:":
        return [url[:200]]
    return [url[5:85].split(";")[0].split(",")[0], size_of(len(url) * 3 // 4)]


def size_of(size: int) -> str:
    """A number of bytes in words."""
    return f"{size:,} bytes" if size < 10_000 else f"{size // 1024:,} KB"


def _is_blank(content: Any) -> bool:
    return isinstance(content, str) and not content.strip()


def joined(contents: Iterable[Any]) -> Any:
    """The contents of several messages as one: texts with a blank line between them.

    A list of blocks where one of them is a list. What says nothing is left out, and None, which
    some integrations write.
    """
    found = [content for content in contents if content is not None and not _is_blank(content)]
    if all(isinstance(content, str) for content in found):
        return "\n\n".join(found)
    blocks: list[Any] = []
    for content in found:
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks
