"""The tables of docs/how-to/migrate.md, and which test backs which row."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"

PACKAGES = {
    "langchain": "From LangChain's `SummarizationMiddleware`",
    "editing": "From LangChain's `ContextEditingMiddleware`",
    "deepagents": "From deepagents",
    "langmem": "From langmem's `SummarizationNode`",
}
"""The heading of each table."""

MOST_ROWS = 3
"""Rows that one test can show something of."""


class Backing(NamedTuple):
    """What a test shows: a name of theirs, what it is here, and the test itself."""

    theirs: str
    here: str
    test: Any


BACKED: dict[str, list[Backing]] = {package: [] for package in PACKAGES}
"""For each table what tests back."""


def backs(package: str, *, theirs: str, here: str) -> Callable[[Any], Any]:
    """Mark a test that shows what the table says of a name of theirs.

    Args:
        package: one of `PACKAGES`.
        theirs: a name in the first cell of a row.
        here: the name in its second cell that the test uses. Where that cell names none: the class
            whose first argument it is, or the name of theirs that the test gives to them.
    """

    def mark(test: Any) -> Any:
        BACKED[package].append(Backing(theirs, here, test))
        return test

    return mark


def names_used(test: Any) -> set[str]:
    """The names, arguments and texts in a test's body and in what parametrizes it."""
    (function,) = ast.parse(inspect.getsource(inspect.unwrap(test))).body
    function = cast("ast.FunctionDef", function)
    kept = [one for one in function.decorator_list if "backs(" not in ast.unparse(one)]
    found: set[str] = set()
    for part in (*kept, *function.body):
        for one in ast.walk(part):
            match one:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                    found.add(name)
                case ast.Constant(value=str(text)):
                    found.add(text)
    return found


def table(package: str) -> dict[str, list[str]]:
    """The cells of the table's rows, by each name in the first one."""
    text = PAGE.read_text("utf-8")
    section = text[text.index(f"## {PACKAGES[package]}") :]
    lines = section[section.index("| theirs |") :].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {name: cells[1:] for cells in rows for name in names_in(cells[0])}


def names_in(cell: str) -> list[str]:
    """The names in backquotes of a cell's first part; what is in brackets only explains."""
    return re.findall(r"`(\w+)[`=]", re.sub(r"\([^)]*\)", "", cell))
