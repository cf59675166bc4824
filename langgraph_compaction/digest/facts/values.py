"""Values in running text: numbers with their units, dates and times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langgraph_compaction.digest.facts.linking import EDGES, LINKING

_UNSPACED_UNITS = (
    "毫秒|秒|分钟|分|小时|小時|時間|天|日|个月|個月|年|万元|元|円|万|亿|米|公里|千克|公斤|度|次|行"
    "|个|個|台|件|人|条|名|回|本|枚|초|분|시간|일|개월|원|회|개|명|줄"
)
_UNIT = re.compile(
    "(?:ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|hours?|hrs?|h|days?|weeks?|months?|years?"
    "|[kKMGTP]i?B|bytes?|bits?|[kKMG]bps|[kMG]?Hz|[kMm]?V|m?A|[kMG]?Wh?|rpm|rps|qps|psi|bar|k?Pa"
    "|mm|cm|km|m|µm|ft|kg|mg|g|lbs?|t|ml|l|°[CF]?|K|%|px|pt|dpi|USD|EUR|GBP|JPY|CHF|k|M"
    "|tokens?|rows?|lines?|files?|items?|users?|requests?|retries|attempts?|connections?|threads?"
    "|workers?|replicas?|nodes?|cores?|pages?|points?|times|percent|am|pm"
    "|Sekunden?|Minuten?|Stunden?|Tage?n?|Zeilen?|Euro|secondes?|heures?|jours?|minutos?|horas?"
    r"|segundos?|d[ií]as?|semanas?|meses|lignes?|fichiers?|l[ií]neas?|Dateien?|Wochen?"
    r"|секунд\w*|минут\w*|час\w*|дн\w+|день|недел\w+|строк\w*|руб\w*|\w{1,8}/\w{1,4}|[€$£¥₽₩]"
    rf"|(?:{_UNSPACED_UNITS})[^\W\d]{{0,4}})\Z"
)
_UNSPACED = re.compile(  # in scripts without spaces, value and unit stand within a sentence
    rf"[$€£¥]?\d[\d.,]*\s?(?:{_UNSPACED_UNITS}|[a-zA-Z%]{{1,5}}(?![a-zA-Z]))"
)
_NUMBER = re.compile(r"[$€£¥]?[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?(?:[x×:/]\d[\d.,]*)*\Z")
_DOTTED = re.compile(r"\d+\.\d+\.\d")  # a version, an address, a date: references
_CURRENCIES = "$€£¥"
_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?\Z")
_DAY = re.compile(r"\d{1,2}(?:\.|st|nd|rd|th|er|º)?\Z")
_YEAR = re.compile(r"\d{4}\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
# English and German months begin with a capital ("3 may fail"); the others do not.
_MONTH = re.compile(
    r"(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mär|Mai|Okt|Dez)[^\W\d]{0,7}"
    r"|janv|févr|mars|avril|avr|mai|juin|juil|août|sept|oct|nov|déc|janvier|février|juillet"
    r"|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto"
    r"|septiembre|octubre|noviembre|diciembre|janeiro|fevereiro|março|maio|junho|julho|setembro"
    r"|outubro|novembro|dezembro|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre"
    r"|dicembre|янв\w*|фев\w*|марта?|апр\w*|ма[йя]|июн\w*|июл\w*|авг\w*|сент?\w*|окт\w*|ноя\w*"
    r"|дек\w*)\.?\Z"
)
_OF = frozenset(("de", "of", "del", "di"))
"""Words between day, month and year: "12 de marzo de 2034"."""
_THOUSANDS = re.compile(r"[1-9]\d{0,2}\Z")
_GROUP = re.compile(r"\d{3}(?:[.,]\d+)?\Z")
_SETTING = re.compile(  # in one word: port=8080, "timeout":45s
    r"[\"'{\[(]*(?P<name>-{0,2}[A-Za-z_][\w.-]{0,59})[\"']?[=:][\"']?"
    r"(?P<value>[$€£¥]?-?\d[\d.,]*(?:%|[A-Za-z]{1,5})?)[\"'})\],;.]*\Z"
)
_COUNTED_CHARS = 16
"""Characters of a word that says what there are a number of, at most."""


def value_at(words: Sequence[str], at: int, *, said: bool) -> tuple[str, int]:
    """The value that begins with a word, and the index after its last word.

    Args:
        words: of a line.
        at: index of the word.
        said: whether a person or the agent said it: then any word after a number may be what
            there are that many of ("17 retries"), and months are dates.

    Returns:
        "" and ``at`` where no value begins.
    """
    core = words[at].strip(EDGES)
    if not core:
        return "", at
    following = [word.strip(EDGES) for word in words[at + 1 : at + 5]]
    if (said or not core[0].isalpha()) and following:
        dated = _date(words[at : at + 5], [core, *following])
        if dated:
            return dated, at + dated.count(" ") + 1
    if not _NUMBER.match(core) or _DOTTED.match(core):
        return "", at
    unit = ""
    if words[at][-1] not in ",;:)." and following:
        if (
            _THOUSANDS.match(core)
            and _GROUP.match(following[0])
            and any(map(_UNIT.match, following[1:2]))
        ):
            return f"{core} {following[0]} {following[1]}", at + 3
        if _UNIT.match(following[0]) or (said and _is_counted(following[0])):
            unit = following[0]
    return (f"{core} {unit}", at + 2) if unit else (core, at + 1)


def setting_in(word: str) -> tuple[str, str]:
    """Value and name of a setting in one word, such as ``port=8080``; "" twice for other words."""
    found = _SETTING.match(word)
    return (found["value"].rstrip(".,"), found["name"]) if found else ("", "")


def values_within(word: str) -> list[str]:
    """Values with units in text of a script without spaces."""
    return _UNSPACED.findall(word)


def is_number(value: str) -> bool:
    """Whether a value is a number without unit or currency."""
    return _NUMBER.match(value) is not None and value[0] not in _CURRENCIES


def _date(written: Sequence[str], cores: Sequence[str]) -> str:
    """A date that begins with a word: "2034-05-12 13:45", "12 March 2034", "March 12, 2034".

    Args:
        written: the word and some after it.
        cores: the same without marks around them.
    """
    first, second = cores[:2]
    if _DATE.match(first):
        return f"{first} {second}" if _CLOCK.match(second) else ""
    if _MONTH.match(first) and _DAY.match(second):
        if cores[2:] and _YEAR.match(cores[2]):
            return f"{first} {written[1]} {cores[2]}"  # with the comma of "March 12, 2034"
        return f"{first} {second}"
    if not _DAY.match(first) or not written[0].endswith((first, ".")):
        return ""
    month = 2 if second in _OF and cores[2:] else 1
    if not _MONTH.match(cores[month]):
        return ""
    year = month + (2 if cores[month + 1 : month + 2] and cores[month + 1] in _OF else 1)
    last = year if cores[year:] and _YEAR.match(cores[year]) else month
    # "12." keeps its point.
    day = written[0].lstrip(EDGES) if written[0].endswith(".") else first
    return " ".join([day, *written[1:last], cores[last]])


def _is_counted(word: str) -> bool:
    plain = word.isalpha() and word.islower() and 1 < len(word) <= _COUNTED_CHARS
    return plain and word not in LINKING
