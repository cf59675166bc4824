"""Notes in plain prose: how the survey writes down what it found, and reads it back.

The agent keeps no memory but the conversation. What it says beside its calls is its note; later it
finds these sentences again, in recent messages or in the digest that stands for older ones. Reading
is lenient: a model that wrote the digest may have put the facts in other words or another order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

ROOM = 160
"""Characters of a sentence with constants. More of them go into a sentence of their own with the
path again: an extract of one sentence must still say what it is about."""
MOST_CONSTANTS = 12
"""Constants noted of one file."""

_DEFINITION = re.compile(
    r"^(?:#define\s+([A-Z][A-Z0-9_]{2,})\s+"
    r"|(?:(?:export|public|static|final|const|let|int)\s+)*"
    r"([A-Z][A-Z0-9_]{2,})(?:\s*:[^=\n]{1,40})?\s*=\s*)"
    r"(-?\d[\d_]*(?:\.\d+)?)\s*(?:[;,#/].*)?$",
    re.MULTILINE,
)
_PATH = re.compile(r"`([^`\n]+)`|(?<![\w/.])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w{0,7})(?![\w/])")
_COUNT = re.compile(r"\b(\d+) (?:numeric )?constants?\b|\bconstants? \d+(?: to \d+)? of (\d+)\b")
_PAIR = re.compile(r"(?<!\w)([A-Z][A-Z0-9_]{2,})`?\s*(?:=|:|is|of)\s*(-?\d[\d_]*(?:\.\d+)?)")
_FINDING = re.compile(r"\bfinding (\d+)", re.IGNORECASE)
_TALLY = re.compile(r"\b(\d+) findings? so far\b", re.IGNORECASE)
_FOLDER = re.compile(r"\b(\d+) files? with ([\d,]+) lines\b")
_USED = re.compile(r"(?<!\w)([A-Z][A-Z0-9_]{2,})`? is used in (\d+) files?")
_READ_ON = re.compile(r"\bon from line (\d+)")
_OUTPUT = re.compile(r"\s*(?:[-*]\s*)?(?:list_files|read_file|search_text)\s*[:(]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

Constants = dict[str, str]


def constants_in(text: str) -> Constants:
    """Names in capitals that a source text sets to a number, with the number as text."""
    found: Constants = {}
    for defined, assigned, value in _DEFINITION.findall(text):
        found.setdefault(defined or assigned, value.replace("_", ""))
    return dict(list(found.items())[:MOST_CONSTANTS])


@dataclass(slots=True)
class FileNote:
    """What is known of the constants of one file.

    Attributes:
        path: as the tools name it.
        number: of the finding, from 1; None where it was not seen.
        count: how many constants the file was said to define; None where it was not seen.
        constants: those that were seen, with their values.
        read_to: last line that was read, where the file is not finished.
    """

    path: str
    number: int | None = None
    count: int | None = None
    constants: Constants = field(default_factory=dict)
    read_to: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every constant that the file was said to define was seen."""
        return self.count is not None and len(self.constants) >= self.count


def finding(number: int, path: str, constants: Constants) -> str:
    """The note on a file that was read to its end and defines constants."""
    return " ".join(_sentences(f"Finding {number}: `{path}` defines", constants))


def unfinished(path: str, line: int, constants: Constants) -> str:
    """The note on a file that goes on at a line. An intention: the next message says it anew."""
    head = f"I will read `{path}` on from line {line}; so far it defines"
    return " ".join(_sentences(head, constants)) or f"{head} nothing (0 constants)."


def tally(number: int, *, again: bool) -> str:
    """How many findings there are, as part of an intention: the next message says it anew."""
    way = "with a second reading, " if again else ""
    return f"I will go on, {way}with {number} finding{'' if number == 1 else 's'} so far."


def _sentences(head: str, constants: Constants) -> Iterator[str]:
    """The constants in sentences that each begin with ``head`` and say how many there are."""
    pairs = [f"{name} = {value}" for name, value in constants.items()]
    total, done = len(pairs), 0
    while done < total:
        size = 1
        while done + size < total and len(head) + len(", ".join(pairs[done:][: size + 1])) < ROOM:
            size += 1
        which = f"constants {done + 1} to {done + size} of {total}"
        if size == 1:
            which = f"constant {done + 1} of {total}"
        if size == total:
            which = f"{total} constant{'' if total == 1 else 's'}"
        yield f"{head} {', '.join(pairs[done : done + size])} ({which})."
        done += size


@dataclass(slots=True)
class Notebook:
    """Everything a view says about the files.

    Attributes:
        files: notes on files that were read to their end, by path.
        unfinished: notes on files that were not, by path.
        findings: how many findings there should be, by the newest word on it.
        size: files and lines of the folder; None where that was not seen.
        uses: sentences on where a constant is used, by its name.
    """

    files: dict[str, FileNote] = field(default_factory=dict)
    unfinished: dict[str, FileNote] = field(default_factory=dict)
    findings: int = 0
    size: tuple[int, str] | None = None
    uses: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, texts: Iterable[str]) -> Notebook:
        """The notes in these texts, oldest first; a newer statement replaces an older one."""
        book = cls()
        for text in texts:
            for line in text.splitlines():
                # An extract of a tool's output is not a statement of the agent's.
                if not _OUTPUT.match(line):
                    book.take(line)
        return book

    def take(self, text: str) -> None:
        """Take in what one line says; a sentence without a path is about the path before it."""
        owner = ""
        for sentence in _SENTENCE_END.split(text):
            if used := _USED.search(sentence):
                self.uses[used.group(1)] = sentence.strip(" -*")
                continue
            if size := _FOLDER.search(sentence):
                self.size = int(size.group(1)), size.group(2)
            if counted := _TALLY.search(sentence):
                self.findings = max(self.findings, int(counted.group(1)))
            paths = list(_PATH.finditer(sentence))
            for at, found in enumerate(paths):
                # What stands between a path and the next one is said of the first.
                stop = paths[at + 1].start() if at + 1 < len(paths) else len(sentence)
                start = paths[at - 1].end() if at else 0
                owner = found.group(1) or found.group(2)
                self._state(owner, sentence[start : found.start()], sentence[found.end() : stop])
            if not paths and owner:
                self._state(owner, "", sentence)

    def missing(self) -> list[int]:
        """Numbers of the findings that are not to be seen, or not with all constants."""
        whole = [note for note in self.files.values() if note.is_whole]
        if len(whole) >= self.findings:
            return []
        seen = {note.number for note in whole}
        return [number for number in range(1, self.findings + 1) if number not in seen]

    def ranked(self) -> list[tuple[str, str, str]]:
        """All constants as (name, value, path), the greatest value first."""
        found = [
            (name, value, note.path)
            for note in self.files.values()
            for name, value in note.constants.items()
        ]
        return sorted(found, key=lambda each: (-float(each[1]), each[0], each[2]))

    def _state(self, path: str, before: str, after: str) -> None:
        pairs = {name: value.replace("_", "") for name, value in _PAIR.findall(after)}
        count, read_on = _COUNT.search(after), _READ_ON.search(after)
        number = _FINDING.search(before)
        if not (pairs or count):
            return
        shelf = self.unfinished if read_on else self.files
        note = shelf.setdefault(path, FileNote(path))
        note.constants.update(pairs)
        if count:
            note.count = int(count.group(1) or count.group(2))
        if read_on:
            note.read_to = int(read_on.group(1)) - 1
        if number:
            note.number = int(number.group(1))
            self.findings = max(self.findings, note.number)
