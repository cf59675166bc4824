"""What the tests of the bundled agent share: its modules, a small folder, a look at its thread."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_compaction import ExtractiveSummarizer

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "research_agent.py"
# The examples are programs, not a package: they find one another in their own folder.
sys.path.insert(0, str(PROGRAM.parent))
offline_model = importlib.import_module("offline_model")
research_agent = importlib.import_module("research_agent")
survey = importlib.import_module("survey")
tools = importlib.import_module("tools")

FILES = 14


def write_small(folder: Path) -> Path:
    """`FILES` files with a constant each, together several windows of 8,000 tokens."""
    for number in range(1, FILES + 1):
        filler = [f"# line {line} of module {number}: nothing to see" for line in range(150)]
        filler[40] = f"LIMIT_{number:02} = {number * 7}"
        (folder / f"module_{number:02}.py").write_text("\n".join(filler))
    return folder


def command(folder: Path, db: Path, *options: str) -> list[str]:
    """Options for an offline survey of a small folder."""
    return ["--offline", "--folder", str(folder), "--window", "8000", "--db", str(db), *options]


def thread(db: Path, *, history: bool = False) -> dict[str, Any]:
    """The state of the thread in a database file, and its checkpoint's id.

    With ``history`` also what the records of all its checkpoints say was folded twice.
    """
    with SqliteSaver.from_conn_string(str(db)) as saver:
        graph, _ = survey.build(
            offline_model.OfflineModel(),
            ExtractiveSummarizer(),
            tools.Workspace(ROOT, ["pyproject.toml"]),
            window=16_000,
            checkpointer=saver,
        )
        config = {"configurable": {"thread_id": "survey"}}
        newest = graph.get_state(config)
        state = {**newest.values, "id": newest.config["configurable"]["checkpoint_id"]}
        if history:
            ledger = survey.Ledger({})
            for snapshot in reversed(list(graph.get_state_history(config))):
                ledger.take(snapshot.values.get("compaction", {}))
            state["twice"] = ledger.twice()
        return state
