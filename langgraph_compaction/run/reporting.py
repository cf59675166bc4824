"""Where events go: the run's custom stream and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.constants import TAG_NOSTREAM

logger = logging.getLogger("langgraph_compaction")
logger.addHandler(logging.NullHandler())  # a library leaves it to the application what is shown

RUN_NAME = "langgraph_compaction.summary"
"""Name of summary calls in traces. Never a node's name: what a chain named like the node it runs in
returns is taken for the node's own output by ``stream_mode="messages"``."""
_WARNINGS = {"compaction.failed", "compaction.tier_failed", "compaction.rejected"}


def reporter() -> Callable[[dict[str, Any]], None]:
    """A function that writes events to the custom stream of the running graph and to the log.

    Outside a graph they go to the log alone.
    """
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # LangGraph's answers outside a run, and outside a graph
        write = None

    def report(event: dict[str, Any]) -> None:
        level = logging.WARNING if event["type"] in _WARNINGS else logging.INFO
        logger.log(level, "%s: %s", event["type"], event.get("reason", ""), extra={"event": event})
        if write is not None:
            write(event)

    return report


def summary_config(config: RunnableConfig | None) -> RunnableConfig:
    """The run's config for a summary call: its callbacks reach it, its tokens reach no user.

    ``TAG_NOSTREAM`` keeps the call out of ``stream_mode="messages"``; ``lc_source`` is how
    LangChain's own middleware marks such calls in traces.
    """
    given: RunnableConfig = config or {}
    return {
        **given,
        "tags": [*(given.get("tags") or []), TAG_NOSTREAM],
        "metadata": {**(given.get("metadata") or {}), "lc_source": "summarization"},
        "run_name": RUN_NAME,
    }
