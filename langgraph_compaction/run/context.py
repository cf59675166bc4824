"""What the present run says about settings: its context, and its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from langgraph_compaction.state import SETTINGS_KEY


class RunSettings(NamedTuple):
    """``compaction_settings`` of a run: of its config, and of its context, which wins."""

    configured: Any
    in_context: Any


def run_settings(config: RunnableConfig | None = None) -> RunSettings:
    """What a run says of settings; None where it says nothing, or where there is no run.

    From ``configurable``, and from the run's context, a mapping or an object that has them.

    Args:
        config: the run's config; None: that of the run this is called in.
    """
    if config is None:
        try:
            config = get_config()
        except RuntimeError:  # LangGraph's answer outside a run
            return RunSettings(None, None)
    return RunSettings((config.get("configurable") or {}).get(SETTINGS_KEY), _of(_context()))


def _context() -> Any:
    try:
        return get_runtime().context
    except (RuntimeError, KeyError, AttributeError):  # outside a run, and outside a graph
        return None


def _of(context: Any) -> Any:
    try:
        if isinstance(context, Mapping):
            return context.get(SETTINGS_KEY)
        return getattr(context, SETTINGS_KEY, None)
    except Exception:  # noqa: BLE001  # a property of anybody's must not end the run
        return None
