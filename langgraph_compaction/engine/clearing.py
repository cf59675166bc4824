"""Carrying out a clearing of old tool results: no model, no waiting."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph_compaction.changes import cleared
from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.clearing import ClearingPlan
from langgraph_compaction.plan.decision import clearing_to_fit
from langgraph_compaction.record import CompactionRecord, Render


def clear(
    visit: Visit, record: CompactionRecord, plan: ClearingPlan, facts: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """The record with a clearing, and the event that tells of it."""
    render: Render = {**visit.policy.render, **record.get("render", {})}
    found = cleared(record, visit.messages, plan.clearing, render)
    yield Emit(
        {
            "type": "compaction.cleared",
            **facts,
            "tokens_after": visit.size(visit.layout(found)),
            "first_index": plan.first_index,
            "last_index": plan.last_index,
            "results": plan.results,
            "arguments": plan.arguments,
        }
    )
    return found


def cleared_to_fit(
    visit: Visit, record: CompactionRecord, facts: dict[str, Any]
) -> Generator[Effect, object, CompactionRecord]:
    """The record after a fold, with what is cleared if that left the view too large."""
    plan = clearing_to_fit(visit, record)
    if plan is None:
        return record
    return (yield from clear(visit, record, plan, facts))
