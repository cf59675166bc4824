"""What a user's type checker says of the public surface: nothing, by mypy and by pyright.

`typing/uses.py` uses every public name as a user would, and asserts what has to be inferred.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import langgraph_compaction

ROOT = Path(__file__).parents[2]
USES = ROOT / "tests" / "contracts" / "typing" / "uses.py"
ERRORS = {name for name in langgraph_compaction.__all__ if name.endswith("Error")} - {
    "CompactionError"
}
NO_USE = ERRORS | {"TriggerCheck", "merge_messages", "merge_settings"}
"""Public names that a user's code seldom spells."""


def test_mypy_says_nothing_but_of_a_wrong_use(tmp_path: Path) -> None:
    """Without `py.typed` it would take all of the package for Any, and see no wrong use."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from langgraph_compaction import model_view, request_compaction\n"
        "view: int = model_view({})\n"
        "request_compaction(instructions=7)\n"
    )
    done = subprocess.run(  # with the cache that `make check` has filled
        [sys.executable, "-m", "mypy", "--strict", USES, wrong],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [line.partition("wrong.py:")[2][:2] for line in done.stdout.splitlines()[:-1]]
    assert found == ["2:", "3:"], done.stdout + done.stderr


def test_pyright_says_nothing(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    told = {"include": [str(USES)], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    config.write_text(json.dumps(told))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "-p", config, "--pythonpath", sys.executable],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "0 errors, 0 warnings, 0 notes" in done.stdout, done.stdout + done.stderr


def test_every_public_name_is_used() -> None:
    tree = ast.parse(USES.read_text("utf-8"))
    used = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "langgraph_compaction"
        for alias in node.names
    }
    assert set(langgraph_compaction.__all__) - used <= NO_USE
