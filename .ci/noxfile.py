"""The fast tests against the built wheel: every supported Python, lowest and newest requirements.

`make compat` runs all sessions, ten to fifteen minutes each, and `make compat ARGS="-s
'wheel-3.12(newest)'"` one. A Python that is not installed is skipped. What stands after `--` goes
to pytest.
"""

import shutil
import tomllib
from pathlib import Path

import nox
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = "langchain", "offline", "recall", "demo"
"""What users install. Of the tools that only the tests need, the newest do."""
NEEDS_SOURCES = {
    "tests/contracts/test_packaging.py": (
        "test_the_wheel_has_the_types_the_licence_and_nothing_but_the_package"
    ),
    "tests/integration/test_research_agent.py": (
        "test_the_survey_of_this_repository_folds_often_and_answers_from_the_folded_part"
    ),
}
"""Tests that build the wheel themselves, or read the sources."""

nox.options.default_venv_backend = "venv"


def lowest() -> list[str]:
    """Constraints for pip: every requirement of the package and its extras at its lower bound."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    found = list[str]()
    for requirement in map(Requirement, lines):
        (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
        found.append(f"{requirement.name}=={bound}")
    return found


@nox.session(python=["3.11", "3.12", "3.13"])
@nox.parametrize("versions", ["newest", "lowest"], ids=["newest", "lowest"])
def wheel(session: nox.Session, versions: str) -> None:
    """Build the wheel, install it, and run the tests where the package's sources are not."""
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder)
    folder.mkdir()
    build = ["-m", "pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    session.run("python", *build)
    (built,) = folder.glob("*.whl")
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(lowest() if versions == "lowest" else []))
    session.install("--constraint", str(constraints), f"{built}[dev]")
    session.run("python", "-m", "pip", "--quiet", "check")

    tree = folder / "tree"
    hidden = shutil.ignore_patterns(".*", "__pycache__", "site", "dist", "langgraph_compaction")
    shutil.copytree(ROOT, tree, ignore=hidden)
    session.chdir(tree)
    session.env["PYTHONPATH"] = str(tree)  # for the programs that tests start
    imported = session.run(
        "python", "-c", "import langgraph_compaction as it; print(it.__file__)", silent=True
    )
    if str(ROOT / "langgraph_compaction") in str(imported) or "site-packages" not in str(imported):
        session.error(f"the wheel is not what is tested, but {imported}")
    session.run(
        "python", "-m", "pytest", "-n", "2", "-m", "not slow and not llm", "-p", "no:cacheprovider",
        *(f"--deselect={path}::{test}" for path, test in NEEDS_SOURCES.items()), *session.posargs,
    )  # fmt: skip
