"""Read-only file tools for an agent, confined to one folder.

`Workspace` takes stock of the folder once; the three tools know the files it found and nothing
else. A path that is not in that list (outside the folder, behind a symbolic link, hidden, binary)
is answered with an error that the model can act on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from langchain_core.tools import BaseTool, StructuredTool, ToolException

SIZE = 260_000
"""Bytes of text, some 75,000 tokens, that one job covers by default: enough to fill a small window
several times, while the notes on it still fit that window's digest."""
MAX_BYTES = 200_000
"""Bytes of the largest file that is read."""
PAGE_LINES = 250
"""Lines of one page: about 2,500 tokens of source."""
PAGE_CHARS = 12_000
"""Characters of one page, where lines are long."""
LINE_CHARS = 240
"""Characters of a line that are shown; the rest is cut."""
LISTED = 10
"""Files of one page of the list."""
HITS = 12
"""Hits that one search shows."""

_IGNORED = {"node_modules", "venv", "env", "dist", "build", "target"}


class Workspace:
    """The text files of a folder, in alphabetical order of their paths.

    Args:
        root: the folder.
        only: names in it to look at, in this order; all that are not hidden if empty.
        size: bytes of all files together at most; the first file always counts.

    Raises:
        ValueError: there is no such folder, or no text file in it.
    """

    def __init__(self, root: Path, only: Sequence[str] = (), size: int = SIZE) -> None:
        if not root.is_dir():
            raise ValueError(f"{root} is not a folder.")
        self.root = root.resolve()
        self.binary = self.large = 0
        found = [path.relative_to(self.root) for path in self._walk(only) if self._is_text(path)]
        found.sort(key=lambda path: (only.index(path.parts[0]) if only else 0, path.as_posix()))
        sizes = accumulate((self.root / path).stat().st_size for path in found)
        fit = max(1, sum(total <= size for total in sizes))
        self.size, self.surplus = size, max(0, len(found) - fit)
        self.files = [path.as_posix() for path in found[:fit]]
        if not self.files:
            raise ValueError(f"{root} holds no text files of at most {MAX_BYTES:,} bytes.")

    def lines(self, path: str) -> list[str]:
        """The lines of one of ``files``.

        Raises:
            ToolException: the path is not one of them, or the file has gone.
        """
        if path not in self.files:
            raise ToolException(
                f"Error: there is no file {path!r} here. Use a path exactly as list_files gives it."
            )
        target = self.root / path
        try:
            # A file may have been replaced by a link since the folder was looked at.
            if target.resolve() != target:
                raise ToolException(f"Error: {path!r} has become a symbolic link.")
            return target.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolException(f"Error: {path!r} cannot be read: {reason}.") from None

    def left_out(self) -> str:
        """What the list leaves out, in words; empty if nothing."""
        counts = {
            "binary": self.binary,
            f"above {MAX_BYTES // 1000} kB": self.large,
            f"beyond the first {self.size // 1000} kB": self.surplus,
        }
        return ", ".join(f"{number} {why}" for why, number in counts.items() if number)

    def _walk(self, only: Sequence[str]) -> list[Path]:
        found = []
        for folder, names, files in os.walk(self.root):
            top = Path(folder) == self.root
            names[:] = [name for name in names if _is_wanted(name, only if top else ())]
            wanted = [name for name in files if _is_wanted(name, only if top else ())]
            found += [Path(folder) / name for name in wanted]
        return found

    def _is_text(self, path: Path) -> bool:
        try:
            if path.is_symlink() or not path.is_file() or not path.stat().st_size:
                return False
            if path.stat().st_size > MAX_BYTES:
                self.large += 1
                return False
            text = path.read_bytes()
        except OSError:
            return False
        if b"\0" in text:
            self.binary += 1
            return False
        return bool(text.strip())


def _is_wanted(name: str, only: Sequence[str]) -> bool:
    hidden = name.startswith((".", "__pycache__")) or name in _IGNORED
    return not hidden and (not only or name in only)


def file_tools(workspace: Workspace) -> list[BaseTool]:
    """The tools list_files, read_file and search_text over a workspace."""

    def list_files(after: str = "") -> str:
        """List the files in order, ten at a time, with their lines.

        Args:
            after: path of the file after which the list goes on; empty: from the first.
        """
        files = workspace.files
        if after and after not in files:
            raise ToolException(f"Error: there is no file {after!r}; leave `after` empty to start.")
        start = files.index(after) + 1 if after else 0
        part = files[start : start + LISTED]
        if not part:
            return f"No files after {after}: it is the last of {len(files)}."
        total = sum(len(workspace.lines(path)) for path in files)
        rows = [
            f"{number}. {path} ({len(workspace.lines(path))} lines)"
            for number, path in enumerate(part, start + 1)
        ]
        head = f"[Files {start + 1} to {start + len(part)} of {len(files)}, {total:,} lines in all]"
        return "\n".join([head, *rows])

    def read_file(path: str, start: int = 1) -> str:
        """Read one page of a file; its first line says where it stands and whether there is more.

        Args:
            path: as list_files gives it.
            start: number of the first line to read, from 1.
        """
        lines = workspace.lines(path)
        if not 1 <= start <= max(1, len(lines)):
            raise ToolException(f"Error: {path} has lines 1 to {len(lines)}, not {start}.")
        page = _page(lines[start - 1 :])
        stop = start - 1 + len(page)
        number, total = workspace.files.index(path) + 1, len(workspace.files)
        more = f"; go on with start={stop + 1}" if stop < len(lines) else ""
        head = f"[File {number} of {total}: {path}, lines {start} to {stop} of {len(lines)}{more}]"
        return "\n".join([head, *page])

    def search_text(text: str) -> str:
        """Find the lines of all files that contain a text, upper and lower case as given.

        Args:
            text: what to look for.
        """
        if not text.strip():
            raise ToolException("Error: give a text to search for.")
        hits = [
            (path, f"{path}:{number}: {_shortened(line.strip())}")
            for path in workspace.files
            for number, line in enumerate(workspace.lines(path), 1)
            if text in line
        ]
        files = list(dict.fromkeys(path for path, _ in hits))
        head = f"{text!r} stands in {len(hits)} lines of {len(files)} files: {', '.join(files)}"
        return "\n".join([head, *(hit for _, hit in hits[:HITS])])

    return [
        StructuredTool.from_function(function, parse_docstring=True, handle_tool_error=True)
        for function in (list_files, read_file, search_text)
    ]


def _page(lines: Sequence[str]) -> list[str]:
    """The first lines, as many as fit one page; at least one."""
    page: list[str] = []
    room = PAGE_CHARS
    for line in map(_shortened, lines[:PAGE_LINES]):
        room -= len(line) + 1
        if page and room < 0:
            break
        page.append(line)
    return page


def _shortened(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} [cut]"
