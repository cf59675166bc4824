"""Text cut into clean sentences: what an extract may consist of."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

CUT = "…"
"""Where a text was cut."""

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
)
_INLINE_FENCE = re.compile(r"`{3,}|~{3,}")
_PROTOCOL = re.compile(
    r"</?(?:\w+:)?(?:tool|function|invoke|parameter|arguments|think|reasoning)[\w=.-]*"
    r"(?:\s[^<>]*)?>?"
    r"|<[|｜][^<>]*>|<<?/?SYS>>?|\[/?(?:TOOL_\w+|AVAILABLE_TOOLS|INST)\]"
    r"|\"(?:tool_calls?|tool_call_id|function_call|arguments)\"\s*:",
    re.IGNORECASE,
)
_LEADING_TAG = re.compile(r"</?[A-Za-z][\w:-]*>(?!/)\s*")  # <root>/src is a path
_TRAILING_TAG = re.compile(r"</[A-Za-z][\w:-]*>|(?:^|(?<=\s))<[A-Za-z][\w:-]*>")  # List<int> is not
_DATA_URL = re.compile(r"data:[\w/.+-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]*")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{64,}")
_LIST_MARK = re.compile(r"(?:[-*+•|]|#{1,6}|>+|\d{1,3}[.)]|THOUGHT:)(?=\s)\s*")
_CODE_SPAN = r"`[^`]*`"
# Pairs of marks around words only: `__init__`, `**kwargs`, `2**8` and `src/**/*.py` are names.
_EMPHASIS = re.compile(
    rf"{_CODE_SPAN}"
    r"|(?:^|(?<=[\s(\[\"'“‘«—–>|:,;\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]))"
    rf"(?:\*\*(?P<it>\*?)(?![\s*/])(?P<strong>(?:{_CODE_SPAN}|(?!\*\*)[^`])+?)(?<![\s/])\*\*(?P=it)"
    rf"|__(?![\s_])(?P<wide>(?:{_CODE_SPAN}|(?!__)[^`])+?)(?<!\s)__)(?![A-Za-z0-9_/*(\[{{])"
)
_STOPS = ".:;!?…。！？：|{}>"
_GOES_ON = re.compile(r"(?:[a-zß-ÿа-я]+[,;:.!?]?(?:[ \t]|\Z)){1,2}|[/~.\w-]*/[\w./-]+")
"""A line that goes on where the one before broke off: it begins small, or with a path."""
_BROKEN_OFF = re.compile(
    r"(?:,|\b(?:a|an|the|to|of|in|on|at|by|for|from|with|and|or|but|not|if|when|than|as|is|are|be"
    r"|only|except|without|until|unless|through|into|over|under|between|about|after|before|within"
    r"|via|per|all|any|each|no|der|die|das|den|dem|ein|eine|und|oder|in|mit|von|zu|für"
    r"|auf|nicht|le|la|les|un|une|et|ou|de|du|des|à|en|pour|par|el|los|las|y|o|con|por|que))\Z",
    re.IGNORECASE,
)
"""The end of a line that has to go on, whatever the next begins with."""

_END = re.compile(r"[.!?…؟۔।。！？｡]+[\"'”’»)\]*_」』）]*")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ABBREVIATIONS = frozenset(
    "approx ca cf dr e.g ed eg esp etc ex i.e ie incl jr mr mrs ms prof resp sr st vgl vs bzw z.b "
    "d.h u.a usw p.ej т.е т.д т.п".split()
)
_BEFORE_NUMBERS = frozenset("ch fig figs max min no nos nr op p pp sec vol стр рис".split())
"""Abbreviations only where a number follows; "the answer is no." ends a sentence."""
_ORDINAL_AFTER = frozenset(
    "ab am beim bis das dem den der des die ein eine einem einen einer im jeden seit vom zum zur "
    "und den d".split()
)
"""Words after which "3." is a German or Scandinavian ordinal."""
_MONTH = re.compile(
    r"\s+(?:Jan|Febr?)uar\b|\s+(?:März|April|Mai|Ju[nl]i|August)\b|\s+(?:Septem|Novem|Dezem)ber\b"
    r"|\s+Oktober\b"
)
_LIST_CHARS = 300
"""Characters in which the other items of a list within a line are looked for."""
_CLAUSE = re.compile(r"[,;:—](?=\s)|[，；、：]")

_TO_SPACES = {ord(mark): " " for mark in string.punctuation if mark != "'"}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_MARK = re.compile(r"\":|[^\w ]|_")
_CODE = frozenset(('":', *"{}();=<>|\\$[]"))
_STRUCTURE = re.compile(
    r"[{}<\]]|\[[\[{\"\d]|(?:diff --git|index [0-9a-f]+\.\.|@@|\+\+\+|---|\$|>>>|from \S+ import"
    r"|import|def|class|const|export|function|return|at|File \")[ \w]"
    r"|[\w.]+(?:\[\S*\])? [-+*/]?={1,2} |(?:if|elif|for|while|with|except) .*:\Z|\w+: \S+,\Z"
)


def clean(line: str) -> str:
    """``line`` safe inside a digest: no escapes, controls, fences, tool protocol or raw data.

    What is invisible is removed, base64 becomes a marker, and white space is collapsed.
    """
    if not line.isprintable():
        line = _ESCAPE.sub("", line)
        line = "".join(map(_visible, line))
    if "```" in line or "~~~" in line:
        line = _INLINE_FENCE.sub("", line)
    if "<" in line or "[" in line or '"' in line:
        line = _without_edge_tags(_PROTOCOL.sub(" ", line).strip())
    if "base64," in line:
        line = _DATA_URL.sub("[data]", line)
    parts = line.split()
    if len(line) >= 64 and max(map(len, parts), default=0) >= 64:
        parts = [_RUN.sub(_data_marker, part) for part in parts]
    return " ".join(parts)


def _without_edge_tags(line: str) -> str:
    start = 0
    while tag := _LEADING_TAG.match(line, start):
        start = tag.end()
    line = line[start:]
    while line.endswith(">") and _TRAILING_TAG.fullmatch(line, max(0, line.rfind("<"))):
        line = line[: line.rfind("<")].rstrip()
    return line


def _visible(character: str) -> str:
    # The two joiners shape Persian, Indic scripts and emoji.
    if character.isprintable() or character in "\u200c\u200d":
        return character
    return " " if character.isspace() else ""


def _data_marker(match: re.Match[str]) -> str:
    """A marker in place of a run that is data; a long path, name or hash stays as it is."""
    run = match.group()
    kinds = [(c.isupper(), c.isdigit()) for c in run if c.isalnum()]
    changes = sum(a != b for a, b in itertools.pairwise(kinds)) / len(run)
    longest = max(map(len, re.split(r"[/_-]", run)))
    is_hash = len(run) <= 128 and re.fullmatch(r"[0-9a-f]+", run) is not None
    # Random base64 changes between upper case, lower case and digits at 3 of 5 places, words and
    # paths at 1 of 5 or fewer.
    is_data = not is_hash and (changes > 0.3 or longest > 64)
    return f"[{len(run)} characters of data]" if is_data else run


def sampled(text: str, size: int) -> str:
    """Head and tail of ``text``, together at most about ``size`` characters, cut between words."""
    if len(text) <= size:
        return text
    head = text[: size // 2].rsplit(None, 1)[:1]
    tail = text[-(size // 2) :].split(None, 1)[-1:]
    return "\n".join(head + tail)


def clipped(text: str, size: int) -> str:
    """``text``, or its start and an ellipsis, cut at a space where one is near."""
    if len(text) <= size:
        return text
    cut = text.rfind(" ", size * 2 // 3, size)
    return text[: cut if cut > 0 else max(0, size - 1)].rstrip() + CUT


def sentences(text: str, limit: int, *, wrapped: bool = False) -> Iterator[str]:
    """The sentences of ``text``, cleaned, each at most ``limit`` characters.

    Lines end a sentence (lists, headings, logs); within a line sentence marks of many scripts do,
    but not inside URLs, paths, versions, numbers and abbreviations. What is longer than ``limit``
    is cut between clauses or words.

    Args:
        text: any text.
        limit: characters.
        wrapped: whether a line that goes on in lower case continues the one before.
    """
    lines: Iterable[str] = text.splitlines()
    for raw in unwrapped(lines) if wrapped else lines:
        line = clean(raw)
        if not line:
            continue
        mark = _LIST_MARK.match(line)
        line = line[mark.end() :] if mark else line
        if "**" in line or "__" in line:
            line = _EMPHASIS.sub(_without_marks, line)
        line = line.strip(" |")
        start = 0
        for end in _END.finditer(line):
            if _ends_sentence(line, start, end):
                yield from pieces(line[start : end.end()].strip(), limit)
                start = end.end()
        if start < len(line):
            yield from pieces(line[start:].strip(), limit)


def _without_marks(match: re.Match[str]) -> str:
    """The words between marks of emphasis; code, and a single name between ``__``, as they are."""
    strong, wide = match["strong"], match["wide"]
    return strong or (wide if wide and " " in wide else match.group())


def unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with those joined that a paragraph wrapped by hand consists of."""
    paragraph: list[str] = []
    for line in lines:
        stripped = line.strip()
        if paragraph and stripped and _continues(paragraph[-1], stripped):
            paragraph.append(stripped)
            continue
        if paragraph:
            yield " ".join(paragraph)
        paragraph = [stripped] if stripped else []
    if paragraph:
        yield " ".join(paragraph)


def _continues(line: str, following: str) -> bool:
    """Whether a line is the one before it going on, in a paragraph that was wrapped by hand."""
    if line[-1] in _STOPS or _LIST_MARK.match(following):
        return False
    return bool(_GOES_ON.match(following) or _BROKEN_OFF.search(line))


def _ends_sentence(line: str, start: int, end: re.Match[str]) -> bool:
    mark, following = end.group(), line[end.end() : end.end() + 2]
    if mark[0] in "。！？｡":
        return True
    if following and not following[0].isspace():
        return False
    if not mark.startswith("."):
        return True
    if mark.startswith(".."):
        return not following[1:].islower()
    at = max(start, line.rfind(" ", start, end.start()) + 1)
    last = line[at : end.start()].lstrip("(\"'“«[").lower()
    if last.isdigit() and len(last) <= 2:
        goes_on = _is_ordinal(line, start, at, end) or _numbers_an_item(line, start, at, end)
    elif last in _BEFORE_NUMBERS:
        goes_on = following[1:].isdigit()
    else:
        # "300 s." ends a sentence; "J. Smith" and "z.B." do not.
        unit = line[max(start, at - 2) : at - 1].isdigit() and len(last) == 1
        goes_on = not unit and (last in _ABBREVIATIONS or _DOTTED.fullmatch(last) is not None)
    return not goes_on


def _is_ordinal(line: str, start: int, at: int, end: re.Match[str]) -> bool:
    """Whether the number from ``at`` on is one as in "am 1. Januar", not the end of a sentence."""
    if line[end.end() + 1 : end.end() + 2].islower() or _MONTH.match(line, end.end()):
        return True
    before = line[max(start, line.rfind(" ", start, max(start, at - 1)) + 1) : at]
    return bool(line[end.end() :].strip()) and before.strip().lower() in _ORDINAL_AFTER


def _numbers_an_item(line: str, start: int, at: int, end: re.Match[str]) -> bool:
    """Whether the number from ``at`` on is the mark of an item in a list within the line."""
    if not line[start:at].strip():
        return True
    number = int(line[at : end.start()].lstrip("(\"'“«["))
    if number == 1:
        opens = line[start:at].rstrip().endswith((":", "："))
        return opens and " 2. " in line[end.end() : end.end() + _LIST_CHARS]
    return f" {number - 1}. " in f" {line[max(start, at - _LIST_CHARS) : at]}"


def pieces(sentence: str, limit: int) -> Iterator[str]:
    """``sentence`` in parts of at most ``limit`` characters, cut between clauses or words."""
    while len(sentence) > limit:
        clauses = [mark.end() for mark in _CLAUSE.finditer(sentence, limit // 2, limit)]
        cut = clauses[-1] if clauses else sentence.rfind(" ", 1, limit + 1)
        cut = cut if cut > 0 else limit
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    if sentence:
        yield sentence


def words(text: str) -> list[str]:
    """Its words in lower case; scripts without spaces give pairs of neighbouring characters."""
    if text.isascii():
        found = text.lower().translate(_TO_SPACES).split()
        if "'" not in text:
            return found
        return [word for word in (one.strip("'") for one in found) if word]
    found = _WORD.findall(text.lower().replace("\u2019", "'"))
    if not _UNSPACED.search(text):
        return found
    result: list[str] = []
    for word in found:
        result += filter(None, _UNSPACED.split(word))
        for run in _UNSPACED.findall(word):
            result += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    return result


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the span, and where it stood.

    Attributes:
        text: one clean line.
        words: its words.
        message: index of its message in the span.
        position: its place among the sentences of its message.
        joined: the words with spaces around each.
    """

    text: str
    words: Sequence[str]
    message: int
    position: int
    joined: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joined", f" {' '.join(self.words)} ")

    @classmethod
    def of(cls, text: str, message: int = 0, position: int = 0) -> Sentence:
        """The sentence that consists of ``text``."""
        return cls(text, words(text), message, position)

    def is_prose(self) -> bool:
        """Whether a person would read it as a sentence, rather than as code, data or a table.

        At least three words (or pairs of unspaced characters), seven of ten characters letters or
        digits, and at most one of twelve a mark of code.
        """
        if len(self.words) < 3 or _STRUCTURE.match(self.text):
            return False
        if self.text.isascii() and self.text.count(" ") < 2:
            return False
        size = len(self.text) - self.text.count(" ")
        marks = _MARK.findall(self.text)
        if len(marks) > 0.3 * size:
            return False
        return 12 * sum(map(_CODE.__contains__, marks)) <= size
