"""Two drivers for one generator: they perform its effects and send back the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from langgraph_compaction.digest.verifying import Reply
from langgraph_compaction.engine import Steps
from langgraph_compaction.engine.effects import CallFailed, CallModel, Emit
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.run.models import Tier

EmitFunction = Callable[[dict[str, Any]], None]


def drive(
    steps: Steps, tiers: Sequence[Tier], emit: EmitFunction, config: RunnableConfig
) -> CompactionRecord | None:
    """Perform the steps synchronously.

    Args:
        steps: a step of compaction that has not been started.
        tiers: the cascade that the step's effects number.
        emit: takes every event.
        config: passed to every model call.

    Returns:
        What the step returns: the new record, or None where nothing changed.
    """
    outcome: object = None
    try:
        while True:
            effect = steps.send(outcome)
            if isinstance(effect, Emit):
                emit(effect.event)
                outcome = None
            else:
                outcome = _call(tiers[effect.tier], effect, config)
    except StopIteration as stop:
        record: CompactionRecord | None = stop.value
        return record


async def adrive(
    steps: Steps, tiers: Sequence[Tier], emit: EmitFunction, config: RunnableConfig
) -> CompactionRecord | None:
    """Perform the steps asynchronously; see `drive`."""
    outcome: object = None
    try:
        while True:
            effect = steps.send(outcome)
            if isinstance(effect, Emit):
                emit(effect.event)
                outcome = None
            else:
                outcome = await _acall(tiers[effect.tier], effect, config)
    except StopIteration as stop:
        record: CompactionRecord | None = stop.value
        return record


def _call(tier: Tier, effect: CallModel, config: RunnableConfig) -> Reply | CallFailed:
    try:
        return tier.call(effect.request, config)
    except GraphBubbleUp:  # an interrupt is LangGraph's control flow, not a failed call
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is: a failed call ends no run
        return CallFailed(error)


async def _acall(tier: Tier, effect: CallModel, config: RunnableConfig) -> Reply | CallFailed:
    try:
        return await tier.acall(effect.request, config)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is: a failed call ends no run
        return CallFailed(error)
