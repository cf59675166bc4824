"""Words and marks that only link a value to what it is the value of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

EDGES = "\"'`()[]{}<>.,;:!?*“”«»„。，；：！？、"
"""Marks around words that are no part of them."""
_LINKS = frozenset((":", "：", "=", "→", "->", ":="))
"""What stands between the name of a setting and its value; "==" and "+=" are code."""
SUBJECT_WORDS = 4
"""Words that a subject has, at most."""
SUBJECT_REACH = 12
"""Words before a value among which those of its subject are looked for."""
SUBJECT_CHARS = 30
"""Characters of one word of a subject, at most."""
LINKING = frozenset(
    "a an the of to in on at is are was were be been it its this that and or for with by from as "
    "has have had will would should must can could may now then than more less about up down set "
    "sets instead changed change changes becomes became new use uses using again only just so "
    "please make i we you he she they i'll we'll let's not nothing else no don't doesn't which "
    "above below over under until before after if when any while = : -> → := - "
    "der die das ein eine einen einem ist sind und oder auf zu von mit nicht jetzt ab "
    "wurde wird beträgt statt anstatt bisher vorher zuvor "
    "previously formerly rather longer antes auparavant вместо раньше ранее "
    "le la les un une est et de du des à en pour maintenant el los las y es al por con ahora "
    "и в на с это был была было были теперь не "
    "是 改为 改成 为 は が を に です 이 가 은 는 를".split()
)
"""Words that say nothing of what a value is the value of. Not complete, and need not be: a subject
with one word more is still the same subject when it is said in the same way again."""
_BINDING = frozenset(
    "is are was were be been becomes became now to from ist sind war wird auf von jetzt est sont "
    "était devient à de es son era será ahora a это был была было были теперь на с "
    "là é foi agora の は が を に 은 는 이 가 是 为 改为 改成".split()
)
"""Words right before a name that make it the value of what stands before them. Of numbers any
words before them tell the subject; a name may follow any verb ("see", "open") and replace none."""
_PAST_BEFORE = re.compile(
    r"(?:\A| )(?:instead of|rather than|no longer|not|was|were|from|before|previously|formerly|old"
    r"|statt|anstatt|nicht mehr|bisher|vorher|zuvor|au lieu de|plutôt que|auparavant|avant"
    r"|en vez de|en lugar de|antes|вместо|раньше|ранее)\Z"
)
_PAST_AFTER = re.compile(
    r"(?:(?:was|is|were|are|had been) (?:too|wrong|not)|no longer|before\Z|war(?:en)? zu"
    r"|était trop|era demasiado|был\w? слишком)"
)
_PRONOUNS = frozenset(
    ("it", "es", "er", "sie", "il", "elle", "он", "она", "оно", "它", "それ", "그것은")
)
_ENDS = (".", ";", "!", "?", "。", "；", "！", "？")
_ORDINAL = re.compile(r"\d{1,2}\.\Z")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LAST_CLAUSE = re.compile(r"[^，。；！？、,;!?]*\Z")
_TAIL = re.compile(  # what links in scripts without spaces; at the end of a Korean word, particles
    r"(?:[改设設变變换換](?:为|為|成)|(?:设置|设定|設定|调整|調整|更新|变更|变化|修改)(?:为|為|成|到)?"
    r"|[提升降]?[高低升]到|[增减]?[加少]到|[是为為从由到至已在了]|现在|目前|如今|現在|約|约"
    r"|は|が|を|に|の|から|へ|まで|では|[:：=→]"
    r"|(?<=[\uac00-\ud7af])(?:에서|으로|[은는이가을를의로에]))+\Z"
)
_HEAD = re.compile(r"\A(?:现在|目前|我们|我們|请|請|把|将|將|而|但|并|現在|今は?)+")


def subject_of(words: Sequence[str], at: int, taken: Collection[int], before: str) -> str:
    """The words of the clause before a value, less those that only link it: "upload timeout".

    Args:
        words: of the line.
        at: index of the value's first word.
        taken: indexes of words that belong to other names and values.
        before: subject of the value before, for "it is 45 s now".
    """
    found: list[str] = []
    pronoun = False
    for index in range(at - 1, max(-1, at - 1 - SUBJECT_REACH), -1):
        word, used = words[index], index in taken
        if word.endswith(_ENDS) and not (used and _ORDINAL.match(word)):
            break
        if found and (used or word.endswith((":", ",", "，"))):
            break
        plain = "" if used else _subject_word(word)
        if plain in _PRONOUNS:
            pronoun = True
        elif plain:
            found.append(plain)
        if len(found) == SUBJECT_WORDS:
            break
    if not found:
        return before if pronoun else ""
    return " ".join(reversed(found))


def subject_within(lead: str, before: str) -> str:
    """The same from the text before a value in a word of a script without spaces.

    Args:
        lead: from the word's beginning, or the value before, up to the value.
        before: subject of the value before.
    """
    clause = _LAST_CLAUSE.findall(lead)[0]
    plain = _without_links(_HEAD.sub("", clause.strip(EDGES))).casefold()
    if plain and plain not in _PRONOUNS:
        return plain[-SUBJECT_CHARS:]
    return before


def is_past(words: Sequence[str], start: int, stop: int) -> bool:
    """Whether the words around a value say that it no longer holds.

    Args:
        words: of the line.
        start: index of the value's first word.
        stop: index after its last.
    """
    before = " ".join(word.strip(EDGES).casefold() for word in words[max(0, start - 3) : start])
    after = " ".join(word.strip(EDGES).casefold() for word in words[stop : stop + 3])
    # What follows a stop says nothing of it.
    closed = words[stop - 1].endswith((*_ENDS, ","))
    return bool(_PAST_BEFORE.search(before)) or (not closed and bool(_PAST_AFTER.match(after)))


def is_link(word: str) -> bool:
    """Whether a word ends the name of a setting, so that its value follows: ``timeout:``."""
    return word in _LINKS or (word[-1:] in {":", "："} and len(word) > 1)


def binds(word: str) -> bool:
    """Whether a name that follows a word is the value of what stands before it."""
    plain = word.strip(EDGES).casefold()
    return is_link(word) or plain in _BINDING or (not plain.isascii() and bool(_TAIL.search(plain)))


def is_unspaced(text: str) -> bool:
    """Whether a text has letters of a script that writes words without spaces, or of Korean."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def _without_links(word: str) -> str:
    return _TAIL.sub("", word)


@lru_cache(maxsize=4096)
def _subject_word(word: str) -> str:
    """A word as it stands in a subject, "" where it only links; pronouns as they are."""
    plain = word.strip(EDGES).casefold()
    if plain in _PRONOUNS:
        return plain
    if plain in LINKING or not any(map(str.isalpha, plain)) or plain[0].isdigit():
        return ""
    plain = plain if plain.isascii() else _without_links(plain)
    return plain[:SUBJECT_CHARS].rstrip(EDGES)
