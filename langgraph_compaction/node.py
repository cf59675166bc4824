"""The compaction node: a Runnable from graph state to state update."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.store.base import BaseStore

from langgraph_compaction.digest.redaction import Redact, checked_redact
from langgraph_compaction.engine import Steps, compaction_steps
from langgraph_compaction.engine.background import background_steps, due
from langgraph_compaction.engine.tally import Change
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.given import (
    checked_output_key,
    chosen_counter,
    counter_for,
    loaded,
    settings_levels,
    system_message,
    tool_schemas,
)
from langgraph_compaction.live import LiveState, checked_live_state, missing_channels
from langgraph_compaction.looking import Explanation, Measurement, explained, measured
from langgraph_compaction.plan.counting import TokenCounter
from langgraph_compaction.plan.decision import Decision, decide
from langgraph_compaction.plan.requests import read_request
from langgraph_compaction.plan.schemas import beside_messages
from langgraph_compaction.resolving import AgentLimits
from langgraph_compaction.run.attempts import Attempts
from langgraph_compaction.run.background import BackgroundFolds, FoldSlot
from langgraph_compaction.run.cascade import tiers_of
from langgraph_compaction.run.context import (
    RUN_STORE,
    archive_for,
    checked_archive,
    place_of,
    run_of,
    run_settings,
)
from langgraph_compaction.run.drivers import Performer, adrive, drive
from langgraph_compaction.run.made import MadeFolds
from langgraph_compaction.run.models import agent_model_of, model_limits
from langgraph_compaction.run.reporting import Hook, checked_hook, logger, reporter
from langgraph_compaction.run.streams import akeep_from_stream, keep_from_stream
from langgraph_compaction.run.tiers import Tier
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.state import (
    COMPACTION_KEY,
    MESSAGES_KEY,
    SETTINGS_KEY,
    optional_channel,
    read_channel,
    read_state,
    updated,
)
from langgraph_compaction.view import Layout, lay_out
from langgraph_compaction.view.clipping import BYTES_PER_TOKEN
from langgraph_compaction.view.live import framed, live_text, sent_with

Update = dict[str, Any]
MOST_WARNINGS = 20
"""Different warnings that one node logs, each once: threads may have settings of their own."""


class CompactionNode(Runnable[Any, Update]):
    """A graph node that folds older messages into a digest when the context fills up.

    Place it before the agent (``tools → compact → agent``) or between agent and tools; calls that
    still wait for results are never folded. All that counts of a thread is in its state: any other
    node of the same settings goes on from there.

    Examples:
        >>> from langgraph.graph import START, StateGraph
        >>> compact = CompactionNode(ExtractiveSummarizer(), context_window=128_000)
        >>> builder = StateGraph(CompactionState)
        >>> _ = builder.add_node("compact", compact)
        >>> _ = builder.add_node("agent", lambda s: {"messages": [model.invoke(compact.view(s))]})

    Args:
        model: writes the digests: the name of a ChatOpenAI model (built at first use), a chat
            model, an `ExtractiveSummarizer`, a callable from messages to text, a `ModelTier`, or
            a list of these, tried in turn. The agent's own model is the last, unless it or an
            `ExtractiveSummarizer` is listed.
        agent_model: the model whose window is at stake, or its name: gives window, maximum output
            and tokenizer.
        settings: values of `CompactionSettings`: an instance or a mapping, over which ``values``
            win, such as one of the `presets`; or what `load_settings` returned, or the path of a
            settings file, which win over ``values``.
        token_counter: "tiktoken" (default), "estimate", "approximate", "chars/4+400", or a
            callable from a list of messages to tokens. A preset and a settings file may name one,
            too.
        tools: the agent's tools, as for ``bind_tools``: their schemas count, as long as no
            provider's report includes them. Where they are given, the one that ``recall_tool``
            names has to be among them; other names in the settings that none of them has are
            logged.
        system_prompt: the agent's own system prompt where it is no message of the state: counts in
            the same way.
        hook: called with every event, a dict, in the thread or on the event loop of the visit.
            Returning False for ``compaction.started`` vetoes that fold.
        redact: called with every text that goes to a summariser or into the record, and returns it
            without its secrets. Where it raises or returns no str, nothing is sent or stored.
        live_state: what the application holds beside the messages and the agent has to know, such
            as its to-do list: names of channels, or a function from the state to a text (None:
            nothing now). From the first digest on each view of this node shows it as it is then.
        archive: where ``history="prune"`` puts the originals: "run": into the store that the graph
            runs with; a store; None: nowhere, they are dropped.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.
        output_messages_key: name of a channel to which every visit writes the view, such as
            "llm_input_messages" where the node is the ``pre_model_hook`` of an agent; None: none.
        settings_key: name of the channel with the thread's own settings, if it has one: a dict of
            values of `CompactionSettings`; they win over the node's.
        name: the node's name in the graph, as `route` returns it, and under which settings of
            thread and run are for this node alone.
        values: values of `CompactionSettings` by name.

    Raises:
        ConfigurationError: a value is wrong, a fraction needs a window that is not known, or
            ``recall_tool`` names none of ``tools``.
    """

    def __init__(
        self,
        model: Any,
        *,
        agent_model: Any = None,
        settings: CompactionSettings | Mapping[str, Any] | str | PathLike[str] | None = None,
        token_counter: str | Callable[[list[BaseMessage]], int] | TokenCounter | None = None,
        tools: Sequence[Any] = (),
        system_prompt: str | SystemMessage | None = None,
        hook: Hook | None = None,
        redact: Redact | None = None,
        live_state: LiveState | None = None,
        archive: BaseStore | str | None = RUN_STORE,
        messages_key: str = MESSAGES_KEY,
        compaction_key: str = COMPACTION_KEY,
        settings_key: str = SETTINGS_KEY,
        output_messages_key: str | None = None,
        name: str = "compact",
        **values: Any,
    ) -> None:
        self.name = name
        self.messages_key = messages_key
        self.compaction_key = compaction_key
        self.settings_key = settings_key
        self.output_messages_key = checked_output_key(
            output_messages_key, (messages_key, compaction_key, settings_key)
        )
        named, agent_model = agent_model, agent_model_of(agent_model)
        window, max_output = model_limits(agent_model)
        settings = loaded(settings)
        self._counter = counter_for(chosen_counter(token_counter, settings, name), agent_model)
        self._counted = False
        limits = AgentLimits(window, max_output, self._counter.as_provider)
        self.settings, self._levels = settings_levels(settings, values, name, limits)
        self._tools = tool_schemas(tools, self.settings, self._max_result_tokens)
        self._system = None if system_prompt is None else system_message(system_prompt)
        self._hook = checked_hook(hook)
        self._redact = checked_redact(redact)
        self._live_state = checked_live_state(live_state)
        self._live_channels = live_state
        self._archive = checked_archive(archive)
        self._folds = BackgroundFolds()
        self._made = MadeFolds()
        self._warned: set[str] = set()
        self._tiers: list[Tier] = tiers_of(
            model,
            agent_model=named,
            agent_window=window or self.settings.context_window,
            count=self._counter.text,
        )

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Visit a thread: fold what has to be folded.

        Args:
            input: the graph's state (dict, dataclass or pydantic model).
            config: the run's config; its callbacks reach the summary calls.

        Returns:
            A state update with the new record and the removals of messages that were pruned, or
            ``{}`` where nothing changed; and with the view, given ``output_messages_key``.

        Raises:
            ConfigurationError: the node's settings say ``history="prune"``, and the run has no
                store or no thread.
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read; nothing is written.
            BudgetError: what must stay does not fit the window, even clipped.
            CascadeExhaustedError: with ``on_error="raise"``; so is what a summariser raised, where
                it is a refusal of the caller or an error of the program, and a
                ConfigurationError where ``redact`` fails.
        """
        visit, performer = self._prepared(input, config)
        update = self._noted(drive(_steps(visit, performer), performer), config)
        view, made_up = self._output(input, update)
        keep_from_stream(made_up, config)
        return update | view

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Visit a thread asynchronously; see `invoke`."""
        await self._ready()
        visit, performer = self._prepared(input, config)
        update = self._noted(await adrive(_steps(visit, performer), performer), config)
        view, made_up = self._output(input, update)
        await akeep_from_stream(made_up, config)
        return update | view

    def view(self, state: Any, system: str | SystemMessage | None = None) -> list[BaseMessage]:
        """The messages to call the agent's model with.

        As `model_view`, and with the live state, if the node has one. Oversized tool results are
        clipped even before the first fold.

        Args:
            state: the graph's state.
            system: the agent's own system prompt; it stands first, and with
                ``digest_role="system"`` forms one system message with what follows.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        return sent_with(*self._sight(state, system))

    def measure(self, state: Any, config: RunnableConfig | None = None) -> Measurement:
        """Measure the view of a state; nothing is called and nothing changes.

        Args:
            state: the graph's state.
            config: of the run whose settings count; None: of the run this is called in, if any.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        self._counter.text("a")  # whether there is a vocabulary shows at the first count
        return measured(decide(self._visit(state, config)), self._counter)

    def explain(self, state: Any, config: RunnableConfig | None = None) -> Explanation:
        """What a visit to this ``state`` would do, and why; a dry run that calls nothing.

        Args:
            state: the graph's state.
            config: as for `measure`.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        visit = self._visit(state, config)
        return explained(visit, self._due(visit, config), self._counter)

    def route(self, name: str) -> Callable[[Any], str]:
        """A path function that spares idle visits (each costs a checkpoint).

        Goes to this node when it has something to do, else straight to ``name``. This node must
        have been added under its ``name=`` ("compact" by default).

        Examples:
            >>> _ = builder.add_conditional_edges(
            ...     "tools", compact.route("agent"), ["compact", "agent"]
            ... )
        """
        own = self.get_name()
        if self.output_messages_key:  # what the channel has is old by now
            return lambda _: own

        def path(state: Any) -> str:
            decision = self._due(self._visit(state))
            waits = decision.request is not None and decision.action == "skip"
            return own if waits or decision.action in {"clear", "fold", "clip"} else name

        return path

    def _sight(self, state: Any, system: str | SystemMessage | None) -> tuple[Layout, str]:
        """The parts of the view, and the live state that goes with it."""
        visit = self._visit(state)
        own = [] if system is None else [system_message(system)]
        layout = lay_out(visit.messages, visit.record, defaults=visit.policy.render, own=own)
        return layout, visit.live

    async def _ready(self) -> None:
        """The first count loads the vocabulary, which may take seconds: not on the event loop."""
        if not self._counted:
            await asyncio.to_thread(self._counter.text, "a")
            self._counted = True

    def _due(self, visit: Visit, config: RunnableConfig | None = None) -> Decision:
        """What a visit would do now."""
        slot = self._slot(visit, config)
        return due(visit, None if slot is None else slot.fold)

    def _slot(self, visit: Visit, config: RunnableConfig | None) -> FoldSlot | None:
        """Where this thread's fold runs beside the agent; None: nowhere."""
        place = place_of(config) if visit.policy.background else None
        return None if place is None else FoldSlot(self._folds, place, visit.policy.summary_timeout)

    def _visit(self, state: Any, config: RunnableConfig | None = None) -> Visit:
        messages, record = read_state(
            state, messages_key=self.messages_key, compaction_key=self.compaction_key
        )
        own = optional_channel(state, self.settings_key)
        run = run_settings(config)
        policy, problems = self._levels.of(
            (f"{self.settings_key} of the thread", own),
            (f"{SETTINGS_KEY} of the run's config", run.configured),
            (f"{SETTINGS_KEY} of the run's context", run.in_context),
        )
        live, problem = self._live(state, policy.live_tokens)
        if self._beside or live:
            shown = self._counter.text(framed(live)) if live else 0
            policy = replace(policy, overhead=policy.overhead + self._beside, live=shown)
        return Visit(
            messages,
            record,
            policy,
            self._counter,
            self._tiers,
            [*problems, problem] if problem else problems,
            read_request(own),
            self._redact,
            run=run_of(config),
            live=live,
        )

    def _live(self, state: Any, tokens: int) -> tuple[str, str | None]:
        """The live state as the view shows it, "" for nothing; and what is wrong with it, if so."""
        for key in missing_channels(self._live_channels, state):
            self._warn_once(
                f"live_state: the state has no channel {key!r}, or nothing was written to it yet, "
                "so that no view shows it."
            )
        try:
            text = self._live_state(state)
        except Exception as error:  # noqa: BLE001  # a function of anybody's ends no run
            return "", f"live_state: the function raised {error!r}; the view is without it."
        if text is None or isinstance(text, str):
            return live_text((text or "").strip(), tokens), None
        kind = type(text).__name__
        return "", f"live_state: the function returned a {kind}, and has to return a text or None."

    @cached_property
    def _beside(self) -> int:
        """Tokens of tools and system prompt, counted once and not before they are needed."""
        if not self._tools and self._system is None:
            return 0
        return beside_messages(self._tools, self._system, self._counter)

    def _prepared(
        self, state: Any, config: RunnableConfig | None, *, prune: bool = True
    ) -> tuple[Visit, Performer]:
        """What a visit looks at, and what performs its effects; ``prune=False`` forbids a prune."""
        visit, archive = self._visit(state, config), None
        report, place = reporter(self._hook), place_of(config)
        lost = self._made.lost(place, visit.record, visit.messages)
        if lost is not None:
            visit = replace(visit, problems=[*visit.problems, lost])
            report = self._made.telling(report, place, lost)
        if not prune:
            visit = replace(visit, policy=replace(visit.policy, prune=False))
        if visit.policy.prune:
            try:
                archive = archive_for(self._archive, config)
            except ConfigurationError as error:
                if self.settings.history == "prune":
                    raise
                # The thread or the run wants it: what is wrong there ends no run.
                full = replace(visit.policy, prune=False)
                visit = replace(visit, policy=full, problems=[*visit.problems, str(error)])
        performer = Performer(
            self._tiers,
            report,
            config,
            Attempts(visit.policy.summary_timeout),
            raises=visit.policy.raises,
            node=str(self.name),
            archive=archive,
            slot=self._slot(visit, config),
        )
        return visit, performer

    def _warn_once(self, warning: str) -> None:
        """Log a warning, unless this node has."""
        if warning not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(warning)
            logger.warning(warning)

    @property
    def _max_result_tokens(self) -> int | None:
        """Tokens that the results of one step may have by the node's own settings; None: any."""
        most = self._levels.of().policy.render.get("clip_result_bytes")
        return None if most is None else most // BYTES_PER_TOKEN

    def _noted(self, change: Change | None, config: RunnableConfig | None) -> Update:
        """The update of a visit; a later one notices where it did not reach the state."""
        if change is not None:
            self._made.note(place_of(config), change.record)
        return self._update(change)

    def _output(self, state: Any, update: Update) -> tuple[Update, list[BaseMessage]]:
        """The view for the channel that has it, and those of its messages the state lacks."""
        if not self.output_messages_key:
            return {}, []
        after = updated(state, update, messages_key=self.messages_key)
        view = self.view(after)
        known = {message.id for message in read_channel(after, self.messages_key, "")}
        made_up = [message for message in view if message.id not in known]
        return {self.output_messages_key: view}, made_up

    def _update(self, change: Change | None) -> Update:
        if change is None:
            return {}
        update: Update = {self.compaction_key: change.record}
        if change.removed:
            update[self.messages_key] = [RemoveMessage(id=name) for name in change.removed]
        return update


def _steps(visit: Visit, performer: Performer) -> Steps:
    slot = performer.slot
    return compaction_steps(visit) if slot is None else background_steps(visit, slot.fold)
