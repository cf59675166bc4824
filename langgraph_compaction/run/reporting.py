"""Where events go: the run's custom stream, the user's hook and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import isawaitable, iscoroutinefunction, isfunction, ismethod
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp

from langgraph_compaction.errors import ConfigurationError

logger = logging.getLogger("langgraph_compaction")
logger.addHandler(logging.NullHandler())  # a library leaves it to the application what is shown

RUN_NAME = "langgraph_compaction.summary"
"""Name of summary calls in traces. Never a node's name: what a chain named like the node it runs in
returns is taken for the node's own output by ``stream_mode="messages"``."""
TAG = "langgraph_compaction"
"""Tag of summary calls in traces."""
_WARNINGS = {
    "compaction.failed",
    "compaction.tier_failed",
    "compaction.rejected",
    "compaction.dropped",
}

Hook = Callable[[dict[str, Any]], object]
Report = Callable[[dict[str, Any]], bool]


def checked_hook(hook: Any) -> Hook | None:
    """The hook itself.

    Raises:
        ConfigurationError: it cannot be called, or would have to be awaited.
    """
    if hook is None:
        return None
    inner = hook.func if isinstance(hook, partial) else hook
    called = inner if isfunction(inner) or ismethod(inner) else getattr(inner, "__call__", inner)  # noqa: B004
    if not callable(hook) or iscoroutinefunction(called):
        raise ConfigurationError(
            f"hook: {hook!r} has to be a plain function that takes an event, a dict. It is called "
            "in the middle of a visit, where nothing is awaited: have it put the event into a "
            "queue."
        )
    checked: Hook = hook
    return checked


def reporter(hook: Hook | None = None) -> Report:
    """A function that takes an event to the run's custom stream, the hook and the log.

    It returns whether the hook vetoed, by returning False. Outside a graph there is no stream.
    """
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # LangGraph's answers outside a run, and outside a graph
        write = None

    def report(event: dict[str, Any]) -> bool:
        level = logging.WARNING if event["type"] in _WARNINGS else logging.INFO
        told = event["type"], event["reason"], _aside(event)
        logger.log(level, "%s: %s%s", *told, extra={"event": event})
        if write is not None:
            write(event)
        return hook is not None and _vetoes(hook, event)

    return report


_SHOWN = (
    "node",
    "thread_id",
    "tier",
    "need",
    "tokens_before",
    "tokens_after",
    "provider_limit",
    "context_window",
    "in_a_row",
)


def _aside(event: dict[str, Any]) -> str:
    """What a line of the log says beside the reason."""
    named = ", ".join(f"{name} {event[name]}" for name in _SHOWN if event.get(name) is not None)
    return f" ({named})" if named else ""


def _vetoes(hook: Hook, event: dict[str, Any]) -> bool:
    try:
        answer = hook(deepcopy(event))
    except GraphBubbleUp:  # an interrupt: a person decides whether to fold
        raise
    except Exception:
        logger.exception("The compaction hook %r failed on %s.", hook, event["type"])
        return False
    if isawaitable(answer):
        logger.error("The compaction hook %r has to be awaited, and nothing is here.", hook)
    return answer is False


def outliving(config: RunnableConfig | None) -> RunnableConfig | None:
    """A run's config for calls that go on after it: without what belongs to LangGraph's own run."""
    if config is None:
        return None
    configurable = config.get("configurable") or {}
    kept = {key: value for key, value in configurable.items() if not key.startswith("__")}
    return {**config, "configurable": kept}


def summary_config(config: RunnableConfig | None, tier: str) -> RunnableConfig:
    """The run's config for a summary call: its callbacks reach it, its tokens reach no user.

    ``TAG_NOSTREAM`` keeps the call out of ``stream_mode="messages"``; ``lc_source`` is how
    LangChain's own middleware marks such calls in traces.
    """
    given: RunnableConfig = config or {}
    return {
        **given,
        "tags": [*(given.get("tags") or []), TAG_NOSTREAM, TAG],
        "metadata": {
            **(given.get("metadata") or {}),
            "lc_source": "summarization",
            "compaction_tier": tier,
        },
        "run_name": RUN_NAME,
    }
