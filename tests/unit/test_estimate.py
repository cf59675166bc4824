"""The estimate stands in for a vocabulary that is not there, so it is held to that vocabulary.

Faults repaired here: four thousand Chinese characters taken for a thousand tokens, base64 for a
third of what it costs, a run of spaces for thirty times that; an image counted by the length of its
base64, a megabyte of PDF as a quarter of a million tokens.
"""

import struct
import time
from itertools import product

import pytest

from langgraph_compaction.plan import estimate, media
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.estimate import estimate_tokens
from langgraph_compaction.plan.media import (
    audio_tokens,
    file_tokens,
    image_tokens,
    video_tokens,
)
from tests.benchmarks.counting_error import CODE, PROSE, SAMPLES


@pytest.mark.parametrize("kind", SAMPLES)
def test_within_15_percent_of_the_true_vocabulary(kind: str) -> None:
    truth = token_counter().text(SAMPLES[kind])
    assert estimate_tokens(SAMPLES[kind]) == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), (" ", 1), ("a", 1), ("\x00", 1), ("\ud800", 1), ("don't", 1), ("1234567", 3)],
)
def test_short_texts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_names_of_special_tokens_are_plain_text() -> None:
    assert 3 <= estimate_tokens("<|endoftext|>") <= 8


@pytest.mark.parametrize("text", [*PROSE.values(), *CODE.values()])
def test_two_parts_cost_what_the_whole_costs(text: str) -> None:
    whole = estimate_tokens(text)
    for cut in range(0, len(text), 7):
        assert abs(estimate_tokens(text[:cut]) + estimate_tokens(text[cut:]) - whole) <= 2


def test_a_long_text_costs_what_its_repetitions_cost() -> None:
    text = PROSE["English"]
    times = 4 * estimate.SLICE_CHARACTERS // len(text)
    assert estimate_tokens(text * times) == pytest.approx(times * estimate_tokens(text), rel=0.01)


@pytest.mark.parametrize(
    "unit",
    ["a", "A", " ", "\n", "=", "\x00", "\u4e2d", "\U0001f600", "\ud800", "aB", "\n ", "0", "!?"],
)
def test_a_million_characters_take_bounded_time(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    start = time.thread_time()
    tokens = estimate_tokens(text)
    assert time.thread_time() - start < 3.0
    assert 5_000 < tokens <= 1_000_100


def test_what_is_remembered_is_bounded_and_changes_nothing() -> None:
    text = SAMPLES["JSON"]
    before = estimate_tokens(text)
    words = (
        "".join(letters) for letters in product("bcdfghjk", "aeiou", "lmnprstv", "aeiou", "xyz")
    )
    many = " ".join(f"{word} {word}{word} {word.upper()}" for word in words)
    estimate_tokens(many * 2 + "\u4e2d" * 50 + "q" * 50)
    remembered = estimate._prices
    assert 1_000 < len(remembered) <= estimate.REMEMBERED_PIECES
    assert max(map(len, remembered)) < 16
    assert estimate_tokens(text) == before
    remembered.clear()
    assert estimate_tokens(text) == before


def test_a_full_memory_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "REMEMBERED_PIECES", 10)
    monkeypatch.setattr(estimate, "_prices", estimate._Prices())
    assert estimate_tokens(PROSE["English"]) == pytest.approx(123, abs=5)
    assert len(estimate._prices) <= 10


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width: int, height: int, *, exif: int = 20_000) -> bytes:
    """With an EXIF segment and a table before the frame header, as cameras write them."""
    segment = b"\xff\xe1" + struct.pack(">H", exif + 2) + bytes(exif)
    table = b"\xff\xdb" + struct.pack(">H", 67) + bytes(65)
    frame = b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03"
    return b"\xff\xd8" + segment + table + frame


def webp(kind: bytes, size: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + b"\x00\x00\x00\x00" + size


HEADS = {
    "PNG": png(2048, 4096),
    "GIF": gif(2048, 4096),
    "JPEG": jpeg(2048, 4096),
    "WebP, lossy": webp(b"VP8 ", bytes(6) + struct.pack("<HH", 2048, 4096)),
    "WebP, lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 2047 | 4095 << 14)),
    "WebP, extended": webp(b"VP8X", bytes(4) + b"\xff\x07\x00\xff\x0f\x00"),
}


@pytest.mark.parametrize("form", HEADS)
def test_the_size_of_an_image_is_read_from_its_header(form: str) -> None:
    # OpenAI's own example: 2048 x 4096 shrinks to 768 x 1536, 6 tiles.
    assert image_tokens(HEADS[form]) == 1_105


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1024, 1024, 765), (2048, 4096, 1_105), (512, 512, 255), (1, 1, 255), (60_000, 1, 765)],
)
def test_openai_tile_rule(width: int, height: int, tokens: int) -> None:
    assert image_tokens(png(width, height)) == tokens


def test_low_detail_costs_the_same_at_any_size() -> None:
    assert image_tokens(png(4096, 8192), detail="low") == 85
    assert image_tokens(png(4096, 8192), detail="high") == 1_105


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"no image",
        png(0, 10),
        png(10, 10)[:18],
        jpeg(10, 10)[:20_000],
        b"\xff\xd8\xff\xd9\x00\x00",
        webp(b"VP8L", b""),
        webp(b"VP8X", b"\x00"),
    ],
)
def test_an_image_of_unknown_size_has_a_default(head: bytes) -> None:
    assert image_tokens(head) == media.IMAGE_UNKNOWN == 765


def test_files_cost_by_their_pages_up_to_a_cap() -> None:
    assert file_tokens(0) == 0
    assert file_tokens(1) == file_tokens(75_000) == 2_250
    assert file_tokens(750_000) == 22_500
    assert file_tokens(10**9) == file_tokens(10**8) == 225_000
    assert file_tokens(None) == 11_250


def test_audio_costs_by_its_length() -> None:
    wav = b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" + struct.pack(
        "<II", 24_000, 48_000
    )
    assert audio_tokens(480_000, wav) == 320
    assert audio_tokens(160_000) == 320
    assert audio_tokens(160_000, wav[:30]) == audio_tokens(160_000)
    assert audio_tokens(None) == 1_920


def test_video_costs_by_its_length() -> None:
    assert video_tokens(2_500_000) == 3_000
    assert video_tokens(None) == 18_000
