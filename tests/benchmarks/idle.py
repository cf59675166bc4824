"""What a visit costs when nothing is to be done, as the thread grows.

A thread of 100 to 100,000 messages of which all but the newest 40 are covered by a digest: the
usual state of a long run. A visit then has to cost the same however long the thread is.

And a thread of which nothing is covered and old results are cleared, beside the same one without
clearing: what a result weighs must make no difference. Run:

    python -m tests.benchmarks.idle
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode

SIZES = (100, 1_000, 10_000, 100_000)
TAIL = 40
"""Messages that are not covered yet."""
REPEATS = 51
UNCOVERED = 10_000
"""Messages of the thread of which nothing is covered."""
LINES = (20, 200, 1_000)
"""Pairs of lines of each of its results, some 30 characters each."""


def transcript(length: int, lines: int = 20) -> list[BaseMessage]:
    """A task, then calls and results, with ids."""
    messages: list[BaseMessage] = [HumanMessage("Read all files and report.", id="m0")]
    while len(messages) < length:
        number = len(messages)
        call = {"name": "read_file", "args": {"path": f"src/{number}.py"}, "id": f"c{number}"}
        messages.append(AIMessage(f"Reading file {number}.", tool_calls=[call], id=f"m{number}"))
        text = f"def f{number}():\n    return {number}\n" * lines
        messages.append(ToolMessage(text, tool_call_id=f"c{number}", id=f"m{number + 1}"))
    return messages


def folded(length: int) -> dict[str, Any]:
    """A state whose record covers all but the newest `TAIL` messages."""
    messages = transcript(length)
    last = len(messages) - TAIL - 1
    segment = {
        "text": "# Messages\n## Goal\nRead all files.\n## State now\nReading.",
        "first_index": 0,
        "last_index": last,
        "last_id": messages[last].id,
        "level": 0,
        "tokens": 20,
        "source_tokens": 2_000,
        "model": "scripted",
    }
    record = {
        "version": 1,
        "revision": 1,
        "segments": [segment],
        "last_summarized_index": last,
        "last_summarized_id": messages[last].id,
        "next_id": messages[last + 1].id,
        "kept_ids": ["m0"],
        "kept_hints": [0],
        "boundary_hint": last + 1,
        "render": {"task": "m0"},
        "length_at_fold": len(messages),
    }
    return {"messages": messages, "compaction": record}


def with_clearing(messages: list[BaseMessage], last: int) -> dict[str, Any]:
    """A state whose record clears repeats everywhere, and all results up to index ``last``."""
    clearing = {
        "last_index": last,
        "last_id": messages[last].id if last >= 0 else None,
        "repeats_index": len(messages) - 1,
        "repeats_id": messages[-1].id,
        "min_chars": 400,
        "argument_chars": 1_000,
        "protected_tools": [],
        "pinned_ids": [],
    }
    return {"messages": messages, "compaction": {"version": 1, "clearing": clearing}}


def median_ms(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median of some runs after one that is not counted, in milliseconds."""
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times)


def compare_clearing() -> None:
    """Print what a visit costs with a clearing, as a share of what it costs without one."""
    node = CompactionNode(lambda _: "unused", context_window=10**10, trigger=("tokens", 10**9))
    print(f"\n{'characters':>15}{'visit ms':>15}{'repeats only':>15}{'half':>15}{'all but 40':>15}")
    for lines in LINES:
        messages = transcript(UNCOVERED, lines)
        plain = {"messages": messages, "compaction": {}}
        without = median_ms(lambda state=plain: node.invoke(state), 11)
        shares = ""
        for last in (-1, UNCOVERED // 2, UNCOVERED - TAIL):
            cleared = with_clearing(messages, last)
            share = median_ms(lambda state=cleared: node.invoke(state), 11) / without
            shares += f"{share:>14.2f}x"
        print(f"{len(messages[-1].text):>15,}{without:>15.1f}{shares}")


def main() -> None:
    node = CompactionNode(lambda _: "unused", context_window=128_000)
    route = node.route("agent")
    states = {size: folded(size) for size in SIZES}
    print(
        f"{'messages':>9}  {'visit ms':>9}  {'route ms':>9}  {'view ms':>9}  {'visit, of 100':>13}"
    )
    first = None
    for size, state in states.items():
        visit = median_ms(lambda state=state: node.invoke(state))
        routed = median_ms(lambda state=state: route(state))
        view = median_ms(lambda state=state: node.view(state))
        first = first or visit
        print(f"{size:>15,}{visit:>15.3f}{routed:>15.3f}{view:>15.3f}{visit / first:>14.2f}x")
    compare_clearing()


if __name__ == "__main__":
    main()
