"""What a call takes beside the messages of its view, from what the provider reported.

The agent's own system prompt, tool schemas, a chat template: none of it is in the state, and all
of it is in the input tokens that the provider reports with each answer. The newest answer that was
made under the present view corrects the sum; answers from before the view changed say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.view.blocks import block_type, is_server_call

LEAST_SHARE = 0.5
"""Share of the counted tokens below which a report is not believed: a proxy that reports one token
would switch compaction off."""


class Calibration(NamedTuple):
    """A report that corrects the count.

    Attributes:
        reported: input tokens that the provider reported, cached ones included.
        counted: tokens that the messages of that call count.
    """

    reported: int
    counted: int


def calibration(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    made_after: int,
) -> Calibration | None:
    """The correction by the newest report that still holds, None where there is none.

    Args:
        messages: the messages channel.
        view: the view of it.
        sizes: counted tokens of each message of the view.
        made_after: index into ``messages`` of the first one that was made under this view.
    """
    for index in range(len(messages) - 1, made_after - 1, -1):
        message = messages[index]
        reported = _input_tokens(message)
        if not reported:
            continue
        place = _place(message, view)
        if place is None:
            return None
        counted = sum(sizes[:place])
        if reported < counted * LEAST_SHARE:
            return None
        return Calibration(reported, counted)
    return None


def _input_tokens(message: BaseMessage) -> int:
    """Tokens of the call that brought this message; 0 where none were reported.

    None while streaming without ``stream_usage``. LangChain's ``input_tokens`` includes what was
    read from and written to the cache; a report that is smaller than these left them out, as
    Anthropic's own API does.
    """
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    # The provider called itself several times for a message with server-side tools: a sum.
    if not usage or _ran_on_server(message):
        return 0
    total = usage.get("input_tokens") or 0
    details = usage.get("input_token_details") or {}
    cached = (details.get("cache_read") or 0) + (details.get("cache_creation") or 0)
    return total + cached if cached > total else total


def _ran_on_server(message: BaseMessage) -> bool:
    """Whether the provider ran a tool of its own: Anthropic's and OpenAI's block types."""
    if isinstance(message.content, str):
        return False
    return any(
        is_server_call(block)
        or (block_type(block).endswith("_call") and block_type(block) not in _OWN_CALLS)
        for block in message.content
    )


_OWN_CALLS = {"function_call", "custom_tool_call", "tool_call", "invalid_tool_call"}


def _place(message: BaseMessage, view: Sequence[BaseMessage]) -> int | None:
    for place in range(len(view) - 1, -1, -1):
        if view[place] is message or (message.id and view[place].id == message.id):
            return place
    return None
