"""What a visit costs when nothing is to be done, as the thread grows.

A thread of 100 to 100,000 messages of which all but the newest 40 are covered by a digest: the
usual state of a long run. A visit then has to cost the same however long the thread is. Run:

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


def transcript(length: int) -> list[BaseMessage]:
    """A task, then calls and results, with ids."""
    messages: list[BaseMessage] = [HumanMessage("Read all files and report.", id="m0")]
    while len(messages) < length:
        number = len(messages)
        call = {"name": "read_file", "args": {"path": f"src/{number}.py"}, "id": f"c{number}"}
        messages.append(AIMessage(f"Reading file {number}.", tool_calls=[call], id=f"m{number}"))
        text = f"def f{number}():\n    return {number}\n" * 20
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


def median_ms(run: Callable[[], object]) -> float:
    """Median of `REPEATS` runs after one that is not counted, in milliseconds."""
    run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times)


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


if __name__ == "__main__":
    main()
