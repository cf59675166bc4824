"""What of a message the model reads: its texts, and the tokens of what is no text.

The rules, in tokens, and where they come from:

- framing of a message 3, its role 1, a name its own tokens and 1: OpenAI cookbook, "How to count
  tokens with tiktoken"
- a call of a tool 9 with its name and its arguments as JSON, a result 7 with its content, their ids
  none: what the markup of OpenAI's "harmony response format" adds to the framing
- images, files, audio and video by their size: `plan.media` names the sources
- reasoning its text, signatures and encrypted payloads none: providers drop those of earlier turns
  (Anthropic, "Extended thinking"; OpenAI, "Reasoning models")
- a provider's compaction of the conversation its text; encrypted, as many tokens as its bytes
  would have as text: a guess
- other blocks their JSON without long base64 strings: a guess

A call that stands both in ``tool_calls`` and in the content counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.plan import media as sizes
from langgraph_compaction.view import blocks
from langgraph_compaction.view.block_texts import LONG_BASE64
from langgraph_compaction.view.json import safe_json

ENCRYPTED_CHARS = 5
"""Characters of base64 for a token: four of them are three bytes, and four bytes of text one."""
TOKENS_PER_MESSAGE = 3
TOKENS_PER_ROLE = 1
TOKENS_PER_NAME = 1
TOKENS_PER_CALL = 9
TOKENS_PER_RESULT = 7

AI_TYPES = frozenset({"ai", "AIMessageChunk"})
_MEDIA = (
    dict.fromkeys(("image", "image_url", "input_image"), "image")
    | dict.fromkeys(("audio", "input_audio"), "audio")
    | dict.fromkeys(("file", "input_file", "document", "media", "text-plain"), "file")
    | {"video": "video"}
)
_TEXT_MIMES = ("text/", "application/json", "application/xml")
_REASONING_KEYS = ("reasoning", "thinking", "text", "summary", "content", "reasoning_content")
_ARGUMENT_KEYS = ("args", "arguments", "input", "partial_json")


@dataclass
class Parts:
    """What of a message the model reads: its texts, and the tokens of what is no text."""

    texts: list[str] = field(default_factory=list)
    media: int = 0  # of images, files, audio and video
    overhead: int = 0  # of roles, of marking names, and of the markup around calls


def message_parts(message: BaseMessage) -> Parts:
    """What of a message the provider reads, by the rules at the top of this module."""
    parts = Parts(overhead=TOKENS_PER_MESSAGE + TOKENS_PER_ROLE)
    if message.name:
        parts.texts.append(message.name)
        parts.overhead += TOKENS_PER_NAME
    if message.type == "tool":
        parts.overhead += TOKENS_PER_RESULT
    calls = _calls(message)
    for call in calls:
        _add_call(call, parts)
    _add_content(message.content, parts, [call.get("id") for call in calls])
    return parts


def _calls(message: BaseMessage) -> list[Mapping[str, Any]]:
    """The calls that are sent: ``additional_kwargs`` only where nothing else has them."""
    if message.type not in AI_TYPES:
        return []
    ai: Any = message
    extra = message.additional_kwargs
    legacy = extra.get("tool_calls") or [extra.get("function_call")]
    sent = [*ai.tool_calls, *ai.invalid_tool_calls] or legacy
    return [call for call in sent if isinstance(call, Mapping)]


def _add_call(call: Mapping[str, Any], parts: Parts) -> None:
    """A call in any provider's form: OpenAI and Bedrock nest name and arguments."""
    inner = call.get("function", call.get("toolUse"))
    inner = inner if isinstance(inner, Mapping) else call
    arguments = next((inner[key] for key in _ARGUMENT_KEYS if key in inner), None)
    parts.overhead += TOKENS_PER_CALL
    parts.texts += [str(inner.get("name") or ""), safe_json(arguments or {})]


def _add_content(content: Any, parts: Parts, called: Sequence[Any]) -> None:
    """The content of a message, or of a block that holds blocks itself."""
    if isinstance(content, str):
        parts.texts.append(content)
    elif isinstance(content, Mapping):
        _add_block(content, parts, called)
    elif isinstance(content, list | tuple):
        for block in content:
            _add_content(block, parts, called)


def _add_block(block: Mapping[str, Any], parts: Parts, called: Sequence[Any]) -> None:
    """A block by its type; Bedrock's have none and are told by their first key."""
    block = blocks.unboxed(block)
    kind = blocks.block_type(block) or str(next(iter(block), ""))
    text = blocks.visible_text({"type": "text", **block} if "text" in block else block)
    if kind in _MEDIA:
        _add_media(block, _MEDIA[kind], parts)
    elif text is not None:
        parts.texts.append(text)
    elif blocks.is_reasoning(block):
        parts.texts += sizes.texts_under(block, _REASONING_KEYS)
    elif blocks.is_call(block) or blocks.is_server_call(block) or kind == "toolUse":
        if not _is_counted(block, called):
            _add_call(block, parts)
    elif kind == "tool_result":
        _add_content(block.get("content"), parts, called)
    elif kind == "compaction":
        _add_compaction(block, parts)
    else:
        parts.texts.append(LONG_BASE64.sub("", safe_json(block)))


def _add_compaction(block: Mapping[str, Any], parts: Parts) -> None:
    """A provider's compaction item: its text, or by the length of what nobody else can read."""
    text, encrypted = block.get("content"), block.get("encrypted_content")
    if isinstance(text, str):
        parts.texts.append(text)
    if isinstance(encrypted, str):
        parts.overhead += len(encrypted) // ENCRYPTED_CHARS


def _is_counted(block: Mapping[str, Any], called: Sequence[Any]) -> bool:
    """Whether the call in this block is one of those in ``tool_calls`` already."""
    nested = block.get("toolUse")
    inner = nested if isinstance(nested, Mapping) else {}
    ids = [block.get("id"), block.get("call_id"), inner.get("toolUseId")]
    return bool(called) and (ids == [None] * 3 or any(id in called for id in ids if id is not None))


def _add_media(block: Mapping[str, Any], kind: str, parts: Parts) -> None:
    """Media by its MIME type where that says what it is; text in a file is text."""
    media = sizes.media_of(block)
    major = media.mime.partition("/")[0]
    kind = major if major in {"image", "audio", "video"} else kind
    parts.texts += media.texts
    if kind == "image":
        parts.media += sizes.image_tokens(media.start(), detail=media.detail)
    elif kind == "audio":
        parts.media += sizes.audio_tokens(media.size, media.start())
    elif kind == "video":
        parts.media += sizes.video_tokens(media.size)
    elif media.data is not None and media.mime.startswith(_TEXT_MIMES):
        parts.texts.append(media.start(None).decode("utf-8", "replace"))
    elif not media.texts:
        parts.media += sizes.file_tokens(media.size)
