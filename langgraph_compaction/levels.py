"""Settings of one thread over those of the node: what ``compaction_settings`` in its state says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import CompactionSettings

REMEMBERED = 64
"""Different settings of threads whose resolution one node remembers."""


class Resolution(NamedTuple):
    """The numbers for a thread, and what in its settings was left out as unusable."""

    policy: Policy
    problems: tuple[str, ...]


class Levels:
    """Resolves the settings of threads, weakest level first: the node, then the thread.

    Keeps nothing of a thread but the values of its settings.

    Args:
        settings: the node's settings.
        window: tokens of the agent model's context window, None where unknown.
        max_output: tokens that it writes at most, None where unknown.

    Raises:
        ConfigurationError: the node's own settings cannot be resolved.
    """

    def __init__(
        self, settings: CompactionSettings, *, window: int | None, max_output: int | None
    ) -> None:
        self._settings = settings
        self._limits = {"window": window, "max_output": max_output}
        self._base = Resolution(resolved(settings, **self._limits), ())
        self._known: dict[str, Resolution] = {}

    def of(self, thread: Any) -> Resolution:
        """The resolution for a thread's settings: a mapping of plain JSON values, or None.

        A value that cannot be used never ends a run: it is left out, with a line that says why,
        and the node's value counts.
        """
        if not thread:
            return self._base
        text = json.dumps(thread, sort_keys=True, default=repr)
        found = self._known.get(text)
        if found is None:
            found = self._resolve(thread)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[text] = found
        return found

    def _resolve(self, thread: Any) -> Resolution:
        if not isinstance(thread, Mapping):
            problem = f"compaction_settings of the thread: {thread!r} is no dict of settings."
            return Resolution(self._base.policy, (problem,))
        try:
            return Resolution(resolved(self._settings.changed(thread), **self._limits), ())
        except ConfigurationError:
            pass  # one of them is wrong: take the others one by one
        settings, problems = self._settings, []
        for key, value in thread.items():
            try:
                candidate = settings.changed({key: value})
                resolved(candidate, **self._limits)
            except ConfigurationError as error:
                problems.append(f"compaction_settings of the thread: {error}")
            else:
                settings = candidate
        return Resolution(resolved(settings, **self._limits), tuple(problems))
