"""The main job, end to end: an agent on a SQLite file works ten times past its context window.

Every visit of the node is watched from outside, through the checkpoints that the graph left: what
was folded, when, and whether anything was folded twice.
"""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState, ExtractiveSummarizer
from langgraph_compaction.plan.counting import token_counter

WINDOW = 4_000
TASK = "Weigh parcels 1 to 150 one by one, then name the code word. Never weigh one twice."


@pytest.mark.parametrize("counter", ["tiktoken", "estimate"])
def test_an_agent_works_ten_times_past_its_window(tmp_path: Path, counter: str) -> None:
    compact = CompactionNode(
        ExtractiveSummarizer(), context_window=WINDOW, token_counter=counter, name="compact"
    )
    views: list[int] = []
    tasks_seen: list[bool] = []

    def agent(state: Any) -> dict[str, Any]:
        view = compact.view(state)
        views.append(compact.measure(state).tokens)
        tasks_seen.append(any(TASK in str(message.content) for message in view))
        # What is next follows from the newest result alone, which is always there.
        done = view[-1].content if isinstance(view[-1], ToolMessage) else "parcel 0:"
        number = int(str(done).split()[1].rstrip(":")) + 1
        if number > 150:
            return {"messages": [AIMessage("All parcels are weighed.")]}
        call = {"name": "weigh", "args": {"parcel": number}, "id": f"c{number % 7}"}
        text = f"Parcel {number} is next."
        return {"messages": [AIMessage(text, tool_calls=[call])]}

    def tools(state: Any) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        number = call["args"]["parcel"]
        text = f"parcel {number}: {number * 37 % 911} grams. " + "The scale was level. " * 60
        return {"messages": [ToolMessage(text, tool_call_id=call["id"], name="weigh")]}

    builder = StateGraph(CompactionState)
    builder.add_node("agent", agent)
    builder.add_node("compact", compact)
    builder.add_node("tools", tools)
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges(
        "agent",
        lambda state: "tools" if state["messages"][-1].tool_calls else "__end__",
        ["tools", "__end__"],
    )
    builder.add_conditional_edges("tools", compact.route("agent"), ["compact", "agent"])

    config: Any = {"configurable": {"thread_id": "parcels"}, "recursion_limit": 1_000}
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage(TASK)]}, config)
        final = graph.get_state(config).values
        records = [step.values.get("compaction", {}) for step in graph.get_state_history(config)]

    thread = token_counter(counter).messages(final["messages"])
    assert thread > 10 * WINDOW
    assert max(views) <= WINDOW
    assert all(tasks_seen)
    assert final["messages"][-1].content == "All parcels are weighed."

    # Oldest first: each record starts where the one before it ended, and none goes back.
    positions: list[int] = []
    for record in reversed(records):
        position = record.get("last_summarized_index", -1)
        if position != (positions[-1] if positions else -1):
            assert position > (positions[-1] if positions else -1)
            positions.append(position)
    assert len(positions) >= 10
    segments = final["compaction"]["segments"]
    assert [one["first_index"] for one in segments] == [
        0,
        *(one["last_index"] + 1 for one in segments[:-1]),
    ]
    digest = sum(one["tokens"] for one in segments)
    assert digest <= WINDOW // 4
