"""What the present run says about settings: its context, and its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from langgraph_compaction.state import SETTINGS_KEY, merge_settings


def run_settings(config: RunnableConfig | None = None) -> Any:
    """``compaction_settings`` of the run, None where there is none or no run.

    From ``configurable``, and over it from the run's context, a mapping or an object that has them.

    Args:
        config: the run's config; None: that of the run this is called in.
    """
    if config is None:
        try:
            config = get_config()
        except RuntimeError:  # LangGraph's answer outside a run
            return None
    configured = (config.get("configurable") or {}).get(SETTINGS_KEY)
    in_context = _of(_context())
    if isinstance(configured, Mapping) and isinstance(in_context, Mapping):
        return merge_settings(configured, in_context)
    return configured if in_context is None else in_context


def _context() -> Any:
    try:
        return get_runtime().context
    except (RuntimeError, KeyError, AttributeError):  # outside a run, and outside a graph
        return None


def _of(context: Any) -> Any:
    if isinstance(context, Mapping):
        return context.get(SETTINGS_KEY)
    return getattr(context, SETTINGS_KEY, None)
