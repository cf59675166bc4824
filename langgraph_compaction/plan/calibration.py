"""What the provider reported of the newest calls corrects what was counted.

The agent's own system prompt, tool schemas, a chat template, a tokenizer of the model's own: none
of it is in the state, and all of it is in the input tokens that the provider reports with each
answer. Only answers made under the present view count: what was reported before a fold says
nothing of the view after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
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


LEAST_GROWTH, GROWTH_SHARE = 1_000, 0.1
"""Counted tokens, also as a share of the newest call's, by which the view has to have grown since a
report for it to say whether the newest one is of the same view."""


class Calibration(NamedTuple):
    """What corrects the count.

    Attributes:
        reported: input tokens of the newest call, as the provider reported them.
        counted: tokens that the messages of that call count.
        slope: tokens that one counted token is; 1.0 where no three reports agree on it.
        doubtful: whether it may be of another view than this one: while this one grew, the reports
            did not. So it is where the messages were trimmed by somebody else, or another
            package compacted them. It does not lower a count then.
    """

    reported: int
    counted: int
    slope: float
    doubtful: bool = False


def calibration(
    messages: Sequence[BaseMessage],
    view: Sequence[BaseMessage],
    sizes: Sequence[int],
    made_after: int,
    window: int | None,
    *,
    start: int = -1,
) -> Calibration | None:
    """The correction by the reports that still hold, None where there is none.

    Args:
        messages: the messages channel.
        view: the view of it.
        sizes: counted tokens of each message of the view.
        made_after: index into ``messages`` of the first one that was made under this view.
        window: tokens of the model's window, which no call can exceed; None where unknown.
        start: index into the view of the message in which the provider compacted the conversation,
            -1 where it did not: what it reported with this one, or before, is of all that it had
            read until then.
    """
    reports = _reports(messages[made_after:], view, sizes, start)
    newest = reports[-1] if reports else None
    if newest is None or not _possible(newest, window):
        return None
    if any(_outgrown(report, newest) for report in reports):
        newest = newest._replace(doubtful=True)
    before = next((r for r in reversed(reports) if _baseline(r, newest)), None)
    if before is None:
        return newest
    now = _slope(before, newest)
    if now > SLOPES[1]:
        return None
    first = reports[0]
    if before.counted - first.counted < LEAST_BASELINE:
        return newest
    then = _slope(first, before)
    if min(now, then) < SLOPES[0] or abs(now - then) > AGREEMENT * max(now, then):
        return newest
    return newest._replace(slope=_slope(first, newest))


def _possible(report: Calibration, window: int | None) -> bool:
    enough = report.reported >= report.counted * LEAST_SHARE
    return enough and (window is None or report.reported <= window)


def _baseline(report: Calibration, newest: Calibration) -> bool:
    return newest.counted - report.counted >= LEAST_BASELINE


def _outgrown(report: Calibration, newest: Calibration) -> bool:
    """Whether the view has grown since a report as the newest report has not."""
    growth = newest.counted - report.counted
    enough = growth >= max(LEAST_GROWTH, GROWTH_SHARE * newest.counted)
    return enough and _slope(report, newest) < SLOPES[0]


def _slope(one: Calibration, later: Calibration) -> float:
    return (later.reported - one.reported) / (later.counted - one.counted)


def _reports(
    messages: Sequence[BaseMessage], view: Sequence[BaseMessage], sizes: Sequence[int], start: int
) -> list[Calibration]:
    """The reports of those of the messages that stand in the view after its start, oldest first."""
    reported = [(message, tokens) for message in messages if (tokens := _input_tokens(message))]
    if not reported:
        return []
    before = list(accumulate(sizes, initial=0))
    # Itself, or the copy that the view shows; ids may recur, and the newest counts.
    places = {id(shown): place for place, shown in enumerate(view)}
    named = {shown.id: place for place, shown in enumerate(view) if shown.id is not None}
    found = ((places.get(id(one), named.get(one.id or "")), tokens) for one, tokens in reported)
    return [
        Calibration(tokens, before[place], 1.0)
        for place, tokens in found
        if place is not None and place > start
    ]


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
