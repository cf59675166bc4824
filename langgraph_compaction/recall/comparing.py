"""The form in which texts and queries are compared."""

from __future__ import annotations

import re
from unicodedata import normalize

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff\u0307]")
"""What shapes its neighbours or says where a line may break; and the dot that the Turkish i has of
its own when its upper case is made lower."""


def comparable(text: str) -> str:
    """``text`` so that what reads the same is the same: case, width, ligatures and accents.

    Accents may be characters of their own or not; they stay: "café" is not "cafe".
    """
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    return _UNSEEN.sub("", folded).replace("\u0131", "i").replace("\u2019", "'")
