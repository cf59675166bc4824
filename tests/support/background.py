"""Folds that a node makes beside the agent: the one place where tests look into a node for them."""

import asyncio

from langgraph_compaction import CompactionNode
from langgraph_compaction.run.background import BackgroundFolds, BegunFold

WAIT = 60.0
"""Seconds after which a test that waits in vain gives up."""


def begun(compact: CompactionNode) -> BackgroundFolds:
    """The folds of all threads of a node."""
    return compact._visits.folds


def folds_of(compact: CompactionNode) -> list[BegunFold]:
    """Those that run, or wait for their threads, oldest first."""
    return list(begun(compact)._folds.values())


def settle(compact: CompactionNode) -> None:
    """Wait until no fold runs beside an agent.

    Raises:
        TimeoutError: one does not end.
    """
    for fold in folds_of(compact):
        if fold.running:
            fold.over.result(WAIT)


async def asettle(compact: CompactionNode) -> None:
    """Wait for it without blocking the loop; raises what `settle` raises."""
    for fold in folds_of(compact):
        if fold.running:
            await asyncio.wait_for(asyncio.wrap_future(fold.over), WAIT)
