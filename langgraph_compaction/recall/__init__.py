"""An agent tool that finds the originals of what was folded, cleared or clipped."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import AfterValidator, BaseModel, Field

from langgraph_compaction.archive import Archive, Steps, aperform, archive_of, perform
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan import counting
from langgraph_compaction.plan.recalling import RECALL_METADATA, RECALL_TOKENS
from langgraph_compaction.recall import ranking
from langgraph_compaction.recall.answering import Content, Options, Request, steps_of_answer
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, read_state

LEAST_TOKENS = 300
"""Tokens of an answer, at least: below, labels leave no room for an original."""

DESCRIPTION = (
    "Look up messages of this conversation that you see only as a digest, a placeholder or in "
    "part. Give `id` (of a message or a tool call), or `first` and `last` (positions){words}. "
    "What comes back are the originals, word for word, page by page."
)
"""What the agent's model is told of the tool."""
_WORDS = ", or `query` (words to search for; `first` and `last` narrow it)"

MOST = 9_999_999_999
"""The greatest number that an argument may be: the greatest position that an archive may hold."""

_log = logging.getLogger("langgraph_compaction")
_OTHERWISE = (
    "The recall tool is named %r, but placeholders of this thread tell the agent to call %r. Give "
    "the node and the tool the same name: create_recall_tool(name=%r), or recall_tool= of the "
    "node. With tools=[...] the node checks it."
)
_NOWHERE = InMemoryStore()
"""Stands for a store where there is none; nothing is asked of it."""


def bounded(number: Any) -> Any:
    """``number`` itself, or the nearest whose digits fit into an answer; what is none as it is."""
    return min(max(number, -MOST), MOST) if isinstance(number, int) else number


Number = Annotated[int | None, AfterValidator(bounded)]


class Look(BaseModel):
    """What the agent's model may say: an id, or positions."""

    id: str | None = Field(None, description="Id of a message or of a tool call.")
    first: Number = Field(None, description="Position of the first message, from 0.")
    last: Number = Field(None, description="Position of the last message, inclusive.")
    page: Number = Field(None, description="Which page of the answer, from 1.")


class Search(Look):
    """The same, and words."""

    query: str | None = Field(None, description="Words to search for.")


class _RecallTool(StructuredTool):
    """A tool that can be called with any number.

    LangChain writes arguments into a text before they are checked, and Python writes no number of
    more than 4,300 digits.
    """

    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return super().run(_with_bounds(tool_input), *args, **kwargs)

    async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return await super().arun(_with_bounds(tool_input), *args, **kwargs)


def _with_bounds(given: Any) -> Any:
    return {key: bounded(value) for key, value in given.items()} if type(given) is dict else given


def create_recall_tool(
    *,
    archive: BaseStore | None = None,
    name: str = "recall",
    max_tokens: int = 2_000,
    token_counter: Any = None,
    messages_key: str = MESSAGES_KEY,
    compaction_key: str = COMPACTION_KEY,
    search: bool = True,
    media: bool = False,
) -> BaseTool:
    """A tool by which the agent gets back what it was folded, cleared or clipped out of its view.

    Its answer is an ordinary tool result: labelled as data, at most ``max_tokens`` long, and
    cleared again in its turn. What cannot be found is answered in words, never with an exception.
    Originals in the state are found there; pruned ones in the archive, of this thread and this
    branch of it alone. Reasoning is left out.

    What a call may raise: `MissingChannelError` where the state lacks a channel, `RecordError` or
    `RecordVersionError` where the record cannot be read, `ConfigurationError` where an asynchronous
    store is asked synchronously in its loop's own thread, and `CompactionError` where a newer
    version of this package archived an original.

    Args:
        archive: the store with the pruned originals: the node's, if it has one of its own; None:
            the store that the graph runs with.
        name: the tool's name. Give it to the node, too (``recall_tool=``), so that placeholders
            say how to get the original.
        max_tokens: tokens of an answer, at most; at least `LEAST_TOKENS`.
        token_counter: what counts them, as for `CompactionNode`; None: the estimate, which needs
            no vocabulary.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.
        search: whether originals are found by words, too. Takes the ``recall`` extra.
        media: whether an image or file is returned itself where ``id`` names the message with it
            and it fits. Only for models that take images in tool results: others refuse the call,
            and every later one. False: as a marker.

    Raises:
        ConfigurationError: an argument is unusable, or ``search`` without the extra.
    """
    if archive is not None and not isinstance(archive, BaseStore):
        raise ConfigurationError(
            f"archive: {archive!r} is no store. Pass a LangGraph store (a BaseStore), or leave it "
            "out for the store that the graph runs with."
        )
    if not str(name).strip():
        raise ConfigurationError(f"name: {name!r} is no name of a tool, such as 'recall'.")
    if max_tokens < LEAST_TOKENS:
        raise ConfigurationError(
            f"max_tokens: {max_tokens!r} leaves no room for originals. Give at least "
            f"{LEAST_TOKENS}, or leave it out."
        )
    if search:
        ranking.require()
    options = Options(
        name=name,
        max_tokens=max_tokens,
        counter=counting.token_counter(token_counter or "estimate"),
        search=search,
        media=media,
    )

    told: list[str] = []  # that the record names another tool: said once

    def prepared(
        runtime: ToolRuntime[Any, Any], given: dict[str, Any]
    ) -> tuple[BaseStore, Steps[Content]]:
        messages, record = read_state(
            runtime.state, messages_key=messages_key, compaction_key=compaction_key
        )
        named = record.get("render", {}).get("recall", name)
        if named != name and not told:
            told.append(named)
            _log.warning(_OTHERWISE, name, named, named)
        store = runtime.store if archive is None else archive
        found = _archive(store, runtime.config)
        steps = steps_of_answer(Request(**given), messages, record, found, options)
        return store or _NOWHERE, steps

    def recall(runtime: ToolRuntime[Any, Any], **given: Any) -> Content:
        return perform(*prepared(runtime, given))

    async def arecall(runtime: ToolRuntime[Any, Any], **given: Any) -> Content:
        return await aperform(*prepared(runtime, given))

    return _RecallTool.from_function(
        func=recall,
        coroutine=arecall,
        name=name,
        description=DESCRIPTION.format(words=_WORDS if search else ""),
        args_schema=Search if search else Look,
        metadata={**RECALL_METADATA, RECALL_TOKENS: max_tokens},
    )


def _archive(store: BaseStore | None, config: RunnableConfig) -> Archive | None:
    """The archive of the run's graph and thread; None where there is no store or no thread."""
    try:
        return None if store is None else archive_of(store, config)
    except ConfigurationError:  # a run without a thread: nothing of it was ever archived
        return None
