"""A thread without end: how large the digest gets, and how many summary calls it takes.

    python -m tests.benchmarks.endless                   # 5,000 steps: chain, rolling, no model
    python -m tests.benchmarks.endless --steps 1000

Each step is a call of the agent with its result, some 290 tokens; every 20 steps the user says
something. The summariser writes as much as it is asked for. `CompactionNode` is visited before
every step.
"""

import argparse
import random
import re
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, ExtractiveSummarizer, merge_compaction
from tests.benchmarks.survival import filler
from tests.benchmarks.survival.counting import text_tokens, tokens
from tests.benchmarks.survival.tables import table

WINDOW = 32_000
USER_EVERY = 20
COLUMNS = (
    "mode|steps|digest, tokens|digest, most|segments|highest level|folds|with condensing"
    "|summary calls|calls per 1,000 steps|view, most after a fold|ms per visit"
)
_ASKED = re.compile(r"at most ([\d,]+) tokens")


class Summariser:
    """Fills what it is asked for with lines under the expected headings, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._rng = random.Random(7)

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        self.calls += 1
        asked = int(_ASKED.findall(str(messages[-1].content))[-1].replace(",", ""))
        text = "## Goal\n- Go through the pipeline.\n## Findings"
        end = "\n## State now\n- Under way.\n## Next step\n- Go on with the next part."
        while text_tokens(text + end) < asked - 30:
            text += f"\n- {filler.sentence(self._rng)} ({self._rng.randrange(10**6)})"
        return text + end


def arriving(steps: int) -> list[list[BaseMessage]]:
    """The messages of each step."""
    rng = random.Random(5)
    found: list[list[BaseMessage]] = []
    for step in range(steps):
        new: list[BaseMessage] = []
        if step % USER_EVERY == 0:
            new.append(HumanMessage(" ".join(filler.sentences(rng, 2, 4)), id=f"h{step}"))
        tool = rng.choice(filler.TOOLS)
        call = {"name": tool, "args": {"what": f"part {step}"}, "id": f"c{step}"}
        new.append(AIMessage(filler.sentence(rng), tool_calls=[call], id=f"a{step}"))
        output = "\n".join(filler.output(rng, may_be_long=False))
        new.append(ToolMessage(output, tool_call_id=f"c{step}", name=tool, id=f"t{step}"))
        found.append(new)
    return found


def run(
    name: str, model: Any, steps: Sequence[list[BaseMessage]], **settings: Any
) -> list[list[str]]:
    """Rows of the table, one for every thousand steps."""
    folds = condensed = largest = largest_view = 0
    spent = 0.0

    def hook(event: dict[str, Any]) -> None:
        nonlocal folds, condensed
        if event["type"] == "compaction.completed":
            folds += event["first_index"] is not None
            condensed += bool(event["condensed"])

    limits: dict[str, Any] = {"context_window": WINDOW, "clear": False}  # every span is folded
    node = CompactionNode(model, token_counter=tokens, hook=hook, **limits, **settings)
    state: dict[str, Any] = {"messages": [], "compaction": {}}
    found = []
    for number, new in enumerate(steps, 1):
        state["messages"] += new
        began = time.perf_counter()
        update = node.invoke(state)
        spent += time.perf_counter() - began
        if update:
            state["compaction"] = merge_compaction(state["compaction"], update["compaction"])
            largest_view = max(largest_view, tokens(node.view(state)))
        segments = state["compaction"].get("segments", [])
        digest = sum(segment["tokens"] for segment in segments)
        largest = max(largest, digest)
        if number % 1_000 == 0 or number == len(steps):
            levels = max((segment["level"] for segment in segments), default=0)
            calls = getattr(model, "calls", 0)
            sizes = (number, digest, largest, len(segments), levels)
            costs = (folds, condensed, calls, 1_000 * calls // number, largest_view)
            shown = [f"{value:,}" for value in (*sizes, *costs)]
            found.append([name, *shown, f"{1_000 * spent / number:.1f}"])
    return found


def main() -> None:
    """Run all modes."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.endless")
    parser.add_argument("--steps", type=int, default=5_000)
    steps = arriving(parser.parse_args().steps)
    rows = run("chain", Summariser(), steps)
    rows += run("rolling", Summariser(), steps, digest="rolling")
    rows += run("chain, no model", ExtractiveSummarizer(), steps)
    everything = [message for new in steps for message in new]
    print(f"{len(everything):,} messages, {tokens(everything):,} tokens; window {WINDOW:,}.\n")
    print(table(COLUMNS.split("|"), rows))


if __name__ == "__main__":
    main()
