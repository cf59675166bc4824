"""The compaction node: a Runnable from graph state to state update."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langgraph_compaction.engine import compaction_steps
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.levels import Levels, Resolution
from langgraph_compaction.plan.counting import TokenCounter, token_counter
from langgraph_compaction.plan.decision import Decision, decide
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.run.drivers import adrive, drive
from langgraph_compaction.run.models import (
    Tier,
    agent_model_of,
    model_limits,
    model_name,
    tiers_of,
)
from langgraph_compaction.run.reporting import reporter, summary_config
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, SETTINGS_KEY, read_state
from langgraph_compaction.view import lay_out

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The size of the view that the agent would be called with now.

    Attributes:
        tokens: tokens of the view, overhead included.
        window: tokens of the context window, None where unknown.
        hard: tokens that a view may have, None where the window is unknown.
        trigger: fewest tokens at which the trigger can fire, None where it looks at no tokens.
        messages: messages in the view.
        steps: AI messages since the last fold.
        counter: how tokens were counted, for example "tiktoken:o200k_base".
        exact: whether that is a tokenizer rather than an estimate.
    """

    tokens: int
    window: int | None
    hard: int | None
    trigger: int | None
    messages: int
    steps: int
    counter: str
    exact: bool

    @property
    def utilisation(self) -> float | None:
        """``tokens`` as a share of the window; None where the window is unknown."""
        return None if self.window is None else self.tokens / self.window


class CompactionNode(Runnable[Any, Update]):
    """A graph node that folds older messages into a digest when the context fills up.

    Place it before the agent (``tools → compact → agent``) or between agent and tools; calls that
    still wait for results are never folded. It keeps nothing of any thread between visits.

    Example:
        >>> from langgraph.graph import START, StateGraph
        >>> compact = CompactionNode(ExtractiveSummarizer(), context_window=128_000)
        >>> builder = StateGraph(CompactionState)
        >>> _ = builder.add_node("compact", compact)
        >>> _ = builder.add_node("agent", lambda s: {"messages": [model.invoke(compact.view(s))]})

    Args:
        model: writes the digests: the name of a ChatOpenAI model (built at first use), a chat
            model, an `ExtractiveSummarizer`, a callable from messages to text, or a list of
            these, tried in turn.
        agent_model: the model whose window is at stake, or its name: gives window, maximum output
            and tokenizer.
        settings: a `CompactionSettings` or a mapping of its values.
        token_counter: "tiktoken" (default), "estimate", "approximate", "chars/4+400", or a
            callable from a list of messages to tokens.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.
        settings_key: name of the channel with the thread's own settings, if it has one: a dict of
            values of `CompactionSettings`; they win over the node's.
        name: the node's name in the graph, as `route` returns it.
        values: values of `CompactionSettings` by name; they win over ``settings``.

    Raises:
        ConfigurationError: a value is wrong, or a fraction needs a window that is not known.
    """

    def __init__(
        self,
        model: Any,
        *,
        agent_model: Any = None,
        settings: CompactionSettings | Mapping[str, Any] | None = None,
        token_counter: str | Callable[[list[BaseMessage]], int] | TokenCounter | None = None,
        messages_key: str = MESSAGES_KEY,
        compaction_key: str = COMPACTION_KEY,
        settings_key: str = SETTINGS_KEY,
        name: str = "compact",
        **values: Any,
    ) -> None:
        base = _settings(settings)
        self.settings = base.changed(values)
        self.name = name
        self.messages_key = messages_key
        self.compaction_key = compaction_key
        self.settings_key = settings_key
        agent_model = agent_model_of(agent_model)
        window, max_output = model_limits(agent_model)
        self._levels = Levels(self.settings, window=window, max_output=max_output)
        self._counter = _counter(token_counter, agent_model)
        self._counted = False
        self._tiers: list[Tier] = tiers_of(model, count=self._counter.text)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Visit a thread: fold what has to be folded.

        Args:
            input: the graph's state (dict, dataclass or pydantic model).
            config: the run's config; its callbacks reach the summary calls.

        Returns:
            A state update with the new record, or ``{}`` where nothing changed.

        Raises:
            MissingChannelError: the state lacks a channel.
            RecordVersionError: a newer version wrote the record; nothing is written.
            BudgetError: what must stay does not fit the window, even clipped.
        """
        steps = compaction_steps(self._visit(input))
        return self._update(drive(steps, self._tiers, reporter(), summary_config(config)))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Visit a thread asynchronously; see `invoke`."""
        if not self._counted:
            # The first count loads the vocabulary, which may take seconds: not on the event loop.
            await asyncio.to_thread(self._counter.text, "a")
            self._counted = True
        steps = compaction_steps(self._visit(input))
        return self._update(await adrive(steps, self._tiers, reporter(), summary_config(config)))

    def view(self, state: Any, system: str | SystemMessage | None = None) -> list[BaseMessage]:
        """The messages to call the agent's model with.

        As `model_view`, and oversized tool results are clipped even before the first fold.

        Args:
            state: the graph's state.
            system: the agent's own system prompt; it stands first, and with
                ``digest_role="system"`` forms one system message with what follows.

        Raises:
            MissingChannelError: the state lacks a channel.
        """
        messages, record = self._read(state)
        own = [] if system is None else [_system_message(system)]
        return lay_out(
            messages, record, defaults=self._resolved(state).policy.render, own=own
        ).view()

    def measure(self, state: Any) -> Measurement:
        """Measure the view of a state; nothing is called and nothing changes.

        Raises:
            MissingChannelError: the state lacks a channel.
        """
        usage = self._decide(state).usage
        policy = self._resolved(state).policy
        return Measurement(
            tokens=usage.tokens,
            window=policy.window,
            hard=policy.hard,
            trigger=policy.soft,
            messages=usage.messages,
            steps=usage.steps,
            counter=self._counter.name,
            exact=self._counter.exact,
        )

    def route(self, name: str) -> Callable[[Any], str]:
        """A path function that spares idle visits (each costs a checkpoint).

        Goes to this node when it has something to do, else straight to ``name``. This node must
        have been added under its ``name=`` ("compact" by default).

        Example:
            >>> _ = builder.add_conditional_edges(
            ...     "tools", compact.route("agent"), ["compact", "agent"]
            ... )
        """
        own = self.get_name()

        def path(state: Any) -> str:
            return own if self._decide(state).action in {"fold", "clip"} else name

        return path

    def _read(self, state: Any) -> tuple[Sequence[BaseMessage], CompactionRecord]:
        return read_state(state, messages_key=self.messages_key, compaction_key=self.compaction_key)

    def _resolved(self, state: Any) -> Resolution:
        if isinstance(state, Mapping):
            return self._levels.of(state.get(self.settings_key))
        return self._levels.of(getattr(state, self.settings_key, None))

    def _visit(self, state: Any) -> Visit:
        messages, record = self._read(state)
        policy, problems = self._resolved(state)
        return Visit(messages, record, policy, self._counter, self._tiers, problems)

    def _decide(self, state: Any) -> Decision:
        messages, record = self._read(state)
        return decide(messages, record, self._resolved(state).policy, self._counter)

    def _update(self, record: CompactionRecord | None) -> Update:
        return {} if record is None else {self.compaction_key: record}


def _settings(given: Any) -> CompactionSettings:
    if isinstance(given, CompactionSettings):
        return given
    if given is None or isinstance(given, Mapping):
        return CompactionSettings.of(given or {})
    raise ConfigurationError(
        f"settings: {given!r} has to be a CompactionSettings or a mapping of its values, such as "
        '{"trigger": ["fraction", 0.8]}.'
    )


def _counter(given: Any, agent_model: Any) -> TokenCounter:
    if given is not None and not (isinstance(given, str | TokenCounter) or callable(given)):
        raise ConfigurationError(
            f'token_counter: {given!r} is neither a name such as "tiktoken" nor a callable from '
            "a list of messages to tokens."
        )
    name = None if agent_model is None else model_name(agent_model)
    return token_counter(given, model_name=name)


def _system_message(system: str | SystemMessage) -> SystemMessage:
    return SystemMessage(content=system) if isinstance(system, str) else system
