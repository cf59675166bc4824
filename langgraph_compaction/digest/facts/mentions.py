"""Names and values in a text, each with what it is the value of.

Paths, URLs, ids and the like speak for themselves (`digest.references`). A number says nothing
without its subject ("the upload timeout"), so values come with the words before them. The words
tell, too, that two values are of one thing: then the newer counts.

Words are looked at one by one and remembered: logs repeat themselves, and a pattern that knows all
forms takes ten times as long over running text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langgraph_compaction.digest.facts.linking import (
    binds,
    is_link,
    is_past,
    is_unspaced,
    subject_of,
    subject_within,
)
from langgraph_compaction.digest.facts.values import (
    is_number,
    setting_in,
    value_at,
    values_within,
)
from langgraph_compaction.digest.references import references_in
from langgraph_compaction.digest.sentences import (
    clean,
    sampled,
)

READ_CHARS = 200_000
"""Characters read of one text, half from its head and half from its tail: a log of many megabytes
must not hold up a visit."""
NAME_CHARS = 200
"""Characters of a name at most: longer ones are data."""
BETWEEN = " | "
"""Stands between two mentions in a digest, and so in none of them."""
OF = ": "
"""Stands between a subject and its value, and so in none of them."""
SMALL_DIGITS = 2
"""Digits of a number without a unit up to which it is a value only right after "is", "to", ":" and
the like: "step 3 of 14" sets nothing."""
LONG_WORD = 4 * NAME_CHARS
"""Characters of a word above which it is cut at marks of data: JSON may have no spaces at all."""


class Mention(NamedTuple):
    """A name or value as it stands in a text.

    Attributes:
        name: as it was written.
        subject: what it is the value of, in small letters; "" where nothing says so.
        telling: whether it says something without its subject.
        past: whether the words around it say that it no longer holds ("instead of 300 s").
    """

    name: str
    subject: str = ""
    telling: bool = True
    past: bool = False


_QUOTED = re.compile(
    r"“([^”\n]{2,60})”|«\s?([^»\n]{2,60}?)\s?»|「([^」\n]{1,40})」|『([^』\n]{1,40})』"
    r"|„([^“”\n]{2,60})[“”]|(?<![\w\"])\"([^\"\n]{2,60})\"(?![\w:])|(?<!`)`([^`\n]{2,80})`(?!`)"
    r"|(?<![\w'])'([^'\n]{2,40})'(?!\w)"
)
_IDENTIFIER = re.compile(
    r"(?<![\w.@/-])(?:"
    r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+"  # camelCase
    r"|(?:[A-Z][a-z0-9]+){2,}"  # PascalCase
    r"|_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}(?:=[\w.-]+)?"  # snake_case, a_b=c
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?"  # dotted.name
    r"|[A-Za-z_]\w{2,}\(\)"  # call()
    r"|--?[a-z][\w-]+(?:=[\w./-]+)?"  # --flag
    r")(?![\w/])"
)
# Names of several words, which would come apart: telephone, bank account and card numbers.
_SPANNING = re.compile(
    r"(?<![\w+])\+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?!\w)"
    r"|(?<!\w)[A-Z]{2}\d\d(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,4})?(?!\w)"
    r"|(?<![\w.,])\d{4}(?: \d{4}){2,4}(?![\w.,]\d)"
)
_LABEL = re.compile(r"[A-Za-z_]+")
"""A name that others may be the value of: ``listen_port``."""
_MAY_MENTION = re.compile(r"\d|[/\\@_`\"“«„「『']|[a-z][A-Z]|\w\.\w|\w\(\)|--\w")
_UNSPACED_MARKS = re.compile("[，。；：！？、]")
_DATA_MARKS = re.compile(r"[\"'{}\[\]<>|,;]+")
_OPERATORS = frozenset("== === != !== += -= *= /= %= && || =>".split())
"""Marks of code: a number after one of them is no value of a setting."""
_LETTERS = re.compile(r"[^\W_]")

Known = dict[tuple[str, bool], list[str]]


def mentions(text: str, *, said: bool, known: Known | None = None) -> Iterator[Mention]:
    """The names and values of a text, in order, repeats too.

    Args:
        text: any text.
        said: whether user or agent said it in words of their own. Of what programs print or calls
            carry only what has the form of a reference counts, and a value only after the name of
            its setting ("timeout: 45 s"): numbers are legion in code and output.
        known: what was found in words so far, by word and ``said``; kept up to date.
    """
    known = {} if known is None else known
    for whole in sampled(text, READ_CHARS).splitlines():
        if _MAY_MENTION.search(whole):
            yield from (Mention(one.group()) for one in _SPANNING.finditer(whole))
            line = _SPANNING.sub(" , ", whole)
            found = list(_by_word(line, known, said=said))
            yield from filter(_is_listable, found)
            if said:
                names = {mention.name for mention in found}
                yield from (one for one in _quoted(line) if one.name not in names)


def _by_word(line: str, known: Known, *, said: bool) -> Iterator[Mention]:
    words = _words(line)
    subject, at = "", 0
    taken: set[int] = set()
    while at < len(words):
        word = words[at]
        value, stop = value_at(words, at, said=said and not (at and is_link(words[at - 1])))
        stop = max(stop, at + 1)
        last = words[at - 1] if at > 0 else ""
        linked = is_link(last)
        small = value.isdigit() and len(value) <= SMALL_DIGITS and not binds(last)
        if value and (last in _OPERATORS or not (linked or (said and not small))):
            at = stop  # in code and output numbers are legion, and so are small ones in prose
            continue
        setting, name = ("", "") if value else setting_in(word)
        if setting:
            subject = name.strip("-").casefold()
            taken.add(at)
            yield Mention(setting, subject, telling=False)
        # Of a setting only its name: its value may change.
        names = [value] if value else _names(name or word, known, said=said)
        if names:
            linked = linked or (said and (bool(value) or binds(last)))
            of = subject_of(words, at, taken, subject) if linked else ""
            if value or not all(map(_LABEL.fullmatch, names)):
                taken.update(range(at, stop))
            if said and not value and is_unspaced(word):
                found = _within(word, names, of, subject)
            else:
                past = bool(of) and is_past(words, at, stop)
                found = [Mention(name, of, not value and _tells(name), past) for name in names]
            subject = found[-1].subject or subject
            if of or not value or (said and not is_number(value)):
                yield from found
        at = stop


def _words(line: str) -> list[str]:
    if not line.isascii():
        line = _UNSPACED_MARKS.sub(r"\g<0> ", line)
    if '":' in line:
        line = line.replace('":', '": ').replace(',"', ', "')
    words = line.split()
    if max(map(len, words), default=0) > LONG_WORD:
        cut = (
            _DATA_MARKS.sub(" ", word).split() if len(word) > LONG_WORD else [word]
            for word in words
        )
        words = [part for parts in cut for part in parts]
    return words


def _within(word: str, names: list[str], of: str, before: str) -> list[Mention]:
    """The names in a word of a script without spaces, each as the value of what leads to it there.

    Args:
        word: of the line.
        names: those in it.
        of: what the words before it say that its first name is the value of.
        before: subject of the value before.
    """
    found: list[Mention] = []
    values = values_within(word)
    start = 0
    for place, name in _places(word, names):
        lead = word[start : max(start, place)]
        start = max(start, place + len(name))
        if is_unspaced(lead) and (not _tells(name) or name in values or binds(lead)):
            of = subject_within(lead, before)
        found.append(Mention(name, of, _tells(name)))
        before, of = of or before, ""
    return found


def _places(word: str, names: Sequence[str]) -> list[tuple[int, str]]:
    """Where each name stands in a word, in order; one that stands there twice, twice."""
    found: list[tuple[int, str]] = []
    searched: dict[str, int] = {}
    for name in names:
        at = max(0, word.find(name, searched.get(name, 0)))
        searched[name] = at + len(name)
        found.append((at, name))
    return sorted(found)


def _tells(name: str) -> bool:
    """Whether a name has a form of its own, other than ``45秒``."""
    return not (name[0] in "0123456789$€£¥" and is_unspaced(name))


def _names(word: str, known: Known, *, said: bool) -> list[str]:
    """What has the form of a name in a word."""
    key = (word, said)
    if key not in known:
        found = [] if word.isalpha() or len(word) > LONG_WORD else references_in(word)
        if not word.isascii():
            more = values_within(word)
            found += [name for name in more if not any(name in longer for longer in found)]
        if said and not found and not (word.islower() and word.isalpha()):
            found = [match.group() for match in _IDENTIFIER.finditer(clean(word[:LONG_WORD]))]
        known[key] = found
    return known[key]


def _quoted(line: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(line):
        mention = Mention(clean(next(filter(None, match.groups()), "")))
        if _LETTERS.search(mention.name) and _is_listable(mention):
            yield mention


def _is_listable(mention: Mention) -> bool:
    name, subject = mention.name, mention.subject
    least = 2 if mention.telling else 1
    divided = BETWEEN in f" {name} " or OF in name or OF in subject
    return least <= len(name) <= NAME_CHARS and not divided
