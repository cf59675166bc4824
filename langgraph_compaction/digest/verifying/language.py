"""Whether a digest is in another language than the conversation, by its script and frequent words.

An agent goes on in the language of its digest, so a digest that switches to English switches the
whole conversation. But a good digest that is refused costs a call. So only clear evidence counts:
a short or mixed text is no fault, nor is one in a language of Latin script that is not known here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from langgraph_compaction.digest.verifying.cleaning import body
from langgraph_compaction.digest.verifying.stopwords import STOP_WORDS

SAMPLE = 20_000
"""Characters of the conversation, and of the digest, that are looked at, at most."""
SAMPLE_TEXTS = 100
"""Texts of the conversation that are looked at, evenly spread."""
LEAST_UNITS = 20
"""Words (of scripts without spaces: characters) below which the script of a text is not judged."""
SCRIPT_SHARE = 0.6
"""Share of a text's words in one script from which it is the text's script."""
HARDLY = 0.1
"""Share of a digest's words below which hardly any of them is in the conversation's script."""
LEAST_STOP_WORDS = 6
"""Frequent words of a language below which it is not recognised."""
STOP_WORD_SHARE = 0.1
"""Share of a text's words that are frequent ones of a language, from which it may be the text's:
English, the lowest of the six in terse notes, has about 0.2; Dutch shows 0.05 of English."""
MARGIN = 2.0
"""Times that the frequent words of a language must outnumber those of every other one."""
ONE_LINE = 12
"""Words of a text up to which a single frequent word shows that its language is spoken, too."""
SPOKEN = 10
"""Latin words of a text from which a conversation in another script is a mixed one."""
SPOKEN_CHARACTERS = 2
"""Words or characters of another script from which a Latin conversation is a mixed one."""
KANA_SHARE = 0.1
"""Share of kana from which East Asian characters are Japanese."""

# Scripts without spaces count by the character, the others by the word.
_SCRIPTS = {
    "Latin": r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]{2,}",
    "East Asian": r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]",
    "Korean": r"[\uac00-\ud7a3]",
    "Thai": r"[\u0e01-\u0e4e]",
    "Cyrillic": r"[\u0400-\u04ff]{2,}",
    "Greek": r"[\u0370-\u03ff\u1f00-\u1fff]{2,}",
    "Hebrew": r"[\u05d0-\u05ea]{2,}",
    "Arabic": r"[\u0620-\u065f\u066e-\u06d3]{2,}",
    "Devanagari": r"[\u0900-\u097f]{2,}",
    "Bengali": r"[\u0980-\u09ff]{2,}",
    "Tamil": r"[\u0b80-\u0bff]{2,}",
    "Georgian": r"[\u10a0-\u10ff]{2,}",
    "Armenian": r"[\u0531-\u0587]{2,}",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _SCRIPTS.items()}
_KANA = re.compile(r"[\u3041-\u30ff]")
_LANGUAGES_OF_SCRIPTS = {"Korean", "Thai", "Greek", "Hebrew", "Georgian", "Armenian", "Tamil"}
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,300}`", re.DOTALL)
_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」'
)
_RUN = re.compile(r"[!-~]+")
_NO_WORD = re.compile(r"[/\\_@=<>{}$#0-9|~^]|[A-Za-z][.:][A-Za-z]|[a-z][A-Z]")
_NAMES_LANGUAGE = re.compile(
    r"\b(?:language|sprache|langue|idioma|língua|lingua|язык\w*|english|german|deutsch|french"
    r"|français|spanish|español|portugu\w+|italian\w?|chinese|japanese|korean|russian|arabic"
    r"|hebrew|greek|hindi|thai|dutch|polish|turkish|translat\w+)\b|语言|語言|言語|언어"
    r"|[中英日德法韩]文|英語|日本語|中国語|영어|한국어",
    re.IGNORECASE,
)


class Mismatch(NamedTuple):
    """Two languages, or scripts, by their names."""

    found: str
    expected: str


def mismatch(text: str, conversation: Sequence[str]) -> Mismatch | None:
    """The language of the digest and that of the conversation, where they clearly differ.

    Args:
        text: the digest. Its headings, code, names, paths and quotes do not count.
        conversation: what user and agent wrote; empty: not known.
    """
    texts = [_prose(one) for one in _sampled(conversation)]
    mine = _prose("\n".join(body(text[:SAMPLE])))
    spoken, written = _scripts(texts), _scripts([mine])
    theirs, ours = _dominant(spoken), _dominant(written)
    if theirs is None or ours is None:
        return None
    if theirs != ours:
        if written[theirs] >= written.total() * HARDLY or _speaks_script(ours, texts):
            return None
        return Mismatch(_named(ours, [mine]), _named(theirs, texts))
    return _other_words(mine, texts) if ours == "Latin" else None


def names_language(instructions: str | None) -> bool:
    """Whether instructions say something about a language, so that the digest's may be theirs."""
    return bool(instructions) and _NAMES_LANGUAGE.search(instructions or "") is not None


def _sampled(conversation: Sequence[str]) -> list[str]:
    chosen = conversation[:: -(-len(conversation) // SAMPLE_TEXTS)] if conversation else []
    each = SAMPLE // max(1, len(chosen))
    return [text[:each] for text in chosen]


def _prose(text: str) -> str:
    """The text without what is the same in every language: code, names, paths, quotes."""
    text = _QUOTED.sub(" ", _CODE.sub(" ", text.replace("\u2019", "'")))
    return _RUN.sub(_word, "\n".join(line for line in text.splitlines() if line[:1] != "#"))


def _word(run: re.Match[str]) -> str:
    return " " if _NO_WORD.search(run[0]) or run[0].isupper() else run[0]


def _scripts(texts: Iterable[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for text in texts:
        for name, pattern in _PATTERNS.items():
            found[name] += len(pattern.findall(text))
    return found


def _dominant(found: Counter[str]) -> str | None:
    total = found.total()
    name, units = found.most_common(1)[0] if found else ("", 0)
    return name if total >= LEAST_UNITS and units >= total * SCRIPT_SHARE else None


def _speaks_script(script: str, texts: Iterable[str]) -> bool:
    """Whether some text of the conversation is in that script."""
    for text in texts:
        found = _scripts([text])
        if script != "Latin" and found[script] >= SPOKEN_CHARACTERS:
            return True
        if found[script] >= max(SPOKEN, found.total() * SCRIPT_SHARE):
            return True
    return False


def _named(script: str, texts: Sequence[str]) -> str:
    if script == "Latin":
        return _language(_frequent(" ".join(texts))) or "Latin script"
    if script == "East Asian":
        kana = sum(len(_KANA.findall(text)) for text in texts)
        return "Japanese" if kana >= _scripts(texts)[script] * KANA_SHARE else "Chinese"
    return script if script in _LANGUAGES_OF_SCRIPTS else f"{script} script"


def _other_words(mine: str, texts: Sequence[str]) -> Mismatch | None:
    frequent = [_frequent(text) for text in texts]
    together: Counter[str] = sum(frequent, Counter())
    ours, theirs = _language(_frequent(mine)), _language(together)
    if ours is None or theirs is None or ours == theirs:
        return None
    if any(_speaks(ours, theirs, found) for found in frequent):
        return None
    return Mismatch(ours, theirs)


def _frequent(text: str) -> Counter[str]:
    """How many frequent words of each language a text has; under "": its words."""
    words = Counter(_PATTERNS["Latin"].findall(text.casefold()))
    found = Counter({"": words.total()})
    for language, stop_words in STOP_WORDS.items():
        found[language] = sum(count for word, count in words.items() if word in stop_words)
    return found


def _language(found: Counter[str]) -> str | None:
    (first, most), (_, second) = Counter({n: found[n] for n in STOP_WORDS}).most_common(2)
    enough = max(LEAST_STOP_WORDS, found[""] * STOP_WORD_SHARE, second * MARGIN)
    return first if found[""] >= LEAST_UNITS and most >= enough else None


def _speaks(ours: str, theirs: str, found: Counter[str]) -> bool:
    """Whether one text of the conversation is, as it seems, in the digest's language."""
    least = 1 if found[""] <= ONE_LINE else 2
    return found[ours] >= least and found[ours] > found[theirs]
