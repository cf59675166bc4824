"""Subgraphs that run side by side, or prune on their own, and the graph around them.

Each run goes on from the same list, and none knows of the others. What they fold of it in common is
folded by each, and the record of one of them wins; the others' messages are shown, whatever its
position says.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Send

from langgraph_compaction import CompactionState
from tests.integration.nested import Agent, around, asked, run
from tests.support.doubles import request, steps_done


def fan_out(agent: Agent, *beside: Any) -> Any:
    """A graph that sends each request to two runs of the agent's graph, and runs others beside."""

    def start(state: Any) -> list[Send]:
        first, last = asked(state["messages"])
        halves = (first, last), (first + 1_000, last + 1_000)
        sent = [{**state, "messages": [*state["messages"], request(*half)]} for half in halves]
        return [Send("agent", one) for one in sent] + [
            Send(f"b{n}", state) for n in range(len(beside))
        ]

    builder: Any = StateGraph(CompactionState)
    builder.add_node("agent", agent.graph)
    for number, node in enumerate(beside):
        builder.add_node(f"b{number}", node)
    names = ["agent", *(f"b{n}" for n in range(len(beside)))]
    builder.add_conditional_edges(START, start, names)
    return builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


SPANS = tuple((first, first + 14) for first in (1, 16, 31))


@pytest.mark.parametrize("history", ["full", "prune"])
def test_runs_side_by_side_hide_nothing_of_each_other(history: str) -> None:
    agent, graph = Agent(history=history), None
    graph = fan_out(agent)
    for number, span in enumerate(SPANS, 1):
        values, seen = run(graph, span)
        assert steps_done(seen)[-1] in {span[1], span[1] + 1_000}
        agent.check(values)
        assert values["compaction"]["segments"], number
    if history == "full":
        done = [*range(1, 46), *range(1_001, 1_046)]
        assert sorted(steps_done(values["messages"])) == done


def test_what_a_node_says_beside_a_subgraph_that_prunes_is_shown() -> None:
    agent = Agent(history="prune")

    def note(state: Any) -> Any:
        return {
            "messages": [
                AIMessage(f"Note {n} of request {len(state['messages'])}.") for n in range(3)
            ]
        }

    graph = fan_out(agent, note)
    for span in SPANS:
        values, _ = run(graph, span)
        agent.check(values)
    assert sum(message.text.startswith("Note ") for message in values["messages"]) == 9


def test_many_prunes_in_one_run_leave_the_graph_around_its_view() -> None:
    agent = Agent(history="prune", trigger=("messages", 6), keep=("messages", 2))
    values, seen = run(around(agent.graph), (1, 30), (31, 60))
    assert len(agent.ledger.folds) > 15
    assert agent.ledger.read_twice(seen) == []
    assert len(agent.compact.view(values)) < 12
    agent.check(values)
