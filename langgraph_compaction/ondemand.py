"""Compaction on demand: a state update that asks for it, and a tool by which the agent does."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.requests import REQUEST_KEY
from langgraph_compaction.state import MESSAGES_KEY, SETTINGS_KEY, read_channel

DESCRIPTION = (
    "Fold the older part of this conversation into a digest before the next step. Use it when a "
    "piece of work is finished and its details are not needed word for word any more. Say in "
    "`instructions` what must be kept, if anything in particular."
)
"""What the agent's model is told of the tool."""


def request_compaction(
    instructions: str | None = None, *, settings_key: str = SETTINGS_KEY
) -> dict[str, Any]:
    """A state update that has the next visit fold, whatever the trigger says.

    Return it from a node, or write it with ``graph.update_state(config, request_compaction())``.
    It acts once: the record remembers the last request that was carried out. While the
    summarisers fail it waits for them; with ``enabled=False`` it waits until that is changed.

    Args:
        instructions: what the digest has to look after this time, such as "keep the SQL".
        settings_key: name of the channel with the thread's settings.

    Raises:
        ConfigurationError: the instructions are no text.
    """
    if instructions is not None and not isinstance(instructions, str):
        raise ConfigurationError(
            f"instructions: {instructions!r} is no text. Say in words what the digest has to look "
            'after, such as "keep the SQL", or leave it out.'
        )
    return {settings_key: {REQUEST_KEY: {"id": uuid4().hex, "instructions": instructions}}}


def create_compact_tool(
    *, messages_key: str = MESSAGES_KEY, settings_key: str = SETTINGS_KEY
) -> BaseTool:
    """The tool ``compact_conversation``, for a state whose channels may have other names.

    Where the state has no channel for settings, a call fails with `MissingChannelError`.

    Args:
        messages_key: name of the channel with the messages.
        settings_key: name of the channel with the thread's settings.
    """

    @tool("compact_conversation", description=DESCRIPTION)
    def compact(
        tool_call_id: Annotated[str, InjectedToolCallId],
        state: Annotated[Any, InjectedState],
        instructions: str | None = None,
    ) -> Command[Any]:
        # LangGraph drops updates of channels that the state does not declare, silently.
        read_channel(state, settings_key, "Annotated[dict, merge_settings]")
        said = "Compaction is requested: what can be folded is folded before the next step."
        update = request_compaction(instructions, settings_key=settings_key)
        answer = ToolMessage(said, tool_call_id=tool_call_id, name="compact_conversation")
        return Command(update={**update, messages_key: [answer]})

    return compact


compact_conversation = create_compact_tool()
"""The agent tool by which it asks for compaction; see `create_compact_tool`."""
