"""Two drivers for one generator: they perform its effects and send back the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from langgraph_compaction import archive
from langgraph_compaction.engine import Steps
from langgraph_compaction.engine.effects import (
    ArchiveFailed,
    ArchiveOriginals,
    Awaited,
    AwaitFold,
    BeginFold,
    CallFailed,
    CallModel,
    CheckRoom,
    DropFold,
    Effect,
    Emit,
    MarkTold,
    Propose,
)
from langgraph_compaction.engine.tally import Change
from langgraph_compaction.run.attempts import Attempts, AttemptTimeoutError
from langgraph_compaction.run.background import FoldSlot
from langgraph_compaction.run.faults import is_programming_error, is_refused, said_by
from langgraph_compaction.run.overflow import is_overflow
from langgraph_compaction.run.reporting import Report, outliving, summary_config
from langgraph_compaction.run.tiers import Tier

LONGEST_REASON = 300
"""Characters of an error's text that an event repeats."""


@dataclass(frozen=True, slots=True)
class Performer:
    """Performs the effects of one visit.

    Attributes:
        tiers: the cascade that the step's effects number.
        report: takes every event; returns whether it was vetoed.
        config: the run's config.
        attempts: the visit's clock.
        raises: whether refused credentials and programming errors end the run.
        node: the node's name, as events have it.
        archive: where originals go that leave the channel; None: nowhere.
        slot: where this thread's fold runs that is made beside the agent; None: nowhere.
    """

    tiers: Sequence[Tier]
    report: Report
    config: RunnableConfig | None
    attempts: Attempts
    raises: bool
    node: str = ""
    archive: archive.Archive | None = None
    slot: FoldSlot | None = None

    def perform(self, effect: Effect) -> object:
        """Perform one effect synchronously; the outcome is what the step is sent."""
        if isinstance(effect, CallModel):
            return self.ask(effect)
        if isinstance(effect, ArchiveOriginals):
            return self._written(effect)
        if isinstance(effect, BeginFold):
            return self.slot and self.slot.begin(effect, self._apart().ask)
        if isinstance(effect, AwaitFold):
            before = self.attempts.elapsed
            over = self.slot is not None and self.slot.wait()
            return Awaited(over, self.attempts.elapsed - before)
        return self._at_once(effect)

    async def aperform(self, effect: Effect) -> object:
        """Perform one effect asynchronously; see `perform`."""
        if isinstance(effect, CallModel):
            return await self.aask(effect)
        if isinstance(effect, ArchiveOriginals):
            return await self._awritten(effect)
        if isinstance(effect, BeginFold):
            return self.slot and self.slot.abegin(effect, self._apart().aask)
        if isinstance(effect, AwaitFold):
            before = self.attempts.elapsed
            over = self.slot is not None and await self.slot.await_()
            return Awaited(over, self.attempts.elapsed - before)
        return self._at_once(effect)

    def ask(self, call: CallModel) -> object:
        """The answer of a tier, or a `CallFailed`; raises what may end the run."""
        tier = self.tiers[call.tier]
        try:
            return self.attempts.call(tier, call.request, self._config_for(tier))
        except Exception as error:  # noqa: BLE001  # whatever it is: a failed call ends no run
            return self._failed(error)

    async def aask(self, call: CallModel) -> object:
        """The answer of a tier, asynchronously; see `ask`."""
        tier = self.tiers[call.tier]
        try:
            return await self.attempts.acall(tier, call.request, self._config_for(tier))
        except Exception as error:  # noqa: BLE001  # whatever it is: a failed call ends no run
            return self._failed(error)

    def _written(self, effect: ArchiveOriginals) -> object:
        if self.archive is None:
            return next(iter(effect.heads), None)
        try:
            return archive.perform(self.archive.store, _writing(effect, self.archive))
        except Exception as error:  # noqa: BLE001  # any store, any error: nothing is pruned
            return _unwritten(error)

    async def _awritten(self, effect: ArchiveOriginals) -> object:
        if self.archive is None:
            return next(iter(effect.heads), None)
        try:
            return await archive.aperform(self.archive.store, _writing(effect, self.archive))
        except Exception as error:  # noqa: BLE001  # any store, any error: nothing is pruned
            return _unwritten(error)

    def _apart(self) -> Performer:
        """Who asks for a fold beside the agent: with a clock of its own, and after the run."""
        return replace(self, attempts=self.attempts.anew(), config=outliving(self.config))

    def _at_once(self, effect: Emit | Propose | CheckRoom | MarkTold | DropFold) -> object:
        if isinstance(effect, Emit | Propose):
            return self._told(effect.event)
        if self.slot is None:
            return None
        if isinstance(effect, CheckRoom):
            return self.slot.why_full()
        if isinstance(effect, MarkTold):
            self.slot.mark_told(effect.fold)
        else:
            self.slot.drop(effect.fold)
        return None

    def _told(self, event: dict[str, object]) -> bool:
        configurable = (self.config or {}).get("configurable") or {}
        where = {"node": self.node, "thread_id": configurable.get("thread_id")}
        return self.report({"duration": round(self.attempts.elapsed, 3), **event, **where})

    def _config_for(self, tier: Tier) -> RunnableConfig:
        return summary_config(self.config, tier.info.name)

    def _failed(self, error: Exception) -> CallFailed:
        """What a call that raised means for the calls after it.

        Raises:
            Exception: the error itself, where the user wants to hear of it.
        """
        if isinstance(error, GraphBubbleUp):  # an interrupt is control flow, not a failed call
            raise error
        if self.raises and (is_refused(error) or is_programming_error(error)):
            raise error
        late = error if isinstance(error, AttemptTimeoutError) else None
        return CallFailed(
            error,
            overflow=is_overflow(error),
            ends_visit=self.attempts.over or (late is not None and late.ends_visit),
            asked=late is None or late.asked,
        )


def _writing(effect: ArchiveOriginals, where: archive.Archive) -> archive.Steps[str | None]:
    return archive.steps_of_append(where, effect.messages, effect.heads, effect.doubtful)


def _unwritten(error: Exception) -> ArchiveFailed:
    said = " ".join(said_by(error).split())[:LONGEST_REASON]
    return ArchiveFailed(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def drive(steps: Steps, performer: Performer) -> Change | None:
    """Perform the steps of a visit that was not started yet.

    Returns:
        What the step returns: what changes in the state, or None where nothing does.

    Raises:
        ConfigurationError: the archive's store cannot be asked synchronously from this thread.
    """
    if performer.archive is not None:  # before anything is asked of a model
        archive.check_synchronous(performer.archive.store)
    outcome: object = None
    try:
        while True:
            outcome = performer.perform(steps.send(outcome))
    except StopIteration as stop:
        change: Change | None = stop.value
        return change


async def adrive(steps: Steps, performer: Performer) -> Change | None:
    """Perform the steps asynchronously; see `drive`."""
    outcome: object = None
    try:
        while True:
            outcome = await performer.aperform(steps.send(outcome))
    except StopIteration as stop:
        change: Change | None = stop.value
        return change
