"""Settings from a file, changed in one place for a run, and in a live thread.

python examples/settings_file.py
python examples/settings_file.py --file my.yaml
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from inspector import WINDOW, agent_loop, hottest
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    ExtractiveSummarizer,
    load_settings,
)

FILE = Path(__file__).with_name("compaction.yaml")


def main(argv: list[str] | None = None) -> int:
    """Inspect twenty pumps by the file, and twenty more with another trigger for this thread."""
    parser = argparse.ArgumentParser(description="An agent whose compaction is set in a file.")
    parser.add_argument("--file", type=Path, default=FILE, help="default: %(default)s")
    options = parser.parse_args(argv)
    try:
        settings = load_settings(options.file, {"min_fold_tokens": 200})
        compact = CompactionNode(ExtractiveSummarizer(), context_window=WINDOW, settings=settings)
    except ConfigurationError as error:
        print(error)
        return 2
    print(f"trigger {compact.settings.trigger}, digest {compact.settings.digest!r}")

    graph = agent_loop(compact).compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "pumps"}, "recursion_limit": 1_000}
    asked = "Inspect the pumps {} to {} and name the hottest. Never switch one off."
    right = True
    for first, last, changed in ((1, 20, {}), (21, 40, {"trigger": ["steps", 5]})):
        update: Any = {"messages": [("user", asked.format(first, last))]}
        if changed:  # lasts from here on, in this thread alone
            update["compaction_settings"] = changed
        state = graph.invoke(update, thread)
        record = state["compaction"]
        print(
            f"{state['messages'][-1].text} (covered up to message "
            f"{record.get('last_summarized_index', -1)} of {len(state['messages'])})"
        )
        right = right and f"pump {hottest(first, last)}," in state["messages"][-1].text
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
