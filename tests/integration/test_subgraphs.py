"""Agents with a compaction of their own as subgraphs: whose record it is, and what it covers.

Whatever the graphs share, nothing is hidden that no digest covers, every call of a model is one
that a provider accepts, and a message is folded once, wherever LangGraph keeps the record.
"""

from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langgraph_compaction import CompactionRecord, CompactionState, merge_compaction
from tests.integration.nested import Agent, around, asked, run
from tests.support.doubles import THREAD, assert_valid, request, result, shows_digest, steps_done
from tests.support.ledger import Ledger

TENS = tuple((first, first + 9) for first in range(1, 40, 10))


# ---- whose record it is


@pytest.mark.parametrize("history", ["full", "prune"])
def test_a_record_in_the_graph_around_serves_all_runs(history: str) -> None:
    agent = Agent(history=history)
    values, seen = run(around(agent.graph), *TENS)
    assert steps_done(seen) == list(range(1, 41))
    assert agent.ledger.read_twice(seen) == []
    assert shows_digest(agent.compact.view(values))
    assert agent.told == []
    agent.check(values)


@pytest.mark.parametrize("state", [CompactionState, MessagesState])
def test_a_record_in_a_checkpoint_of_its_own_serves_all_runs(state: type[Any]) -> None:
    agent = Agent(checkpointer=True)
    graph = around(agent.graph, state=state)
    values, seen = run(graph, *TENS)
    assert steps_done(values["messages"]) == list(range(1, 41))
    assert agent.ledger.read_twice(seen) == []
    assert agent.told == []
    agent.check({"compaction": {}, **values})
    assert shows_digest(agent.model.calls[-1])


def test_a_checkpoint_of_its_own_that_prunes_is_given_again_what_it_removed() -> None:
    agent = Agent(checkpointer=True, history="prune")
    values, seen = run(around(agent.graph), *TENS)
    assert steps_done(seen)[-1] == 40
    assert agent.ledger.read_twice(seen)  # a limit: it is folded again
    agent.check(values)


def test_without_a_channel_around_it_the_loss_is_told_at_each_run() -> None:
    agent = Agent()
    values, seen = run(around(agent.graph, state=MessagesState), *TENS)
    assert steps_done(values["messages"]) == list(range(1, 41))
    agent.check({"compaction": {}, **values})
    assert agent.ledger.read_twice(seen)
    # From the second fold of the same messages on, once a run.
    assert len(agent.told) == 2
    assert all("the graph around it has to have the record's channel" in one for one in agent.told)


def test_a_graph_inside_goes_on_with_what_the_graph_around_folded() -> None:
    # Around the agent all but the newest is folded before each of its runs; inside it, as it works.
    outer = Agent(trigger=("messages", 12), keep=("messages", 2))
    inner = Agent(outer.ledger)
    values, seen = run(around(outer.compact, inner.graph), *TENS)
    assert steps_done(values["messages"]) == list(range(1, 41))
    assert inner.ledger.read_twice(seen) == []
    for agent in (outer, inner):
        assert "compaction.completed" in [event["type"] for event in agent.events]
    opening = [call for call in inner.model.calls if isinstance(call[-1], HumanMessage)]
    assert [shows_digest(call) for call in opening] == [False, *[True] * 3]
    inner.check(values)


def test_three_graphs_deep() -> None:
    agent = Agent()
    builder: Any = StateGraph(CompactionState)
    builder.add_node("middle", agent.graph)
    builder.add_edge(START, "middle")
    values, seen = run(around(builder.compile()), *TENS)
    assert steps_done(values["messages"]) == list(range(1, 41))
    assert agent.ledger.read_twice(seen) == []
    agent.check(values)


def test_a_gap_between_three_graphs_is_told() -> None:
    agent = Agent()
    builder: Any = StateGraph(MessagesState)
    builder.add_node("middle", agent.graph)
    builder.add_edge(START, "middle")
    values, _ = run(around(builder.compile()), *TENS)
    agent.check(values)
    assert agent.told


def test_several_calls_in_one_run_go_on_with_one_record() -> None:
    agent = Agent()

    def asking(first: int) -> Any:
        return lambda _: {"messages": [request(first, first + 9)]}

    nodes = [node for first in (11, 21, 31) for node in (asking(first), agent.graph)]
    values, seen = run(around(agent.graph, *nodes), (1, 10))
    assert steps_done(values["messages"]) == list(range(1, 41))
    assert agent.ledger.read_twice(seen) == []
    agent.check(values)


# ---- messages of their own


class Own(TypedDict):
    """The messages of two agents side by side, each with its record."""

    messages: Annotated[list[AnyMessage], add_messages]
    east: Annotated[list[AnyMessage], add_messages]
    west: Annotated[list[AnyMessage], add_messages]
    east_record: Annotated[CompactionRecord, merge_compaction]
    west_record: Annotated[CompactionRecord, merge_compaction]


def test_agents_with_messages_of_their_own_never_see_each_others_digests() -> None:
    agents = {"east": Agent(), "west": Agent()}

    def calling(name: str, shift: int) -> Any:
        def call(state: Any) -> Any:
            first, last = asked(state["messages"])
            given = [*state[name], request(first + shift, last + shift)]
            found = agents[name].graph.invoke(
                {"messages": given, "compaction": state[f"{name}_record"]}
            )
            return {name: found["messages"], f"{name}_record": found["compaction"]}

        return call

    graph = around(calling("east", 0), calling("west", 1_000), state=Own)
    values, _ = run(graph, *TENS)
    for name, first, others in (("east", 1, "result-1"), ("west", 1_001, "result-0")):
        agent = agents[name]
        state = {"messages": values[name], "compaction": values[f"{name}_record"]}
        assert steps_done(values[name]) == list(range(first, first + 40))
        assert agent.ledger.read_twice(values[name]) == []
        assert others not in "\n".join(agent.ledger.folds)
        assert agent.told == []
        agent.check(state)


def test_a_subgraph_with_a_checkpoint_of_its_own_keeps_its_messages_and_record() -> None:
    agent = Agent(checkpointer=True, history="prune")

    def call(state: Any) -> Any:
        found = agent.graph.invoke({"messages": [request(*asked(state["messages"]))]})
        return {"messages": [AIMessage(found["messages"][-1].text)]}

    graph = around(call, state=MessagesState)
    values, _ = run(graph, *TENS)
    assert [m.text for m in values["messages"][1::2]] == [
        f"Finished up to step {last}." for _, last in TENS
    ]
    sub = graph.get_state(THREAD, subgraphs=True)
    assert agent.told == []
    assert sub.values == values
    assert_valid(agent.model.calls)
    assert shows_digest(agent.model.calls[-1])
    marks = [f"result-{number:04}" for number in range(1, 41)]
    assert all(sum(one in text for text in agent.ledger.folds) <= 1 for one in marks)


class Mixed(TypedDict):
    """One record for two lists of messages: a mistake."""

    messages: Annotated[list[AnyMessage], add_messages]
    other: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord, merge_compaction]


@pytest.mark.parametrize("history", ["full", "prune"])
def test_a_record_of_other_messages_hides_nothing(history: str) -> None:
    ledger = Ledger()
    mine, other = (
        Agent(ledger, messages_key=key, state=Mixed, history=history)
        for key in ("messages", "other")
    )

    def asking(state: Any) -> Any:
        first, last = asked(state["messages"])
        return {"other": [request(first + 1_000, last + 1_000)]}

    values, _ = run(around(asking, mine.graph, other.graph, state=Mixed), *TENS)
    for agent in (mine, other):
        agent.check(values)


# ---- stopped and resumed


@pytest.mark.parametrize(
    ("history", "checkpointer"), [("full", None), ("prune", None), ("full", True)]
)
def test_a_subgraph_that_is_interrupted_goes_on_where_it_was(
    history: str, checkpointer: Any
) -> None:
    @tool
    def work(n: int) -> str:
        """Do step n."""
        return f"{result(n)} {interrupt(n)}" if n % 4 == 0 else result(n)

    agent = Agent(history=history, tools=[work], checkpointer=checkpointer)
    graph = around(agent.graph)
    seen: dict[str, BaseMessage] = {}
    for first, last in ((1, 20), (21, 40)):
        _, said = run(graph, (first, last))
        seen |= {str(m.id): m for m in said}
        while graph.get_state(THREAD).next:
            stream = graph.stream(
                Command(resume="approved"), THREAD, stream_mode="values", subgraphs=True
            )
            for _, values in stream:
                seen |= {m.id: m for m in values["messages"]}
    values = graph.get_state(THREAD).values
    assert steps_done(list(seen.values())) == list(range(1, 41))
    assert agent.ledger.read_twice(seen.values()) == []
    assert agent.told == []
    agent.check(values)
