"""Settings from a file: YAML, TOML or JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import yaml  # a requirement of langchain-core's, which this package requires

from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.plan.counting import check_counter_name
from langgraph_compaction.presets import preset_of
from langgraph_compaction.setting_names import IN_FILES
from langgraph_compaction.settings import CompactionSettings, sections_in
from langgraph_compaction.state import merge_settings

_READERS: dict[str, Callable[[str], Any]] = {
    ".yaml": lambda text: yaml.load(text, _Loader),  # noqa: S506  # a SafeLoader
    ".yml": lambda text: yaml.load(text, _Loader),  # noqa: S506
    ".toml": tomllib.loads,
    ".json": lambda text: json.loads(text, object_pairs_hook=_once_each),
}
MOST_BYTES = 1_000_000
"""Bytes of a settings file; the largest with all settings and prompts has some thousands."""
MOST_VALUES = 100_000
"""Values of a YAML file, those that an alias repeats counted each time."""


class FileSettings(dict[str, Any]):
    """Values from a settings file, and where they came from.

    Attributes:
        source: path of the file, as errors name it.
    """

    def __init__(self, values: Mapping[str, Any], source: str) -> None:
        super().__init__(values)
        self.source = source


def load_settings(
    path: str | PathLike[str], overrides: Mapping[str, Any] | str | PathLike[str] | None = None
) -> FileSettings:
    """Read settings from a file; pass the result as ``settings=`` of the node.

    The values win over those given to the node by name, so that a deployment is changed without
    touching its code.

    Args:
        path: a file that ends in .yaml, .yml, .toml or .json and holds a mapping of values of
            `CompactionSettings`. An empty file holds none. ``preset: stagewise`` stands for the
            values of one of the `presets`, over which all others win; ``token_counter`` names a
            counter, as for `CompactionNode`.
        overrides: values that win over the file's, or the path of a second file with such. Merged
            recursively, so that one value within a rule can be changed alone.

    Returns:
        A dict of the values, checked one by one; values that neither the file nor its preset has
        are not in it.

    Raises:
        ConfigurationError: the file cannot be read or parsed, a key is no setting, a value is
            wrong, or there is no such preset or counter. The message names the file.
    """
    values, source = _read(Path(path)), str(path)
    if isinstance(overrides, str | PathLike):
        values = merge_settings(values, _read(Path(overrides)))
        source = f"{source} and {overrides}"
    elif overrides is not None:
        if not isinstance(overrides, Mapping):
            raise ConfigurationError(
                f"Settings file {path}: overrides: {shortened(overrides)} is neither a mapping of "
                "settings nor the path of a file."
            )
        values = merge_settings(values, overrides)
        source = f"{source} and overrides"
    with of_file(source):
        # A section may be for any node: whether one is meant is known only there.
        named = sections_in(values)
        general = _expanded({key: values[key] for key in values if key not in named})
        sections = {key: _expanded(values[key]) for key in named}
        for part in (general, *sections.values()):
            if "token_counter" in part:
                check_counter_name(part["token_counter"])
            CompactionSettings.of(without_named(part))
        values = {**general, **sections}
    return FileSettings(values, source)


@contextmanager
def of_file(source: str) -> Iterator[None]:
    """Have a `ConfigurationError` that is raised within name the file.

    Raises:
        ConfigurationError: the same one, with the file in front.
    """
    try:
        yield
    except ConfigurationError as error:
        text = str(error)
        if '("' in text or "None" in text:  # a remedy in Python's words
            text += (
                " (In a file a pair is a list, such as [fraction, 0.8], and None is written null; "
                "TOML has none: leave the key out.)"
            )
        raise ConfigurationError(f"Settings file {source}: {text}") from error


def without_named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a file without those that are no settings but may stand among them."""
    return {key: value for key, value in values.items() if key not in IN_FILES}


def _expanded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values over those of the preset that they name."""
    rest = {key: value for key, value in values.items() if key != "preset"}
    return merge_settings(preset_of(values["preset"]), rest) if "preset" in values else rest


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without keys that stand twice."""
    for key in _twice(key for key, _ in pairs):
        raise ValueError(f"{key!r} stands twice in one object")
    return dict(pairs)


def _twice(keys: Iterable[Any]) -> Iterator[Any]:
    """The keys that stood before, but those that no mapping can have."""
    seen = set()
    for key in keys:
        if isinstance(key, Hashable):
            if key in seen:
                yield key
            seen.add(key)


class _Loader(yaml.SafeLoader):
    """YAML without keys that stand twice: the first of them would be lost without a word.

    And without aliases that make a small file a large value.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _values_in(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(
                f"it has more than {MOST_VALUES:,} values, those that aliases repeat counted anew"
            )
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the values that a mapping takes over by ``<<`` before its own, which win.

        Of several that it takes over the first wins.
        """
        if id(node) in self._flat:  # its keys are no longer its own alone
            return
        self._flat.add(id(node))
        line = f"line {node.start_mark.line + 1} on"
        taken = [value for key, value in node.value if key.tag == _MERGE]
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        for twice in _twice(self.construct_object(key, deep=True) for key, _ in own):
            raise yaml.YAMLError(f"{twice!r} stands twice, {line}")
        if len(taken) > 1:
            raise yaml.YAMLError(f"'<<' stands twice, {line}; write <<: [*one, *other]")
        several = taken and isinstance(taken[0], yaml.SequenceNode)
        others = taken[0].value if several else taken
        for other in others:
            if not isinstance(other, yaml.MappingNode):
                raise yaml.YAMLError(f"'<<' takes over what is no mapping, {line}")
            self.flatten_mapping(other)
        node.value = [pair for other in reversed(others) for pair in other.value] + own
        super().flatten_mapping(node)


_MERGE = "tag:yaml.org,2002:merge"


def _values_in(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How many values a node has, those of an alias counted each time it is used."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = None
        pairs = isinstance(node, yaml.MappingNode)
        inside = [one for pair in node.value for one in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_values_in(one, known) for one in inside)
    found = known[id(node)]
    if found is None:
        line = node.start_mark.line + 1
        raise yaml.YAMLError(f"an alias stands for the value that it stands in, line {line} on")
    return found


def _read(path: Path) -> dict[str, Any]:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(
            f"Settings file {path}: its name has to end in {', '.join(_READERS)}, so that its "
            "format is known."
        )
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError(
                f"Settings file {path} has more than {MOST_BYTES:,} bytes, so that it is hardly "
                "one. Pass the path of a file that holds settings alone."
            )
        text = path.read_text("utf-8-sig")
        values = reader(text) if text.strip() else {}
    except RecursionError as error:
        raise ConfigurationError(
            f"Settings file {path} cannot be parsed: its values are nested too deep."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"Settings file {path} cannot be read: {error.strerror or error}. A relative path is "
            f"taken from the working directory, {Path.cwd()}."
        ) from error
    except (ValueError, yaml.YAMLError) as error:  # every parser's own error, and bad UTF-8
        raise ConfigurationError(f"Settings file {path} cannot be parsed: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigurationError(
            f"Settings file {path}: it has to hold a mapping of settings, such as "
            "'trigger: [fraction, 0.8]', one to a line."
        )
    return values
