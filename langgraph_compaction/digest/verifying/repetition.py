"""Answers that repeat: themselves, what they were made from, or what they were asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from langgraph_compaction.digest.verifying.cleaning import body

ECHO_SHARE = 0.6
"""Share of a digest's characters in lines copied from its source above which it is an echo."""
ECHO_LINE = 60
"""Characters from which a copied line counts as copied: short ones recur by chance."""
LOOP_SHARE = 0.4
"""Share of the lines that one and the same line may make up before the text is a loop."""
REPEATED_SHARE = 0.4
"""Share of a text's runs of three words that are different ones below which it is a loop."""
TEMPLATE_SHARE = 0.5
"""Share of a text's runs of four words that stand in its prompt above which it is a template."""
TEMPLATE_RUN = 4
"""Words of such a run: headings alone are shorter, so using them is no copying."""

_WORD = re.compile(r"\w+")
_NOTHING = re.compile(
    r"(?:none|nothing|nil|n/?a|not (?:applicable|available|specified|provided|mentioned)|unknown"
    r"|empty|tbd|tba|todo|to be (?:done|determined|defined|filled(?: in)?)"
    r"|no (?:information|content)"
    r"|(?:placeholder|your|sample|insert)(?: \w+){0,4}(?: here)?|lorem ipsum.{0,300}"
    r"|keine|nichts|aucune?|rien|ningun[oa]|nessun[oa]|nenhuma?|нет|无|無|なし|없음)?",
    re.IGNORECASE,
)
# No digit, colon, dot or path in it: "[shell: pytest → failed]" is a finding.
_BRACKETED = re.compile(
    r"(?:\[[^\W\d][^\]\d:./→]{0,80}\]|<[^\W\d][^>\d:./→]{0,80}>|\{[\w ,'-]{1,80}\})"
)
_MARKS = " \t-*•_.…()\"'`:;!?—–|>"


def loops(text: str) -> bool:
    """Whether one line, or runs of a few words, make up too much of the text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= 5:
        most = Counter(lines).most_common(1)[0][1]
        if most >= 4 and most > len(lines) * LOOP_SHARE:
            return True
    words = text.split()
    if len(words) < 30:
        return False
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return len(set(runs)) < len(runs) * REPEATED_SHARE


def copied(text: str, source: Sequence[str]) -> bool:
    """Whether most of the text stands in ``source``, line by line."""
    known = {line.strip() for piece in source for line in piece.splitlines()}
    total = taken = 0
    for line in text.splitlines():
        stripped = line.strip()
        total += len(stripped)
        if len(stripped) >= ECHO_LINE and stripped in known:
            taken += len(stripped)
    return total > 0 and taken > total * ECHO_SHARE


def template(text: str, prompt: str) -> bool:
    """Whether the text is a form that was not filled in.

    Args:
        text: the answer.
        prompt: the instructions it was written by; what it takes from them says nothing.
    """
    if all(_is_placeholder(line) for line in body(text)):
        return True
    given, said = set(_runs(prompt)), _runs(text)
    return sum(run in given for run in said) > len(said) * TEMPLATE_SHARE


def _is_placeholder(line: str) -> bool:
    bare = line.strip().lstrip("-*•0123456789. \t").strip("*_ \t")
    return bool(_BRACKETED.fullmatch(bare) or _NOTHING.fullmatch(bare.strip(_MARKS + "[]<>{}")))


def _runs(text: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return list(zip(*(words[n:] for n in range(TEMPLATE_RUN)), strict=False))
