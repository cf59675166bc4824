"""Recovery where the provider refuses a call as too long: in a graph, and outside of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.messages import (
    AIMessageChunk,
    BaseMessage,
    SystemMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import NodeError
from langgraph.types import Command, Send
from typing_extensions import override

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.given import checked_target
from langgraph_compaction.node import CompactionNode, visits_of
from langgraph_compaction.recovery import Recovery
from langgraph_compaction.run.passing import copied
from langgraph_compaction.visiting import Update

_PUSHED = "__pregel_push"
"""First part of ``langgraph_path`` in the metadata of a task that a `Send` has started."""


def overflow_handler(compact: CompactionNode, retry: str | None = None) -> Callable[..., Any]:
    """An error handler for the node that calls the agent's model.

    Where the provider refuses the call as too long, the view is reduced once, without a model, the
    reduction commits in a step of its own, and the node runs once more. Refused again with nothing
    new in between, `BudgetError` ends the run. Every other error is raised as it is, and so is this
    one where compaction is off.

    Examples:
        >>> handler = overflow_handler(compact)
        >>> _ = builder.add_node("agent", agent, error_handler=handler)

    Args:
        compact: the node whose settings count; it need not be part of the graph.
        retry: name of the node that runs next; None: the one that failed.

    Returns:
        What ``add_node(error_handler=...)`` and ``set_node_defaults(error_handler=...)`` take.

    Raises:
        ConfigurationError: an argument is of the wrong kind.
    """
    _check_node(compact)
    if retry is not None:
        checked_target("retry", retry, "to run next, or leave it out for the one that failed.")

    def recover_from_overflow(state: Any, error: NodeError) -> Runnable[Any, Command[Any]]:  # noqa: ARG001
        # LangGraph invokes the Runnable that a node returns, with the same state and config, and
        # in an asynchronous run asynchronously.
        return _Handling(compact, error, retry)

    return recover_from_overflow


class _Handling(Runnable[Any, "Command[Any]"]):
    """What is done about one error of a node."""

    def __init__(self, compact: CompactionNode, failed: NodeError, retry: str | None) -> None:
        self._visits = visits_of(compact)
        self._recovery = Recovery(self._visits, failed.node, prune=True)
        self._failed = failed.node
        self._retry = retry or failed.node
        # In a run that goes on where another one ended, LangGraph has the error's text alone.
        found: object = failed.error
        self._error = found if isinstance(found, BaseException) else None

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Command[Any]:
        if self._error is None:
            return self._as_without_handler(input, config)
        update = self._recovery.update(input, self._error, config)
        if update is None:
            raise copied(self._error)
        update = self._visits.with_view(input, update, config)
        return self._next(self._retry, input, update, config)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> Command[Any]:
        if self._error is None:
            return self._as_without_handler(input, config)
        update = await self._recovery.aupdate(input, self._error, config)
        if update is None:
            raise copied(self._error)
        update = await self._visits.awith_view(input, update, config)
        return self._next(self._retry, input, update, config)

    def _as_without_handler(self, state: Any, config: RunnableConfig | None) -> Command[Any]:
        """Run the failed node again: what happened to the earlier run may be different by now."""
        return self._next(self._failed, state, {}, config)

    def _next(
        self, node: str, state: Any, update: Update, config: RunnableConfig | None
    ) -> Command[Any]:
        """Go to a node with the update: in the graph's state, or in what a `Send` brought."""
        path = ((config or {}).get("metadata") or {}).get("langgraph_path") or ()
        if next(iter(path), None) != _PUSHED:
            self._visits.note(update, config)
            return Command(update=update, goto=node)
        # What was sent is that branch's own: its record is no other branch's, nor the graph's.
        sent = self._visits.channels.updated(state, update)
        return Command(goto=Send(node, sent))


def with_overflow_recovery(
    model: Runnable[Any, Any], compact: CompactionNode, *, system: str | SystemMessage | None = None
) -> Runnable[Any, Any]:
    """The model with the view of a state, called once more where the provider refuses it.

    For where no graph could commit a reduction: a chain, a script, a node of somebody else's. The
    second call has a view that was reduced as `overflow_handler` reduces it. Nothing of that is
    kept, so the next call begins with the whole view again: in a graph prefer `overflow_handler`.

    Examples:
        >>> answering = with_overflow_recovery(model, compact)
        >>> answer = answering.invoke(state)

    Args:
        model: called with messages: a chat model, or a Runnable around one.
        compact: the node whose view and settings count.
        system: the agent's own system prompt, as for `CompactionNode.view`.

    Returns:
        A Runnable from a graph's state, or a list of messages, to what ``model`` returns. While it
        streams, a call is repeated only as long as nothing has come of it.

    Raises:
        ConfigurationError: an argument is of the wrong kind.
    """
    _check_node(compact)
    if not isinstance(model, Runnable):
        raise ConfigurationError(
            f"model: {model!r} is no Runnable. Pass a chat model, or RunnableLambda(function) "
            "around a function that takes messages."
        )
    return _Recovering(model, compact, system)


class _Recovering(Runnable[Any, Any]):
    """A model that is called with a view, and with a smaller one where that is refused."""

    def __init__(
        self, model: Runnable[Any, Any], compact: CompactionNode, system: str | SystemMessage | None
    ) -> None:
        self.name = model.get_name()
        self._model = model
        self._compact = compact
        self._recovery = Recovery(visits_of(compact), self.get_name(), prune=False)
        self._system = system

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        def answer(state: Any) -> Any:
            return self._model.invoke(self._view(state), config, **kwargs)

        return self._recovery.call(answer, self._state(input), config)[0]

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        async def answer(state: Any) -> Any:
            return await self._model.ainvoke(self._view(state), config, **kwargs)

        return (await self._recovery.acall(answer, self._state(input), config))[0]

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        def opened(state: Any) -> tuple[list[Any], Iterator[Any]]:
            chunks = self._model.stream(self._view(state), config, **kwargs)
            held = []
            for chunk in chunks:
                held.append(chunk)
                if not _says_nothing(chunk):
                    break
            return held, chunks

        (held, chunks), _ = self._recovery.call(opened, self._state(input), config)
        yield from held
        yield from chunks

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async def opened(state: Any) -> tuple[list[Any], AsyncIterator[Any]]:
            chunks = self._model.astream(self._view(state), config, **kwargs)
            held = []
            async for chunk in chunks:
                held.append(chunk)
                if not _says_nothing(chunk):
                    break
            return held, chunks

        (held, chunks), _ = await self._recovery.acall(opened, self._state(input), config)
        for chunk in held:
            yield chunk
        async for chunk in chunks:
            yield chunk

    def _state(self, given: Any) -> Any:
        """The graph's state, or one of nothing but the messages that were given."""
        if isinstance(given, PromptValue):
            given = given.to_messages()
        if isinstance(given, list | tuple):
            messages = convert_to_messages(given)
            return {self._compact.messages_key: messages, self._compact.compaction_key: {}}
        return given

    def _view(self, state: Any) -> list[BaseMessage]:
        return self._compact.view(state, self._system)


def _says_nothing(chunk: Any) -> bool:
    """Whether a chunk is one that opens a stream: a role, and nothing said yet."""
    return isinstance(chunk, AIMessageChunk) and not chunk.content and not chunk.tool_call_chunks


def _check_node(compact: Any) -> None:
    if not isinstance(compact, CompactionNode):
        raise ConfigurationError(
            f"compact: {compact!r} is no CompactionNode. Pass the node that compacts the thread; "
            "of a CompactionMiddleware that is its attribute node."
        )
