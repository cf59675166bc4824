"""The events that tell how a visit went: plain dicts, the same fields for every thread."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph_compaction.engine.effects import Effect, Emit
from langgraph_compaction.engine.fallback import FALLBACK_NAME
from langgraph_compaction.engine.tally import Change, Tally
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.cooling import failures_in_a_row
from langgraph_compaction.plan.decision import Decision
from langgraph_compaction.record import CompactionRecord, render_of

UNLIMITED = (
    "The context window is not known, so there is no hard limit at which extracts stand in, and "
    "the view grows as long as folds fail: pass context_window=, or end the list of models with "
    "ExtractiveSummarizer()."
)
"""Advice where folds fail and nothing bounds the view."""


def common_fields(decision: Decision) -> dict[str, Any]:
    """What every event of a visit has beside its type."""
    return {
        "need": decision.need,
        "reason": decision.reason,
        "tokens_before": decision.usage.tokens,
    }


def told_problems(visit: Visit, common: dict[str, Any]) -> Generator[Effect, object, None]:
    """Tell what is wrong with the state or the settings, whatever the visit comes to.

    Args:
        visit: what is looked at.
        common: fields of every event.
    """
    for problem in visit.problems:
        yield Emit({"type": "compaction.failed", **common, "reason": problem})


def fold_failed(
    visit: Visit,
    record: CompactionRecord,
    tally: Tally,
    common: dict[str, Any],
    reason: str,
    *,
    advice: str,
) -> dict[str, Any]:
    """The event of a fold that lacks a text.

    Args:
        visit: what was looked at.
        record: what the fold came to all the same.
        tally: the calls; what it holds of their tokens is told hereby.
        common: fields of every event.
        reason: why there is no text.
        advice: a sentence to add to it, "" for none.
    """
    segments = record.get("segments", [])
    if record is visit.record:
        rest = "the digest is as it was"
    elif segments and segments[-1]["model"] == FALLBACK_NAME:
        rest = "extracts stand in for it"
    else:
        rest = "what was finished before counts"
    return {
        "type": "compaction.failed",
        **common,
        "reason": f"{reason.removesuffix('.')}; {rest}" + (f". {advice}" if advice else ""),
        "failures": list(tally.failures),
        "candidates": list(tally.candidates),
        "in_a_row": failures_in_a_row(visit.record) + 1,
        **tally.told(),
    }


def is_completed(visit: Visit, record: CompactionRecord, change: Change) -> bool:
    """Whether there is anything for `completed` to tell: clearing and failures have own events.

    Args:
        visit: what was looked at.
        record: what it came to, before the prune.
        change: what changes in the state.
    """
    before = visit.record
    folded = before.get("segments", []) != record.get("segments", [])
    last = record.get("last_summarized_index", -1) != before.get("last_summarized_index", -1)
    return folded or last or bool(change.removed) or _clips(visit, record)


def _clips(visit: Visit, record: CompactionRecord) -> bool:
    """Whether a record clips other messages than the thread's own."""
    before, after = (render_of(one, visit.policy.render) for one in (visit.record, record))
    limits = ("clip_result_bytes", "clip_message_bytes")
    return any(before.get(limit) != after.get(limit) for limit in limits)


def completed(
    visit: Visit, record: CompactionRecord, tally: Tally, common: dict[str, Any], *, pruned: int
) -> dict[str, Any]:
    """The event of a visit that changed the digest or clips, or removed messages.

    Args:
        visit: what was looked at.
        record: what it came to, before the prune.
        tally: the calls; see `fold_failed`.
        common: fields of every event.
        pruned: messages that leave the state.
    """
    segments = record.get("segments", [])
    before = visit.record.get("last_summarized_index", -1)
    last = record.get("last_summarized_index", -1)
    return {
        "type": "compaction.completed",
        **common,
        "tokens_after": visit.size(visit.layout(record)),
        "first_index": before + 1 if last > before else None,
        "last_index": last if last > before else None,
        "segments": len(segments),
        "condensed": tally.condensed,
        "digest_tokens": sum(one["tokens"] for one in segments),
        "model": segments[-1]["model"] if segments else None,
        "attempts": tally.calls,
        "candidates": list(tally.candidates),
        "pruned": pruned,
        **tally.told(),
    }
