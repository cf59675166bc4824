"""The levels of settings: the node's own, over them the thread's, over them the run's.

What the node's constructor and a settings file say is fixed and checked when the node is made. The
state of a thread and the config of a run come from elsewhere, so that a wrong value there ends no
run: it is left out, the level below counts, and an event says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.requests import REQUEST_KEY
from langgraph_compaction.resolving import resolved
from langgraph_compaction.settings import NAMES, CompactionSettings

REMEMBERED = 64
"""Different settings of threads and runs whose resolution one node remembers."""


class Resolution(NamedTuple):
    """The numbers for a visit, and what in its settings was left out as unusable."""

    policy: Policy
    problems: tuple[str, ...]


class Levels:
    """Resolves settings, weakest level first: the node, the thread, the run.

    Keeps nothing of a thread but the values of its settings.

    Args:
        settings: the node's settings.
        node: the node's name: values under it are for this node alone.
        limits: what `resolved` has to know of model and counter.

    Raises:
        ConfigurationError: the node's own settings cannot be resolved.
    """

    def __init__(self, settings: CompactionSettings, *, node: str, **limits: Any) -> None:
        if node == REQUEST_KEY:
            raise ConfigurationError(
                f"name: a node cannot be called {node!r}: in a thread's settings a request for "
                "compaction stands under that name. Choose another."
            )
        self._settings = settings
        self._node = node
        self._limits = limits
        self._base = Resolution(resolved(settings, **limits), ())
        self._known: dict[str, Resolution] = {}

    def of(self, thread: Any = None, run: Any = None) -> Resolution:
        """The resolution for a thread's and a run's settings: mappings of JSON values, or None.

        A value that cannot be used is left out, with a line that says why.
        """
        given = [
            (level, values)
            for level, values in (("thread", thread), ("run", run))
            if values and not _only_request(values)
        ]
        if not given:
            return self._base
        try:
            text = json.dumps(given, default=repr)
        except (TypeError, ValueError, RecursionError):  # no JSON at all: nothing to remember by
            return self._resolve(given)
        found = self._known.get(text)
        if found is None:
            found = self._resolve(given)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[text] = found
        return found

    def _resolve(self, given: list[tuple[str, Any]]) -> Resolution:
        settings, problems = self._settings, []
        for level, values in given:
            try:
                own = dict(own_values(values, self._node))
            except ConfigurationError as error:
                problems.append(f"compaction_settings of the {level}: {error}")
                continue
            settings, found = self._over(settings, own)
            problems += [f"compaction_settings of the {level}: {problem}" for problem in found]
        return Resolution(resolved(settings, **self._limits), tuple(problems))

    def _over(
        self, below: CompactionSettings, values: Mapping[str, Any]
    ) -> tuple[CompactionSettings, list[str]]:
        """One level over another: what is wrong by itself is left out, then what contradicts."""
        problems: list[str] = []
        sound: dict[str, Any] = {}
        for key, value in values.items():
            try:
                below.changed({key: value})
                sound[key] = value
            except ConfigurationError as error:
                problems.append(str(error))
        try:
            together = below.changed(sound)
            resolved(together, **self._limits)
            return together, problems
        except ConfigurationError:
            pass  # they contradict each other, or what is below: take them one by one
        for key, value in sound.items():
            try:
                candidate = below.changed({key: value})
                resolved(candidate, **self._limits)
            except ConfigurationError as error:
                problems.append(str(error))
            else:
                below = candidate
        return below, problems


def _only_request(values: Any) -> bool:
    return isinstance(values, Mapping) and list(values) == [REQUEST_KEY]


def own_values(values: Any, node: str) -> Iterator[tuple[str, Any]]:
    """The values that are for a node: those at the top, then those under its name.

    A dict under any other name that is no setting and looks like none is another node's.

    Raises:
        ConfigurationError: no mapping was given.
    """
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{values!r} is no dict of settings.")
    section = values.get(node) if node not in NAMES else None
    for key, value in values.items():
        if key == REQUEST_KEY or (key == node and isinstance(section, Mapping)):
            continue
        of_another = isinstance(value, Mapping) and not get_close_matches(str(key), NAMES, n=1)
        if key in NAMES or not of_another:
            yield key, value
    if isinstance(section, Mapping):
        yield from section.items()
