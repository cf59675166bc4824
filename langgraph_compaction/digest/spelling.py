"""Patterns that match words in any spelling that a model may take for them.

Text of a hostile span must not pass for what is ours: a tag, a heading, a label. A model reads
full-width letters, ``**End**`` and a word with invisible characters in it as the word itself, so
comparing characters is not enough.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

UNSEEN = (
    r"\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""For a class of a pattern: characters that show nothing, and marks that only decorate the letter
before them. Unicode's default-ignorable and control characters, variation selectors, combining
marks."""
# Code points among which Unicode has other forms of ASCII letters: full-width, bold, circled.
_FORMS = (
    *((0x02B0, 0x036F), (0x1D2C, 0x1DBF), (0x2070, 0x214F), (0x2460, 0x24FF)),
    *((0xFE30, 0xFE6F), (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF)),
)
MARKS = (
    rf"(?:[ \t]*(?:\d{{1,3}}|[a-z])[.)](?=\s))?(?:</?[a-z][a-z0-9]{{0,9}}>|&\#?\w{{2,8}};"
    rf"|[^\w\n<&]|[<&](?![a-z/\#])|[_{UNSEEN}])*+"
)
"""A pattern of what may stand before or behind words on a line: marks, the number of a list's item,
a tag or an entity of HTML; no other letters or digits."""
_ALIKE = {
    "a": "аɑα", "b": "ʙ", "c": "сᴄ", "d": "ԁᴅ", "e": "еᴇ", "f": "ꜰ", "g": "ɡɢ", "h": "һʜ",
    "i": "іɪı", "j": "јᴊ", "k": "кᴋκ", "l": "ʟ", "m": "мᴍ", "n": "ɴ", "o": "оοᴏ", "p": "рρᴘ",
    "q": "ԛ", "r": "ʀ", "s": "ѕꜱ", "t": "тᴛτ", "u": "υᴜ", "v": "νᴠ", "w": "ԝᴡ", "x": "хχ",
    "y": "уʏγ", "z": "ᴢ",
}  # fmt: skip
"""Letters of other scripts that look like ASCII's (Unicode's confusables, the common ones)."""
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = rf"[\W_{UNSEEN}]*+"


@lru_cache(maxsize=1)
def _forms() -> dict[str, str]:
    forms: dict[str, str] = {}
    for first, last in _FORMS:
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFKC", chr(code)).casefold()
            if len(plain) == 1 and plain.isascii():
                forms[plain] = forms.get(plain, "") + chr(code)
    return forms


def forms_of(character: str) -> str:
    """For a class of a pattern: an ASCII character and all characters that are read as it."""
    plain = character.casefold()
    return re.escape(character) + _forms().get(plain, "") + _ALIKE.get(plain, "")


def spelled(word: str) -> str:
    """A pattern of one word: unseen characters may stand in it; case is up to the pattern."""
    return f"[{UNSEEN}]*+".join(f"[{forms_of(letter)}]" for letter in word)


def phrase(text: str) -> str | None:
    """A pattern of the words of a text, whatever stands between them but letters and digits.

    None for a text without words.
    """
    words = _WORD.findall(text)
    return _BETWEEN.join(map(spelled, words)) if words else None
