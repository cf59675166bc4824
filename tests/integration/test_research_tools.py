"""The bundled agent's file tools: read-only, within one folder, whatever is in it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
tools = importlib.import_module("tools")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("the secret\n")
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.py").write_text("".join(f"line {n}\n" for n in range(1, 601)))
    (folder / "a.txt").write_text("alpha\nBeta secret\n")
    (folder / "deep" / "c.md").write_text("# Title\n" + "x" * 1_000 + "\n")
    (folder / ".hidden").write_text("no")
    (folder / "empty.txt").write_text("")
    (folder / "image.png").write_bytes(b"\x89PNG\0\0")
    (folder / "huge.log").write_text("y\n" * tools.MAX_BYTES)
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "loop").symlink_to(folder)
    return folder


def call(folder: Path, name: str, **arguments: Any) -> ToolMessage:
    """What a ToolNode answers to a call."""
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(tools.file_tools(tools.Workspace(folder))))
    builder.add_edge(START, "tools")
    message = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}])
    result: ToolMessage = builder.compile().invoke({"messages": [message]})["messages"][-1]
    return result


def test_only_readable_text_files_are_listed(folder: Path) -> None:
    workspace = tools.Workspace(folder)
    assert workspace.files == ["a.txt", "b.py", "deep/c.md"]
    assert workspace.left_out() == "1 binary, 1 above 200 kB"
    assert call(folder, "list_files").text.splitlines() == [
        "[Files 1 to 3 of 3, 604 lines in all]",
        "1. a.txt (2 lines)",
        "2. b.py (600 lines)",
        "3. deep/c.md (2 lines)",
    ]
    assert call(folder, "list_files", after="b.py").text.splitlines()[1:] == [
        "3. deep/c.md (2 lines)"
    ]
    assert "it is the last of 3" in call(folder, "list_files", after="deep/c.md").text


def test_the_size_of_all_is_limited_and_the_order_of_names_kept(folder: Path) -> None:
    workspace = tools.Workspace(folder, ["deep", "b.py", "a.txt"], size=6_310)
    assert workspace.files == ["deep/c.md", "b.py"]
    assert "1 beyond the first 6 kB" in workspace.left_out()
    assert tools.Workspace(folder, size=1).files == ["a.txt"]


@pytest.mark.parametrize(
    "path",
    ["../outside.txt", "/etc/passwd", "link.txt", "loop/a.txt", "deep/../../outside.txt",
     ".hidden", "image.png", "huge.log", "deep", "", "a.txt\0"],
)  # fmt: skip
def test_nothing_else_can_be_read(folder: Path, path: str) -> None:
    for name, argument in (("read_file", "path"), ("list_files", "after")):
        if (name, path) == ("list_files", ""):
            continue
        answer = call(folder, name, **{argument: path})
        assert answer.status == "error"
        assert "there is no file" in answer.text


def test_a_file_that_becomes_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    read = {tool.name: tool for tool in tools.file_tools(tools.Workspace(folder))}["read_file"]
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "outside.txt")
    assert "has become a symbolic link" in read.invoke({"path": "a.txt"})
    (folder / "a.txt").unlink()
    assert "cannot be read: No such file" in read.invoke({"path": "a.txt"})


def test_pages_follow_one_another_to_the_end(folder: Path) -> None:
    seen: list[str] = []
    start: int | None = 1
    while start:
        head, *lines = call(folder, "read_file", path="b.py", start=start).text.splitlines()
        seen += lines
        last = start + len(lines) - 1
        assert head.startswith(f"[File 2 of 3: b.py, lines {start} to {last} of 600")
        start = last + 1 if last < 600 else None
        assert (f"go on with start={start}" in head) == (start is not None)
    assert seen == [f"line {n}" for n in range(1, 601)]
    beyond = call(folder, "read_file", path="b.py", start=601)
    assert beyond.status == "error"
    assert "has lines 1 to 600" in beyond.text


def test_long_lines_are_cut_and_pages_stay_small(tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_text("\n".join("z" * 500 for _ in range(200)))
    answer = call(tmp_path, "read_file", path="wide.txt").text
    assert len(answer) < tools.PAGE_CHARS + 200
    assert "[cut]" in answer
    assert "go on with start=" in answer


def test_search_shows_where_a_text_stands(folder: Path) -> None:
    answer = call(folder, "search_text", text="secret").text.splitlines()
    assert answer == [
        "'secret' stands in 1 lines of 1 files: a.txt",
        "a.txt:2: Beta secret",
    ]
    many = call(folder, "search_text", text="line").text.splitlines()
    assert many[0] == "'line' stands in 600 lines of 1 files: b.py"
    assert len(many) == 1 + tools.HITS
    assert call(folder, "search_text", text=" ").status == "error"
