"""Where the node may stand and what state it may work on, in compiled graphs with real tool nodes.

In each of them the agent does all steps in order, no message is folded twice, and every call of the
agent's model is one that a provider accepts.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    MissingChannelError,
    merge_compaction,
    merge_messages,
    model_view,
)
from tests.support.doubles import (
    STEPS,
    THREAD,
    WINDOW,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    loop,
    markers,
    request,
    result,
    shows_digest,
    steps_done,
    worker,
)


class PlainState(TypedDict):
    """Plain `add_messages`, and no channel for settings."""

    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord, merge_compaction]


class OtherKeys(TypedDict):
    chat: Annotated[list[AnyMessage], add_messages]
    memory: Annotated[CompactionRecord, merge_compaction]
    todos: list[str]


def merge_writes(state: Sequence[Any] | None, writes: Sequence[Any]) -> list[AnyMessage]:
    return list(reduce(merge_messages, writes, state or []))


class DeltaState(TypedDict):
    """A channel that is stored as its writes, and made again from them."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_writes, snapshot_frequency=7)]
    compaction: Annotated[CompactionRecord, merge_compaction]


@dataclass
class DataclassState:
    messages: Annotated[list[AnyMessage], merge_messages] = field(default_factory=list)
    compaction: Annotated[CompactionRecord, merge_compaction] = field(
        default_factory=CompactionRecord
    )


class PydanticState(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []
    compaction: Annotated[CompactionRecord, merge_compaction] = {}


class Run:
    """A graph with an agent, and what its models saw."""

    def __init__(
        self,
        *,
        model: ScriptedModel | None = None,
        keys: tuple[str, str] = ("messages", "compaction"),
        settings: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.key = keys[0]
        self.model = model or worker()
        self.summaries = Summaries()
        self.compact = CompactionNode(
            self.summaries,
            settings={"context_window": WINDOW, **(settings or {})},
            messages_key=keys[0],
            compaction_key=keys[1],
        )
        self.graph = loop(self.compact, self.model, checkpointer=InMemorySaver(), **options)

    def requests(self, *spans: tuple[int, int]) -> None:
        """Ask for spans of steps in runs of one thread, and check what has to hold at the end."""
        for first, last in spans:
            self.graph.invoke({self.key: [request(first, last)]}, THREAD)
        self.check(spans[-1][1])

    def check(self, last: int) -> None:
        values = self.graph.get_state(THREAD).values
        assert steps_done(values[self.key]) == list(range(1, last + 1))
        assert_folded_once(self.summaries.folded)
        assert_valid(self.model.calls)
        assert shows_digest(self.model.calls[-1])


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(
    "state", [CompactionState, PlainState, DeltaState, DataclassState, PydanticState]
)
def test_every_state_class_in_both_placements(state: type[Any], *, between: bool) -> None:
    Run(state=state, between=between).requests((1, 15), (16, 30))


@pytest.mark.parametrize("between", [False, True])
def test_channels_of_other_names(*, between: bool) -> None:
    run = Run(state=OtherKeys, keys=("chat", "memory"), between=between)
    run.requests((1, 15), (16, 30))
    assert run.graph.get_state(THREAD).values["memory"]["segments"]


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("parallel", [2, 5])
def test_parallel_calls_stay_together(parallel: int, *, between: bool) -> None:
    Run(model=worker(parallel), between=between).requests((1, 15), (16, 31))


@pytest.mark.parametrize("parallel", [1, 2])
def test_between_agent_and_tools_a_waiting_call_is_never_folded(parallel: int) -> None:
    # Even where everything else folds.
    everything = {"keep": ("messages", 0), "trigger": ("steps", 4)}
    run = Run(between=True, model=worker(parallel), settings=everything)
    waiting = 0
    stream = run.graph.stream({"messages": [request(1, 30)]}, THREAD, stream_mode="values")
    for values in stream:
        newest = values["messages"][-1]
        if getattr(newest, "tool_calls", None):
            waiting += 1
            assert model_view(values)[-1] == newest
    assert waiting >= 30 // parallel
    run.check(30)


@pytest.mark.parametrize("state", [OtherKeys, CompactionState])
def test_a_route_spares_the_visits_in_which_nothing_is_to_be_done(state: type[Any]) -> None:
    keys = ("chat", "memory") if state is OtherKeys else ("messages", "compaction")
    summaries, model = Summaries(), worker()
    compact = CompactionNode(
        summaries, context_window=WINDOW, messages_key=keys[0], compaction_key=keys[1], name="fold"
    )

    @tool
    def work(n: int) -> str:
        """Do step n."""
        return result(n)

    builder = StateGraph(state)
    builder.add_node("fold", compact)
    builder.add_node("agent", lambda s: {keys[0]: [model.invoke(compact.view(s))]})
    builder.add_node("tools", ToolNode([work], messages_key=keys[0]))
    builder.add_conditional_edges(START, compact.route("agent"), ["fold", "agent"])
    builder.add_edge("fold", "agent")
    builder.add_conditional_edges("agent", lambda s: tools_condition(s, messages_key=keys[0]))
    builder.add_conditional_edges("tools", compact.route("agent"), ["fold", "agent"])
    graph = builder.compile()
    asked: Any = {keys[0]: [request(1, 40)]}
    names = [next(iter(update)) for update in graph.stream(asked, STEPS, stream_mode="updates")]
    assert names.count("agent") == 41
    assert names.count("fold") == len(summaries.prompts) > 1
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)


@pytest.mark.parametrize("between", [False, True])
def test_interrupts_in_tools_resume_where_they_were(*, between: bool) -> None:
    @tool
    def work(n: int) -> str:
        """Do step n."""
        return f"{result(n)} {interrupt(n)}"

    run = Run(model=worker(2), tools=[work], between=between)
    run.graph.invoke({"messages": [request(1, 30)]}, THREAD)
    pauses = 0
    while run.graph.get_state(THREAD).next:
        pauses += 1
        # Two calls in parallel: their answers by the interrupts' ids.
        waiting = run.graph.get_state(THREAD).interrupts
        run.graph.invoke(Command(resume={one.id: "approved" for one in waiting}), THREAD)
    assert pauses >= 15
    run.check(30)


def test_a_request_while_a_call_waits_abandons_the_call_in_the_view_alone() -> None:
    @tool
    def work(n: int) -> str:
        """Do step n."""
        return f"{result(n)} {interrupt(n)}" if n == 3 else result(n)

    run = Run(tools=[work])
    run.graph.invoke({"messages": [request(1, 4)]}, THREAD)
    assert run.graph.get_state(THREAD).next == ("tools",)
    run.graph.invoke({"messages": [request(4, 30)]}, THREAD)
    messages = run.graph.get_state(THREAD).values["messages"]
    assert steps_done(messages) == [1, 2, *range(4, 31)]
    assert_folded_once(run.summaries.folded)
    assert_valid(run.model.calls)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_subgraph_folds_nothing_twice(*, persistent: bool) -> None:
    # Its record lives in the parent's channel, or in a checkpoint of its own.
    summaries, model = Summaries(), worker()
    compact = CompactionNode(summaries, context_window=WINDOW)
    inner = loop(compact, model, checkpointer=True if persistent else None)
    builder = StateGraph(CompactionState)
    builder.add_node("inner", inner)
    builder.add_edge(START, "inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    for first in range(1, 60, 10):
        asked: Any = {"messages": [request(first, first + 9)]}
        graph.invoke(asked, THREAD)
    values = graph.get_state(THREAD).values
    assert steps_done(values["messages"]) == list(range(1, 61))
    assert values["compaction"]["segments"]
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)


class Branch(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord, merge_compaction]
    reports: Annotated[list[int], operator.add]


def test_two_branches_that_both_fold_end_in_one_digest() -> None:
    summaries = Summaries()
    compact = CompactionNode(summaries, context_window=WINDOW, trigger=("tokens", 1_000))

    def branches(state: Branch) -> list[Send]:
        # The second branch sees three messages less, so that it folds less.
        length = len(state["messages"])
        seen = [state["messages"], state["messages"][: length - 3]]
        return [Send("compact", {**state, "messages": messages}) for messages in seen]

    builder = StateGraph(Branch)
    builder.add_node("start", lambda _: {"reports": []})
    builder.add_node("compact", compact)
    builder.add_node("end", lambda s: {"reports": [len(s["compaction"]["segments"])]})
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", branches, ["compact"])
    builder.add_edge("compact", "end")
    graph = builder.compile(checkpointer=InMemorySaver())
    covered, digests = -1, list[Any]()
    for rounds, first in enumerate((1, 21, 41), 1):
        given: Any = {"messages": [HumanMessage(result(n)) for n in range(first, first + 14)]}
        graph.invoke(given, THREAD)
        values = graph.get_state(THREAD).values
        assert len(values["messages"]) == 14 * rounds
        # Both folded, and the one that is further along counts, whole.
        assert len(summaries.prompts) == 2 * rounds
        assert values["reports"][-1] == rounds
        segments = values["compaction"]["segments"]
        assert segments[:-1] == digests
        assert segments[-1]["first_index"] == covered + 1
        covered, digests = segments[-1]["last_index"], segments
        seen = [markers(prompt) for prompt in summaries.prompts[-2:]]
        assert f"result-{first + covered - 14 * (rounds - 1):04}" == max(seen, key=len)[-1]
        assert len(seen[0]) != len(seen[1])


class NoRecord(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class OptionalRecord(TypedDict):
    """Such a channel has no value before it is written, so that LangGraph leaves it out."""

    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord | None, merge_compaction]


@pytest.mark.parametrize("state", [NoRecord, OptionalRecord])
@pytest.mark.parametrize("between", [False, True])
def test_a_state_without_the_channel_is_refused_at_once(state: type[Any], *, between: bool) -> None:
    run = Run(state=state, between=between)
    with pytest.raises(MissingChannelError, match="CompactionRecord, merge_compaction"):
        run.graph.invoke({"messages": [request(1, 2)]}, THREAD)
    assert run.model.calls == []
