"""The page of guarantees names tests that exist, and every reported fault has one of its own.

A fault's code begins the names of its tests: `test_a1_...` in `tests/faults/test_a_....py`.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "guarantees.md"
FAULTS = ROOT / "tests" / "faults"
GROUPS = {"a": 8, "b": 4, "c": 7, "d": 10, "e": 12, "f": 10, "g": 7, "h": 4}
"""How many codes each group has."""
README = ROOT / "README.md"
CODES = [f"{group}{number}" for group, most in GROUPS.items() for number in range(1, most + 1)]

_TEST = re.compile(r"\[`(test_\w+)`\]\(([^)]+)\)")
_ROW = re.compile(r"^\| ([A-H]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_CODED = re.compile(r"test_([a-h]\d+)_")


@cache
def defined_in(file: Path) -> dict[str, str]:
    """The docstrings of a file's tests, by name."""
    found = ast.parse(file.read_text("utf-8")).body
    functions = [one for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        one.name: ast.get_docstring(one) or "" for one in functions if one.name.startswith("test_")
    }


def coded() -> dict[str, dict[str, str]]:
    """The tests of every fault by its code: docstring by name."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(FAULTS.glob("test_*.py")):
        for name, told in defined_in(file).items():
            code = _CODED.match(name)
            assert code is not None, f"{name} has no code"
            assert file.name.startswith(f"test_{code[1][0]}_"), f"{name} stands in {file.name}"
            found.setdefault(code[1], {})[name] = told
    return found


def rows() -> dict[str, tuple[list[str], list[str]]]:
    """Reports and tests of every row of the page's table, by code."""
    return {
        found[1].lower(): (
            [report.strip() for report in found[3].split(",")],
            [name for name, _ in _TEST.findall(found[4])],
        )
        for found in _ROW.finditer(PAGE.read_text("utf-8"))
    }


def test_every_test_that_the_page_names_exists() -> None:
    named = _TEST.findall(PAGE.read_text("utf-8"))
    assert len(named) > 150
    missing = [
        (name, link)
        for name, link in named
        if name not in defined_in((PAGE.parent / link).resolve())
    ]
    assert missing == []


def test_every_guarantee_names_a_test() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ") and not line.endswith("| shown by |")]
    assert len(table) > 100
    assert [line for line in table if not _TEST.search(line)] == []


@pytest.mark.parametrize("code", CODES)
def test_every_reported_fault_has_a_test(code: str) -> None:
    tests = coded()[code]
    reports, named = rows()[code]
    assert named == list(tests)
    # Each test says which report it is about, and the row names no other.
    assert [name for name, told in tests.items() if not any(one in told for one in reports)] == []
    assert [one for one in reports if not any(one in told for told in tests.values())] == []


def test_there_is_no_other_code() -> None:
    assert set(coded()) == set(rows()) == set(CODES)


def test_the_readme_says_how_many_there_are() -> None:
    assert re.findall(r"(\d+)\s+faults", README.read_text("utf-8")) == [str(len(CODES))]
