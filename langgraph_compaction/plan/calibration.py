"""What the provider reported of the newest calls corrects what was counted.

The agent's own system prompt, tool schemas, a chat template, a tokenizer of the model's own: none
of it is in the state, and all of it is in the input tokens that the provider reports with each
answer. Only answers made under the present view count: what was reported before a fold says
nothing of the view after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.view.blocks import block_type, is_server_call

LEAST_SHARE = 0.5
"""Share of the counted tokens below which a report is not believed: a proxy that reports one token
would switch compaction off."""
LEAST_BASELINE = 50
"""Counted tokens between two reports from which on they tell how many tokens one counted is."""
SLOPES = (0.5, 5.0)
"""Tokens that one counted token may be: beyond these, something else changed between the reports
(the tools, say). Tokenizers of small models take up to 4.6 tokens for one of o200k_base."""


class Calibration(NamedTuple):
    """What corrects the count.

    Attributes:
        reported: input tokens of the newest call, as the provider reported them.
        counted: tokens that the messages of that call count.
        slope: tokens that one counted token is; 1.0 where no two reports tell.
    """

    reported: int
    counted: int
    slope: float


def calibration(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    made_after: int,
) -> Calibration | None:
    """The correction by the reports that still hold, None where there is none.

    Args:
        messages: the messages channel.
        view: the view of it.
        sizes: counted tokens of each message of the view.
        made_after: index into ``messages`` of the first one that was made under this view.
    """
    newest = _report(messages, view, sizes, range(len(messages) - 1, made_after - 1, -1))
    if newest is None:
        return None
    slope = 1.0
    oldest = _report(messages, view, sizes, range(made_after, len(messages)))
    if oldest is not None and newest.counted - oldest.counted >= LEAST_BASELINE:
        found = (newest.reported - oldest.reported) / (newest.counted - oldest.counted)
        if SLOPES[0] <= found <= SLOPES[1]:
            slope = found
    return newest._replace(slope=slope)


def _report(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    order: Iterable[int],
) -> Calibration | None:
    """The first report in an order of messages, if it can be believed."""
    for index in order:
        reported = _input_tokens(messages[index])
        if not reported:
            continue
        place = _place(messages[index], view)
        if place is None:
            return None
        counted = sum(sizes[:place])
        return None if reported < counted * LEAST_SHARE else Calibration(reported, counted, 1.0)
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
