"""The last means at the hard limit: clip results, then human messages, until the view fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.record import Render
from langgraph_compaction.view.clipping import SHORTEST, text_size


class Fit(NamedTuple):
    """Clip limits, and whether the view fits under them."""

    limits: Render
    fits: bool


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
        longest: characters of the longest message in the view; clipping starts below it.
    """
    fitted: Render = {**render}
    for chars in _halved(render.get("result_chars"), longest):
        fitted["result_chars"] = chars
        if size(fitted) <= limit:
            return Fit(fitted, fits=True)
    for chars in _halved(render.get("message_chars"), longest):
        fitted["message_chars"] = chars
        if size(fitted) <= limit:
            return Fit(fitted, fits=True)
    return Fit(fitted, fits=False)


def _halved(limit: int | None, longest: int) -> Iterator[int]:
    """Clip limits to try: the present one, half of it, and so on down to the shortest."""
    chars = min(limit or longest, longest)
    while chars > SHORTEST:
        yield chars
        chars //= 2
    yield SHORTEST


def longest_text(messages: Iterable[BaseMessage]) -> int:
    """Characters of the longest message."""
    return max(map(text_size, messages), default=0)
