"""Visits to threads as one node makes them: what they look at, what performs them, what they give.

The node, the middleware and the recovery from a refused call are three doors to the same visits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from langgraph_compaction.archive import Archive
from langgraph_compaction.digest.redaction import Redact
from langgraph_compaction.engine import Steps, compaction_steps
from langgraph_compaction.engine.background import background_steps, due
from langgraph_compaction.engine.events import UNLIMITED
from langgraph_compaction.engine.tally import Change
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.given import system_message, tool_warnings
from langgraph_compaction.levels import Levels
from langgraph_compaction.live import LiveChannels
from langgraph_compaction.plan.counting import TokenCounter
from langgraph_compaction.plan.decision import Decision
from langgraph_compaction.plan.requests import read_request
from langgraph_compaction.plan.schemas import beside_messages
from langgraph_compaction.run.attempts import Attempts
from langgraph_compaction.run.background import BackgroundFolds, FoldSlot
from langgraph_compaction.run.context import archive_for, place_of, run_of, run_settings
from langgraph_compaction.run.drivers import Performer, adrive, drive
from langgraph_compaction.run.made import MadeFolds, Place
from langgraph_compaction.run.reporting import Hook, Report, reporter
from langgraph_compaction.run.streams import akeep_from_stream, keep_from_stream
from langgraph_compaction.run.telling import ALL_THREADS, LogOnce, ToldTexts
from langgraph_compaction.run.tiers import Tier
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.state import SETTINGS_KEY, Channels, optional_channel, read_channel
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.among import Among
from langgraph_compaction.view.clipping import BYTES_PER_TOKEN
from langgraph_compaction.view.live import framed, live_text, sent_with

Update = dict[str, Any]


class Begun(NamedTuple):
    """A visit that is to be made.

    Attributes:
        steps: what it does; not started yet.
        performer: performs the effects of the steps.
    """

    steps: Steps
    performer: Performer


@dataclass(kw_only=True)
class Visits:
    """What all visits of one node have in common.

    Keeps nothing of a thread but what works beside the agents, and what tells of a lost fold.

    Attributes:
        name: the node's name in the graph.
        channels: those it reads and writes.
        settings: the node's own settings.
        levels: resolves them with those of thread and run.
        counter: counts tokens.
        tiers: the cascade, in the order in which it is tried.
        tools: schemas of the agent's tools.
        system: the agent's own system prompt; None: not known.
        hook: called with every event.
        redact: takes secrets out of what is sent to a summariser or stored.
        live: what the application holds beside the messages.
        archive: where pruned originals go, see `archive_for`.
        folds: those that run beside agents.
    """

    name: str
    channels: Channels
    settings: CompactionSettings
    levels: Levels
    counter: TokenCounter
    tiers: Sequence[Tier]
    tools: list[dict[str, Any]]
    system: SystemMessage | None
    hook: Hook | None
    redact: Redact | None
    live: LiveChannels
    archive: BaseStore | str | None

    def __post_init__(self) -> None:
        self.folds = BackgroundFolds()
        self._made = MadeFolds()
        self._told = ToldTexts()
        self._log = LogOnce()
        self._counted = False

    # ---- before a visit

    async def ready(self) -> None:
        """Load the vocabulary, which may take seconds and is not for the event loop, once."""
        if not self._counted:
            await asyncio.to_thread(self.counter.load)
            self._counted = True

    def at(self, state: Any, config: RunnableConfig | None = None) -> Visit:
        """What a visit looks at.

        Args:
            state: the graph's state.
            config: of the run whose settings count; None: of the run this is called in, if any.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        messages, record = self.channels.read(state)
        own = optional_channel(state, self.channels.settings)
        run = run_settings(config)
        policy, problems = self.levels.of(
            (f"{self.channels.settings} of the thread", own),
            (f"{SETTINGS_KEY} of the run's config", run.configured),
            (f"{SETTINGS_KEY} of the run's context", run.in_context),
        )
        if record.get("segments"):  # before, nothing is shown, and little is written yet
            for warning in self.live.missing(state):
                self.warn_once(warning)
        text, problem = self.live.read(state)
        live = live_text(text, policy.live_tokens)
        if self._overhead or live:
            shown = self.counter.text(framed(live)) if live else 0
            policy = replace(policy, overhead=policy.overhead + self._overhead, live=shown)
        return Visit(
            messages,
            record,
            policy,
            self.counter,
            self.tiers,
            [*problems, problem] if problem else problems,
            read_request(own),
            self.redact,
            run=run_of(config),
            live=live,
        )

    def begin(self, state: Any, config: RunnableConfig | None) -> Begun:
        """An ordinary visit, with a fold beside the agent or without.

        Args:
            state: the graph's state.
            config: the run's config.

        Raises:
            ConfigurationError: the node's own settings ask for a prune, and the run has no store or
                no thread.
            MissingChannelError, RecordError, RecordVersionError: as `at`.
        """
        visit, performer = self.prepared(state, config)
        slot = performer.slot
        steps = compaction_steps(visit) if slot is None else background_steps(visit, slot.fold)
        return Begun(steps, performer)

    def prepared(
        self, state: Any, config: RunnableConfig | None, *, prune: bool = True
    ) -> tuple[Visit, Performer]:
        """What a visit looks at, and what performs its effects, whatever its steps are.

        Args:
            state: the graph's state.
            config: the run's config.
            prune: False forbids a prune.

        Raises:
            ConfigurationError: as `begin`.
            MissingChannelError, RecordError, RecordVersionError: as `at`.
        """
        visit = self.at(state, config)
        report, place = reporter(self.hook), place_of(config)
        visit, archive = self._with_archive(visit, config, prune=prune)
        visit, report = self._news(visit, place, report)
        lost = self._made.lost(place, visit.record, visit.messages)
        if lost is not None:
            report = self._made.telling(report, place, lost)
            visit = replace(visit, problems=[*visit.problems, lost])
        performer = Performer(
            list(self.tiers),
            report,
            config,
            Attempts(visit.policy.summary_timeout),
            raises=visit.policy.raises,
            node=self.name,
            archive=archive,
            slot=self._slot(visit, config),
        )
        return visit, performer

    def due(self, visit: Visit, config: RunnableConfig | None = None) -> Decision:
        """What a visit would do now."""
        slot = self._slot(visit, config)
        return due(visit, None if slot is None else slot.fold)

    # ---- the visit, and after it

    def perform(self, begun: Begun) -> Update:
        """Make a visit synchronously.

        Returns:
            The state update that it comes to; {} where nothing changes.
        """
        return self._update(drive(begun.steps, begun.performer))

    async def aperform(self, begun: Begun) -> Update:
        """Make a visit asynchronously; see `perform`."""
        return self._update(await adrive(begun.steps, begun.performer))

    def with_view(self, state: Any, update: Update, config: RunnableConfig | None) -> Update:
        """An update with the view for the channel that has it.

        What the view has and the state has not is kept out of the run's message stream.

        Args:
            state: the graph's state.
            update: what is to be written to it.
            config: the run's config.
        """
        view, made_up = self._output(state, update)
        keep_from_stream(made_up, config)
        return update | view

    async def awith_view(self, state: Any, update: Update, config: RunnableConfig | None) -> Update:
        """The same asynchronously; see `with_view`."""
        view, made_up = self._output(state, update)
        await akeep_from_stream(made_up, config)
        return update | view

    def note(self, update: Update, config: RunnableConfig | None) -> None:
        """Remember an update that is to reach the state: a later visit tells where it did not."""
        record = update.get(self.channels.compaction)
        if record is not None:
            self._made.note(place_of(config), record)

    def note_visit(self, state: Any, update: Update, config: RunnableConfig | None) -> None:
        """Remember what a visit of the node writes; but not where it is made again.

        Args:
            state: the graph's state.
            update: what is to be written to it.
            config: the run's config.
        """
        messages = read_channel(state, self.channels.messages, "")
        if self._made.visited(place_of(config), messages[-1].id if messages else None):
            self.note(update, config)

    def _update(self, change: Change | None) -> Update:
        if change is None:
            return {}
        update: Update = {self.channels.compaction: change.record}
        if change.removed:
            update[self.channels.messages] = [RemoveMessage(id=name) for name in change.removed]
        return update

    def _output(self, state: Any, update: Update) -> tuple[Update, list[BaseMessage]]:
        """The view for the channel that has it, and those of its messages that the state lacks."""
        if not self.channels.output:
            return {}, []
        after = self.channels.updated(state, update)
        view = sent_with(*self.layout(after, None))
        known = {message.id for message in read_channel(after, self.channels.messages, "")}
        made_up = [message for message in view if message.id not in known]
        return {self.channels.output: view}, made_up

    # ---- beside it

    def layout(
        self, state: Any, system: str | SystemMessage | None, among: Among | None = None
    ) -> tuple[Layout, str]:
        """The parts of the view, and the live state that goes with it; see `sent_with`.

        Args:
            state: the graph's state.
            system: the agent's own system prompt, to stand first; None: it is sent otherwise.
            among: messages to show in place of the state's; None: the state's.

        Raises:
            MissingChannelError, RecordError, RecordVersionError: as `at`.
        """
        visit = self.at(state)
        own = [] if system is None else [system_message(system)]
        render = visit.policy.render
        layout = lay_out(visit.messages, visit.record, defaults=render, own=own, among=among)
        return layout, visit.live

    def warn_once(self, warning: str | None) -> None:
        """Log a warning, unless this node has; None is none."""
        if warning is not None:
            self._log.warn(warning, [warning])

    def warn_of_tools(self, tools: Sequence[Any]) -> None:
        """Log where an agent's tools and the node's settings do not match, until something was.

        An agent's tools may differ from call to call: what was found at one is not told again in
        the words of another.
        """
        if not self._log.has("tools"):
            most = most_result_tokens(self.levels)
            self._log.warn("tools", tool_warnings(self.settings, tools, most))

    def _news(self, visit: Visit, place: Place | None, report: Report) -> tuple[Visit, Report]:
        """A visit that tells what was not told before, and a report that notes what is told."""
        problems = self._told.untold(place, visit.problems)
        advice = self._told.untold(ALL_THREADS, [UNLIMITED] if visit.policy.hard is None else [])
        report = self._told.telling(report, place, problems)
        report = self._told.telling(report, ALL_THREADS, advice)
        return replace(visit, problems=problems, advice="".join(advice)), report

    def _with_archive(
        self, visit: Visit, config: RunnableConfig | None, *, prune: bool
    ) -> tuple[Visit, Archive | None]:
        """A visit, and where it puts what it prunes; one that prunes nothing where it may not."""
        if not visit.policy.prune:
            return visit, None
        without = replace(visit, policy=replace(visit.policy, prune=False))
        if not prune:
            return without, None
        try:
            return visit, archive_for(self.archive, config)
        except ConfigurationError as error:
            if self.settings.history == "prune":
                raise
            # The thread or the run wants it: what is wrong there ends no run.
            return replace(without, problems=[*visit.problems, str(error)]), None

    def _slot(self, visit: Visit, config: RunnableConfig | None) -> FoldSlot | None:
        """Where this thread's fold runs beside the agent; None: nowhere."""
        place = place_of(config) if visit.policy.background else None
        return None if place is None else FoldSlot(self.folds, place, visit.policy.summary_timeout)

    @cached_property
    def _overhead(self) -> int:
        """Tokens of tools and system prompt, counted once and not before they are needed."""
        if not self.tools and self.system is None:
            return 0
        return beside_messages(self.tools, self.system, self.counter)


def most_result_tokens(levels: Levels) -> int | None:
    """Tokens that the results of one step may have by a node's own settings; None: any."""
    most = levels.of().policy.render.get("clip_result_bytes")
    return None if most is None else most // BYTES_PER_TOKEN
