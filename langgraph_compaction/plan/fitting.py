"""The last means at the hard limit: clip results, then human messages, until the view fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.reading import Counter, read_tokens
from langgraph_compaction.record import CompactionRecord, Render, render_of
from langgraph_compaction.view import lay_out
from langgraph_compaction.view.clipping import SHORTEST, text_size


class Fit(NamedTuple):
    """Clip limits, and whether the view fits under them."""

    limits: Render
    fits: bool


def fit_view(
    messages: Sequence[BaseMessage], record: CompactionRecord, policy: Policy, counter: Counter
) -> Fit:
    """The clip limits under which the view is within the hard limit, or at least the window.

    The present limits where it is already. Better a view that reaches into the reserve than the
    tightest clips for nothing: where the hard limit cannot be reached, the window counts.

    Args:
        messages: the messages channel.
        record: the record to view them under.
        policy: the numbers to decide by.
        counter: counts tokens.
    """
    render = render_of(record, policy.render)

    def size(limits: Render) -> int:
        under: CompactionRecord = {**record, "render": limits}
        layout = lay_out(messages, under)
        return policy.with_live(layout.digest).call_tokens(read_tokens(layout.view(), counter))

    if policy.hard is None or policy.window is None or size(render) <= policy.hard:
        return Fit(render, fits=True)
    longest = max(map(text_size, lay_out(messages, record).view()), default=0)
    found = fitted_render(render, size, policy.hard, longest=longest)
    if found.fits:
        return found
    return fitted_render(render, size, policy.window, longest=longest)


def fitted_render(
    render: Render, size: Callable[[Render], int], limit: int, *, longest: int
) -> Fit:
    """The loosest clip limits (to a factor of two) under which the view has ``limit`` tokens.

    Results of tools are clipped first, human messages only if that is not enough. Where even the
    tightest limits do not fit, those are returned.

    Args:
        render: the limits so far.
        size: tokens of the view under given limits.
        limit: tokens that it may have.
        longest: UTF-8 bytes of the longest message in the view; clipping starts below it.
    """
    fitted: Render = {**render}
    for limited in _halved(render.get("clip_result_bytes"), longest):
        fitted["clip_result_bytes"] = limited
        if size(fitted) <= limit:
            return Fit(fitted, fits=True)
    for limited in _halved(render.get("clip_message_bytes"), longest):
        fitted["clip_message_bytes"] = limited
        if size(fitted) <= limit:
            return Fit(fitted, fits=True)
    return Fit(fitted, fits=False)


def _halved(limit: int | None, longest: int) -> Iterator[int]:
    """Clip limits to try: the present one, half of it, and so on down to the shortest."""
    limited = min(limit or longest, longest)
    while limited > SHORTEST:
        yield limited
        limited //= 2
    yield SHORTEST
