"""What a user's type checker says of the public surface: nothing, by mypy and by pyright.

`typing/uses.py` uses every public name as a user would, and asserts what has to be inferred.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import langgraph_compaction

ROOT = Path(__file__).parents[2]
USES = ROOT / "tests" / "contracts" / "typing" / "uses.py"
ERRORS = {name for name in langgraph_compaction.__all__ if name.endswith("Error")} - {
    "CompactionError"
}
NO_USE = ERRORS | {"TriggerCheck", "merge_messages", "merge_settings"}
"""Public names that a user's code seldom spells."""


WRONG = """
from langgraph_compaction import CompactionMiddleware as _
from langgraph_compaction import CompactionNode, model_view, request_compaction
from langgraph_compaction.middleware import CompactionMiddleware

view: int = model_view({})
request_compaction(instructions=7)
CompactionNode("gpt-5-mini", contextwindow=8_000)
CompactionNode("gpt-5-mini", context_window="8_000")
CompactionNode("gpt-5-mini", digest="chains")
CompactionNode("gpt-5-mini", hooks=print)
CompactionMiddleware("gpt-5-mini", contextwindow=8_000)
CompactionMiddleware("gpt-5-mini", keep_min=3)
CompactionMiddleware("gpt-5-mini", min_keep="six")
CompactionMiddleware("gpt-5-mini", tools=7)
CompactionMiddleware("gpt-5-mini", messages_key="chat")
"""
"""Each statement but the imports of what is there is an error; a line each."""
FAULTS = [2, *range(6, 17)]


def test_mypy_says_nothing_but_of_wrong_uses(tmp_path: Path) -> None:
    """Without `py.typed` it would take all of the package for Any, and see no wrong use."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    done = subprocess.run(  # with the cache that `make check` has filled
        [sys.executable, "-m", "mypy", "--strict", USES, wrong],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.findall(r"^(.*?):(\d+): error", done.stdout, re.MULTILINE)
    assert {Path(name).name for name, _ in found} == {"wrong.py"}, done.stdout + done.stderr
    assert sorted({int(line) for _, line in found}) == FAULTS, done.stdout + done.stderr


def pyright(checked: Path, folder: Path) -> dict[str, Any]:
    """What pyright says of a file, as JSON."""
    config = folder / "pyrightconfig.json"
    told = {"include": [str(checked)], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    config.write_text(json.dumps(told))
    options = ["-p", config, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_pyright_says_nothing(tmp_path: Path) -> None:
    found = pyright(USES, tmp_path)
    assert found["summary"]["filesAnalyzed"] == 1
    assert found["generalDiagnostics"] == []


def test_pyright_finds_the_wrong_uses(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    found = pyright(wrong, tmp_path)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    assert sorted(lines) == FAULTS, found


def test_every_public_name_is_used() -> None:
    tree = ast.parse(USES.read_text("utf-8"))
    used = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "langgraph_compaction"
        for alias in node.names
    }
    assert set(langgraph_compaction.__all__) - used <= NO_USE
