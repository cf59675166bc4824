"""What the survey answers: the report at its end, and questions about it afterwards."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from notes import Notebook

UNKNOWN = "I find nothing about that in my notes."


def report(book: Notebook, greatest: Sequence[tuple[str, str, str]]) -> str:
    """The answer to the task, as Markdown."""
    files, lines = book.size or (0, "0")
    rows = book.ranked()
    where = f"{len(book.files)} of them set {len(rows)} constants"
    text = [f"**{files} files with {lines} lines; {where}.**"]
    if not rows:
        return f"{text[0]} No line sets a name in capitals to a number."
    text.append("")
    for path, note in sorted(book.files.items()):
        pairs = ", ".join(f"{name} = {value}" for name, value in note.constants.items())
        text.append(f"- `{path}`: {pairs}")
    by_value: dict[float, list[str]] = defaultdict(list)
    for name, value, _ in rows:
        by_value[float(value)].append(name)
    repeated = [
        f"{value:g} ({', '.join(names)})" for value, names in by_value.items() if len(names) > 1
    ]
    if repeated:
        text += ["", f"**Set more than once:** {'; '.join(repeated)}."]
    text += ["", "**Where the greatest are used:**", ""]
    text += [f"- {book.uses[name]}" for name in dict.fromkeys(name for name, _, _ in greatest)]
    return "\n".join(text)


def follow_up(question: str, book: Notebook) -> str:
    """The answer to a question about the survey, from the notes; `UNKNOWN` if they say nothing."""
    asked = set(re.findall(r"[\w./-]+", question.rstrip("?!. ")))
    found = [book.uses[name] for name in book.uses if name in asked]
    for name, value, path in book.ranked():
        if name in asked:
            found.append(f"{name} is {value}, set in `{path}`.")
    for path, note in book.files.items():
        if path in asked or path.rpartition("/")[2] in asked:
            pairs = ", ".join(f"{name} = {value}" for name, value in note.constants.items())
            found.append(f"`{path}` defines {pairs}.")
    if not found and book.size and asked & {"files", "lines"}:
        found.append(f"There are {book.size[0]} files with {book.size[1]} lines.")
    if not found and asked & {"greatest", "largest", "biggest", "highest"} and book.ranked():
        name, value, path = book.ranked()[0]
        found.append(f"The greatest constant is {name} = {value} in `{path}`.")
    return " ".join(found) or UNKNOWN
