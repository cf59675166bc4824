"""Agents that hand a thread over to one another by tools, as in a swarm.

A hand-off by ``Command.PARENT`` ends the run of its agent, and only what the command brings comes
out of it. So what is asked here is whether the record comes along, and what happens where it does
not.
"""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Send
from langgraph_swarm import SwarmState, create_handoff_tool, create_swarm

from langgraph_compaction import (
    CompactionRecord,
    CompactionState,
    merge_compaction,
    model_view,
)
from langgraph_compaction.handoffs import with_record, without_foreign_record
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.state import Channels
from tests.integration.teams import EVERY, THREAD, Team, compiled, relay, two_requests
from tests.support.beside import steady
from tests.support.doubles import (
    WINDOW,
    Summaries,
    assert_valid,
    loop,
    request,
    shows_digest,
    steps_done,
    work,
)


def transfer(to: str, brings: Callable[[Any], dict[str, Any]]) -> BaseTool:
    """A tool that hands over to an agent; ``brings`` says what of the state comes along."""

    @tool(f"transfer_to_{to}")
    def hand_over(
        state: Annotated[Any, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Hand over."""
        found = brings(state)
        answer = ToolMessage(f"{to} has it now ({tool_call_id}).", tool_call_id=tool_call_id)
        found["messages"] = [*found["messages"], answer]
        return Command(goto=to, graph=Command.PARENT, update=found)

    return hand_over


def messages_alone(state: Any) -> dict[str, Any]:
    return {"messages": state["messages"]}


def with_the_record(state: Any) -> dict[str, Any]:
    return {"messages": state["messages"], "compaction": state["compaction"]}


def the_call_alone(state: Any) -> dict[str, Any]:
    return {"messages": state["messages"][-1:]}


def by_hand(team: Team, brings: Callable[[Any], dict[str, Any]]) -> Any:
    """A swarm of graphs of one's own."""
    builder: Any = StateGraph(CompactionState)
    for me, other in (("alice", "bob"), ("bob", "alice")):
        tools = [work, transfer(other, brings)]
        builder.add_node(me, loop(team.node(), team.model(relay(me, other)), tools=tools))
    builder.add_edge(START, "alice")
    return compiled(builder)


@pytest.mark.parametrize("history", ["full", "prune"])
def test_a_hand_off_that_brings_the_record_folds_nothing_twice(history: str) -> None:
    team = Team(history=history)
    values = two_requests(by_hand(team, with_the_record))
    assert team.ledger.read_twice(values["messages"]) == []
    assert team.told == []
    assert values["compaction"]["segments"]
    team.check(values)


def test_a_hand_off_without_the_record_is_told_and_hides_nothing() -> None:
    team = Team()
    values = two_requests(by_hand(team, messages_alone))
    assert "a tool that hands over with Command.PARENT" in team.told[0]
    assert steps_done(values["messages"]) == list(range(1, 45))
    team.check(values)


SOON: dict[str, Any] = {"trigger": ("messages", 8), "keep": ("messages", 2)}


@pytest.mark.parametrize("brings", [the_call_alone, with_the_record])
def test_a_hand_off_of_some_messages_hides_nothing(brings: Any) -> None:
    def some(state: Any) -> dict[str, Any]:
        return {**brings(state), "messages": state["messages"][-1:]}

    team = Team(**SOON)
    team.check(two_requests(by_hand(team, some)))


class Swarm(SwarmState):
    compaction: Annotated[CompactionRecord, merge_compaction]


def swarm(team: Team, state: type[Any], tools: Callable[[str], BaseTool]) -> Any:
    agents = [
        create_agent(
            team.model(relay(me, other)),
            [work, tools(other)],
            middleware=[team.middleware()],
            name=me,
        )
        for me, other in (("alice", "bob"), ("bob", "alice"))
    ]
    return compiled(create_swarm(agents, default_active_agent="alice", state_schema=state))


def theirs(name: str) -> BaseTool:
    """The tool of `langgraph_swarm`: it brings the messages alone."""
    return create_handoff_tool(agent_name=name)


@pytest.mark.parametrize("history", ["full", "prune"])
def test_the_middleware_sends_the_record_along(history: str) -> None:
    team = Team(history=history)
    values = two_requests(swarm(team, Swarm, theirs))
    assert team.ledger.read_twice(values["messages"]) == []
    assert team.told == []
    assert values["compaction"]["segments"]
    team.check(values)
    if history == "full":
        assert steps_done(values["messages"]) == list(range(1, 45))


async def test_the_middleware_sends_the_record_along_asynchronously() -> None:
    team = Team()
    graph = swarm(team, Swarm, theirs)
    for first in (1, 23):
        await graph.ainvoke({"messages": [request(first, first + 21)]}, THREAD)
    values = graph.get_state(THREAD).values
    assert team.ledger.read_twice(values["messages"]) == []
    assert steps_done(values["messages"]) == list(range(1, 45))
    team.check(values)


def test_a_swarm_without_the_channel_is_told() -> None:
    team = Team()
    values = two_requests(swarm(team, SwarmState, theirs))
    assert "compaction" not in values
    assert "has to have the record's channel" in team.told[0]
    assert steps_done(values["messages"]) == list(range(1, 45))
    team.check(values)


def test_the_middleware_adds_no_record_to_a_part_of_the_messages() -> None:
    team = Team(**SOON)
    graph = swarm(team, Swarm, lambda name: transfer(name, the_call_alone))
    graph.invoke({"messages": [request(1, EVERY + 1)]}, THREAD)
    # The first agent folded, and what came out of its run is the hand-off without its messages.
    handed = next(s for s in graph.get_state_history(THREAD) if s.next == ("bob",))
    assert team.ledger.folds
    assert steps_done(handed.values["messages"]) == []
    assert handed.values["compaction"] == {}
    team.check(two_requests(graph))


def anew(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"]]}


def behind_a_note(state: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage("Work on.", id="note"), *state["messages"]]}


@pytest.mark.parametrize("brings", [anew, behind_a_note])
def test_a_hand_off_that_changes_the_list_brings_the_record(brings: Any) -> None:
    team = Team()
    values = two_requests(swarm(team, Swarm, lambda name: transfer(name, brings)))
    assert team.ledger.read_twice(values["messages"]) == []
    assert team.told == []
    assert steps_done(values["messages"]) == list(range(1, 45))
    team.check(values)


def delegating(own_key: bool) -> tuple[Any, Any]:
    """A graph in which one agent sends another a task by the tutorial's ``Send``, and its parts."""

    @tool
    def delegate(
        task: str,
        state: Annotated[Any, InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        """Give the task to the helper."""
        arg = {**state, "messages": [HumanMessage(task)]}
        return Command(goto=[Send("helper", arg)], graph=Command.PARENT)

    special = {15: ("delegate", {"task": "Do steps 101 to 130."})}
    ours: dict[str, dict[str, Any]] = {
        "boss": {},
        "helper": {"compaction_key": "own"} if own_key else {},
    }
    models = {"boss": steady(special), "helper": steady()}
    builder: Any = StateGraph(CompactionState)
    for name, options in ours.items():
        middleware = CompactionMiddleware(
            Summaries(), context_window=WINDOW, clear=False, **options
        )
        tools = [work, delegate] if name == "boss" else [work]
        agent = create_agent(models[name], tools, middleware=[middleware], name=name)
        builder.add_node(name, agent)
    builder.add_edge(START, "boss")
    return compiled(builder), models


@pytest.mark.parametrize("own_key", [True, False])
def test_a_task_that_is_sent_comes_without_the_record_of_other_messages(own_key: bool) -> None:
    graph, models = delegating(own_key)
    graph.invoke({"messages": [request(1, 14)]}, THREAD)
    before = graph.get_state(THREAD).values["compaction"]
    assert before["segments"]
    graph.invoke({"messages": [request(15, 20)]}, THREAD)
    helped = models["helper"].calls
    # The helper begins without a digest, has one of its own work later, and never the boss's.
    assert not shows_digest(helped[0])
    assert shows_digest(helped[-1])
    assert not any("result-0014" in message.text for call in helped for message in call)
    after = graph.get_state(THREAD).values
    assert_valid([*models["boss"].calls, *helped])
    if own_key:  # what docs/how-to/subgraphs-and-hand-offs.md advises
        assert after["compaction"]["segments"] == before["segments"]
        assert shows_digest(model_view(after))


def test_parallel_hand_offs_leave_a_thread_that_a_provider_accepts() -> None:
    team = Team()
    agents = [
        create_agent(
            team.model(relay(me, *others)),
            [work, *map(theirs, others)],
            middleware=[team.middleware()],
            name=me,
        )
        for me, others in (("alice", ("bob", "carol")), ("bob", ("alice",)), ("carol", ("alice",)))
    ]
    graph = compiled(create_swarm(agents, default_active_agent="alice", state_schema=Swarm))
    values = two_requests(graph)
    assert team.ledger.read_twice(values["messages"]) == []
    team.check(values)


def test_other_results_of_tools_are_left_alone() -> None:
    messages = [HumanMessage("Go.", id="m")]
    state = {"messages": messages, "compaction": {"revision": 1}}
    brings = {"messages": [*messages, ToolMessage("Done.", tool_call_id="c")]}

    def found(result: Any, state: Any = state) -> Any:
        return with_record(result, state, Channels())

    others: list[Any] = [
        ToolMessage("Done.", tool_call_id="c"),
        Command(update=brings),
        Command(graph=Command.PARENT, goto="bob"),
        Command(graph=Command.PARENT, update=[("messages", messages)]),
        Command(graph=Command.PARENT, update={"task": "Go on."}),
        Command(graph=Command.PARENT, update={**brings, "compaction": {}}),
    ]
    for one in others:
        assert found(one) is one
    hand_over: Any = Command(graph=Command.PARENT, goto="bob", update=brings)
    assert found(hand_over, {**state, "compaction": {}}) is hand_over
    more = found([hand_over, others[0]])
    assert more[1] is others[0]
    assert more[0].update == {**brings, "compaction": {"revision": 1}}
    assert (more[0].goto, more[0].graph) == ("bob", Command.PARENT)
    assert "compaction" not in hand_over.update


def test_what_a_send_carries_is_about_its_messages() -> None:
    mine, other = HumanMessage("Go.", id="m"), HumanMessage("Another task.", id="t")
    record = {"last_summarized_index": 0, "last_summarized_id": "m", "revision": 1}
    state = {"messages": [mine], "compaction": record, "compaction_settings": {"request": {}}}

    def sent(arg: Any, graph: Any = Command.PARENT) -> Any:
        command: Any = Command(goto=[Send("bob", arg), "carol"], graph=graph)
        own = without_foreign_record(command, state, Channels())
        found = with_record(own, state, Channels())
        assert found.goto[1] == "carol"
        assert command.goto[0].arg is arg
        return found.goto[0].arg

    for graph in (Command.PARENT, None):
        assert sent({**state, "messages": [other]}, graph) == {"messages": [other]}
        assert sent({**state, "messages": other}, graph) == {"messages": other}
    whole = {**state, "messages": [mine, other]}
    assert sent(whole) is whole
    assert sent({"messages": [mine, other]})["compaction"] == record
    for arg in ({"messages": [other]}, {"task": "Go."}, {"compaction": record}, "text", None):
        assert sent(arg) is arg
    one: Any = Command(goto=Send("bob", {**state, "messages": [other]}), graph=Command.PARENT)
    (place,) = without_foreign_record(one, state, Channels()).goto
    assert place.arg == {"messages": [other]}
    assert "compaction" in one.goto.arg
