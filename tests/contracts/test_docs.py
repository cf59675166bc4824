"""README and docs are true: their code runs and prints what they show, their links lead somewhere.

A block marked `python` runs, in order, in a module of its own per file. A block marked
`text output` holds what the block before it printed. A block marked `python notest` needs a key and
a network; it is only compiled. A document that reads DATABASE_URL gets a PostgreSQL database of its
own, and is skipped where there is none.
"""

import codeop
import io
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "examples").glob("*.md")), *DOCS]
MOST_WITHOUT_A_RUN = 4
"""Blocks in all documents that may need a key and a network."""
DATABASE = "DATABASE_URL"
"""What a document reads the address of its database from."""
FIRST_EXAMPLE = 20
"""Lines of the README's first example, at most."""
LONGEST_LINE = 120
"""Characters of a line of prose, at most; rows of tables may be longer."""

_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands behind its fence, its text, and the line it starts at."""

    info: str
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document."""
    return [
        Block(found[1].strip(), found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _BLOCK.finditer(text)
    ]


def name(document: Path) -> str:
    """A document's path from the root of the project."""
    return document.relative_to(ROOT).as_posix()


def run(document: Path, module: ModuleType) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a document in ``module``; each that shows output, with what was printed."""
    printed = ""
    for block in blocks(document.read_text("utf-8")):
        if block.info.startswith("python"):
            # Blank lines before it: a traceback then names the line of the document.
            source = "\n" * (block.line - 1) + block.text
            code = compile(source, str(document), "exec")
            if block.info == "python":
                output = io.StringIO()
                with redirect_stdout(output):
                    exec(code, vars(module))
                printed = output.getvalue()
        elif block.info == "text output":
            yield block, printed


@pytest.fixture
def own_logging() -> Iterator[None]:
    """A page may set up the package's logger; the tests after it find it as it was."""
    logger = logging.getLogger("langgraph_compaction")
    level, handlers, up = logger.level, list(logger.handlers), logger.propagate
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
    logger.propagate = up


@pytest.mark.usefixtures("own_logging")
@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_the_code_of_a_document_runs_and_prints_what_it_shows(
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    # A module, not a bare namespace: LangGraph looks annotations up by the module's name.
    module = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)
    monkeypatch.chdir(tmp_path)
    # Building a client asks for a key; no block that runs calls one.
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    if DATABASE in document.read_text("utf-8"):
        monkeypatch.setenv(DATABASE, request.getfixturevalue("postgres"))
    for block, printed in run(document, module):
        assert block.text == printed, f"{name(document)}, line {block.line}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    links = _LINK.findall(_BLOCK.sub("", document.read_text("utf-8")))
    assert [link for link in links if "://" not in link and not leads(document, link)] == []


def leads(document: Path, link: str) -> bool:
    """Whether a relative link of a document leads to a file of the project, and to a heading."""
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = _HEADING.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_lines_of_prose_are_short_enough_for_a_terminal(document: Path) -> None:
    assert long_lines(document.read_text("utf-8")) == []


def long_lines(text: str) -> list[str]:
    """The lines of prose that are too long."""
    lines = _BLOCK.sub("", text).splitlines()
    return [line for line in lines if len(line) > LONGEST_LINE and not line.startswith("|")]


def test_every_document_is_within_reach_of_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text("utf-8"))}
    assert [name(document) for document in DOCS if document not in {index, *linked}] == []
    assert "docs/index.md" in _LINK.findall((ROOT / "README.md").read_text("utf-8"))


def test_the_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    commands = _COMMAND.findall((ROOT / "README.md").read_text("utf-8"))
    assert {"demo", "test"} <= set(commands)
    assert set(commands) <= set(_TARGET.findall((ROOT / "Makefile").read_text("utf-8")))


def test_the_first_example_is_short() -> None:
    first = next(b for b in blocks((ROOT / "README.md").read_text("utf-8")) if b.info == "python")
    assert len(first.text.splitlines()) <= FIRST_EXAMPLE


def test_the_blocks_of_the_tutorial_can_be_pasted_into_a_session() -> None:
    text = (ROOT / "docs" / "tutorial" / "first-agent.md").read_text("utf-8")
    pasted = [block.text for block in blocks(text) if block.info == "python"]
    assert len(pasted) > 8
    for block in pasted:
        assert left_over(block) == []


def left_over(block: str) -> list[str]:
    """What a session still waits for the end of, when a block was pasted and Enter pressed."""
    lines: list[str] = []
    for line in [*block.splitlines(), ""]:
        lines.append(line)
        # A line of no indent behind a suite, without a blank one between them, is a SyntaxError.
        if codeop.compile_command("\n".join(lines)) is not None:
            lines = []
    return lines


def test_every_block_says_what_it_is_and_few_need_a_key() -> None:
    infos = [block.info for d in DOCUMENTS for block in blocks(d.read_text("utf-8"))]
    assert set(infos) <= {"python", "python notest", "text", "text output", "sh", "json"}
    assert infos.count("python notest") <= MOST_WITHOUT_A_RUN


def test_what_is_wrong_in_a_document_would_be_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(
        "# One `two`: three\n```python\nn = 1\nprint(n)\n```\n```text output\n2\n```\n"
        "```sh\n# no heading\n```\n```python\nprint(n + 1)\n```\n```text output\n2\n```\n",
        "utf-8",
    )
    shown = [(block.line, block.text, out) for block, out in run(document, ModuleType("document"))]
    assert shown == [(7, "2\n", "1\n"), (16, "2\n", "2\n")]
    assert anchors(document.read_text("utf-8")) == {"one-two-three"}
    assert leads(ROOT / "README.md", "docs/index.md#reference")
    assert not leads(ROOT / "README.md", "docs/index.md#nowhere")
    assert not leads(ROOT / "README.md", "docs/nowhere.md")
    assert left_over("n = (\n") == ["n = (", ""]
    wide = "w " * 61
    assert long_lines(f"{wide}\n| {wide} |\n```text\n{wide}\n```\nshort") == [wide]
    with pytest.raises(SyntaxError):
        left_over("for n in []:\n    pass\nn = 1\n")
    document.write_text("```python notest\nn = = 1\n```\n", "utf-8")
    with pytest.raises(SyntaxError):
        list(run(document, ModuleType("document")))
