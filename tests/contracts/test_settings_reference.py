"""The reference has every setting, parameter, field, event, error and name, and no other."""

import ast
import inspect
import json
import re
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

import langgraph_compaction
from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionSettings,
    DigestSegment,
    Explanation,
    ExtractiveSummarizer,
    Measurement,
    ModelTier,
    TriggerCheck,
    errors,
    load_settings,
    middleware,
    presets,
)
from langgraph_compaction.record import Clearing, Failures, Overflow, Render

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = Path(langgraph_compaction.__path__[0])
LEVELS = "code, file, thread, run"
"""Where a setting of plain JSON values may stand, weakest first."""


def rows(page: str, heading: str = "", header: str = "name") -> dict[str, list[str]]:
    """The rows of the table with that header under that heading, by the name in the first cell."""
    text = (REFERENCE / page).read_text("utf-8")
    section = text[text.index(f"## {heading}") if heading else 0 :]
    table = section[section.index(f"| {header} |") :].partition("\n\n")[0].splitlines()[2:]
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    return {cells[0].strip("`"): cells[1:] for cells in found}


def plain(value: Any) -> Any:
    """Lists and tuples alike as lists."""
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_every_setting_is_there_in_order_with_its_default() -> None:
    table = rows("settings.md")
    assert list(table) == [field.name for field in fields(CompactionSettings)]
    shown = {name: plain(ast.literal_eval(cells[2].strip("`"))) for name, cells in table.items()}
    assert shown == {field.name: plain(field.default) for field in fields(CompactionSettings)}
    assert all(cells[0] and cells[4] for cells in table.values())


def test_a_docstring_says_of_a_setting_what_the_table_begins_with() -> None:
    """One text for each: the table goes on where a docstring would be too long."""
    _, _, told = (inspect.getdoc(CompactionSettings) or "").partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", told, re.MULTILINE)
    table = {name: words(cells[4]) for name, cells in rows("settings.md").items()}
    assert [name for name, _ in entries] == list(table)
    assert [name for name, text in entries if not table[name].startswith(words(text))] == []


def words(text: str) -> str:
    """A text without links, marks of code and line breaks, and in small letters."""
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    return " ".join(bare.split()).lower()


def test_every_setting_names_the_levels_that_take_it(tmp_path: Path) -> None:
    levels = {name: cells[3] for name, cells in rows("settings.md").items()}
    assert {told for name, told in levels.items() if name != "pinned"} == {LEVELS}
    assert levels["pinned"] == f"{LEVELS}; a callable: code"
    defaults = {field.name: field.default for field in fields(CompactionSettings)}
    values = json.loads(json.dumps(defaults))
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(values), "utf-8")
    assert load_settings(path) == values
    events: list[dict[str, Any]] = []
    # A trigger in tokens: with the default one no level could take the window away.
    own = {"trigger": ("tokens", 4_000), "context_window": 8_000}
    node = CompactionNode(ExtractiveSummarizer(), hook=events.append, **own)
    state = {"messages": [HumanMessage("Hello.")], "compaction": {}}
    for name, value in values.items():
        node.invoke({**state, "compaction_settings": {name: value}})
        node.invoke(state, {"configurable": {"compaction_settings": {name: value}}})
    assert events == []
    node.invoke(state, {"configurable": {"compaction_settings": {"min_keep": "six"}}})
    assert [event["type"] for event in events] == ["compaction.failed"]


def test_every_number_among_the_settings_has_its_unit() -> None:
    units = {name: cells[1] for name, cells in rows("settings.md").items()}
    numbers = [
        field.name
        for field in fields(CompactionSettings)
        if re.search(r"\bint\b|\bfloat\b", str(field.type))
    ]
    assert len(numbers) > 10
    assert [name for name in numbers if not units[name]] == []


def test_every_other_parameter_of_the_node_is_there_in_order_with_its_default() -> None:
    table = rows("settings.md", "Other parameters of the node")
    signature = list(inspect.signature(CompactionNode).parameters.values())[:-1]
    assert list(table) == [parameter.name for parameter in signature]
    for parameter in signature[1:]:
        assert ast.literal_eval(table[parameter.name][1].strip("`")) == parameter.default


def test_every_field_of_a_tier_is_there_in_order_with_its_default_and_unit() -> None:
    table = rows("settings.md", "`ModelTier`")
    assert list(table) == [field.name for field in fields(ModelTier)]
    for field in fields(ModelTier)[1:]:
        assert ast.literal_eval(table[field.name][2].strip("`")) == field.default
    assert [name for name, cells in table.items() if not cells[1]] == ["model", "temperature"]


def test_every_fixed_number_is_that_of_the_source() -> None:
    table = rows("settings.md", "What is fixed", "constant")
    assert len(table) > 5
    for name, cells in table.items():
        module, _, constant = name.rpartition(".")
        value = getattr(import_module(f"langgraph_compaction.{module}"), constant)
        assert ast.literal_eval(cells[0]) == value, name


@pytest.mark.parametrize(
    ("heading", "shape"),
    [
        ("", CompactionRecord),
        ("A segment", DigestSegment),
        ("`render`", Render),
        ("`clearing`", Clearing),
        ("`failures`", Failures),
        ("`overflow`", Overflow),
    ],
)
def test_every_field_of_the_record_is_there_in_order(heading: str, shape: Any) -> None:
    assert list(rows("record.md", heading, "field")) == list(shape.__annotations__)


def test_every_error_is_there() -> None:
    assert set(rows("errors.md", header="error")) == set(errors.__all__)


def test_every_public_name_is_there() -> None:
    text = (REFERENCE / "public-names.md").read_text("utf-8")
    names = [*langgraph_compaction.__all__, *middleware.__all__, *presets.__all__]
    missing = [name for name in names if not re.search(rf"`{name}\b", text)]
    assert missing == []


def test_every_method_and_figure_of_the_node_is_there() -> None:
    text = (REFERENCE / "public-names.md").read_text("utf-8")
    methods = [name for name in vars(CompactionNode) if not name.startswith("_")]
    methods += vars(CompactionNode(ExtractiveSummarizer(), context_window=8_000))
    methods = [name for name in methods if not name.startswith("_")]
    figures = [
        field.name for told in (Measurement, Explanation, TriggerCheck) for field in fields(told)
    ]
    figures += ["utilisation", "reached"]
    assert [name for name in [*methods, *figures] if f"`{name}" not in text] == []
    assert all(field.default is MISSING for field in fields(Measurement))
