"""Settings from a file: what it may hold, who wins, and that every error says where it comes from.

A file is written by whoever runs the agent, not by who wrote it: a message without file, key and
value sends them through code that they have never seen.
"""

import json
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
)


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def loads(self, name: str, text: str | bytes, overrides: Any = None) -> dict[str, Any]:
        return load_settings(self.file(name, text), overrides)

    def fails(self, name: str, text: str | bytes, overrides: Any = None) -> str:
        path = self.file(name, text)
        with pytest.raises(ConfigurationError) as caught:
            load_settings(path, overrides)
        assert str(path) in str(caught.value), "which file?"
        return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def node(**options: Any) -> CompactionNode:
    values: dict[str, Any] = {"context_window": 100_000, "token_counter": "estimate", **options}
    return CompactionNode(ExtractiveSummarizer(), **values)


# ---- the formats

SAME = {
    "trigger": {"fraction": 0.7, "messages": 40},
    "keep": [["tokens", 20_000], ["messages", 30]],
    "enabled": True,
    "instructions": "Keep ß, 字 and 🚀.",
}
FORMATS = {
    "a.yaml": """
trigger: {fraction: 0.7, messages: 40}
keep: [[tokens, 20000], [messages, 30]]
instructions: Keep ß, 字 and 🚀.
enabled: yes
""",
    "a.toml": """
keep = [["tokens", 20_000], ["messages", 30]]
instructions = "Keep ß, 字 and 🚀."
enabled = true
[trigger]
fraction = 0.7
messages = 40
""",
    "a.json": json.dumps(SAME),
}
FORMATS |= {"a.yml": FORMATS["a.yaml"], "A.YAML": FORMATS["a.yaml"], "a.b.Json": FORMATS["a.json"]}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(folder: Folder, name: str) -> None:
    found = folder.loads(name, FORMATS[name])
    assert found == SAME
    assert load_settings(str(folder.path / name)) == SAME
    assert node(settings=found).settings == node(settings=SAME).settings


EMPTY = [("a.yaml", ""), ("a.toml", ""), ("a.json", ""), ("a.json", " \n"), ("a.json", "{}")]


@pytest.mark.parametrize(("name", "text"), [*EMPTY, ("a.json", "null"), ("a.yaml", "# none")])
def test_an_empty_file_changes_nothing(folder: Folder, name: str, text: str) -> None:
    assert folder.loads(name, text) == {}
    assert node(settings=folder.path / name).settings == node().settings
    assert folder.loads(name, text, {"task": "latest"}) == {"task": "latest"}


@pytest.mark.parametrize("off", ["off", "no", "false", "null", "~", "0", "[]", "{tokens: 0}", ""])
def test_off_is_off(folder: Folder, off: str) -> None:
    found = node(settings=load_settings(folder.file("a.yaml", f"trigger: {off}")))
    assert found.measure({"messages": [], "compaction": {}}).trigger is None
    assert folder.loads("b.yaml", "enabled: off") == {"enabled": False}


# ---- what cannot be read

UNREADABLE: list[tuple[str, str | bytes, str]] = [
    ("a.yaml", "task: latest\nkeep: [tokens, 5\ntrigger: off", "line 3"),
    ("a.yaml", "task: latest\n\ttrigger: off", "line 2"),
    ("a.yaml", "task: latest\n---\ntask: first", "line 2"),
    ("a.toml", "task = 'latest'\nkeep = \n", "line 2"),
    ("a.toml", "task = 'latest'\ntask = 'first'\n", "line 2"),
    ("a.json", '{"task": "latest",\n "keep" 5}', "line 2"),
    ("a.json", '{"task": "latest",}\n', "line 1"),
    ("a.yaml", b"instructions: caf\xe9", "utf-8"),
    ("a.toml", b'instructions = "caf\xe9"', "utf-8"),
    ("a.json", '{"task": "latest"}'.encode("utf-16"), "utf-8"),
    ("a.yaml", b"task: \x00", "parsed"),
    ("a.yaml", "prompt: !!python/object/apply:os.getcwd []", "python/object"),
    ("a.yaml", "task: *nobody", "nobody"),
    ("a.yaml", "[" * 700, "parsed"),
    ("a.toml", "keep = " + "[" * 1_500, "parsed"),
    ("a.json", "[" * 100_000, "parsed"),
    ("a.yaml", "task: latest\ntrigger: &it [*it]", "line 2"),
]


@pytest.mark.parametrize(("name", "text", "place"), UNREADABLE)
def test_bad_syntax_says_where(folder: Folder, name: str, text: str | bytes, place: str) -> None:
    assert place in folder.fails(name, text)


@pytest.mark.parametrize("name", ["a.ini", "a", ".yaml", "a.yaml.bak", "a.py", "a.yaml "])
def test_an_unknown_ending_names_the_known_ones(folder: Folder, name: str) -> None:
    message = folder.fails(name, "task: latest")
    assert all(ending in message for ending in (".yaml", ".yml", ".toml", ".json"))


def test_a_missing_file_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "file.yaml").touch()
    monkeypatch.chdir(tmp_path)
    for wrong in ("missing.toml", "folder.yaml", "file.yaml/a.yaml", "x" * 300 + ".json"):
        for load in (load_settings, lambda path: node(settings=path)):
            with pytest.raises(ConfigurationError, match="cannot be read") as caught:
                load(wrong)
            assert wrong in str(caught.value)
            assert str(tmp_path) in str(caught.value), "relative to what?"
    with pytest.raises(ConfigurationError, match=r"missing\.yaml cannot be read"):
        load_settings("file.yaml", tmp_path / "missing.yaml")


# ---- what it must not hold


NO_MAPPING = ["trigger", "- trigger: off", "7", "false", "1: 2", "off: trigger", "2024-01-01: 1"]
NO_OBJECT = ["[]", '"trigger"', "0"]


@pytest.mark.parametrize(
    ("name", "text"),
    [*(("a.yaml", text) for text in NO_MAPPING), *(("a.json", text) for text in NO_OBJECT)],
)
def test_what_is_no_mapping_of_names_is_shown_one(folder: Folder, name: str, text: str) -> None:
    assert "mapping of settings, such as 'trigger: [fraction, 0.8]'" in folder.fails(name, text)


WRONG: list[tuple[str, list[str]]] = [
    ("triger: off", ["'triger' is not a setting", "did you mean 'trigger'"]),
    ("Trigger: off", ["'Trigger' is not a setting", "'trigger'"]),
    ("qqq: 1", ["'qqq' is not a setting", "known: enabled, trigger"]),
    ("task: newest", ["task: 'newest'", "'first', 'latest', None"]),
    ("trigger: on", ["trigger: True"]),
    ("trigger: 'off'", ["trigger: 'off'", "None (off)"]),
    ("trigger: {1: 2}", ["trigger: 1 is not a kind"]),
    ("trigger: {tokens: many}", ["trigger: ", "'tokens' is 'many'"]),
    ("keep: [tokens, .nan]", ["keep: ", "'tokens' is nan"]),
    ("min_keep: 1.5", ["min_keep: 1.5", "whole number"]),
    ("min_keep: '6'", ["min_keep: '6'", "whole number"]),
    ("summary_timeout: 30s", ["summary_timeout: '30s'", "seconds above 0"]),
    ("instructions: 2024-01-01", ["instructions: ", "2024", "non-empty string"]),
    ("instructions:\n  - Keep it.", ["instructions: ['Keep it.']", "non-empty string"]),
    ("enabled: 'off'", ["enabled: 'off'", "True, False"]),
    ("pinned: {1: 2}", ["pinned: {1: 2}"]),
    ("task: first\nsegment_share: 20%", ["segment_share: '20%'"]),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_value_names_file_key_and_value(folder: Folder, text: str, said: list[str]) -> None:
    message = folder.fails("a.yaml", text)
    assert [part for part in said if part not in message] == []


def test_values_are_checked_one_by_one(folder: Folder) -> None:
    # Together with what the code says it is right, and only the node knows that.
    file = folder.loads("a.yaml", "min_segment_tokens: 5000")
    assert node(settings=file, max_segment_tokens=8_000).settings.min_segment_tokens == 5_000
    file = folder.loads("b.yaml", "max_segment_tokens: 8000")
    assert node(settings=file, min_segment_tokens=5_000).settings.max_segment_tokens == 8_000


# ---- overrides

BASE = "trigger: {fraction: 0.7, messages: 40}\nkeep: [tokens, 5000]\ntask: latest"


@pytest.mark.parametrize("kind", ["mapping", "file", "string", "loaded"])
def test_overrides_change_one_value_alone(folder: Folder, kind: str) -> None:
    values = {"trigger": {"messages": 60}, "keep": ["messages", 9], "result_chars": 7}
    second = folder.file("b.json", json.dumps(values))
    given = {"file": second, "string": str(second), "loaded": load_settings(second)}
    found = folder.loads("a.yaml", BASE, given.get(kind, values))
    assert found == {
        "trigger": {"fraction": 0.7, "messages": 60},
        "keep": ["messages", 9],
        "task": "latest",
        "result_chars": 7,
    }
    assert folder.loads("a.yaml", BASE, {"trigger": None})["trigger"] is None
    assert folder.loads("a.yaml", BASE, {"trigger": ["steps", 2]})["trigger"] == ["steps", 2]
    assert folder.loads("a.yaml", BASE, {}) == folder.loads("a.yaml", BASE)


@pytest.mark.parametrize("wrong", [{"task": "x"}, {"triger": None}, {1: 2}, {"trigger": {"x": 1}}])
def test_a_wrong_override_names_both(folder: Folder, wrong: Any) -> None:
    assert "a.yaml and overrides: " in folder.fails("a.yaml", BASE, wrong)
    if 1 not in wrong:
        second = folder.file("b.json", json.dumps(wrong))
        assert f"a.yaml and {second}: " in folder.fails("a.yaml", BASE, second)


@pytest.mark.parametrize(
    "wrong", [7, ["task"], [("task", "latest")], b"b.yaml", CompactionSettings()]
)
def test_overrides_that_are_no_mapping_are_named(folder: Folder, wrong: Any) -> None:
    assert repr(wrong)[:40] in folder.fails("a.yaml", BASE, wrong)


def test_nothing_that_was_given_is_changed(folder: Folder) -> None:
    overrides = {"trigger": {"messages": 60}, "keep": [["messages", 9]], "pinned": {"type": "tool"}}
    before = deepcopy(overrides)
    found = folder.loads("a.yaml", BASE, overrides)
    kept = deepcopy(dict(found))
    node(settings=found, task="first", min_keep=1)
    load_settings(folder.path / "a.yaml", found)
    assert overrides == before
    assert dict(found) == kept


# ---- who wins


def test_a_file_wins_over_code_and_a_mapping_does_not(folder: Folder) -> None:
    path = folder.file("a.yaml", "task: latest\nkeep: [tokens, 5000]")
    file = load_settings(path)
    for given in (file, path, str(path), load_settings(path, {"task": "latest"})):
        settings = node(settings=given, task="first", min_keep=3).settings
        assert (settings.task, settings.keep, settings.min_keep) == ("latest", ["tokens", 5_000], 3)
    for mapping in ({**file}, dict(file), file | {}, CompactionSettings.of(file)):
        settings = node(settings=mapping, task="first").settings
        assert (settings.task, settings.keep) == ("first", ["tokens", 5_000])


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("keep: [tokens, 5000]", {"trigger": ("tokens", 1_000)}, "keep"),
        ("trigger: [tokens, 95000]", {}, "trigger"),
        ("context_window: 900", {"trigger": ("tokens", 5_000)}, "trigger"),
        ("max_segment_tokens: 100", {"min_segment_tokens": 150}, "min_segment_tokens"),
        ("min_segment_tokens: 500\nmax_segment_tokens: 400", {}, "min_segment_tokens"),
        ("target: 90000", {}, "target"),
    ],
)
def test_what_only_contradicts_together_names_the_file(
    folder: Folder, text: str, code: dict[str, Any], key: str
) -> None:
    path = folder.file("a.yaml", text)
    for load in (str, load_settings):
        with pytest.raises(ConfigurationError, match=rf"a\.yaml: {key}: "):
            node(settings=load(path), **code)


def test_a_wrong_value_in_code_does_not_blame_the_file(folder: Folder) -> None:
    path = folder.file("a.yaml", "task: latest")
    with pytest.raises(ConfigurationError, match=r"^min_keep: -1"):
        node(settings=path, min_keep=-1)
    with pytest.raises(ConfigurationError, match=r"^'tusk' is not a setting"):
        node(settings=path, tusk="first")


@pytest.mark.parametrize("wrong", [7, b"a.yaml", ["a.yaml"], True])
def test_settings_of_any_other_kind_are_named(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="path of a settings file") as caught:
        node(settings=wrong)
    assert repr(wrong) in str(caught.value)
