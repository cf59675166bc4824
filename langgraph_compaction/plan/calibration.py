"""What the provider reported of the newest calls corrects what was counted.

The agent's own system prompt, tool schemas, a chat template, a tokenizer of the model's own: none
of it is in the state, and all of it is in the input tokens that the provider reports with each
answer. Only answers made under the present view count: what was reported before a fold says
nothing of the view after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.view.blocks import block_type, is_server_call

LEAST_SHARE = 0.5
"""Share of the counted tokens below which a report is not believed: a proxy that reports one token
would switch compaction off."""
LEAST_BASELINE = 20
"""Counted tokens between two reports from which on they tell how many tokens one counted is."""
SLOPES = (0.5, 5.0)
"""Tokens that one counted token may be. Tokenizers of small models take up to 4.6 tokens for one of
o200k_base; more than that is a sum over the chunks of a stream, or another prompt."""
AGREEMENT = 0.25
"""Share by which two such ratios may differ for a tokenizer to be the reason of both."""


class Calibration(NamedTuple):
    """What corrects the count.

    Attributes:
        reported: input tokens of the newest call, as the provider reported them.
        counted: tokens that the messages of that call count.
        slope: tokens that one counted token is; 1.0 where no three reports agree on it.
    """

    reported: int
    counted: int
    slope: float


def calibration(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    made_after: int,
    window: int | None,
) -> Calibration | None:
    """The correction by the reports that still hold, None where there is none.

    Args:
        messages: the messages channel.
        view: the view of it.
        sizes: counted tokens of each message of the view.
        made_after: index into ``messages`` of the first one that was made under this view.
        window: tokens of the model's window, which no call can exceed; None where unknown.
    """
    backward = _reports(messages, view, sizes, range(len(messages) - 1, made_after - 1, -1))
    newest = next(backward, None)
    if newest is None or not _possible(newest, window):
        return None
    before = next((r for r in backward if newest.counted - r.counted >= LEAST_BASELINE), None)
    if before is None:
        return newest
    now = _slope(before, newest)
    if now > SLOPES[1]:
        return None
    first = next(_reports(messages, view, sizes, range(made_after, len(messages))), before)
    if before.counted - first.counted < LEAST_BASELINE:
        return newest
    then = _slope(first, before)
    if min(now, then) < SLOPES[0] or abs(now - then) > AGREEMENT * max(now, then):
        return newest
    return newest._replace(slope=_slope(first, newest))


def _possible(report: Calibration, window: int | None) -> bool:
    enough = report.reported >= report.counted * LEAST_SHARE
    return enough and (window is None or report.reported <= window)


def _slope(one: Calibration, later: Calibration) -> float:
    return (later.reported - one.reported) / (later.counted - one.counted)


def _reports(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    order: Iterable[int],
) -> Iterator[Calibration]:
    """The reports of the messages of an order that stand in the view."""
    for index in order:
        reported = _input_tokens(messages[index])
        place = _place(messages[index], view) if reported else None
        if place is not None:
            yield Calibration(reported, sum(sizes[:place]), 1.0)


def _input_tokens(message: BaseMessage) -> int:
    """Tokens of the call that brought this message; 0 where none were reported.

    None while streaming without ``stream_usage``. LangChain's ``input_tokens`` includes what was
    read from and written to the cache; a report that is smaller than these left them out, as
    Anthropic's own API does.
    """
    usage: Any = message.usage_metadata if isinstance(message, AIMessage) else None
    # The provider called itself several times for a message with server-side tools: a sum.
    if not isinstance(usage, Mapping) or _ran_on_server(message):
        return 0
    total, details = _number(usage.get("input_tokens")), usage.get("input_token_details")
    if not isinstance(details, Mapping):
        return total
    cached = _number(details.get("cache_read")) + _number(details.get("cache_creation"))
    return total + cached if cached > total else total


def _number(value: Any) -> int:
    """A number of tokens, 0 for what is none: wrappers write all sorts of things there."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST_TOKENS:
        return 0
    return int(value)


MOST_TOKENS = 10**9
"""More than any window: beyond it a number is no report."""


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
    """Where a message stands: itself, or the copy that the view shows; ids may recur."""
    places = range(len(view) - 1, -1, -1)
    found = next((place for place in places if view[place] is message), None)
    if found is None and message.id:
        found = next((place for place in places if view[place].id == message.id), None)
    return found
