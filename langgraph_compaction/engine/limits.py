"""Keeping the view within the hard limit by clipping, the last means and a free one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from langgraph_compaction.changes import clipped, with_render
from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import BudgetError
from langgraph_compaction.plan.fitting import fit_view
from langgraph_compaction.plan.reading import read_tokens
from langgraph_compaction.record import CompactionRecord, Render, render_of
from langgraph_compaction.view import DIGEST_MARK


def relaxed(visit: Visit, record: CompactionRecord) -> CompactionRecord:
    """The record rendered as the settings say now, unless tighter clips are still needed.

    A fold is the one moment at which the view changes anyway, so new settings and looser clips
    come into force with it.
    """
    if record is visit.record:
        return record
    render: Render = {**visit.policy.render, "task": record.get("render", {}).get("task")}
    loose = with_render(record, render)
    limits = [limit for limit in (visit.policy.soft, visit.policy.hard) if limit is not None]
    if limits and visit.size(visit.layout(loose)) >= min(limits):
        return record
    return loose


def fitted(
    visit: Visit, record: CompactionRecord, common: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """The record under clip limits that keep the view within the hard limit.

    Raises:
        BudgetError: even the tightest clips leave the view larger than the window.
    """
    fit = fit_view(visit.messages, record, visit.policy, visit.counter)
    reclipped = clipped(record, visit.messages, fit.limits)
    if fit.fits:
        present = render_of(record, visit.policy.render)
        return record if fit.limits == present else reclipped
    window = visit.policy.window or 0
    layout = visit.layout(reclipped)
    view = layout.view()
    beside = visit.policy.with_live(layout.digest).overhead
    if read_tokens(view, visit.counter) + beside <= window:
        # Only by what was reported of another call it would not fit: the provider will tell.
        return reclipped
    error = too_large(
        visit,
        view,
        limit=window,
        but=f"the window has {window}",
        advice="where summarisers failed or a hook vetoed the fold, see the events before.",
        reason=common["reason"],
    )
    yield Emit({"type": "compaction.failed", **common, "reason": str(error)})
    raise error


def too_large(
    visit: Visit, view: Sequence[BaseMessage], *, limit: int, but: str, advice: str, reason: str
) -> BudgetError:
    """The error for a view that may not be made any smaller.

    Args:
        visit: what was looked at.
        view: the view after all that could be done.
        limit: tokens that it may take.
        but: the same in words.
        advice: what else there is to do or to look at.
        reason: why the view had to be smaller.
    """
    sizes = _sizes(visit, view)
    listed = ", ".join(f"{name} {tokens}" for name, tokens in sizes.items()) or "it has no message"
    place = max(range(len(view)), key=lambda index: visit.counter.message(view[index]), default=0)
    largest = view[place] if view else None
    told = ""
    if largest is not None:
        which = f"no. {place} of the view, from 0" if largest.id is None else repr(largest.id)
        told = (
            f" The largest message is {which} ({largest.type}, "
            f"{visit.counter.message(largest)} tokens)."
        )
    if largest is None or max(sizes, key=sizes.__getitem__) == "overhead":
        remedy = "Pass fewer tools, shorten the system prompt, lower overhead_tokens"
    else:
        remedy = "Shorten or unpin it"
    message = (
        f"What stays in the view takes {sum(sizes.values())} tokens, but {but}: {listed}.{told} "
        f"{remedy}, or use a model with a larger window; {advice} ({reason})"
    )
    return BudgetError(message, sizes=sizes, limit=limit)


_NAMES = {"system": "system messages", "human": "user messages", "tool": "tool results"}


def _sizes(visit: Visit, view: Sequence[BaseMessage]) -> dict[str, int]:
    """Tokens by kind of message, the digest and the overhead on their own."""
    sizes: dict[str, int] = {}
    for message in view:
        name = "digest" if message.id == DIGEST_MARK else _NAMES.get(message.type, "agent messages")
        sizes[name] = sizes.get(name, 0) + visit.counter.messages([message])
    counted = sum(sizes.values())
    beside = visit.policy.with_live(sizes.get("digest")).call_tokens(counted) - counted
    if beside:
        sizes["overhead"] = beside
    return sizes
