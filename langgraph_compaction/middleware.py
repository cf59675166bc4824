"""Compaction for LangChain's ``create_agent``: the same node and record behind another door.

Needs the ``langchain`` extra: ``pip install "langgraph-compaction[langchain]"``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Unpack, cast

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict, override

from langgraph_compaction.arguments import MiddlewareArguments
from langgraph_compaction.asked import Asked, asked_with
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.handoffs import with_record, without_foreign_record
from langgraph_compaction.looking import Explanation, Measurement
from langgraph_compaction.node import CompactionNode, visits_of
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.recovery import Recovery
from langgraph_compaction.rivals import Rivals, in_request
from langgraph_compaction.run.context import place_of, present_config
from langgraph_compaction.state import MESSAGES_KEY, Channels, merge_compaction, merge_settings
from langgraph_compaction.view.among import Among
from langgraph_compaction.view.live import sent_with

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        ToolCallRequest,
        TracePolicy,
        omit_payload,
    )
    from langchain.agents.middleware.types import ContextT, ResponseT
except ImportError as error:
    raise ImportError(
        "langgraph_compaction.middleware is for langchain's create_agent, and langchain could not "
        'be imported. Install it: pip install "langgraph-compaction[langchain]". In a graph of '
        "your own use CompactionNode, which does without it."
    ) from error

__all__ = ["CompactionAgentState", "CompactionMiddleware"]


class CompactionAgentState(AgentState[Any]):
    """The agent's state with the compaction record and the thread's own settings.

    The record is part of the agent's input and output, and optional in both: a caller without a
    checkpointer hands back what ``invoke`` returned, and where the agent is a node of a larger
    graph that has the channel, too, the record lives there. So nothing is folded twice.
    """

    compaction: NotRequired[Annotated[CompactionRecord, merge_compaction]]
    compaction_settings: NotRequired[Annotated[dict[str, Any], merge_settings]]


class CompactionMiddleware(AgentMiddleware[CompactionAgentState, ContextT, ResponseT]):
    """Folds older messages of a ``create_agent`` agent into a digest when the context fills up.

    Folds before the model is called, in a step and checkpoint of its own: a digest stands even if
    the call then fails. The state's messages stay as they are, unless ``history`` is "prune";
    the model is called with the view. The system prompt stays the agent's. Where several
    middlewares change the messages of a request, the view is made of what those before this one in
    the list leave; those after it see the view.

    Where a tool hands the messages over to another agent by ``Command(graph=Command.PARENT)``, the
    record goes along: the graph around needs the channel, too.

    What the agent sends beside the messages (its system prompt, tool schemas) is known from the
    provider's report of the newest call; for the time before it pass ``tools`` and
    ``system_prompt`` here, too.

    Examples:
        >>> from langchain.agents import create_agent
        >>> compaction = CompactionMiddleware("gpt-5-mini", agent_model=model)
        >>> agent = create_agent(model, tools, middleware=[compaction])

    Args:
        model: writes the digests, as for `CompactionNode`.
        options: everything else that `CompactionNode` takes: ``agent_model``, ``settings``,
            ``token_counter``, ``tools``, ``system_prompt``, ``hook``, ``redact``, ``live_state``,
            ``archive``, ``compaction_key``, ``settings_key``, values of `CompactionSettings` by
            name, and ``name``, the middleware's name in the agent's graph (default: the class's).

    Attributes:
        node: the node that does the work.

    Raises:
        ConfigurationError: as `CompactionNode`, or ``messages_key`` is not "messages", or there is
            an ``output_messages_key``.
    """

    state_schema = CompactionAgentState
    trace_policy = TracePolicy(process_inputs=omit_payload)
    """As LangChain's own: with each call a trace would get the whole thread again. The model's call
    is traced with the view, in any case."""

    def __init__(self, model: Any, **options: Unpack[MiddlewareArguments]) -> None:
        super().__init__()
        options.setdefault("name", type(self).__name__)
        self.node = CompactionNode(model, **options)
        self._visits = visits_of(self.node)
        self._channels = self._visits.channels
        # "model" is the name of create_agent's own node.
        self._recovery = Recovery(self._visits, "model", prune=False)
        if self.node.messages_key != MESSAGES_KEY:
            raise ConfigurationError(
                f"messages_key: {self.node.messages_key!r} cannot be used with create_agent, which "
                f"keeps its messages under {MESSAGES_KEY!r}. Leave messages_key out."
            )
        if self.node.output_messages_key:
            raise ConfigurationError(
                f"output_messages_key: {self.node.output_messages_key!r} is for a hook; the "
                "middleware hands the view to the model itself. Leave it out."
            )
        self._rivals = Rivals()
        if self._channels != Channels():
            self.state_schema = _state_schema(self._channels)

    @property
    @override
    def name(self) -> str:
        """The middleware's name; its step in the agent's graph is ``<name>.before_model``."""
        return self.node.name or type(self).__name__

    def view(self, state: Any, system: str | SystemMessage | None = None) -> list[BaseMessage]:
        """The messages that the model would be called with; see `CompactionNode.view`."""
        return self.node.view(state, system)

    def measure(self, state: Any, config: RunnableConfig | None = None) -> Measurement:
        """Measure the view of a state; see `CompactionNode.measure`."""
        return self.node.measure(state, config)

    def explain(self, state: Any, config: RunnableConfig | None = None) -> Explanation:
        """What a visit to this ``state`` would do, and why; see `CompactionNode.explain`."""
        return self.node.explain(state, config)

    def check(self) -> None:
        """Build the models that were given by their names; see `CompactionNode.check`."""
        self.node.check()

    @override
    def before_model(
        self, state: CompactionAgentState, runtime: Runtime[ContextT]
    ) -> dict[str, Any] | None:
        """Visit the thread as `CompactionNode.invoke` does: fold what has to be folded."""
        self._warn_of_rival(state)
        return self.node.invoke(state, present_config()) or None

    @override
    async def abefore_model(
        self, state: CompactionAgentState, runtime: Runtime[ContextT]
    ) -> dict[str, Any] | None:
        """Visit the thread asynchronously; see `before_model`."""
        self._warn_of_rival(state)
        return await self.node.ainvoke(state, present_config()) or None

    @override
    def wrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]],
    ) -> ModelResponse[ResponseT] | ExtendedModelResponse[ResponseT]:
        """Call the model with the view instead of all messages.

        Refused as too long, the call is made once more with a view that was reduced.
        """
        asked = self._asked(request)
        response, update = self._recovery.call(
            lambda state: handler(self._viewed(request, state, asked.among)),
            asked.state,
            present_config(),
        )
        return self._with_update(response, update if asked.commits else {})

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelResponse[ResponseT] | ExtendedModelResponse[ResponseT]:
        """Call the model with the view asynchronously; see `wrap_model_call`."""
        asked = self._asked(request)
        response, update = await self._recovery.acall(
            lambda state: handler(self._viewed(request, state, asked.among)),
            asked.state,
            present_config(),
        )
        return self._with_update(response, update if asked.commits else {})

    @override
    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Call a tool. Where it hands over to another agent, the record goes along.

        The record of another agent, which ran in the tool, stays out of the thread.
        """
        return self._handed_over(request, handler(request))

    @override
    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Call a tool asynchronously; see `wrap_tool_call`."""
        return self._handed_over(request, await handler(request))

    def _handed_over(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """What a tool returned; see `with_record` and `without_foreign_record`."""
        own = without_foreign_record(result, request.state, self._channels)
        found = with_record(own, request.state, self._channels)
        return cast("ToolMessage | Command[Any]", found)

    def _warn_of_rival(self, state: CompactionAgentState) -> None:
        """Log once where another middleware summarises the thread, too."""
        found = self._rivals.in_state(place_of(), *self._channels.read(state))
        self._visits.warn_once(found)

    def _asked(self, request: ModelRequest[Any]) -> Asked:
        """The call, whose messages the middlewares before this one may have changed."""
        asked = asked_with(request.messages, request.state, self._channels)
        self._visits.warn_once(in_request(asked.messages, request.state["messages"]))
        self._visits.warn_once(asked.warning)
        return asked

    def _viewed(
        self, request: ModelRequest[ContextT], state: Mapping[str, Any], among: Among | None
    ) -> ModelRequest[ContextT]:
        self._visits.warn_of_tools(request.tools)  # middlewares bring some to some calls alone
        layout, live = self._visits.layout(state, None, among)
        if request.system_message is None or not layout.alternates:
            # The agent's prompt stays apart: a middleware behind this one may replace it.
            return request.override(messages=cast("list[Any]", sent_with(layout, live)))
        layout = replace(layout, leading=[request.system_message, *layout.leading])
        prompt, *view = cast("list[Any]", sent_with(layout, live))
        return request.override(system_message=prompt, messages=view)

    def _with_update(
        self, response: ModelResponse[ResponseT], update: dict[str, Any]
    ) -> ModelResponse[ResponseT] | ExtendedModelResponse[ResponseT]:
        """The answer with the record that its view was reduced by, if there is one to commit."""
        if not update:
            return response
        self._visits.note(update, present_config())
        return ExtendedModelResponse(model_response=response, command=Command(update=update))


def _state_schema(named: Channels) -> type[CompactionAgentState]:
    """The channels under other names; `create_agent` adds the rest of the agent's state."""
    channels = {
        named.compaction: NotRequired[Annotated[CompactionRecord, merge_compaction]],
        named.settings: NotRequired[Annotated[dict[str, Any], merge_settings]],
    }
    schema = TypedDict("CompactionAgentState", channels)  # type: ignore[misc]  # not literal
    return cast("type[CompactionAgentState]", schema)
