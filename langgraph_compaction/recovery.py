"""What a refused call leads to: one reduction, or nothing."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_compaction.engine import Steps
from langgraph_compaction.engine.overflow import overflow_steps
from langgraph_compaction.errors import CompactionError
from langgraph_compaction.plan.excess import wrong_window
from langgraph_compaction.run.drivers import Performer, adrive, drive
from langgraph_compaction.run.overflow import excess_in
from langgraph_compaction.run.streams import akeep_from_stream, keep_from_stream
from langgraph_compaction.visiting import Update, Visits


class Recovery:
    """What is done where the call of one node's model raises.

    Both methods take the state as the call saw it, what the call raised, and the run's config. They
    return a state update with the record of a smaller view, for which to call once more; None where
    the error is no overflow, or compaction is off.

    Args:
        visits: those of the compaction node whose settings count.
        node: name of the node whose call it is. Where the same view of it is refused twice, it is
            given up.
        prune: False where the update may not commit: then nothing is archived or removed, even
            with ``history="prune"``.
    """

    def __init__(self, visits: Visits, node: str, *, prune: bool) -> None:
        self._visits = visits
        self._node = node
        self._prune = prune

    def update(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Update | None:
        """The update synchronously.

        Raises:
            BudgetError: the view cannot be reduced enough, or was reduced for this call before.
            CompactionError: whatever else a visit may raise, see `CompactionNode.invoke`.
        """
        try:
            begun = self._begin(state, error, config)
            if begun is None:
                return None
            update = self._visits.update(drive(*begun))
        except CompactionError as own:
            raise own from error
        view, made_up = self._visits.output(state, update)
        keep_from_stream(made_up, config)
        return update | view

    async def aupdate(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Update | None:
        """The update asynchronously; see `update`."""
        await self._visits.ready()
        try:
            begun = self._begin(state, error, config)
            if begun is None:
                return None
            update = self._visits.update(await adrive(*begun))
        except CompactionError as own:
            raise own from error
        view, made_up = self._visits.output(state, update)
        await akeep_from_stream(made_up, config)
        return update | view

    def committed(self, update: Update, config: RunnableConfig | None) -> None:
        """Remember an update that is to reach the state; a later visit notices where it did not."""
        self._visits.note(update, config)

    def _begin(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> tuple[Steps, Performer] | None:
        """The steps of the reduction and what performs them; None where there is none to make."""
        excess = excess_in(error)
        if excess is None:
            return None
        # A visit as the node makes it, for another reason: its settings, events and archive.
        visit, performer = self._visits.begin(state, config, prune=self._prune)
        if not visit.policy.enabled or not visit.policy.clauses:
            return None
        wrong = wrong_window(excess, visit.policy.window, node=self._visits.name)
        if wrong is not None:
            self._visits.warn_once(wrong)
        fold = None if performer.slot is None else performer.slot.fold
        return overflow_steps(visit, excess, node=self._node, fold=fold), performer
