"""A fold beside the agent: it does not wait for a slow summariser.

python examples/background.py
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from inspector import agent_loop, hottest, readings
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import CompactionNode

PUMPS = 80
WINDOW = 16_000
SUMMARY_SECONDS, AGENT_SECONDS = 0.5, 0.04
"""What a summary and a step of the agent take; a real summariser may take twenty seconds."""


def slow(messages: Sequence[BaseMessage]) -> str:
    """A summariser that takes its time, and notes every reading in what it is given."""
    time.sleep(SUMMARY_SECONDS)
    noted = [f"- Pump {n} runs at {degrees} degrees." for n, degrees in readings(messages).items()]
    return "\n".join(
        [
            "## Goal\nInspect pumps and name the hottest.\n## Findings",
            *noted,
            "## State now\nThese were read.\n## Next step\nRead the next pump.",
        ]
    )


def longest_step(*, background: bool) -> tuple[float, str]:
    """Seconds of the agent's longest step, and its answer."""
    compact = CompactionNode(
        slow, context_window=WINDOW, trigger=("fraction", 0.4), background=background
    )
    graph = agent_loop(compact, AGENT_SECONDS).compile(checkpointer=InMemorySaver())

    thread: Any = {"configurable": {"thread_id": "pumps"}, "recursion_limit": 1_000}
    asked: Any = {"messages": [("user", f"Inspect the pumps 1 to {PUMPS} and name the hottest.")]}
    seen = [time.perf_counter()]
    updates = graph.stream(asked, thread, stream_mode="updates")
    seen += (time.perf_counter() for _ in updates)
    steps = [after - before for before, after in pairwise(seen)]
    return max(steps), graph.get_state(thread).values["messages"][-1].text


def main() -> int:
    """The longest step with a fold in its way, and with one beside it."""
    right = True
    print(f"A step takes {AGENT_SECONDS} s, a summary {SUMMARY_SECONDS} s.")
    for background in (False, True):
        seconds, answer = longest_step(background=background)
        print(f"background={background}: longest step {seconds:.2f} s. {answer}")
        right = right and f"pump {hottest(1, PUMPS)}," in answer
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
