"""The tables of docs/how-to/migrate.md, and which test backs which row."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"

PACKAGES = {
    "langchain": "From LangChain's `SummarizationMiddleware`",
    "editing": "From LangChain's `ContextEditingMiddleware`",
    "deepagents": "From deepagents",
    "langmem": "From langmem's `SummarizationNode`",
}
"""The heading of each table."""

BACKED: dict[str, dict[str, str]] = {package: {} for package in PACKAGES}
"""For each table the names in it that a test backs, and the test's name."""


def backs(package: str, *names: str) -> Callable[[Any], Any]:
    """Mark a test that shows what the table says of these names of theirs."""

    def mark(test: Any) -> Any:
        BACKED[package] |= dict.fromkeys(names, test.__name__)
        return test

    return mark


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
