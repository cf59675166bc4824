"""What a thread of 500 steps costs, by when it is compacted and by how much stays.

Each step is a call of the agent and its result, 1,300 tokens on average, in a window of 128,000;
every 25 steps the user says something. The provider caches prefixes: a token read from the cache
costs 0.1 of an uncached one, one written to it 1.25, one of output 5. The summariser is the agent's
own model and caches nothing. The fixed policies are a sweep; the last ones weigh the costs. Run:

    python -m tests.benchmarks.cost
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction import CompactionNode, merge_compaction
from langgraph_compaction.plan.counting import token_counter
from tests.benchmarks.clearing.pricing import OUTPUT, READ, SUMMARISER_INPUT, WRITE, Bill
from tests.benchmarks.endless import Summariser
from tests.benchmarks.survival import filler
from tests.benchmarks.survival.tables import table

WINDOW = 128_000
STEPS = 500
USER_EVERY = 25
RESULT_CHARS = 4_800
"""Mean length of a result."""
PRICES = {
    "input": SUMMARISER_INPUT,
    "cache_read": READ,
    "cache_write": WRITE,
    "output": OUTPUT,
}
BASE = "80%, 20 messages stay"
TAILS: dict[str, Any] = {"10": ("messages", 10), "20": ("messages", 20)}
COLUMNS = (
    "policy|agent's input|of the first|with the summaries|of the first|cached|folds|clearings"
    "|largest view"
)


def policies() -> dict[str, dict[str, Any]]:
    """Settings by name: what is compared with, the defaults, a sweep, the trigger by costs."""
    found: dict[str, dict[str, Any]] = {
        BASE: {"trigger": ("fraction", 0.8), "keep": TAILS["20"], "clear": False},
        "the defaults": {},
        "the defaults, clear=False": {"clear": False},
    }
    for count, keep in TAILS.items():
        for thousand in (30, 40, 50, 60, 80):
            fixed = {"trigger": ("tokens", thousand * 1_000), "keep": keep, "target": None}
            found[f"{thousand},000, {count} messages stay"] = fixed
            found[f"{thousand},000, {count} messages stay, clear=False"] = fixed | {"clear": False}
    for clear in ("auto", False):
        told = "" if clear == "auto" else ", clear=False"
        weighed = {"trigger": ("cost", PRICES), "clear": clear}
        found[f"cost{told}"] = weighed
        for count, keep in TAILS.items():
            found[f"cost, {count} messages stay{told}"] = weighed | {"keep": keep}
    return found


def arriving(steps: int) -> list[list[BaseMessage]]:
    """The messages of each step."""
    rng = random.Random(5)
    found: list[list[BaseMessage]] = []
    for step in range(steps):
        new: list[BaseMessage] = []
        if step % USER_EVERY == 0:
            new.append(HumanMessage(" ".join(filler.sentences(rng, 2, 4)), id=f"h{step}"))
        call = {"name": "read_file", "args": {"path": f"part/{step}.py"}, "id": f"c{step}"}
        said = " ".join(filler.sentences(rng, 2, 4))
        new.append(AIMessage(said, tool_calls=[call], id=f"a{step}"))
        lines, length = [""], rng.uniform(0.2, 1.8) * RESULT_CHARS
        while sum(map(len, lines)) < length:
            lines.append(f"{filler.sentence(rng)} ({rng.randrange(10**6)})\n")
        text = "".join(lines)
        new.append(ToolMessage(text, tool_call_id=f"c{step}", name="read_file", id=f"t{step}"))
        found.append(new)
    return found


class BilledSummariser(Summariser):
    """Writes what it is asked for, and puts it on the bill."""

    def __init__(self, bill: Bill) -> None:
        super().__init__()
        self._bill = bill

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        answer = super().__call__(messages)
        self._bill.summary(messages, answer)
        return answer


def run(steps: Sequence[list[BaseMessage]], **settings: Any) -> tuple[Bill, list[str], int]:
    """A thread under these settings: its bill, what was done, and its largest view in tokens."""
    bill, done, largest = Bill(token_counter("estimate")), list[str](), 0

    def hook(event: dict[str, Any]) -> None:
        if event["type"] != "compaction.completed" or event["first_index"] is not None:
            done.append(event["type"].removeprefix("compaction."))

    node = CompactionNode(
        BilledSummariser(bill),
        token_counter=bill.counter,
        context_window=WINDOW,
        hook=hook,
        **settings,
    )
    system = SystemMessage("You are an agent that reads code. " * 200, id="system")
    state: dict[str, Any] = {"messages": [system], "compaction": {}}
    for new in steps:
        update = node.invoke(state)
        if update:
            state["compaction"] = merge_compaction(state["compaction"], update["compaction"])
        largest = max(largest, bill.call(node.view(state)))
        state["messages"] += new
    return bill, done, largest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cost")
    parser.add_argument("--steps", type=int, default=STEPS)
    steps = arriving(parser.parse_args().steps)
    rows, base = list[list[str]](), None
    for name, settings in policies().items():
        bill, done, largest = run(steps, **settings)
        own, whole = bill.agent, bill.agent + bill.summariser
        base = base or (own, whole)
        rows.append(
            [
                name,
                f"{own:,.0f}",
                f"{own / base[0]:.2f}",
                f"{whole:,.0f}",
                f"{whole / base[1]:.2f}",
                f"{bill.cached / bill.shown:.1%}",
                str(done.count("completed")),
                str(done.count("cleared")),
                f"{largest:,}",
            ]
        )
    print(table(COLUMNS.split("|"), rows))


if __name__ == "__main__":
    main()
