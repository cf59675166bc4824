"""What a refused call leads to: one reduction, or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig

from langgraph_compaction.engine.overflow import overflow_steps
from langgraph_compaction.errors import CompactionError
from langgraph_compaction.plan.excess import wrong_window
from langgraph_compaction.run.overflow import excess_in
from langgraph_compaction.visiting import Begun, Update, Visits

AnswerT = TypeVar("AnswerT")


class Recovery:
    """What is done where the call of one node's model raises.

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

    def call(
        self, call: Callable[[Any], AnswerT], state: Any, config: RunnableConfig | None
    ) -> tuple[AnswerT, Update]:
        """Call for a state; refused, reduce its view and call again.

        Args:
            call: takes a state, and calls the model with its view.
            state: the graph's state; not changed.
            config: the run's config.

        Returns:
            What the call that was not refused returned, and the update that its state came from:
            {} where that is the one that was given.

        Raises:
            Exception: what the call raised, where it is no overflow, or compaction is off.
            CompactionError: as `update`.
        """
        update: Update = {}
        while True:  # it ends: a state remembers its reduction, and `update` makes no second one
            try:
                return call(state), update
            except Exception as error:
                reduced = self.update(state, error, config)
                if reduced is None:
                    raise
            state, update = self._visits.channels.updated(state, reduced), reduced

    async def acall(
        self, call: Callable[[Any], Awaitable[AnswerT]], state: Any, config: RunnableConfig | None
    ) -> tuple[AnswerT, Update]:
        """Call asynchronously; see `call`."""
        update: Update = {}
        while True:  # it ends, as in `call`
            try:
                return await call(state), update
            except Exception as error:
                reduced = await self.aupdate(state, error, config)
                if reduced is None:
                    raise
            state, update = self._visits.channels.updated(state, reduced), reduced

    def update(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Update | None:
        """A state update with the record of a smaller view, for which to call once more.

        Args:
            state: as the call saw it; not changed.
            error: what the call raised.
            config: the run's config.

        Returns:
            The update; None where the error is no overflow, or compaction is off.

        Raises:
            BudgetError: the view cannot be reduced enough, or was reduced for this call before.
            CompactionError: whatever else a visit may raise, see `CompactionNode.invoke`.
        """
        with _caused_by(error):
            begun = self._begin(state, error, config)
            return None if begun is None else self._visits.perform(begun)

    async def aupdate(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Update | None:
        """The update asynchronously; see `update`."""
        await self._visits.ready()
        with _caused_by(error):
            begun = self._begin(state, error, config)
            return None if begun is None else await self._visits.aperform(begun)

    def _begin(
        self, state: Any, error: BaseException, config: RunnableConfig | None
    ) -> Begun | None:
        """The reduction; None where there is none to make."""
        excess = excess_in(error)
        if excess is None:
            return None
        # A visit as the node makes it, for another reason: its settings, events and archive.
        visit, performer = self._visits.prepared(state, config, prune=self._prune)
        if not visit.policy.enabled or not visit.policy.clauses:
            return None
        wrong = wrong_window(excess, visit.policy.window, node=self._visits.name)
        if wrong is not None:
            self._visits.warn_once(wrong)
        fold = None if performer.slot is None else performer.slot.fold
        return Begun(overflow_steps(visit, excess, node=self._node, fold=fold), performer)


@contextmanager
def _caused_by(error: BaseException) -> Iterator[None]:
    """Have an error of ours that is raised within name the one that led to it."""
    try:
        yield
    except CompactionError as own:
        raise own from error
