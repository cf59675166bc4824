"""Tokens of what an agent sends beside its messages: its system prompt and its tools' schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.reading import Counter


def checked_tools(tools: Any) -> list[dict[str, Any]]:
    """Schemas of an agent's tools, as they are sent.

    Args:
        tools: LangChain tools, functions, pydantic classes, or schemas in a provider's form, which
            are taken as they are.

    Raises:
        ConfigurationError: something among them is no tool.
    """
    if isinstance(tools, str | bytes | dict) or not isinstance(tools, Sequence):
        raise ConfigurationError(
            f"tools: {tools!r} is no list. Pass what you pass to model.bind_tools(...)."
        )
    return [_schema(tool) for tool in tools]


def _schema(tool: Any) -> dict[str, Any]:
    if isinstance(tool, dict):  # a provider's own form, built-in tools among them
        return tool
    try:
        return convert_to_openai_tool(tool)
    except Exception as error:
        raise ConfigurationError(
            f"tools: {tool!r} is no tool ({error}). Pass what you pass to model.bind_tools(...)."
        ) from error


def beside_messages(
    tools: Sequence[dict[str, Any]], system: SystemMessage | None, counter: Counter
) -> int:
    """Tokens of schemas and system prompt.

    A schema counts as its compact JSON. That is what chat templates of open models hold; OpenAI
    renders it more tersely, so that there the count errs on the safe side until the first report.
    """
    compact: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "default": str}
    texts = (json.dumps(tool, **compact) for tool in tools)
    size = sum(map(counter.text, texts))
    return size + (0 if system is None else counter.message(system))
