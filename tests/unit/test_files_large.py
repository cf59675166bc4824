"""Settings files with tricks: parts that repeat, keys that stand twice, and sizes beyond reason.

A file may come from a service that others write to. Reading it takes a time that grows with its
size, not with what its aliases multiply, and where it is too large the error says so.
"""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from langgraph_compaction import ConfigurationError, load_settings
from langgraph_compaction.files import MOST_BYTES

MARK = b"\xef\xbb\xbf"
"""What some editors put in front of a text in UTF-8."""


def loaded(folder: Path, name: str, text: str | bytes) -> dict[str, Any]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_settings(path)


def refused(folder: Path, name: str, text: str | bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, name, text)
    assert str(folder / name) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yaml", b"min_keep: 4"), ("a.toml", b"min_keep = 4"), ("a.json", b'{"min_keep": 4}')],
)
def test_a_mark_of_the_encoding_is_no_part_of_the_text(
    tmp_path: Path, name: str, text: bytes
) -> None:
    assert loaded(tmp_path, name, MARK + text) == {"min_keep": 4}
    assert loaded(tmp_path, name, MARK) == {}


def test_a_merge_key_takes_over_what_stands_elsewhere(tmp_path: Path) -> None:
    text = """
    writer: &writer
      keep: &keep {min_keep: 4}
      min_keep: 4
      trigger: [steps, 3]
    other:
      <<: *writer
      min_keep: 6
      keep: [messages, 8]
    """
    with pytest.raises(ConfigurationError, match="keep"):
        loaded(tmp_path, "a.yaml", text)
    text = text.replace("      keep: &keep {min_keep: 4}\n", "")
    assert loaded(tmp_path, "a.yaml", text) == {
        "writer": {"min_keep": 4, "trigger": ["steps", 3]},
        "other": {"min_keep": 6, "trigger": ["steps", 3], "keep": ["messages", 8]},
    }


def test_a_part_that_merges_may_be_merged_itself(tmp_path: Path) -> None:
    """Wherever it stands: inside another part it is read after those that merge it."""
    text = """
    base: &base {min_keep: 4, clear: false}
    tool_markers: &markers {read: "[read]", write: "[write]"}
    first:
      tool_markers: &more
        <<: *markers
        read: "[looked]"
      min_keep: 5
    second:
      <<: [*base, {min_keep: 7, digest: rolling}]
      tool_markers: {<<: *more, move: "[moved]"}
    """
    found = loaded(tmp_path, "a.yaml", text)
    assert found["first"]["tool_markers"] == {"read": "[looked]", "write": "[write]"}
    assert found["second"] == {
        "min_keep": 4,
        "clear": False,
        "digest": "rolling",
        "tool_markers": {"read": "[looked]", "write": "[write]", "move": "[moved]"},
    }


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("a.yaml", "min_keep: 4\nmin_keep: 5", "'min_keep' stands twice, line 1"),
        ("a.yaml", "trigger: {steps: 4, steps: 5}", "'steps' stands twice"),
        ("a.yaml", "null: 4\nnull: 5", "None stands twice"),
        ("a.yaml", "x: {<<: {min_keep: 4}, <<: {min_keep: 5}}", "<<: [*one, *other]"),
        ("a.json", '{"min_keep": 4, "min_keep": 4}', "'min_keep' stands twice"),
        ("a.json", '{"a": [{"steps": 4, "steps": 5}]}', "'steps' stands twice"),
        ("a.toml", "min_keep = 4\nmin_keep = 5", "overwrite"),
        ("a.yaml", "? [1, 2]\n: 3", "unhashable"),
        ("a.yaml", "x:\n  <<: 3", "no mapping, line 2"),
        ("a.yaml", "x: {<<: [{min_keep: 4}, 3]}", "no mapping, line 1"),
    ],
)
def test_a_key_stands_once(tmp_path: Path, name: str, text: str, key: str) -> None:
    assert key in refused(tmp_path, name, text)


def repeated(first: str, line: str) -> str:
    """Nine parts, each of which has the one before nine times."""
    names = "abcdefghij"
    lines = [f"a: &a {first}"]
    for before, name in pairwise(names):
        several = ", ".join([f"*{before}"] * 9)
        lines.append(f"{name}: &{name} {line.format(several)}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [repeated("[x, x, x]", "[{}]"), repeated("{k: 1}", "{{<<: [{}]}}")],
)
def test_aliases_make_no_small_file_large(tmp_path: Path, text: str) -> None:
    start = time.perf_counter()
    assert "more than 100,000 values" in refused(tmp_path, "a.yaml", text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {<<: *a}", "a: &a {b: {c: [*a]}}"])
def test_what_holds_itself_is_no_setting(tmp_path: Path, text: str) -> None:
    assert "the value that it stands in, line 1" in refused(tmp_path, "a.yaml", text)


@pytest.mark.parametrize("name", ["a.yaml", "a.toml", "a.json"])
def test_a_file_beyond_reason_is_not_read(tmp_path: Path, name: str) -> None:
    text = json.dumps({"instructions": "x" * MOST_BYTES})
    assert f"more than {MOST_BYTES:,} bytes" in refused(tmp_path, name, text)


def seconds(folder: Path, name: str, text: str) -> float:
    """The least of three tries."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        loaded(folder, name, text)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_the_time_grows_with_the_size(tmp_path: Path, name: str) -> None:
    def sections(count: int) -> str:
        return json.dumps({f"n{n}": {"min_keep": 4, "tool_markers": {}} for n in range(count)})

    def tools(count: int) -> str:
        return json.dumps({"tool_markers": {f"t{n}": "x" for n in range(count)}})

    for kind in (sections, tools):
        assert seconds(tmp_path, name, kind(4_000)) < 32 * seconds(tmp_path, name, kind(500))
