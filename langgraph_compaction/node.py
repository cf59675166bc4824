"""The compaction node: a Runnable from graph state to state update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Unpack

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.store.base import BaseStore

from langgraph_compaction.arguments import SettingValues
from langgraph_compaction.digest.redaction import Redact, checked_redact
from langgraph_compaction.given import (
    checked_channels,
    checked_name,
    checked_target,
    chosen_counter,
    counter_for,
    loaded,
    settings_levels,
    system_message,
    tool_schemas,
)
from langgraph_compaction.live import LiveChannels, LiveState
from langgraph_compaction.looking import Explanation, Measurement, explained, measured
from langgraph_compaction.plan.counting import TokenCounter
from langgraph_compaction.plan.decision import decide
from langgraph_compaction.resolving import AgentLimits
from langgraph_compaction.run.cascade import build_models, tiers_of
from langgraph_compaction.run.context import RUN_STORE, checked_archive
from langgraph_compaction.run.models import agent_model_of, model_limits, model_name
from langgraph_compaction.run.reporting import Hook, checked_hook
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, SETTINGS_KEY
from langgraph_compaction.view.live import sent_with
from langgraph_compaction.visiting import Update, Visits


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
        **values: Unpack[SettingValues],
    ) -> None:
        self.name = checked_name(name)
        channels = checked_channels(messages_key, compaction_key, settings_key, output_messages_key)
        self.messages_key = channels.messages
        self.compaction_key = channels.compaction
        self.settings_key = channels.settings
        self.output_messages_key = channels.output
        named, agent_model = agent_model, agent_model_of(agent_model)
        window, max_output = model_limits(agent_model)
        settings = loaded(settings)
        counter = counter_for(chosen_counter(token_counter, settings, name), agent_model)
        known_as = None if agent_model is None else model_name(agent_model)
        limits = AgentLimits(window, max_output, counter.as_provider, known_as)
        self.settings, levels = settings_levels(settings, values, name, limits)
        self._visits = Visits(
            name=name,
            channels=channels,
            settings=self.settings,
            levels=levels,
            counter=counter,
            tiers=tiers_of(
                model,
                agent_model=named,
                agent_window=window or self.settings.context_window,
                count=counter.text,
            ),
            tools=tool_schemas(tools, self.settings),
            system=None if system_prompt is None else system_message(system_prompt),
            hook=checked_hook(hook),
            redact=checked_redact(redact),
            live=LiveChannels(live_state),
            archive=checked_archive(archive),
        )
        if self._visits.tools:
            self._visits.warn_of_tools(tools)

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
        update = self._visits.perform(self._visits.begin(input, config))
        self._visits.note_visit(input, update, config)
        return self._visits.with_view(input, update, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Visit a thread asynchronously; see `invoke`."""
        await self._visits.ready()
        update = await self._visits.aperform(self._visits.begin(input, config))
        self._visits.note_visit(input, update, config)
        return await self._visits.awith_view(input, update, config)

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
        return sent_with(*self._visits.layout(state, system))

    def measure(self, state: Any, config: RunnableConfig | None = None) -> Measurement:
        """Measure the view of a state; nothing is called and nothing changes.

        Args:
            state: the graph's state.
            config: of the run whose settings count; None: of the run this is called in, if any.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        counter = self._visits.counter
        counter.load()  # so that its name says what counts
        return measured(decide(self._visits.at(state, config)), counter)

    def explain(self, state: Any, config: RunnableConfig | None = None) -> Explanation:
        """What a visit to this ``state`` would do, and why; a dry run that calls nothing.

        Args:
            state: the graph's state.
            config: as for `measure`.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordError, RecordVersionError: the record cannot be read.
        """
        visit = self._visits.at(state, config)
        return explained(visit, self._visits.due(visit, config), self._visits.counter)

    def check(self) -> None:
        """Build the models that were given by their names, to find a wrong one before it is asked.

        They are built at their first use otherwise, which may be hours later. No model is called:
        whether a key is valid, the first call tells. Call it once, when the process starts.

        Raises:
            ConfigurationError: some cannot be built; it lists each with the remedy.
        """
        build_models(self._visits.tiers)

    def route(self, name: str) -> Callable[[Any], str]:
        """A path function that spares idle visits (each costs a checkpoint).

        Goes to this node when it has something to do, else straight to ``name``. This node must
        have been added under its ``name=`` ("compact" by default).

        Examples:
            >>> _ = builder.add_conditional_edges(
            ...     "tools", compact.route("agent"), ["compact", "agent"]
            ... )

        Args:
            name: the node to go to where this one has nothing to do.

        Raises:
            ConfigurationError: that is no name.
        """
        what = 'to go to where this one has nothing to do, such as compact.route("agent").'
        target = checked_target("route", name, what)
        own = self.get_name()
        if self.output_messages_key:  # what the channel has is old by now
            return lambda _: own

        def path(state: Any) -> str:
            decision = self._visits.due(self._visits.at(state))
            waits = decision.request is not None and decision.action == "skip"
            return own if waits or decision.action in {"clear", "fold", "clip"} else target

        return path


def visits_of(compact: CompactionNode) -> Visits:
    """The visits of a node, for those in the package that make visits of their own."""
    return compact._visits  # noqa: SLF001  # of this module
