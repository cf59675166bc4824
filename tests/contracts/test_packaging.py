"""What someone gets who installs the package: its version, its types, its four requirements."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import langgraph_compaction

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Modules that come with the extras, the tests and the demo only.
OPTIONAL = (
    "bm25s",
    "bpe_openai",
    "hypothesis",
    "langchain",
    "langchain_anthropic",
    "langchain_google_genai",
    "langgraph.checkpoint.postgres",
    "langgraph.checkpoint.sqlite",
    "langgraph.store.postgres",
    "langgraph.store.sqlite",
    "numpy",
    "pgserver",
    "psycopg",
    "pytest",
    "rich",
    "yaml",
)


def run(*arguments: str) -> str:
    """What a fresh interpreter prints, started at the root of the project."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def names(requirements: list[str]) -> list[str]:
    """The distributions that requirement lines name."""
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requirements]


def test_the_version_is_the_same_everywhere() -> None:
    assert langgraph_compaction.__version__ == PROJECT["version"]


def test_the_requirements_are_these_four() -> None:
    assert names(PROJECT["dependencies"]) == [
        "langgraph",
        "langchain-core",
        "langchain-openai",
        "tiktoken",
    ]


def test_every_supported_python_is_declared() -> None:
    supported = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert supported <= set(PROJECT["classifiers"])


def test_the_wheel_has_the_types_the_licence_and_nothing_but_the_package(tmp_path: Path) -> None:
    built = run(
        "-c",
        "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))",
        str(tmp_path),
    )
    wheel = zipfile.ZipFile(tmp_path / built.split()[-1])
    files = set(wheel.namelist())
    information = f"langgraph_compaction-{PROJECT['version']}.dist-info"
    assert "langgraph_compaction/py.typed" in files
    assert f"{information}/licenses/LICENSE" in files
    assert {name.partition("/")[0] for name in files} == {"langgraph_compaction", information}


def test_importing_the_package_loads_no_extra() -> None:
    # PyYAML, for one, comes with langchain-core; what the requirements load is not our doing.
    loaded = json.loads(
        run(
            "-c",
            "import json, sys, langgraph.graph, langgraph.prebuilt, langchain_openai, tiktoken;"
            "before = set(sys.modules); import langgraph_compaction;"
            "print(json.dumps(sorted(set(sys.modules) - before)))",
        )
    )
    assert "langgraph_compaction" in loaded
    assert [name for name in loaded if name in OPTIONAL] == []
