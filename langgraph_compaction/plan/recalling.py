"""Whether the agent has the recall tool that its placeholders name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_compaction.plan.tool_names import listed, names_of

RECALL_METADATA = {"langgraph_compaction": "recall"}
"""Metadata of the tools that `create_recall_tool` makes: so they are known under any name."""
RECALL_TOKENS = "langgraph_compaction_max_tokens"
"""Key in that metadata of the tokens that an answer of the tool may have."""


def tool_mismatch(recall_tool: str | None, tools: Sequence[Any]) -> str | None:
    """What does not match between the setting ``recall_tool`` and the agent's tools.

    Args:
        recall_tool: the setting.
        tools: what the agent's model is given: LangChain tools, functions, classes, or schemas in
            a provider's form, some of which have no name.

    Returns:
        What is wrong and what to do about it; None: nothing is wrong.
    """
    names = names_of(tools)
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
    remedy = (
        f'Give the agent create_recall_tool(name="{recall_tool}"), or leave recall_tool out.'
        if made is None
        else f'Its recall tool is called otherwise: set recall_tool="{made}".'
    )
    return (
        f"recall_tool: {recall_tool!r} is none of the agent's tools ({listed(names)})"
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
