"""Carrying out a clearing of old tool results: no model, no waiting."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph_compaction.changes import with_clearing
from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.clearing import ClearingPlan
from langgraph_compaction.plan.decision import clearing_to_fit
from langgraph_compaction.record import CompactionRecord, render_of


def clear(
    visit: Visit, record: CompactionRecord, plan: ClearingPlan, common: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """The record with a clearing, and the event that tells of it."""
    render = render_of(record, visit.policy.render)
    found = with_clearing(record, visit.messages, plan.clearing, render)
    yield Emit(
        {
            "type": "compaction.cleared",
            **common,
            "tokens_after": visit.size(visit.layout(found)),
            "first_index": plan.first_index,
            "last_index": plan.last_index,
            "results": plan.results,
            "arguments": plan.arguments,
        }
    )
    return found


def cleared_to_fit(
    visit: Visit, record: CompactionRecord, common: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """The record after a fold, with what is cleared if that left the view too large."""
    plan = clearing_to_fit(visit, record)
    if plan is None:
        return record
    return (yield from clear(visit, record, plan, common))
