"""What the present run brings: its settings, in context and config, and its store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from langgraph_compaction.archive import Archive, archive_of
from langgraph_compaction.archive.naming import graphs_of, namespace_of
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.state import SETTINGS_KEY


class RunSettings(NamedTuple):
    """``compaction_settings`` of a run: of its config, and of its context, which wins."""

    configured: Any
    in_context: Any


def present_config() -> RunnableConfig:
    """The config of the run that this is called in; empty outside of one."""
    try:
        return get_config()
    except RuntimeError:  # LangGraph's answer outside a run
        return {}


def run_settings(config: RunnableConfig | None = None) -> RunSettings:
    """What a run says of settings; None where it says nothing, or where there is no run.

    From ``configurable``, and from the run's context, a mapping or an object that has them.

    Args:
        config: the run's config; None: that of the run this is called in.
    """
    return RunSettings(_configurable(config).get(SETTINGS_KEY), _of(_runtime("context")))


def place_of(config: RunnableConfig | None = None) -> tuple[str, ...] | None:
    """What tells the graph and thread of a run from all others; None where it has no thread.

    Args:
        config: the run's config; None: that of the run this is called in.
    """
    configurable = _configurable(config)
    if configurable.get("thread_id") is None:
        return None
    return namespace_of(configurable["thread_id"], str(configurable.get("checkpoint_ns") or ""))


def run_of(config: RunnableConfig | None = None) -> str:
    """What tells one run of a subgraph from its others; "" where the graph's state outlasts a run.

    That is the outermost graph of a thread, and a subgraph with checkpoints of its own: its
    namespace names no task.

    Args:
        config: the run's config; None: that of the run this is called in.
    """
    graphs = "|".join(graphs_of(str(_configurable(config).get("checkpoint_ns") or "")))
    return hashlib.sha256(graphs.encode()).hexdigest()[:16] if ":" in graphs else ""


def _configurable(config: RunnableConfig | None) -> Mapping[str, Any]:
    return (present_config() if config is None else config).get("configurable") or {}


RUN_STORE = "run"
"""In place of a store: the one that the graph runs with."""


def checked_archive(given: Any) -> BaseStore | str | None:
    """What was given as ``archive=``.

    Raises:
        ConfigurationError: it is no store.
    """
    if given is None or isinstance(given, BaseStore) or given == RUN_STORE:
        return given  # type: ignore[no-any-return]  # checked here
    raise ConfigurationError(
        f"archive: {given!r} is no store. Pass a LangGraph store (a BaseStore), {RUN_STORE!r} for "
        "the one that the graph is compiled with, or None to drop originals."
    )


def archive_for(given: BaseStore | str | None, config: RunnableConfig | None) -> Archive | None:
    """Where a visit puts the originals that leave the channel; None: nowhere.

    Args:
        given: a store, None, or `RUN_STORE`.
        config: the run's config; None: that of the run this is called in.

    Raises:
        ConfigurationError: the run has no store, or no thread.
    """
    store = _runtime("store") if isinstance(given, str) else given
    if given is None:
        return None
    if store is None:
        raise ConfigurationError(
            'history: "prune" moves folded messages to a store, and this run has none. Compile the '
            "graph with one, builder.compile(store=...), or give the node one, archive=... (with "
            "archive=None the messages are dropped for good)."
        )
    return archive_of(store, present_config() if config is None else config)


def _runtime(name: str) -> Any:
    try:
        return getattr(get_runtime(), name)
    except (RuntimeError, KeyError, AttributeError):  # outside a run, and outside a graph
        return None


def _of(context: Any) -> Any:
    try:
        if isinstance(context, Mapping):
            return context.get(SETTINGS_KEY)
        return getattr(context, SETTINGS_KEY, None)
    except Exception:  # noqa: BLE001  # a property of anybody's must not end the run
        return None
