"""How many tokens a message takes: text by a tokenizer, everything else by a rule of its own.

The rules, in tokens, and where they come from:

- framing of a message 3, its role 1, a name its own tokens and 1: OpenAI cookbook, "How to count
  tokens with tiktoken"
- a call of a tool 9 with its name and its arguments as JSON, a result 7 with its content, their ids
  none: what the markup of OpenAI's "harmony response format" adds to the framing
- images, files, audio and video by their size: `plan.estimate` names the sources
- reasoning its text, signatures and encrypted payloads none: providers drop those of earlier turns
  (Anthropic, "Extended thinking"; OpenAI, "Reasoning models")
- other blocks their JSON without long base64 strings: a guess

A call that stands both in ``tool_calls`` and in the content counts once. What the provider
reported (``usage_metadata``) is not used; tool schemas and the reply's priming belong to a request,
not to a message.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan import estimate
from langgraph_compaction.plan.vocabulary import Vocabulary, encoding_name
from langgraph_compaction.view import blocks

TOKENS_PER_MESSAGE = 3
TOKENS_PER_ROLE = 1
TOKENS_PER_NAME = 1
TOKENS_PER_CALL = 9
TOKENS_PER_RESULT = 7

CACHED_MESSAGES = 1 << 16
"""Counts that a counter remembers, at most; about 300 bytes each."""

HEAD_CHARACTERS = 1 << 17
"""Characters of base64 decoded to read a file's header: 96 KiB of the file, as a JPEG may need."""

_AI_TYPES = frozenset({"ai", "AIMessageChunk"})
_SCALARS = frozenset({int, float, bool, bytes, type(None)})
_MEDIA = (
    dict.fromkeys(("image", "image_url", "input_image"), "image")
    | dict.fromkeys(("audio", "input_audio"), "audio")
    | dict.fromkeys(("file", "input_file", "document", "media", "text-plain"), "file")
    | {"video": "video"}
)
_DATA_KEYS = frozenset({"data", "base64", "file_data", "bytes", "url", "image_url"})
_MIME_KEYS = frozenset({"mime_type", "media_type", "format"})
_TEXT_KEYS = frozenset({"text", "title", "context"})
_TEXT_MIMES = ("text/", "application/json", "application/xml")
_REASONING_KEYS = ("reasoning", "thinking", "text", "summary", "content", "reasoning_content")
_ARGUMENT_KEYS = ("args", "arguments", "input", "partial_json")
_DATA_URL = re.compile(r"data:([\w/.+-]*)[^,]{0,200},")
# Data, not words: no spaces, and longer than any name.
_LONG_BASE64 = re.compile(r"(?:data:[\w/.+;=-]*,)?[A-Za-z0-9+/_-]{200,}+={0,2}")


class TokenCounter:
    """Counts tokens of texts and messages; each message is measured once and then remembered.

    What is remembered are hashes of a message's id, name, content and calls, no text: an edited
    message is measured anew, also under its old id. One counter may serve many threads. Made by
    `token_counter`.

    Args:
        name: what `name` says.
        text: tokens of a text.
        message: tokens of a message; by the rules of this module where it is not given.
        vocabulary: what ``text`` counts by, if it does.
        cache_size: counts to remember, at most.
    """

    def __init__(
        self,
        name: str,
        text: Callable[[str], int],
        message: Callable[[BaseMessage], int] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        cache_size: int = CACHED_MESSAGES,
    ) -> None:
        self._name = name
        self._text = text
        self._measure = message or self._by_parts
        self._vocabulary = vocabulary
        # Two halves: when the younger is full it becomes the older, and the older is dropped. What
        # is in use stays, and no lock is needed: a race costs a second count, not a wrong one.
        self._half = max(1, cache_size // 2)
        self._young: dict[Any, int] = {}
        self._old: dict[Any, int] = {}

    @property
    def name(self) -> str:
        """What counts: "tiktoken:o200k_base", "estimate", "approximate", "chars/4+400", "custom".

        "estimate" also where a vocabulary turned out not to be loadable.
        """
        return "estimate" if self.notice() else self._name

    @property
    def exact(self) -> bool:
        """Whether a vocabulary counts the text, which need not be the one of the model."""
        return self._vocabulary is not None and not self._vocabulary.notice()

    def notice(self) -> str | None:
        """One sentence where the estimate counts because no vocabulary could be loaded."""
        return None if self._vocabulary is None else self._vocabulary.notice()

    def text(self, text: str) -> int:
        """Tokens of a plain text; the names of special tokens in it are plain text, too."""
        return self._text(text)

    def message(self, message: BaseMessage) -> int:
        """Tokens of a message as the provider reads it, its framing included."""
        try:
            key = _key(message)
        except RecursionError:  # arguments nested too deep to be told apart cheaply
            return self._measure(message)
        count = self._young.get(key)
        if count is None:
            count = self._old.get(key)
            if count is None:
                count = self._measure(message)
            self._remember(key, count)
        return count

    def messages(self, messages: Iterable[BaseMessage]) -> int:
        """Tokens of all these messages together."""
        return sum(map(self.message, messages))

    def _remember(self, key: Any, count: int) -> None:
        young = self._young
        if len(young) >= self._half:
            self._old = young
            self._young = young = {}
        young[key] = count

    def _by_parts(self, message: BaseMessage) -> int:
        parts = message_parts(message)
        return parts.overhead + parts.media + sum(map(self._text, parts.texts))


def token_counter(
    spec: str | Callable[[list[BaseMessage]], int] | TokenCounter | None = None,
    *,
    model_name: str | None = None,
    cache_size: int = CACHED_MESSAGES,
) -> TokenCounter:
    """The counter that a ``token_counter`` setting asks for. Loads nothing yet.

    Args:
        spec: "tiktoken" or None: the vocabulary of ``model_name``, loaded at the first count, and
            the estimate where it cannot be. "estimate": `estimate_tokens`. "approximate":
            LangChain's `count_tokens_approximately`. "chars/4+400": stagewise's rule, a quarter of
            a message's characters and 400 more, rounded up. A callable: LangChain's
            ``token_counter`` convention, from a list of messages to tokens; it is given one
            message at a time, once. A `TokenCounter`: itself.
        model_name: the model whose tokens matter; without a known one, o200k_base.
        cache_size: messages whose counts are remembered, at most.

    Raises:
        ConfigurationError: the spec is none of these; later, a callable's answer is no number.
    """
    if isinstance(spec, TokenCounter):
        return spec
    if spec is None or spec == "tiktoken":
        vocabulary = Vocabulary(encoding_name(model_name))
        name = f"tiktoken:{vocabulary.name}"
        return TokenCounter(name, vocabulary.count, vocabulary=vocabulary, cache_size=cache_size)
    if spec == "estimate":
        return TokenCounter(spec, estimate.estimate_tokens, cache_size=cache_size)
    if spec == "approximate":
        return TokenCounter(spec, _quarter, _approximately, cache_size=cache_size)
    if spec == "chars/4+400":
        return TokenCounter(spec, _quarter, _quarter_and_400, cache_size=cache_size)
    if callable(spec):
        custom = _checked(spec)
        return TokenCounter(
            "custom", lambda text: custom(HumanMessage(text)), custom, cache_size=cache_size
        )
    raise ConfigurationError(
        f'token_counter: {spec!r} is not a known counter. Give "tiktoken", "estimate", '
        '"approximate", "chars/4+400", or a callable from a list of messages to tokens.'
    )


def _quarter(text: str) -> int:
    return ceil(len(text) / 4)


def _quarter_and_400(message: BaseMessage) -> int:
    parts = message_parts(message)
    return ceil((sum(map(len, parts.texts)) + 400) / 4) + parts.media


def _approximately(message: BaseMessage) -> int:
    try:
        return count_tokens_approximately([message])
    except (TypeError, AttributeError):  # of blocks without what their type asks for
        parts = message_parts(message)
        return parts.overhead + parts.media + sum(map(_quarter, parts.texts))


def _checked(count: Callable[[list[BaseMessage]], Any]) -> Callable[[BaseMessage], int]:
    """A user's callable for one message, its answers checked."""

    def measure(message: BaseMessage) -> int:
        answer = count([message])
        if not (isinstance(answer, int | float) and 0 <= answer < inf):
            raise ConfigurationError(
                f"token_counter: {count!r} returned {answer!r} for one message. It must take a "
                "list of messages and return their tokens, a number from 0 up."
            )
        return ceil(answer)

    return measure


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
    if message.type not in _AI_TYPES:
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
    parts.texts += [str(inner.get("name") or ""), _json(arguments or {})]


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
    kind = blocks.block_type(block) or str(next(iter(block), ""))
    text = blocks.visible_text({"type": "text", **block} if "text" in block else block)
    if kind in _MEDIA:
        _add_media(block, _MEDIA[kind], parts)
    elif text is not None:
        parts.texts.append(text)
    elif blocks.is_reasoning(block):
        parts.texts += _texts_under(block, _REASONING_KEYS)
    elif blocks.is_call(block) or blocks.is_server_call(block) or kind == "toolUse":
        if not _is_counted(block, called):
            _add_call(block, parts)
    elif kind == "tool_result":
        _add_content(block.get("content"), parts, called)
    else:
        parts.texts.append(_LONG_BASE64.sub("", _json(block)))


def _is_counted(block: Mapping[str, Any], called: Sequence[Any]) -> bool:
    """Whether the call in this block is one of those in ``tool_calls`` already."""
    nested = block.get("toolUse")
    inner = nested if isinstance(nested, Mapping) else {}
    ids = [block.get("id"), block.get("call_id"), inner.get("toolUseId")]
    return bool(called) and (ids == [None] * 3 or any(id in called for id in ids if id is not None))


def _add_media(block: Mapping[str, Any], kind: str, parts: Parts) -> None:
    """Media by its MIME type where that says what it is; text in a file is text."""
    media = _media(block)
    major = media.mime.partition("/")[0]
    kind = major if major in {"image", "audio", "video"} else kind
    parts.texts += media.texts
    if kind == "image":
        parts.media += estimate.image_tokens(media.start(), detail=media.detail)
    elif kind == "audio":
        parts.media += estimate.audio_tokens(media.size, media.start())
    elif kind == "video":
        parts.media += estimate.video_tokens(media.size)
    elif media.data is not None and media.mime.startswith(_TEXT_MIMES):
        parts.texts.append(media.start(None).decode("utf-8", "replace"))
    elif not media.texts:
        parts.media += estimate.file_tokens(media.size)


@dataclass
class _Media:
    """What a block says about its file, wherever the provider's format puts it."""

    data: str | bytes | None = None  # base64 or the bytes themselves; None for a URL or an id
    mime: str = ""
    detail: str = ""
    texts: list[str] = field(default_factory=list)

    @property
    def size(self) -> int | None:
        if isinstance(self.data, str):
            return len(self.data) * 3 // 4
        return None if self.data is None else len(self.data)

    def start(self, characters: int | None = HEAD_CHARACTERS) -> bytes:
        """The file from its beginning; all of it for None."""
        data = b"" if self.data is None else self.data[:characters]
        if isinstance(data, bytes):
            return data
        try:
            return b64decode(data[: len(data) // 4 * 4], altchars=b"-_")
        except ValueError:
            return b""


def _media(block: Mapping[str, Any]) -> _Media:
    media = _Media()
    for place in _places(block):
        for key, value in place.items():
            if key in _TEXT_KEYS or (key == "data" and place.get("type") == "text"):
                media.texts += [value] if isinstance(value, str) else []
            elif key == "content":
                media.texts += _texts_under(place, ("content", "text"))
            elif key == "detail":
                media.detail = str(value)
            elif key in _MIME_KEYS and isinstance(value, str):
                media.mime = media.mime or value
            elif key in _DATA_KEYS and isinstance(value, str | bytes):
                url = _DATA_URL.match(value) if isinstance(value, str) else None
                if url:
                    media.mime, media.data = media.mime or url[1], value[url.end() :]
                elif not key.endswith("url"):
                    media.data = value
    return media


def _places(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The block and the mappings in it: ``source``, ``file``, ``image_url.url``..."""
    yield block
    for value in block.values():
        if isinstance(value, Mapping):
            yield from _places(value)


def _texts_under(block: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """The strings under these keys, and under these keys of what is nested there."""
    for value in map(block.get, keys):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping):
                yield from _texts_under(item, keys)


def _json(value: Any) -> str:
    """A value as the JSON that is sent; what JSON cannot hold counts by its strings."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_no_json)
    except (TypeError, ValueError, RecursionError):
        return " ".join(_leaves(value))


def _no_json(value: Any) -> str:
    return "" if isinstance(value, bytes | bytearray) else str(value)


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


def _key(message: BaseMessage) -> tuple[Any, ...]:
    """What tells a message's count from others': hashes of its texts, none of the texts.

    Python keeps a string's hash with the string, so an unchanged message is told at once.
    """
    content = message.content
    kind = message.type
    mark = hash(content) if isinstance(content, str) else _fingerprint(content)
    if kind not in _AI_TYPES:
        return message.id, message.name, kind, mark
    ai: Any = message
    calls, invalid, extra = ai.tool_calls, ai.invalid_tool_calls, ai.additional_kwargs
    if not (calls or invalid or extra):
        return message.id, message.name, kind, mark
    legacy = (extra.get("tool_calls"), extra.get("function_call")) if extra else ()
    sent = [(call["id"], call["name"], _fingerprint(call["args"])) for call in [*calls, *invalid]]
    return message.id, message.name, kind, mark, hash(tuple(sent)), _fingerprint(legacy)


def _fingerprint(value: Any) -> int:
    """A hash of a JSON-like value."""
    kind = value.__class__
    if kind is str:
        return hash(value)
    if kind is dict:
        return hash((*value, *map(_fingerprint, value.values())))
    if kind is list or kind is tuple:
        return hash((kind, *map(_fingerprint, value)))
    return hash((kind, value) if kind in _SCALARS else repr(value))
