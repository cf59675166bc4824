"""What a refused call leads to: one reduction, or the error again."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig

from langgraph_compaction.engine import Steps
from langgraph_compaction.engine.overflow import overflow_steps
from langgraph_compaction.errors import CompactionError
from langgraph_compaction.node import CompactionNode, Update
from langgraph_compaction.plan.excess import Excess, wrong_window
from langgraph_compaction.run.context import place_of
from langgraph_compaction.run.drivers import Performer, adrive, drive
from langgraph_compaction.run.overflow import excess_in


class Recovery:
    """What is done where the call of one node's model raises.

    Both methods take the state as the call saw it, what the call raised, and the run's config.

    Args:
        compact: the node whose settings count.
        node: name of the node whose call it is. Where the same view of it is refused twice, it is
            given up.
        prune: False where the update may not commit: then nothing is archived or removed, even
            with ``history="prune"``.
    """

    def __init__(self, compact: CompactionNode, node: str, *, prune: bool) -> None:
        self._compact = compact
        self._node = node
        self._prune = prune

    def update(self, state: Any, error: BaseException, config: RunnableConfig | None) -> Update:
        """A state update with the record of a smaller view, for which to call once more.

        Raises:
            BaseException: the error itself, where it is no overflow or compaction is off.
            BudgetError: the view cannot be reduced enough, or was reduced for this call before.
            CompactionError: whatever else a visit may raise, see `CompactionNode.invoke`.
        """
        excess = _excess(error)
        try:
            steps, performer = self._begin(state, error, excess, config)
            return self._compact._update(drive(steps, performer))  # noqa: SLF001  # see _begin
        except CompactionError as own:
            raise own from error

    async def aupdate(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Update:
        """The same asynchronously; see `update`."""
        excess = _excess(error)
        await self._compact._ready()  # noqa: SLF001  # see _begin
        try:
            steps, performer = self._begin(state, error, excess, config)
            return self._compact._update(await adrive(steps, performer))  # noqa: SLF001
        except CompactionError as own:
            raise own from error

    def committed(self, update: Update, config: RunnableConfig | None) -> None:
        """Remember an update that is to reach the state; a later visit notices where it did not.

        Args:
            update: as `update` returned it.
            config: the run's config.
        """
        record = update.get(self._compact.compaction_key)
        if record is not None:
            self._compact._made.note(place_of(config), record)  # noqa: SLF001  # see _begin

    def _begin(
        self, state: Any, error: BaseException, excess: Excess, config: RunnableConfig | None
    ) -> tuple[Steps, Performer]:
        """The steps of the reduction and what performs them; the error again if that is off."""
        # A visit as the node makes it, for another reason: its settings, events and archive.
        visit, performer = self._compact._prepared(state, config, prune=self._prune)  # noqa: SLF001
        if not visit.policy.enabled or not visit.policy.clauses:
            raise error
        wrong = wrong_window(excess, visit.policy.window, node=str(self._compact.name))
        if wrong is not None:
            self._compact._warn_once(wrong)  # noqa: SLF001  # the same
        fold = None if performer.slot is None else performer.slot.fold
        return overflow_steps(visit, excess, node=self._node, fold=fold), performer


def _excess(error: BaseException) -> Excess:
    """What the provider said; every other error is raised again."""
    excess = excess_in(error)
    if excess is None:
        raise error
    return excess
