"""Imports go one way: every module knows only the layers below its own.

This is what lets a pure part be read, tested and changed without the parts that do I/O. The test
reads the source, so it also sees imports inside functions and those for typing only: they bind a
module all the same. Run alone (`python -m tests.contracts.test_layers`) it prints the faults.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

PACKAGE = "langgraph_compaction"
SOURCE = Path(import_module(PACKAGE).__path__[0])

# From the lowest to the highest. Parts of one layer do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("shapes",),
    ("record",),
    ("heads",),
    ("state",),
    ("delta",),
    ("view",),
    ("changes",),
    ("corrections",),
    ("plan", "digest"),
    ("archive",),
    ("forgetting",),
    ("setting_names",),
    ("settings",),
    ("presets",),
    ("files",),
    ("resolving",),
    ("levels",),
    ("engine",),
    ("run",),
    ("looking", "live", "given"),
    ("visiting", "arguments"),
    ("node", "recovery", "recall", "ondemand", "handoffs", "rivals", "asked"),
    ("middleware", "overflow"),
    ("__init__",),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Installed with the package: its requirements, and what these require and hand out themselves.
REQUIRED = {
    "langgraph",
    "langchain_core",
    "langchain_openai",
    "tiktoken",
    "openai",
    "pydantic",
    "typing_extensions",
    "yaml",
}


@dataclass(frozen=True)
class Extra:
    """The modules that may import an extra; a name that ends in a dot means all of a package."""

    at_top: tuple[str, ...] = ()
    in_function: tuple[str, ...] = ()


EXTRAS = {
    "langchain": Extra(at_top=("middleware",), in_function=("run.models",)),
    "bpe_openai": Extra(in_function=("plan.vocabulary",)),
    "bm25s": Extra(in_function=("recall.ranking",)),
    "langgraph.checkpoint.sqlite": Extra(),  # namespaces of packages that are not required
    "langgraph.checkpoint.postgres": Extra(),
}

# One reason to change each: files aim at 250 lines, and none may pass this.
MOST_LINES = 450


@dataclass(frozen=True)
class Import:
    """One imported name: the module that imports it, and how."""

    importer: str
    target: str
    line: int
    in_function: bool


def modules(source: Path) -> dict[str, Path]:
    """The modules by their dotted names below the package; a folder's own is `name.__init__`."""
    return {
        ".".join(path.relative_to(source).with_suffix("").parts): path
        for path in sorted(source.rglob("*.py"))
    }


def imports(importer: str, tree: ast.Module) -> Iterator[Import]:
    """Every import of a module, relative ones written out in full."""
    parents = importer.split(".")[:-1]
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, in_function = pending.pop()
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        pending.extend((child, inside) for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(importer, alias.name, node.lineno, in_function)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([PACKAGE, *above, *filter(None, [base])])
            for alias in node.names:
                yield Import(importer, f"{base}.{alias.name}", node.lineno, in_function)


def own_module(target: str, known: dict[str, Path]) -> str | None:
    """The package's module that an imported name lives in; None for a name from elsewhere."""
    root, *parts = target.split(".")
    if root != PACKAGE:
        return None
    while parts:
        for name in (".".join(parts), ".".join([*parts, "__init__"])):
            if name in known:
                return name
        parts.pop()
    return "__init__"


def layer_faults(known: dict[str, Path], found: list[Import]) -> Iterator[str]:
    """Modules that no layer has, and imports that go up or sideways."""
    for module in known:
        if module.partition(".")[0] not in RANK:
            yield f"{module}: in no layer; put it into a part that has one, or into the table"
    for item in found:
        target = own_module(item.target, known)
        if target is None:
            continue
        user, used = item.importer.partition(".")[0], target.partition(".")[0]
        if user == used or user not in RANK or used not in RANK:
            continue
        if RANK[used] >= RANK[user]:
            yield f"{item.importer}:{item.line}: {user} must not know {used}"


def may_import(item: Import, extra: Extra) -> bool:
    """Whether an extra may be imported at this place."""
    places = extra.at_top + (extra.in_function if item.in_function else ())
    return any(
        item.importer.startswith(place) if place.endswith(".") else item.importer == place
        for place in places
    )


def extra_faults(found: list[Import]) -> Iterator[str]:
    """Imports of what may not be installed, outside the modules that are prepared for it."""
    present = REQUIRED | {PACKAGE} | sys.stdlib_module_names
    for item in found:
        root = item.target.partition(".")[0]
        extra = next((name for name in EXTRAS if f"{item.target}.".startswith(f"{name}.")), None)
        if extra is None and root not in present:
            yield f"{item.importer}:{item.line}: {root} is neither required nor a known extra"
        if extra is not None and not may_import(item, EXTRAS[extra]):
            yield f"{item.importer}:{item.line}: the extra {extra} must not be imported here"


def cycle_faults(known: dict[str, Path], found: list[Import]) -> Iterator[str]:
    """Modules that import each other in a circle, within a layer."""
    graph: dict[str, set[str]] = {module: set() for module in known}
    for item in found:
        target = own_module(item.target, known)
        if target is not None and target != item.importer:
            graph[item.importer].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "circle: " + " → ".join(reversed(error.args[1]))


def size_faults(known: dict[str, Path]) -> Iterator[str]:
    """Files that are too long; beside them those that are on the way there."""
    lengths = {module: len(path.read_text("utf-8").splitlines()) for module, path in known.items()}
    if max(lengths.values(), default=0) > MOST_LINES:
        longest = sorted(((n, module) for module, n in lengths.items() if n > 300), reverse=True)
        listed = ", ".join(f"{module} {n}" for n, module in longest)
        yield f"over {MOST_LINES} lines, split by reason to change: {listed}"


def faults(source: Path = SOURCE) -> list[str]:
    """All faults of the package at `source`, in words."""
    known = modules(source)
    found = [
        item
        for module, path in known.items()
        for item in imports(module, ast.parse(path.read_text("utf-8"), str(path)))
    ]
    return [
        *layer_faults(known, found),
        *extra_faults(found),
        *cycle_faults(known, found),
        *size_faults(known),
    ]


def package(folder: Path, files: dict[str, str]) -> Path:
    """A package on disk for the checks to be tried on."""
    for name, text in files.items():
        path = folder / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder / PACKAGE


def test_the_package_keeps_the_rules() -> None:
    assert faults() == []


def test_the_layers_are_of_parts_that_exist() -> None:
    known = modules(SOURCE)
    assert {module.partition(".")[0] for module in known} == set(RANK)
    modules_named = [
        name for extra in EXTRAS.values() for name in (*extra.at_top, *extra.in_function)
    ]
    assert [name for name in modules_named if name not in known] == []


def test_an_import_from_above_is_found_however_it_is_written(tmp_path: Path) -> None:
    source = package(
        tmp_path,
        {
            "errors.py": "def f() -> None:\n    from . import state",
            "state.py": "from .view import model",
            "view/__init__.py": "import langgraph_compaction.engine",
            "view/model.py": "from ..node import CompactionNode",
            "plan/cuts.py": "from ..digest import chain",
            "digest/chain.py": "from langgraph_compaction import CompactionNode",
            "engine.py": "",
            "node.py": "",
            "__init__.py": "",
        },
    )
    assert faults(source) == [
        "digest.chain:1: digest must not know __init__",
        "errors:2: errors must not know state",
        "plan.cuts:1: plan must not know digest",
        "state:1: state must not know view",
        "view.__init__:1: view must not know engine",
        "view.model:1: view must not know node",
    ]


def test_imports_from_below_are_fine(tmp_path: Path) -> None:
    source = package(
        tmp_path,
        {
            "__init__.py": "from .node import CompactionNode",
            "errors.py": "import sys",
            "plan/__init__.py": "from .cuts import safe",
            "plan/cuts.py": "from ..errors import CompactionError\nfrom . import groups",
            "plan/groups.py": "",
            "node.py": "from langgraph_compaction.plan import safe\nfrom langgraph import graph",
            "middleware.py": "from langchain.agents import middleware\nfrom .node import Node",
            "run/models.py": "def f() -> None:\n    from langchain import chat_models",
        },
    )
    assert faults(source) == []


def test_an_extra_out_of_its_place_is_found(tmp_path: Path) -> None:
    source = package(
        tmp_path,
        {
            "settings.py": "import rich",
            "engine.py": "def f() -> None:\n    from langchain import chat_models",
            "recall.py": "from langgraph.checkpoint import sqlite",
            "plan/counting.py": "import numpy.random",
        },
    )
    assert faults(source) == [
        "engine:2: the extra langchain must not be imported here",
        "plan.counting:1: numpy is neither required nor a known extra",
        "recall:1: the extra langgraph.checkpoint.sqlite must not be imported here",
        "settings:1: rich is neither required nor a known extra",
    ]


def test_a_module_without_a_layer_a_circle_and_a_long_file_are_found(tmp_path: Path) -> None:
    source = package(
        tmp_path,
        {
            "helpers.py": "",
            "run/archive.py": "from .drivers import run",
            "run/drivers.py": "from .archive import store",
            "node.py": "pass\n" * (MOST_LINES + 1),
            "state.py": "pass\n" * 301,
        },
    )
    unknown, circle, size = faults(source)
    assert unknown.startswith("helpers: in no layer")
    assert circle.startswith("circle: run.")
    assert size.endswith("node 451, state 301")


if __name__ == "__main__":
    found = faults()
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
