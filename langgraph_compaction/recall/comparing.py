"""The form in which texts and queries are compared."""

from __future__ import annotations

from unicodedata import normalize

_SAME: dict[int, str | None] = {
    # Shape what stands beside them, or say where a line may break.
    **dict.fromkeys([0xAD, *range(0x200B, 0x2010), 0x2060, 0xFE0E, 0xFE0F, 0xFEFF]),
    # Of the Turkish i, upper case becomes one with a dot of its own, and lower case may lack it.
    0x307: None,
    0x131: "i",
    0x2019: "'",
}


def comparable(text: str) -> str:
    """``text`` so that what reads the same is the same: case, width, ligatures and accents.

    Accents may be characters of their own or not; they stay: "café" is not "cafe".
    """
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    return folded.translate(_SAME)
