"""What the arguments of a call say: names and values, and what the call is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph_compaction.digest.facts.mentions import OF

ARGUMENT_SAID = 80
"""Characters of an argument up to which it is read as if it were said: a name, a value."""
OPERANDS = frozenset(
    "path paths file files filename file_path filepath url urls uri link query command cmd dir "
    "directory folder cwd root target source src dest destination pattern name id key".split()
)
"""Names of arguments that say what a call is about: one file is read after the other, and none is
the newer value of the one before."""
OPERAND_CHARS = 60
"""Characters of such an argument up to which a list names it beside a value that it printed."""


def operand(arguments: Any) -> str:
    """What a call is about, where that is one short word: a path, an address, an id."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            if name in OPERANDS and isinstance(value, str) and 0 < len(value) <= OPERAND_CHARS:
                return "" if len(value.split()) != 1 else value.strip()
    return ""


def argument_texts(arguments: Any) -> Iterator[str]:
    """The values in a call's arguments, short ones with their names: ``timeout: 45 s``."""
    waiting: list[tuple[str, Any]] = [("", arguments)]
    seen: set[int] = set()  # they may contain themselves
    while waiting:
        name, item = waiting.pop()
        if isinstance(item, str | int | float):
            text = str(item)
            yield f"{name}{OF}{text}" if name and len(name + text) <= ARGUMENT_SAID else text
        elif isinstance(item, Mapping | Sequence) and id(item) not in seen:
            seen.add(id(item))
            inside = item.items() if isinstance(item, Mapping) else ((name, one) for one in item)
            waiting += [(str(key), one) for key, one in reversed([*inside])]
