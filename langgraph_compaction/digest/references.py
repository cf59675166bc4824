"""Paths, URLs, ids and the like in a text, known by their form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langgraph_compaction.digest.sentences import clean

# A word character that is not CJK: paths and ids stand in CJK text without spaces around them.
_W = r"[^\W\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
_NAME = rf"(?:{_W}|[.@+~%-])"
# A name begins where none is under way: trying again at every character of a long run would take
# time with the square of its length.
_NEW = rf"(?<!{_NAME})"
# Ends of host names: the common domains, and those of internal networks and documentation.
_TOP = (
    "com|org|net|edu|gov|io|dev|app|ai|co|cloud|de|fr|es|it|nl|ch|at|uk|eu|jp|cn|kr|in|ru|br|us|ca"
    "|au|local|localdomain|internal|intranet|lan|corp|home|svc|example|test|invalid"
)
# What may follow an id: the rest of a host's or a file's name.
_TAIL = rf"(?:\.[A-Za-z](?:{_W}|-)*)*"
_REFERENCE = re.compile(
    # URL
    r"[a-z][a-z0-9+]{1,9}://[^\s<>\"'`|\[\]{}，。；、！？）」』]+"
    # e-mail address
    rf"|(?<!{_W})(?<!{_W}[.+-])(?<!{_W}[.+-]{{2}}){_W}(?:{_W}|[.+-]|['’](?={_W}))*+"
    rf"@(?:{_W}|-)++(?:\.(?:{_W}|-)++)+(?::\d{{2,5}}(?!{_W}))?"
    # host: of three labels, or with a hyphen or digit; others look like attributes in code
    rf"|(?<!{_W})(?<![.@/-])(?=[a-z0-9.-]*(?:[-0-9]|\.[a-z0-9-]+\.))(?:[a-z0-9][a-z0-9-]*+\.){{1,6}}"
    rf"(?:{_TOP})(?!{_W})(?!\.{_W})(?::\d{{2,5}}(?!{_W}))?"
    # path: absolute, with a file ending, of three steps, or Windows: of a drive or a server
    rf"|(?:~|\.{{1,2}})?(?<!{_W})(?<!/)(?:/{_NAME}+){{2,}}/?"
    rf"|{_NEW}{_NAME}+(?:/{_NAME}+)*/{_NAME}*\.[A-Za-z]{_W}{{0,7}}(?!{_W})"
    rf"|{_NEW}{_NAME}++(?:/{_NAME}++){{2,}}+"
    rf"|(?<!{_W})[A-Za-z]:(?:[/\\]{_NAME}++)++|(?<!{_W})(?<!\\)\\\\{_NAME}++(?:\\{_NAME}++)++"
    # file name
    rf"|(?<!{_W})(?<![-.])(?:{_W}|[-.])+\.(?:pyi?|md|rst|txt|jsonl?|ya?ml|toml|ini|cfg|csv|tsv|[jt]sx?"
    rf"|mjs|html?|css|scss|java|kt|go|rs|cpp|cc|c|h|hpp|cs|rb|php|swift|sh|sql|xml|lock|log|pdf|docx?|xlsx?|png"
    rf"|jpe?g|gif|svg|webp|mp[34]|wav|zip|gz|tar(?:\.[gx]z|\.bz2|\.zst)?|ipynb|env|conf)(?!{_W})"
    # id with a prefix: req_9f86d081, i-0abc123def, then UUID, hash
    rf"|(?<!{_W})(?<!-)[A-Za-z]{{1,12}}[_-](?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{{6,64}}"
    rf"(?!{_W})(?!-){_TAIL}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    rf"|(?<![A-Za-z0-9])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{{7,64}}(?![A-Za-z0-9]){_TAIL}"
    # date, version or IP address
    r"|\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{4}年\d{1,2}月(?:\d{1,2}日)?"
    r"|(?<![A-Za-z0-9.])v?\d+\.\d+\.\d+(?:[-+.]?[A-Za-z0-9]+)*(?::\d{2,5}(?!\w))?"
    rf"|(?<!{_W})v\d+(?:\.\d+)+"
    # codes and ids: JG7FMM, PROJ-12, order_3817, #42
    rf"|(?<!{_W})(?<!{_W}-)(?=[A-Z0-9_-]*\d)(?=[A-Z0-9_-]*[A-Z])(?!UTF-)[A-Z0-9][A-Z0-9_-]{{4,}}"
    rf"(?!{_W})"
    rf"|(?<!{_W})[A-Za-z]+(?:[_-][A-Za-z0-9]+)*(?:_\d{{2,}}|-\d{{4,}})(?!{_W}){_TAIL}"
    r"|(?<!\w)#\d+"
    # number with a unit
    r"|[$€£¥]\d[\d,.]*\d"
    r"|(?<![\w.,])\d[\d,.]*(?:%|[kMGT]?i?B|ms|s|km|kg|px|USD|EUR)(?!\w)"
)
_MIXED_PATH = re.compile(
    # docs/图/架构_v2.md: from its first slash on a path may hold any letters, up to its file ending
    rf"{_NEW}{_NAME}*+/[\w.@+~%/-]{{0,150}}?\.[A-Za-z][A-Za-z0-9]{{0,7}}(?![A-Za-z0-9_])"
)
_MAY_REFER = re.compile(r"\d|[/\\@]|\w\.\w")
_DIFF_SIDE = re.compile(r"^[ab]/(?=[\w.]+/)")
_REFERENCE_CHARS = 300
"""Characters above which a reference is data rather than a name."""


def references(text: str, known: dict[str, list[str]] | None = None) -> Iterator[str]:
    """Paths, URLs, ids, hashes, dates, versions and numbers with units, in order, repeats too.

    Args:
        text: any text.
        known: what was found in words so far; kept up to date.
    """
    known = {} if known is None else known
    for word in text.split():
        if word.isalpha() or word[:-1].isalpha() or word.isdigit():
            continue
        if word not in known:
            may_refer = len(word) <= 4 * _REFERENCE_CHARS and _MAY_REFER.search(word)
            known[word] = references_in(word) if may_refer else []
        yield from known[word]


def references_in(word: str) -> list[str]:
    """The references in one word, that is in a text without white space."""
    found = []
    word = clean(word)
    if not word.isascii() and "://" not in word:
        found = [name for name in _MIXED_PATH.findall(word) if not name.isascii()]
        for name in found:
            word = word.replace(name, " ")
    for match in _REFERENCE.finditer(word):
        reference = _DIFF_SIDE.sub("", match.group().rstrip(".,;:!?'*-"))
        if reference.endswith("_") and not reference.endswith("__"):
            reference = reference[:-1]  # emphasis; a dunder name ends in two
        if reference.endswith(")") and "(" not in reference:
            reference = reference.rstrip(").,")
        if 2 <= len(reference) <= _REFERENCE_CHARS:
            found.append(reference)
    return found
