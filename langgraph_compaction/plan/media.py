"""Images, files, audio and video: what a block says about them, and their tokens by size.

Never by the length of their base64: providers resize images and read pages and seconds.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

HEAD_CHARACTERS = 1 << 17
"""Characters of base64 decoded to read a file's header: 96 KiB of the file, as a JPEG may need."""

IMAGE_LOW = 85
"""Tokens of an image with ``detail: low``, and the base of any other (OpenAI, "Images and vision",
calculating costs of gpt-4o; `IMAGE_TILE` too)."""

IMAGE_TILE = 170
"""Tokens of each tile of 512 x 512 pixels."""

IMAGE_UNKNOWN = 765
"""Tokens of an image whose size cannot be read: OpenAI's example, 1024 x 1024 pixels, 4 tiles."""

PAGE_TOKENS = 2_250
"""Tokens of a page: Anthropic, "PDF support", names 1,500 to 3,000; the middle."""

PAGE_BYTES = 75_000
"""Assumed size of a page in a PDF or office file, in bytes; no provider documents one."""

MOST_PAGES = 100
"""Pages of one file at most: Anthropic's limit for a request to a model with a 200k window."""

UNKNOWN_PAGES = 5
"""Assumed pages of a file that is only referred to, by URL or by id."""

AUDIO_TOKENS_PER_SECOND = 32
"""Gemini, "Audio understanding". OpenAI's audio models take 10; the greater one is safe."""

AUDIO_BYTES_PER_SECOND = 16_000
"""Assumed for compressed audio (128 kbit/s); a WAV file says its own rate."""

VIDEO_TOKENS_PER_SECOND = 300
"""Gemini, "Video understanding", at the default resolution, sound included."""

VIDEO_BYTES_PER_SECOND = 250_000
"""Assumed for compressed video (2 Mbit/s)."""

UNKNOWN_SECONDS = 60
"""Assumed length of audio or video that is only referred to, by URL or by id."""

_DATA_KEYS = frozenset({"data", "base64", "file_data", "bytes", "url", "image_url"})
_MIME_KEYS = frozenset({"mime_type", "media_type", "format"})
_TEXT_KEYS = frozenset({"text", "title", "context"})
_DATA_URL = re.compile(r"data:([\w/.+-]*)[^,]{0,200},")


@dataclass
class Media:
    """What a block says about its file, wherever the provider's format puts it."""

    data: str | bytes | None = None  # base64 or the bytes themselves; None for a URL or an id
    mime: str = ""
    detail: str = ""
    texts: list[str] = field(default_factory=list)

    @property
    def size(self) -> int | None:
        """Bytes of the file, None where it is only referred to."""
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


def media_of(block: Mapping[str, Any]) -> Media:
    """The file that a media block of any provider's format is about."""
    media = Media()
    for place in _places(block):
        for key, value in place.items():
            if key in _TEXT_KEYS or (key == "data" and place.get("type") == "text"):
                media.texts += [value] if isinstance(value, str) else []
            elif key == "content":
                media.texts += texts_under(place, ("content", "text"))
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


def texts_under(block: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """The strings under these keys, and under these keys of what is nested there."""
    for value in map(block.get, keys):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping):
                yield from texts_under(item, keys)


def image_tokens(head: bytes, *, detail: str = "") -> int:
    """Tokens of an image by OpenAI's tile rule.

    Args:
        head: the beginning of the file, as far as it is known: PNG, GIF, WebP, or JPEG up to the
            frame header. `IMAGE_UNKNOWN` tokens where the size cannot be read from it.
        detail: OpenAI's ``detail``; "low" costs `IMAGE_LOW` whatever the size.
    """
    if detail == "low":
        return IMAGE_LOW
    size = _image_size(head)
    if size is None:
        return IMAGE_UNKNOWN
    width, height = size
    shrink = min(1, 2048 / max(size), 768 / min(size))
    return IMAGE_LOW + IMAGE_TILE * ceil(width * shrink / 512) * ceil(height * shrink / 512)


def file_tokens(size: int | None) -> int:
    """Tokens of a PDF or office file of so many bytes; None: of unknown size."""
    pages = UNKNOWN_PAGES if size is None else min(MOST_PAGES, ceil(size / PAGE_BYTES))
    return PAGE_TOKENS * pages


def audio_tokens(size: int | None, head: bytes = b"") -> int:
    """Tokens of audio of so many bytes (None: unknown), by the rate that a WAV header names."""
    rate = AUDIO_BYTES_PER_SECOND
    if head[:4] == b"RIFF" and head[8:16] == b"WAVEfmt " and len(head) >= 32:
        rate = int.from_bytes(head[28:32], "little") or rate
    seconds = UNKNOWN_SECONDS if size is None else size / rate
    return ceil(AUDIO_TOKENS_PER_SECOND * seconds)


def video_tokens(size: int | None) -> int:
    """Tokens of video of so many bytes; None: of unknown size."""
    seconds = UNKNOWN_SECONDS if size is None else size / VIDEO_BYTES_PER_SECOND
    return ceil(VIDEO_TOKENS_PER_SECOND * seconds)


def _image_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as the file's header says; None where it does not."""
    width = height = 0
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = _big(head[16:20]), _big(head[20:24])
    elif head[:6] in {b"GIF87a", b"GIF89a"}:
        width, height = _little(head[6:8]), _little(head[8:10])
    elif head.startswith(b"\xff\xd8"):
        width, height = _jpeg_size(head)
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8 ":
        width, height = _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8L" and len(head) >= 25:
        bits = _little(head[21:25])
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) >= 30:
        width, height = _little(head[24:27]) + 1, _little(head[27:30]) + 1
    return (width, height) if width and height else None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header (SOF0 to SOF15); zeros where it is not reached."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        at += 1 if marker == 0xFF else 2 + _big(head[at + 2 : at + 4])
    return 0, 0


def _big(number: bytes) -> int:
    return int.from_bytes(number, "big")


def _little(number: bytes) -> int:
    return int.from_bytes(number, "little")
