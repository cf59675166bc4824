"""The node as `pre_model_hook` of `create_react_agent`: the view goes to a channel of its own.

What stands there stays there until it is written again, so every visit writes it. And LangGraph
streams every message in a node's update that it has not seen: the digest must not be among them.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.prebuilt.chat_agent_executor import AgentState, AgentStateWithStructuredResponse
from pydantic import BaseModel, Field

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    ConfigurationError,
    merge_compaction,
    overflow_handler,
    with_overflow_recovery,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import agent, history, human, result
from tests.support.doubles import (
    DIGEST_WORD,
    STEPS,
    THREAD,
    WINDOW,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    request,
    shows_digest,
    steps_done,
    work,
    worker,
)
from tests.support.folding import node

pytestmark = [
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
    pytest.mark.filterwarnings("ignore:AgentState(Pydantic)? has been moved"),
]

CHANNEL = "llm_input_messages"


class State(AgentState):
    compaction: Annotated[CompactionRecord, merge_compaction]


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[dict[str, Any], merge_compaction] = Field(default_factory=dict)
    remaining_steps: int = 25


def at_work(messages: list[BaseMessage]) -> AIMessage:
    """What the worker answers, who goes by results and requests alone."""
    return worker().reply([message for message in messages if message.id != "live_state"])


class Setup:
    """An agent with the node as its hook, and what its models saw."""

    def __init__(self, schema: Any = State, **options: Any) -> None:
        self.model, self.summaries = ScriptedModel(reply=at_work), Summaries()
        self.compact = CompactionNode(
            self.summaries, context_window=WINDOW, output_messages_key=CHANNEL, **options
        )
        self.agent = create_react_agent(
            self.model, [work], pre_model_hook=self.compact, state_schema=schema,
            prompt="You are a worker.", checkpointer=InMemorySaver(),
        )  # fmt: skip


@pytest.mark.parametrize("schema", [State, Model])
@pytest.mark.parametrize("role", ["human", "system"])
def test_the_model_is_called_with_the_view_and_the_state_keeps_everything(
    schema: Any, role: str
) -> None:
    setup = Setup(schema, digest_role=role)
    setup.agent.invoke({"messages": [request(1, 30)]}, THREAD)
    setup.agent.invoke({"messages": [request(31, 60)]}, THREAD)
    state = setup.agent.get_state(THREAD).values
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert state["compaction"]["segments"]
    assert shows_digest(setup.model.calls[-1])
    assert not any(DIGEST_WORD in message.text for message in state["messages"])
    assert_valid(setup.model.calls)
    assert_folded_once(setup.summaries.folded)
    # What was written is what the model was called with, but for the agent's own prompt.
    assert [m.id for m in state[CHANNEL]] == [m.id for m in setup.model.calls[-1][1:]]


async def test_the_same_asynchronously() -> None:
    setup = Setup()
    await setup.agent.ainvoke({"messages": [request(1, 30)]}, THREAD)
    assert shows_digest(setup.model.calls[-1])
    assert_valid(setup.model.calls)


def shown(parts: list[Any]) -> list[str]:
    return [message.text for message, _ in parts]


def assert_no_digest(texts: list[str], setup: Setup) -> None:
    assert "Finished " in texts
    assert sum(text.startswith("result-") for text in texts) == 30
    assert not any(DIGEST_WORD in text or "Record of earlier work" in text for text in texts)
    assert not any("State that the application holds" in text for text in texts)
    assert shows_digest(setup.model.calls[-1])


@pytest.mark.parametrize("role", ["human", "system"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_nothing_of_the_digest_is_streamed(role: str, version: Any) -> None:
    setup = Setup(digest_role=role, live_state=lambda _: "on it")
    asked: Any = {"messages": [request(1, 30)]}
    parts = list(setup.agent.stream(asked, THREAD, stream_mode="messages", version=version))
    texts = shown([part["data"] for part in parts] if version == "v2" else parts)
    assert_no_digest(texts, setup)


async def test_nothing_of_the_digest_is_streamed_asynchronously() -> None:
    setup = Setup(live_state=lambda _: "on it")
    asked: Any = {"messages": [request(1, 30)]}
    parts = [part async for part in setup.agent.astream(asked, THREAD, stream_mode="messages")]
    assert_no_digest(shown(parts), setup)


def test_nothing_of_the_digest_is_streamed_from_a_subgraph() -> None:
    setup = Setup()
    outer = StateGraph(CompactionState)
    outer.add_node("team", setup.agent)
    outer.add_edge(START, "team")
    outer.add_edge("team", END)
    asked: Any = {"messages": [request(1, 30)]}
    parts = outer.compile().stream(asked, STEPS, stream_mode="messages", subgraphs=True)
    assert_no_digest(shown([part for _, part in parts]), setup)


@pytest.mark.parametrize("values", [{}, {"enabled": False}, {"trigger": None}])
def test_every_visit_writes_the_view(values: dict[str, Any]) -> None:
    """An idle one, too: what the channel has is of the step before."""
    compact = node(output_messages_key=CHANNEL)
    state: Any = {"messages": [human("h1")], "compaction": {}, "compaction_settings": values}
    update = compact.invoke(state)
    assert update == {CHANNEL: state["messages"]}
    state["messages"] = [*state["messages"], agent("a1", "c"), result("c")]
    update = compact.invoke(state)
    assert update == {CHANNEL: state["messages"]}
    assert compact.route("agent")(state) == "compact"


@pytest.mark.parametrize("prune", [False, True])
def test_the_view_is_that_after_the_visit(prune: bool) -> None:
    more: Any = {"history": "prune", "archive": None} if prune else {}
    compact = node(output_messages_key=CHANNEL, **more)
    state: Any = {"messages": history(), "compaction": {}}
    before = list(state["messages"])
    update = compact.invoke(state)
    assert bool(update.get("messages")) is prune
    gone = {removal.id for removal in update.get("messages", ())}
    after: list[BaseMessage] = [message for message in before if message.id not in gone]
    state |= {"messages": after, "compaction": update["compaction"]}
    assert update[CHANNEL] == compact.view(state)
    assert any(message.id == "summarization" for message in update[CHANNEL])


@pytest.mark.parametrize("key", ["messages", "compaction", "compaction_settings", "", 7])
def test_a_channel_that_is_taken_is_refused(key: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"output_messages_key: .* of its own"):
        node(output_messages_key=key)


class Report(BaseModel):
    """What a structured answer says."""

    done: int


class Structured(ScriptedModel):
    """Gives structured answers, and remembers what it was asked for them with."""

    asked: list[list[BaseMessage]] = Field(default_factory=list)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        def answer(messages: list[BaseMessage]) -> Report:
            self.asked.append(list(messages))
            return Report(done=1)

        return RunnableLambda(answer)


class StructuredState(AgentStateWithStructuredResponse):
    compaction: Annotated[CompactionRecord, merge_compaction]


def test_a_call_for_a_structured_answer_has_all_messages() -> None:
    """As docs/how-to/pre-model-hook.md warns: LangGraph does not ask the hook for it."""
    compact = CompactionNode(Summaries(), context_window=WINDOW, output_messages_key=CHANNEL)
    model = Structured(reply=at_work)
    agent = create_react_agent(
        model,
        [work],
        pre_model_hook=compact,
        state_schema=StructuredState,
        checkpointer=InMemorySaver(),
        response_format=Report,
    )
    for first in (1, 13, 25):
        values = agent.invoke({"messages": [request(first, first + 11)]}, THREAD)
    assert values["structured_response"] == Report(done=1)
    assert shows_digest(model.calls[-1])
    assert not shows_digest(model.asked[-1])
    assert len(model.asked[-1]) == len(values["messages"]) > 2 * len(model.calls[-1])


def test_the_middleware_needs_none() -> None:
    with pytest.raises(ConfigurationError, match=r"output_messages_key: .*Leave it out"):
        CompactionMiddleware(lambda _: "", context_window=WINDOW, output_messages_key=CHANNEL)


def test_an_answer_of_the_model_is_still_streamed_once() -> None:
    """The hook's mark is for what the view made up, not for what the state has."""
    setup = Setup()
    asked: Any = {"messages": [request(1, 30)]}
    parts = list(setup.agent.stream(asked, THREAD, stream_mode="messages"))
    ids = [message.id for message, _ in parts if isinstance(message, AIMessage)]
    whole = [m.id for m in setup.agent.get_state(THREAD).values["messages"]]
    assert set(ids) <= set(whole)


class Seen(CompactionState):
    llm_input_messages: list[Any]


LONG: list[BaseMessage] = [
    agent(f"a{n}", words=100) if n % 2 else human(f"h{n}", 100) for n in range(15)
]


def refusing(calls: list[list[BaseMessage]]) -> Any:
    """A graph whose provider refuses what is too long; what it was called with goes to a list."""

    def call_model(state: Seen) -> dict[str, Any]:
        calls.append(state["llm_input_messages"])
        if sum(len(message.text) for message in calls[-1]) > 6_000:
            raise ValueError("This model's maximum context length is 1500 tokens.")
        return {"messages": [AIMessage("Done.", id="done")]}

    compact = node(output_messages_key=CHANNEL, trigger=("tokens", 50_000), clear=False)
    builder = StateGraph(Seen)
    builder.add_node("compact", compact)
    builder.add_node("agent", call_model, error_handler=overflow_handler(compact))
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    return builder


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
async def test_a_refused_call_is_made_again_and_nothing_of_its_digest_is_streamed(
    nested: bool, way: str
) -> None:
    """The handler's update has the view, too: the channel still has the one that was refused."""
    calls: list[list[BaseMessage]] = []
    graph = refusing(calls).compile(checkpointer=None if nested else InMemorySaver())
    if nested:
        outer = StateGraph(Seen)
        outer.add_node("team", graph)
        outer.add_edge(START, "team")
        graph = outer.compile(checkpointer=InMemorySaver())
    asked: Any = {"messages": LONG}
    modes: Any = {"stream_mode": "messages", "subgraphs": True}
    parts = (
        list(graph.stream(asked, THREAD, **modes))
        if way == "stream"
        else [part async for part in graph.astream(asked, THREAD, **modes)]
    )
    assert [any(m.id == "summarization" for m in call) for call in calls] == [False, True]
    streamed = [message.id for _, (message, _) in parts]
    assert streamed.count("done") == 1
    values = graph.get_state(THREAD).values
    assert values["messages"][-1].id == "done"
    assert set(streamed) <= {message.id for message in values["messages"]}


@dataclass
class Bare:
    """A state without a channel for the view."""

    messages: list[Any]
    compaction: Any


async def test_outside_a_graph_the_state_needs_no_channel_for_the_view() -> None:
    compact = node(output_messages_key=CHANNEL, trigger=("tokens", 50_000), clear=False)

    def provider(messages: list[BaseMessage]) -> AIMessage:
        if sum(len(message.text) for message in messages) > 6_000:
            raise ValueError("This model's maximum context length is 1500 tokens.")
        return AIMessage("Done.")

    recovering = with_overflow_recovery(RunnableLambda(provider), compact)
    assert recovering.invoke(Bare(LONG, {})).text == "Done."
    assert (await recovering.ainvoke(Bare(LONG, {}))).text == "Done."
