"""Presets: plain values that nobody can change for others, in code and in a settings file."""

import json
import pickle
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from langgraph_compaction import (
    CompactionNode,
    CompactionSettings,
    ConfigurationError,
    ExtractiveSummarizer,
    load_settings,
    presets,
)
from langgraph_compaction.middleware import CompactionMiddleware

ALL: dict[str, Any] = {
    name.lower(): getattr(presets, name) for name in presets.__all__ if name != "Preset"
}
each = pytest.mark.parametrize("name", ALL)


def node(*_: Any, **options: Any) -> CompactionNode:
    return CompactionNode(ExtractiveSummarizer(), **{"context_window": 100_000, **options})


def counter(made: CompactionNode) -> str:
    return made.measure({"messages": [], "compaction": {}}).counter


def file(folder: Path, text: str, name: str = "a.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def frozen(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value, presets.Preset) and all(map(frozen, value.values()))
    if isinstance(value, tuple):
        return all(map(frozen, value))
    return isinstance(value, str | int | float | None)


@each
def test_a_preset_is_an_immutable_mapping_of_json_values(name: str) -> None:
    preset = ALL[name]
    assert isinstance(preset, Mapping)
    assert frozen(preset)
    assert json.loads(json.dumps(preset)).keys() == preset.keys()
    before = dict(preset)
    for change in (
        lambda: preset.__setitem__("keep", 1),
        lambda: preset.__delitem__("keep"),
        lambda: preset.__ior__({"keep": 1}),
        lambda: preset.update(keep=1),
        lambda: preset.setdefault("x", 1),
        lambda: preset.pop("keep"),
        preset.popitem,
        preset.clear,
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert preset == before


@each
def test_a_copy_of_a_preset_is_a_plain_dict(name: str) -> None:
    for copy in (
        deepcopy(ALL[name]),
        pickle.loads(pickle.dumps(ALL[name])),
        ALL[name].copy(),
    ):  # our own
        assert type(copy) is dict
        assert copy == ALL[name]
        copy["enabled"] = False


@each
def test_a_preset_may_be_given_in_every_way(name: str, tmp_path: Path) -> None:
    preset = ALL[name]
    by_name = node(**preset)
    mapping = node(settings=preset)
    middleware = CompactionMiddleware(
        ExtractiveSummarizer(), **{"context_window": 100_000, **preset}
    ).node
    files = [
        node(settings=file(tmp_path, f"preset: {name}")),
        node(settings=load_settings(file(tmp_path, f'preset = "{name.upper()}"', "b.toml"))),
        node(settings=file(tmp_path, json.dumps({"compact": {"preset": name}}), "c.json")),
    ]
    values = {key: value for key, value in preset.items() if key != "token_counter"}
    for made in (by_name, mapping, middleware, *files):
        assert made.settings == CompactionSettings.of({"context_window": 100_000, **values})
        expected = preset.get("token_counter", counter(node()))
        assert counter(made) == expected


@each
def test_values_of_ones_own_win_over_a_preset(name: str, tmp_path: Path) -> None:
    keep = ("messages", 7)
    own = [
        node(**{**ALL[name], "keep": keep}),
        node(settings=ALL[name], keep=keep),
        node(settings=file(tmp_path, f"keep: [messages, 7]\npreset: {name}")),
        node(settings=load_settings(file(tmp_path, f"preset: {name}"), {"keep": keep})),
    ]
    for made in own:
        assert tuple(made.settings.keep) == keep
        for key in set(ALL[name]) - {"keep", "token_counter"}:
            assert getattr(made.settings, key) == ALL[name][key]


def test_a_file_is_merged_over_its_preset_recursively(tmp_path: Path) -> None:
    text = 'preset: stagewise\ntool_markers: {search: "[web: {label}]", "*": null}'
    made = node(settings=file(tmp_path, text)).settings
    assert made.tool_markers == {
        **presets.STAGEWISE["tool_markers"],
        "search": "[web: {label}]",
        "*": None,
    }
    assert made.digest == "rolling"
    assert "search" not in presets.STAGEWISE["tool_markers"]


def test_a_preset_in_the_overrides_replaces_the_files_own(tmp_path: Path) -> None:
    found = load_settings(file(tmp_path, "preset: manning\nmin_keep: 3"), {"preset": "pattern"})
    assert found == {**presets.PATTERN, "min_keep": 3}


def test_a_file_wins_over_code_with_its_preset_too(tmp_path: Path) -> None:
    path = file(tmp_path, "preset: manning")
    made = node(settings=path, keep=("messages", 9), result_chars=500, token_counter="estimate")
    assert made.settings.keep == presets.MANNING["keep"]
    assert made.settings.result_chars == 500
    assert counter(made) == "estimate"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("stagewize", "did you mean 'stagewise'?"),
        ("Webwrigth", "did you mean 'webwright'?"),
        ("x", "known: webwright, pattern, stagewise, stagewise_chat, manning."),
        ("7", "known: "),
        ("[pattern]", "is no preset"),
        ("null", "is no preset"),
    ],
)
def test_an_unknown_preset_names_file_and_nearest(given: str, told: str, tmp_path: Path) -> None:
    path = file(tmp_path, f"preset: {given}")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path)
    assert str(caught.value).startswith(f"Settings file {path}: preset: ")
    assert told in str(caught.value)


def test_a_preset_is_no_setting_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match="stands in a settings file"):
        node(preset="manning")
    state: Any = {"messages": [], "compaction": {}, "compaction_settings": {"preset": "manning"}}
    (problem,) = node().explain(state).problems
    assert "stands in a settings file" in problem
    for name in ("preset", "token_counter"):
        with pytest.raises(ConfigurationError, match="cannot be called"):
            node(name=name)


# ---- the counter by name


@pytest.mark.parametrize("name", ["estimate", "approximate", "chars/4+400"])
def test_a_file_may_name_a_counter_and_wins(name: str, tmp_path: Path) -> None:
    path = file(tmp_path, f"token_counter: {name}")
    assert load_settings(path) == {"token_counter": name}
    assert counter(node(settings=path)) == name
    assert counter(node(settings=path, token_counter=len)) == name


def test_a_nodes_own_counter_wins_within_a_file(tmp_path: Path) -> None:
    text = "token_counter: estimate\ncompact: {token_counter: approximate}"
    assert counter(node(settings=file(tmp_path, text))) == "approximate"
    assert counter(node(settings=file(tmp_path, text), name="other")) == "estimate"


def test_in_code_a_name_wins_over_a_mapping() -> None:
    assert counter(node(settings={"token_counter": "estimate"})) == "estimate"
    assert counter(node(settings=presets.STAGEWISE, token_counter="approximate")) == "approximate"
    assert counter(node(settings={"token_counter": len})) == "custom"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("chars/4", "did you mean 'chars/4+400'?"),
        ("tiktokn", "did you mean 'tiktoken'?"),
        ("7", "'tiktoken', 'estimate', 'approximate', 'chars/4+400'"),
        ("[estimate]", "is not a known counter"),
        ("null", "is not a known counter"),
    ],
)
def test_an_unknown_counter_names_file_and_nearest(given: str, told: str, tmp_path: Path) -> None:
    for text in (f"token_counter: {given}", f"writer: {{token_counter: {given}}}"):
        path = file(tmp_path, text)
        with pytest.raises(ConfigurationError) as caught:
            load_settings(path)
        assert str(caught.value).startswith(f"Settings file {path}: token_counter: ")
        assert told in str(caught.value)


def test_a_thread_cannot_choose_the_counter() -> None:
    values = {"compaction_settings": {"token_counter": "estimate"}}
    (problem,) = node().explain({"messages": [], "compaction": {}, **values}).problems
    assert "or named in a settings file" in problem


def test_tools_and_sections_may_have_the_names_of_settings(tmp_path: Path) -> None:
    markers = {"clear": "[cleared]", "keep": None}
    sections = {"target": "what to reach", "Task": None}
    text = json.dumps({"tool_markers": markers, "sections": sections})
    made = node(settings=file(tmp_path, text)).settings
    assert (made.tool_markers, made.sections) == (markers, sections)
    values = {"compaction_settings": json.loads(text)}
    assert node().explain({"messages": [], "compaction": {}, **values}).problems == ()
