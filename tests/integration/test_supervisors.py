"""Agents that a supervisor gives their work to, in one thread."""

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.prebuilt.chat_agent_executor import AgentState
from langgraph_supervisor import create_supervisor

from langgraph_compaction import CompactionRecord, CompactionState, merge_compaction
from tests.integration.teams import Team, boss, compiled, hand, relay, two_requests
from tests.support.doubles import steps_done, work

pytestmark = [
    # langgraph_supervisor is built on an agent that LangGraph has replaced.
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
    pytest.mark.filterwarnings("ignore:AgentState has been moved"),
]


class Office(AgentState):
    compaction: Annotated[CompactionRecord, merge_compaction]


ASSIGNED = [{"type": "tool", "name": f"transfer_to_{name}"} for name in ("east", "west")]
"""What a worker has to do stands in a call of the supervisor's, not in a request of the user's."""


def office(team: Team, assistants: tuple[str, ...], state: Any, mode: Any = "full_history") -> Any:
    workers = [
        create_agent(team.model(hand(name)), [work], middleware=[team.middleware()], name=name)
        for name in ("east", "west")
    ]
    return compiled(
        create_supervisor(workers, model=boss(*assistants), output_mode=mode, state_schema=state)
    )


@pytest.mark.parametrize("mode", ["full_history", "last_message"])
@pytest.mark.parametrize("state", [Office, None])
def test_workers_under_a_supervisor(mode: str, state: Any) -> None:
    team = Team(pinned=ASSIGNED)
    values = two_requests(office(team, ("east",), state, mode))
    if state is Office:
        assert team.ledger.read_twice(values["messages"]) == []
        assert team.told == []
    if mode == "full_history":
        assert steps_done(values["messages"]) == list(range(1, 45))
        assert bool(team.told) == (state is None)
    team.check(values)


@pytest.mark.parametrize("history", ["full", "prune"])
def test_workers_side_by_side_under_a_supervisor(history: str) -> None:
    team = Team(pinned=ASSIGNED, history=history)
    values = two_requests(office(team, ("east", "west"), Office))
    team.check(values)


def test_one_node_for_all_agents_of_a_graph() -> None:
    team = Team()
    compact = team.node()
    models = {name: team.model(relay(name, "next")) for name in ("alice", "bob")}

    def agent(name: str) -> Any:
        return lambda state: {"messages": [models[name].invoke(compact.view(state))]}

    @tool("transfer_to_next")
    def hand_over() -> str:
        """Hand over."""
        return f"The other agent has it now, {next(numbers)}."

    def newest(state: Any) -> str:
        """Who is to go on: alice, and after each hand-off the other."""
        handed = sum(m.name == "transfer_to_next" for m in state["messages"])
        return ("alice", "bob")[handed % 2]

    numbers = iter(range(100))
    builder: Any = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("tools", ToolNode([work, hand_over]))
    builder.add_edge(START, "compact")
    builder.add_conditional_edges("compact", newest, ["alice", "bob"])
    for name in models:
        builder.add_node(name, agent(name))
        builder.add_conditional_edges(name, tools_condition)
    builder.add_edge("tools", "compact")
    values = two_requests(compiled(builder))
    assert steps_done(values["messages"]) == list(range(1, 45))
    assert team.ledger.read_twice(values["messages"]) == []
    assert team.told == []
    team.check(values)
