"""A refused call in subgraphs, in branches that were sent, and beside other nodes."""

from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from langgraph_compaction import BudgetError, CompactionState, overflow_handler
from tests.integration.overflowing import (
    ANSWER,
    OVERFLOW,
    Watched,
    assert_recovered,
    each_way,
    model,
    ran,
    refusing,
    thread,
)
from tests.support.openai_server import OpenAIServer


@each_way
def test_in_a_subgraph_the_handler_is_the_subgraphs(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    builder = StateGraph(CompactionState)
    builder.add_node("inner", watched.builder(watched.agent(model(server))).compile())
    builder.add_edge(START, "inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    state = ran(graph, {"messages": thread()}, way)
    assert state["messages"][-1].text == ANSWER
    assert_recovered(watched, server)
    assert state["compaction"]["overflow"]["node"] == "agent"


@each_way
def test_around_a_subgraph_the_handler_runs_it_again(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    inner = StateGraph(CompactionState)
    inner.add_node("agent", watched.agent(model(server)))
    inner.add_edge(START, "agent")
    graph = watched.builder(inner.compile()).compile(checkpointer=InMemorySaver())
    state = ran(graph, {"messages": thread()}, way)
    assert state["messages"][-1].text == ANSWER
    assert_recovered(watched, server)


@each_way
def test_a_subgraph_that_has_given_up_is_not_run_again(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW)
    watched = Watched()
    inner = watched.builder(watched.agent(model(server))).compile()
    graph = watched.builder(inner).compile(checkpointer=InMemorySaver())
    with pytest.raises(BudgetError):
        ran(graph, {"messages": thread()}, way)
    assert len(server.requests) == 2


class Fan(CompactionState):
    """A state whose branches have threads of their own."""

    answers: Any


@each_way
def test_a_sent_branch_is_reduced_alone(server: OpenAIServer, way: str) -> None:
    class Branches(TypedDict):
        messages: Any
        compaction: Any
        answers: Any

    server.answer(refusing(OVERFLOW))
    watched = Watched()
    chat = model(server)

    def branch(state: dict[str, Any]) -> dict[str, Any]:
        view = watched.compact.view(state)
        assert state["compaction"] == {} or len(view) < len(state["messages"])
        return {"messages": [AIMessage(f"{state['name']}: {chat.invoke(view).text}")]}

    def fan_out(state: CompactionState) -> list[Send]:
        own = {"short": thread(3), "long": thread(50), "longer": thread(55)}
        return [
            Send("branch", {"name": name, "messages": messages, "compaction": {}})
            for name, messages in own.items()
        ]

    builder = StateGraph(CompactionState)
    builder.add_node("branch", branch, error_handler=overflow_handler(watched.compact))
    builder.add_conditional_edges(START, fan_out, ["branch"])
    graph = builder.compile(checkpointer=InMemorySaver())
    state = ran(graph, {"messages": [("user", "Ask all.")]}, way)
    answers = sorted(m.text for m in state["messages"][1:])
    assert answers == [f"{name}: {ANSWER}" for name in ("long", "longer", "short")]
    assert len(server.requests) == 5
    # What one branch reduced is no other branch's, nor the graph's.
    assert state["compaction"] == {}
    assert watched.kinds.count("completed") == 2


@each_way
def test_a_sent_branch_that_is_refused_twice_ends_the_run(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW)
    watched = Watched()
    builder = StateGraph(CompactionState)
    handler = overflow_handler(watched.compact)
    builder.add_node("branch", watched.agent(model(server)), error_handler=handler)
    sent_state = {"messages": thread(), "compaction": {}}
    builder.add_conditional_edges(START, lambda state: [Send("branch", sent_state)], ["branch"])
    with pytest.raises(BudgetError, match="although it was reduced"):
        ran(builder.compile(), {"messages": [("user", "Ask.")]}, way)
    assert len(server.requests) == 2
    assert sent_state == {"messages": thread(), "compaction": {}}


@each_way
def test_parallel_agents_on_one_state_are_each_reduced_for(server: OpenAIServer, way: str) -> None:
    # Both reduce the same state to the same view; the larger window would have taken more.
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    builder = StateGraph(CompactionState)
    for name in ("one", "two"):
        builder.add_node(
            name, watched.agent(model(server)), error_handler=overflow_handler(watched.compact)
        )
        builder.add_edge(START, name)
    state = ran(builder.compile(), {"messages": thread()}, way)
    assert [m.text for m in state["messages"][-2:]] == [ANSWER, ANSWER]
    assert len(server.requests) == 4


@each_way
def test_another_node_may_run_next_and_one_handler_may_serve_all_nodes(
    server: OpenAIServer, way: str
) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    visited: list[str] = []

    def before(state: CompactionState) -> dict[str, Any]:
        visited.append("before")
        return {}

    builder = StateGraph(CompactionState)
    builder.set_node_defaults(error_handler=overflow_handler(watched.compact, retry="before"))
    builder.add_node("before", before)
    builder.add_node("agent", watched.agent(model(server)))
    builder.add_edge(START, "before")
    builder.add_edge("before", "agent")
    state = ran(builder.compile(), {"messages": thread()}, way)
    assert state["messages"][-1].text == ANSWER
    assert visited == ["before", "before"]
