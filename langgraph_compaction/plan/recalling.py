"""Whether the agent has the recall tool that its placeholders name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RECALL_METADATA = {"langgraph_compaction": "recall"}
"""Metadata of the tools that `create_recall_tool` makes: so they are known under any name."""
RECALL_TOKENS = "langgraph_compaction_max_tokens"
"""Key in that metadata of the tokens that an answer of the tool may have."""
MOST_NAMES = 10
"""Names of tools that a message lists."""


def tool_mismatch(recall_tool: str | None, tools: Sequence[Any]) -> str | None:
    """What does not match between the setting ``recall_tool`` and the agent's tools.

    Args:
        recall_tool: the setting.
        tools: what the agent's model is given: LangChain tools, functions, classes, or schemas in
            a provider's form, some of which have no name.

    Returns:
        What is wrong and what to do about it; None: nothing is wrong.
    """
    names = [name for tool in tools for name in _names(tool)]
    made = next((tool.name for tool in tools if _is_recall_tool(tool)), None)
    if recall_tool is None:
        if made is None:
            return None
        return (
            f'recall_tool="{made}" is missing: the agent has this recall tool, but placeholders of '
            "cleared and clipped results do not name it. Add it to the settings of the node or "
            "the middleware."
        )
    if recall_tool in names:
        return None
    listed = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    remedy = (
        f'Give the agent create_recall_tool(name="{recall_tool}"), or leave recall_tool out.'
        if made is None
        else f'Its recall tool is called otherwise: set recall_tool="{made}".'
    )
    return (
        f"recall_tool: {recall_tool!r} is none of the agent's tools ({listed or 'none has a name'})"
        f", but placeholders of cleared and clipped results tell the agent to call it. {remedy}"
    )


def long_pages(tools: Sequence[Any], most: int | None) -> str | None:
    """What is wrong where pages of the recall tool are longer than results may be; None: nothing.

    What is clipped of a page no other page shows.

    Args:
        tools: as of `tool_mismatch`.
        most: tokens that the results of one step may have; None: any number.
    """
    sizes = (tool.metadata.get(RECALL_TOKENS) for tool in tools if _is_recall_tool(tool))
    longest = max((size for size in sizes if isinstance(size, int)), default=0)
    if most is None or longest <= most:
        return None
    return (
        f"max_result_tokens: the results of one step may have {most} tokens, but a page of the "
        f"recall tool up to {longest}: its middle is clipped, and no other page shows that. Lower "
        "max_tokens of create_recall_tool, or raise max_result_tokens."
    )


def _is_recall_tool(tool: Any) -> bool:
    metadata = getattr(tool, "metadata", None)
    return isinstance(metadata, Mapping) and RECALL_METADATA.items() <= metadata.items()


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
