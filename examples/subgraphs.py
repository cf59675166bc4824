"""Two agents that share a thread: an inspector and a reporter, each a subgraph of its own.

    python examples/subgraphs.py

The record lives in the outer thread beside the messages, so that what one agent has folded the
other neither sees nor folds again.
"""

from __future__ import annotations

from typing import Any

from inspector import WINDOW, agent_loop, hottest, readings
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState, ExtractiveSummarizer

PUMPS = 30


def reporter(compact: CompactionNode) -> Any:
    """Writes a report from the view: digest and recent messages, whoever folded them."""

    def report(state: CompactionState) -> dict[str, Any]:
        known = readings(compact.view(state))
        hot = sorted(known, key=lambda number: -known[number])[:3]
        rows = [f"pump {number}: {known[number]} degrees" for number in hot]
        return {"messages": [AIMessage(f"Read: {len(known)} pumps. " + "; ".join(rows))]}

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("report", report)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "report")
    return builder.compile()


def main() -> int:
    """Inspect, then report; the exit status is 0 if the report has every pump."""
    compact = CompactionNode(ExtractiveSummarizer(), context_window=WINDOW)
    outer = StateGraph(CompactionState)
    outer.add_node("inspector", agent_loop(compact).compile())
    outer.add_node("reporter", reporter(compact))
    outer.add_edge(START, "inspector")
    outer.add_edge("inspector", "reporter")
    outer.add_edge("reporter", END)
    graph = outer.compile(checkpointer=InMemorySaver())

    thread: Any = {"configurable": {"thread_id": "pumps"}, "recursion_limit": 1_000}
    asked: Any = {"messages": [("user", f"Inspect the pumps 1 to {PUMPS} and name the hottest.")]}
    state = graph.invoke(asked, thread)
    spans = [(one["first_index"], one["last_index"]) for one in state["compaction"]["segments"]]
    print(f"{len(state['messages'])} messages, {len(compact.view(state))} in the view")
    print("folded:", ", ".join(f"{first} to {last}" for first, last in spans))
    print(answer := state["messages"][-1].text)
    return 0 if answer.startswith(f"Read: {PUMPS} pumps. pump {hottest(1, PUMPS)}:") else 1


if __name__ == "__main__":
    raise SystemExit(main())
