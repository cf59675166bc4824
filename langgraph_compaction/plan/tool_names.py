"""The names of the agent's tools, and names in the settings that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

MOST_NAMES = 10
"""Names of tools that a message lists."""
LONGEST_NAME = 80
"""Characters of a name that are compared and shown: providers take no more than 64."""


def names_of(tools: Sequence[Any]) -> list[str]:
    """The names of tools, in order.

    Args:
        tools: what the agent's model is given: LangChain tools, functions, classes, or schemas in
            a provider's form, some of which have no name.
    """
    return [name for tool in tools for name in _names(tool)]


def listed(names: Sequence[str]) -> str:
    """Names of tools as a message shows them."""
    more = ", ..." if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more or "none has a name"


def unknown_names(named: Mapping[str, Iterable[str]], tools: Sequence[Any]) -> list[str]:
    """What is to be said of settings that name tools which are not among ``tools``.

    Args:
        named: names of tools, by the setting that has them.
        tools: as of `names_of`.

    Returns:
        One line for each name that no tool has, with the nearest that one has.
    """
    names = names_of(tools)
    known = set(names)
    return [
        f"{setting}: {name[:LONGEST_NAME]!r} is none of the agent's tools ({listed(names)})"
        f"{_hint(name, names)} Where a tool of that name is bound elsewhere, nothing is wrong."
        for setting, given in named.items()
        for name in dict.fromkeys(given)
        if name not in known
    ]


def _hint(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name[:LONGEST_NAME], names, n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def _names(tool: Any) -> Iterator[str]:
    """The names in a tool; providers put them at the top of a schema or one level below."""
    if not isinstance(tool, Mapping):
        yield str(getattr(tool, "name", None) or getattr(tool, "__name__", tool))
        return
    below = [
        one for value in tool.values() for one in (value if isinstance(value, list) else [value])
    ]
    for part in (tool, *below):
        if isinstance(part, Mapping):
            # LangChain also takes a JSON schema, whose title is the tool's name.
            yield from (part[key] for key in ("name", "title") if isinstance(part.get(key), str))
