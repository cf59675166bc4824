"""Keeping made-up messages out of LangGraph's message stream.

``stream_mode="messages"`` emits every message in a node's update that it has not seen: a view that
is written to a channel would send the digest to the user's screen. What stands in the input of a
run that has the node's name counts as seen, so such a run is made, and does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, patch_config

_NOTHING: Runnable[object, None] = RunnableLambda(lambda _: None)


def keep_from_stream(messages: Sequence[BaseMessage], config: RunnableConfig | None) -> None:
    """Have the message stream of the present run pass over these messages, by their ids."""
    named = _named(config) if messages else None
    if named is not None:
        _NOTHING.invoke({"view": messages}, named)


async def akeep_from_stream(messages: Sequence[BaseMessage], config: RunnableConfig | None) -> None:
    """The same asynchronously; see `keep_from_stream`."""
    named = _named(config) if messages else None
    if named is not None:
        await _NOTHING.ainvoke({"view": messages}, named)


def _named(config: RunnableConfig | None) -> RunnableConfig | None:
    """The config of a run with the name of the present node; None outside a graph."""
    present = ensure_config(config)
    node = (present.get("metadata") or {}).get("langgraph_node")
    return patch_config(present, run_name=str(node)) if node else None
