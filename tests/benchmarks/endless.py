"""A thread without end: how large the digest gets, and how many summary calls it takes.

    python -m tests.benchmarks.endless                   # 5,000 steps: chain, rolling, no model
    python -m tests.benchmarks.endless --steps 1000
    python -m tests.benchmarks.endless --compare         # 3,000 steps: what settings cost

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
VARIANTS: dict[str, dict[str, Any]] = {
    "as above": {},
    'digest="rolling"': {"digest": "rolling"},
    "clear=True": {"clear": True},
    "result_chars=500": {"result_chars": 500},
    'keep=("tokens", 2_000)': {"keep": ("tokens", 2_000)},
    'keep=("tokens", 12_000)': {"keep": ("tokens", 12_000)},
    'trigger=("fraction", 0.5)': {"trigger": ("fraction", 0.5)},
    "max_digest_tokens=6_400": {"max_digest_tokens": 6_400},
    "context_window=128_000": {"context_window": 128_000},
}
COMPARED = (1, 6, 9, 10, 11, 12)
"""Columns of a comparison."""
COLUMNS = (
    "mode|steps|digest, tokens|digest, most|segments|highest level|folds|with condensing"
    "|summary calls|calls per 1,000 steps|summary tokens in per 1,000 steps|out"
    "|view, mean|view, most after a fold|ms per visit"
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
    folds = condensed = largest = largest_view = sent = read = written = 0
    spent = 0.0

    def hook(event: dict[str, Any]) -> None:
        nonlocal folds, condensed, read, written
        read += event.get("input_tokens", 0)
        written += event.get("output_tokens", 0)
        if event["type"] == "compaction.completed":
            folds += event["first_index"] is not None
            condensed += bool(event["condensed"])

    limits: dict[str, Any] = {"context_window": WINDOW, "clear": False}  # every span is folded
    node = CompactionNode(model, token_counter=tokens, hook=hook, **(limits | settings))
    state: dict[str, Any] = {"messages": [], "compaction": {}}
    found = []
    for number, new in enumerate(steps, 1):
        state["messages"] += new
        began = time.perf_counter()
        update = node.invoke(state)
        spent += time.perf_counter() - began
        if update:
            state["compaction"] = merge_compaction(state["compaction"], update["compaction"])
        view = tokens(node.view(state))
        sent += view
        largest_view = max(largest_view, view if update else 0)
        segments = state["compaction"].get("segments", [])
        digest = sum(segment["tokens"] for segment in segments)
        largest = max(largest, digest)
        if number % 1_000 == 0 or number == len(steps):
            levels = max((segment["level"] for segment in segments), default=0)
            calls = getattr(model, "calls", 0)
            sizes = (number, digest, largest, len(segments), levels)
            each = [1_000 * total // number for total in (calls, read, written)]
            costs = (folds, condensed, calls, *each, sent // number, largest_view)
            shown = [f"{value:,}" for value in (*sizes, *costs)]
            found.append([name, *shown, f"{1_000 * spent / number:.1f}"])
    return found


def main() -> None:
    """Run all modes."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.endless")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args()
    columns = COLUMNS.split("|")
    if given.compare:
        steps = arriving(given.steps or 3_000)
        found = [run(name, Summariser(), steps, **each)[-1] for name, each in VARIANTS.items()]
        chosen = [[row[0], *(row[n] for n in COMPARED)] for row in [columns, *found]]
        print(table(["settings", *chosen[0][1:]], chosen[1:]))
        return
    steps = arriving(given.steps or 5_000)
    rows = run("chain", Summariser(), steps)
    rows += run("rolling", Summariser(), steps, digest="rolling")
    rows += run("chain, no model", ExtractiveSummarizer(), steps)
    everything = [message for new in steps for message in new]
    print(f"{len(everything):,} messages, {tokens(everything):,} tokens; window {WINDOW:,}.\n")
    print(table(columns, rows))


if __name__ == "__main__":
    main()
