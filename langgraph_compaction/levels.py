"""The levels of settings: the node's own, over them the thread's, over them the run's.

What the node's constructor and a settings file say is fixed and checked when the node is made. The
state of a thread and the config of a run come from elsewhere, so that a wrong value there ends no
run: it is left out, the level below counts, and an event says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.requests import REQUEST_KEY, read_request
from langgraph_compaction.resolving import AgentLimits, resolved
from langgraph_compaction.settings import CompactionSettings, divided

REMEMBERED = 64
"""Different settings of threads and runs whose resolution one node remembers."""
MOST_PROBLEMS = 20
"""Lines about settings that cannot be used; the rest is counted."""
LONGEST_KEY = 20_000
"""Characters of such settings above which they are not remembered."""

MOST_VALUES = 2_000
"""Values, those inside others included, that settings of a thread or a run may have. A client may
write them, and each is looked at with every visit."""
MOST_CHARS = 1_000_000
"""Characters that their texts may have together."""

Given = tuple[str, Any]
"""Where settings come from, as errors name it, and the settings: a mapping, or anything."""


class Resolution(NamedTuple):
    """The numbers for a visit, and what in its settings was left out as unusable."""

    policy: Policy
    problems: tuple[str, ...]


class Levels:
    """Resolves settings, weakest level first: the node, then whatever a visit comes with.

    Keeps nothing of a thread but the values of its settings.

    Args:
        settings: the node's settings.
        node: the node's name: values under it are for this node alone.
        limits: what is known of the agent's model and the counter.

    Raises:
        ConfigurationError: the node's own settings cannot be resolved.
    """

    def __init__(self, settings: CompactionSettings, *, node: str, limits: AgentLimits) -> None:
        self._settings = settings
        self._node = node
        self._limits = limits
        self._base = Resolution(resolved(settings, limits), ())
        self._known: dict[str, Resolution] = {}

    def of(self, *given: Given) -> Resolution:
        """The resolution for what a visit comes with, weakest first.

        A value that cannot be used is left out, with a line that says why.
        """
        levels = [(level, values) for level, values in given if not _idle(values)]
        if not levels:
            return self._base
        if any(_is_too_large(values) for _, values in levels):
            return self._resolve(levels)
        try:
            text = json.dumps([(level, _settings_alone(values)) for level, values in levels])
        except Exception:  # noqa: BLE001  # no JSON at all: nothing to remember by
            return self._resolve(levels)
        if len(text) > LONGEST_KEY:
            return self._resolve(levels)
        found = self._known.get(text)
        if found is None:
            found = self._resolve(levels)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[text] = found
        return found

    def _resolve(self, levels: list[Given]) -> Resolution:
        settings, problems = self._settings, []
        for level, values in levels:
            if _is_too_large(values):
                problems.append(
                    f"{level}: more than {MOST_VALUES:,} values or {MOST_CHARS:,} characters, so "
                    "that none of them is used."
                )
                continue
            if not isinstance(values, dict):
                problems.append(
                    f"{level}: {shortened(values)} is no dict of "
                    'settings, such as {"trigger": ["fraction", 0.5]}.'
                )
                continue
            general, own = divided(values, self._node)
            if REQUEST_KEY in general and _malformed(general.pop(REQUEST_KEY)):
                problems.append(
                    f"{level}: {REQUEST_KEY!r} is no request; make one by request_compaction()."
                )
            for where, part in ((level, general), (f"{level} for {self._node!r}", own)):
                settings, found = self._over(settings, part)
                problems += [f"{where}: {problem}" for problem in found]
        if len(problems) > MOST_PROBLEMS:
            more = f"{len(problems) - MOST_PROBLEMS} more settings cannot be used."
            problems = [*problems[:MOST_PROBLEMS], more]
        return Resolution(resolved(settings, self._limits), tuple(problems))

    def _over(
        self, below: CompactionSettings, values: Mapping[str, Any]
    ) -> tuple[CompactionSettings, list[str]]:
        """One level over another: what is wrong by itself is left out, then what contradicts."""
        sound, problems = _each_alone(below, values)
        together = self._fitting(below, sound)
        if not isinstance(together, Exception):
            return together, problems
        # They contradict each other, or what is below: a keep, say, that is above the trigger.
        # Which of them is at fault nobody can tell, so each is tried by itself over what is in so
        # far. One that goes in may make room for another, whatever their order (a greater trigger
        # for a greater keep): as long as one did, the others are tried again.
        refused: dict[str, str] = {}
        while sound:
            left = dict(sound)
            for key, value in left.items():
                candidate = self._fitting(below, {key: value})
                if isinstance(candidate, Exception):
                    told = f"{shortened(value)} is left out, for with it: {candidate}"
                    refused[key] = f"{key}: {told}"
                else:
                    below = candidate
                    del sound[key]
            if len(sound) == len(left):
                break
        return below, [*problems, *(refused[key] for key in sound)]

    def _fitting(
        self, below: CompactionSettings, values: Mapping[str, Any]
    ) -> CompactionSettings | Exception:
        """Settings with these values; where they cannot be resolved, why."""
        try:
            changed = below.changed(values)
            resolved(changed, self._limits)
        except Exception as error:  # noqa: BLE001  # values of anybody's may do anything
            return error
        return changed


def _each_alone(
    below: CompactionSettings, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The values of a level that are right by themselves, and what is wrong with the others."""
    sound: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in values.items():
        try:
            below.changed({key: value})
            if callable(value):
                problems.append(f"{key}: a function belongs in code, not here.")
            else:
                sound[key] = value
        except Exception as error:  # noqa: BLE001  # as above
            problems.append(_told(error, key))
    return sound, problems


def _settings_alone(values: Any) -> Any:
    """Settings without the request beside them: each has an id of its own.

    That there is one which is malformed stays: it is a problem, and other threads have none.
    """
    if not isinstance(values, dict):
        return values
    alone = {key: value for key, value in values.items() if key != REQUEST_KEY}
    return {**alone, REQUEST_KEY: False} if _malformed(values.get(REQUEST_KEY)) else alone


def _told(error: Exception, key: Any) -> str:
    if isinstance(error, ConfigurationError):
        return str(error)
    return f"{shortened(key)}: its value cannot be used ({type(error).__name__})."


def _idle(values: Any) -> bool:
    """Whether settings hold nothing, or nothing but a request, as they do ever after one."""
    if isinstance(values, dict):
        return not values or (list(values) == [REQUEST_KEY] and not _malformed(values[REQUEST_KEY]))
    return values is None


def _is_too_large(values: Any) -> bool:
    """Whether settings are more than anybody needs. Looks at so many values at most."""
    pending, count, chars = [values], 0, 0
    while pending and count <= MOST_VALUES and chars <= MOST_CHARS:
        value = pending.pop()
        if isinstance(value, str):
            chars += len(value)
        elif isinstance(value, dict | list | tuple):
            count += len(value)
            if count <= MOST_VALUES:  # the values of one that is larger are not even listed
                pending += [*value, *value.values()] if isinstance(value, dict) else value
    return count > MOST_VALUES or chars > MOST_CHARS


def _malformed(request: Any) -> bool:
    return request is not None and read_request({REQUEST_KEY: request}) is None
