"""The public surface: exactly these names, each with a docstring that tells of every parameter.

A name that is added or taken away is a change for users: it belongs into this list, into the
reference and into the changelog at once.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from typing_extensions import is_typeddict

import langgraph_compaction
from langgraph_compaction import delta, middleware, presets, record

NAMES = [
    "BudgetError",
    "CascadeExhaustedError",
    "CompactionError",
    "CompactionNode",
    "CompactionRecord",
    "CompactionSettings",
    "CompactionState",
    "ConfigurationError",
    "DigestSegment",
    "Explanation",
    "ExtractiveSummarizer",
    "Measurement",
    "MissingChannelError",
    "ModelTier",
    "RecordError",
    "RecordVersionError",
    "SettingValues",
    "TriggerCheck",
    "compact_conversation",
    "create_compact_tool",
    "create_recall_tool",
    "edit_digest",
    "forget",
    "load_settings",
    "merge_compaction",
    "merge_messages",
    "merge_settings",
    "model_view",
    "overflow_handler",
    "pin",
    "presets",
    "request_compaction",
    "restore",
    "with_overflow_recovery",
]
MIDDLEWARE_NAMES = ["CompactionAgentState", "CompactionMiddleware"]
PRESET_NAMES = ["MANNING", "PATTERN", "STAGEWISE", "STAGEWISE_CHAT", "WEBWRIGHT", "Preset"]
DELTA_NAMES = ["DeltaCompactionState", "merge_compaction_writes", "merge_message_writes"]

PUBLIC = {
    **{name: getattr(langgraph_compaction, name) for name in NAMES if name != "presets"},
    **{name: getattr(middleware, name) for name in MIDDLEWARE_NAMES},
    **{name: getattr(delta, name) for name in DELTA_NAMES},
}
# Reducers take what LangGraph hands them; their names say which is which.
BY_NAME = {"merge_settings": {"current", "update"}}


def parameters(thing: Any) -> set[str]:
    """The parameters of a call of ``thing``."""
    if isinstance(thing, BaseTool):
        return set(thing.args)
    if is_error(thing) and "__init__" not in vars(thing):
        return set()  # the message, as of every error
    return set(inspect.signature(thing).parameters) - {"self", "_", "message"}


def is_error(thing: Any) -> bool:
    """Whether ``thing`` is a class of errors."""
    return isinstance(thing, type) and issubclass(thing, Exception)


def described(docstring: str) -> set[str]:
    """The names that a docstring describes: entries of its lists, names in backquotes."""
    entries = re.findall(r"^\s*(\w+): \S", docstring, re.MULTILINE)
    return {*entries, *re.findall(r"`(\w+)", docstring)}


def undescribed(name: str, thing: Any) -> set[str]:
    """The parameters of which the docstring of ``thing`` says nothing."""
    text = thing.description if isinstance(thing, BaseTool) else inspect.getdoc(thing)
    return parameters(thing) - described(text or "") - BY_NAME.get(name, set())


def methods() -> Iterator[tuple[str, Any]]:
    """The methods of the public classes; the middleware's are LangChain's, which documents them."""
    for name, thing in PUBLIC.items():
        if isinstance(thing, type) and name != "CompactionMiddleware":
            for method, found in vars(thing).items():
                if not method.startswith("_") and inspect.isfunction(found):
                    yield f"{name}.{method}", found


METHODS = dict(methods())


def test_the_public_names_are_exactly_these() -> None:
    assert langgraph_compaction.__all__ == NAMES
    assert middleware.__all__ == MIDDLEWARE_NAMES
    assert delta.__all__ == DELTA_NAMES
    assert presets.__all__ == PRESET_NAMES


def test_no_other_name_can_be_taken_for_public() -> None:
    modules = {
        name
        for name, value in vars(langgraph_compaction).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert modules - {"TYPE_CHECKING"} == set(NAMES) - {"presets"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_has_a_docstring_of_its_own(name: str) -> None:
    text = vars(PUBLIC[name])["__doc__"] if isinstance(PUBLIC[name], type) else PUBLIC[name].__doc__
    assert text
    # What dataclasses make up where nothing was written.
    assert not text.startswith(f"{name}(")


@pytest.mark.parametrize("name", [n for n in PUBLIC if not is_typeddict(PUBLIC[n])])
def test_every_parameter_is_described(name: str) -> None:
    assert undescribed(name, PUBLIC[name]) == set()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_tells_of_its_parameters(name: str) -> None:
    text = inspect.getdoc(METHODS[name]) or ""
    untold = parameters(METHODS[name]) - set(re.findall(r"\w+", text))
    # "see `invoke`" sends the reader on to a method that tells of them.
    assert text
    assert untold == set() or "see `" in text


def bare_fields(source: str) -> dict[str, list[str]]:
    """Per TypedDict of a source text, its fields that no text follows."""
    shapes = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and "TypedDict" in map(ast.unparse, node.bases)
    ]
    bare: dict[str, list[str]] = {}
    for cls in shapes:
        bare[cls.name] = []
        for field, after in pairwise([*cls.body, ast.Pass()]):
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and not told:
                bare[cls.name].append(ast.unparse(field.target))
    return bare


def test_every_field_of_the_record_has_its_text() -> None:
    found = bare_fields(inspect.getsource(record))
    shapes = ("Clearing", "CompactionRecord", "DigestSegment", "Failures", "Overflow", "Render")
    assert found == {name: [] for name in shapes}
    assert bare_fields("class A(TypedDict):\n    b: int\n    c: int\n    'Text.'\n") == {"A": ["b"]}


def test_a_parameter_that_is_not_described_would_be_found() -> None:
    def function(first: int, second: int) -> None:
        """Do something with ``first``."""

    assert undescribed("function", function) == {"second"}
