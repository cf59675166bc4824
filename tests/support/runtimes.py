"""A tool's runtime where no graph runs."""

from typing import Any

from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore


def runtime(state: Any, config: Any, store: BaseStore | None = None) -> Any:
    """What `ToolNode` gives to a tool that is called in a thread with that state."""
    return ToolRuntime(
        state=state,
        config=config,
        store=store,
        context=None,
        stream_writer=lambda _: None,
        tool_call_id="c",
    )
