"""Keeping the view within the hard limit by clipping, the last means and a free one."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import BudgetError
from langgraph_compaction.plan.fitting import Fit, fitted_render, longest_text
from langgraph_compaction.record import CompactionRecord, Render
from langgraph_compaction.view import Layout


def relaxed(visit: Visit, record: CompactionRecord) -> CompactionRecord:
    """The record rendered as the settings say now, unless tighter clips are still needed.

    A fold is the one moment at which the view changes anyway, so new settings and looser clips
    come into force with it.
    """
    if record is visit.record:
        return record
    loose: CompactionRecord = {
        **record,
        "render": {**visit.policy.render, "task": record["render"]["task"]},
    }
    limits = [limit for limit in (visit.policy.soft, visit.policy.hard) if limit is not None]
    if limits and visit.size(visit.layout(loose)) >= min(limits):
        return record
    return loose


def fitted(
    visit: Visit, record: CompactionRecord, facts: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """Clip oversized results, then human messages, until the view is within the hard limit."""
    hard, window = visit.policy.hard, visit.policy.window
    layout = visit.layout(record)
    if hard is None or window is None or visit.size(layout) <= hard:
        return record
    render: Render = {**visit.policy.render, **record.get("render", {})}

    def under(candidate: Render) -> CompactionRecord:
        return {**record, "render": candidate}

    def fit(limit: int) -> Fit:
        longest = longest_text(layout.view())
        return fitted_render(
            render, lambda limits: visit.size(visit.layout(under(limits))), limit, longest=longest
        )

    # Better a view that reaches into the reserve than the tightest clips for nothing.
    found = fit(hard)
    found = found if found.fits else fit(window)
    if not found.fits:
        sizes = _sizes(visit, visit.layout(under(found.limits)))
        message = _over_budget(sizes, window)
        yield Emit({"type": "compaction.failed", **facts, "reason": message})
        raise BudgetError(message, sizes=sizes, limit=window)
    return record if found.limits == render else under(found.limits)


def _over_budget(sizes: dict[str, int], window: int) -> str:
    listed = ", ".join(f"{name} {tokens}" for name, tokens in sizes.items())
    return (
        f"What must stay in the view takes {sum(sizes.values())} tokens, but the window has "
        f"{window}: {listed}. Unpin messages, shorten the system prompt or the task, lower "
        "overhead_tokens, or use a model with a larger window."
    )


def _sizes(visit: Visit, layout: Layout) -> dict[str, int]:
    count = visit.counter.messages
    parts = {
        "system messages": count(layout.leading),
        "task": count(layout.task),
        "digest": visit.counter.text(layout.digest or ""),
        "kept messages": count(layout.kept),
        "recent messages": count(layout.recent),
        "overhead": visit.policy.overhead,
    }
    return {name: tokens for name, tokens in parts.items() if tokens}
