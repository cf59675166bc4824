"""What comes out of an agent: structured answers, subgraphs, and streams of every kind."""

import asyncio
import json
import warnings
from typing import Any

import pytest
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain.agents.structured_output import (
    AutoStrategy,
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langsmith import Client
from langsmith.run_helpers import tracing_context
from pydantic import BaseModel

from langgraph_compaction import CompactionState
from tests.support.beside import OURS, WAYS, Beside, steady
from tests.support.doubles import (
    DIGEST_WORD,
    THREAD,
    ScriptedModel,
    assert_folded_once,
    assert_valid,
    request,
    requested,
    shows_digest,
    steps_done,
)

ALL = list(range(1, 37))
OVERFLOW = "The prompt is too long: it exceeds the model's maximum context length."


class Report(BaseModel):
    """What was done."""

    up_to: int


def reporting(kind: str, up_to: Any = None) -> ScriptedModel:
    """An agent whose answer to each request is a report, as one of two strategies wants it."""
    model = steady()
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        answer: AIMessage = working(messages)
        if answer.tool_calls:
            return answer
        last = requested(messages)[1]
        report = {"up_to": last if up_to is None else up_to}
        if kind == "provider":
            return AIMessage(json.dumps(report))
        call = {"name": "Report", "args": report, "id": f"r{last}"}
        return AIMessage("", tool_calls=[call])

    def numbered(messages: list[BaseMessage]) -> AIMessage:
        """The call of a report counts for no step."""
        shown = [
            m.model_copy(update={"tool_calls": []})
            if isinstance(m, AIMessage) and any(call["name"] == "Report" for call in m.tool_calls)
            else m
            for m in messages
        ]
        return reply(shown)

    model.reply = numbered
    scripted: ScriptedModel = model
    return scripted


STRATEGIES = {
    "tool": ToolStrategy(Report),
    "provider": ProviderStrategy(Report),
    "auto": AutoStrategy(Report),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_structured_answers_come_with_every_run(strategy: str, way: str) -> None:
    model = reporting("provider" if strategy == "provider" else "tool")
    run = Beside(first=True, model=model, response_format=STRATEGIES[strategy])
    for step in (1, 13, 25):
        run.run((step, step + 11), way)
        assert run.values["structured_response"] == Report(up_to=step + 11)
    run.assert_sound(ALL)
    assert shows_digest(run.calls[-1])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["tool", "provider"])
def test_an_answer_that_does_not_fit_its_schema_is_no_overflow(kind: str, way: str) -> None:
    """Its error quotes what the model wrote, and that may speak of anything."""
    strategy: Any = (
        ToolStrategy(Report, handle_errors=False) if kind == "tool" else ProviderStrategy(Report)
    )
    run = Beside(first=True, model=reporting(kind, OVERFLOW), response_format=strategy)
    with pytest.raises(StructuredOutputValidationError, match="maximum context length"):
        run.ask("Do steps 1 to 3.", way)
    assert len(run.calls) == 4
    assert run.events == []


@pytest.mark.parametrize("first", [True, False], ids=["other-first", "ours-first"])
def test_a_repair_of_a_structured_answer_is_called_for_with_the_view(first: bool) -> None:
    """`ToolStrategy` hands an error to the model, which answers anew."""
    model = reporting("tool")
    given, wrong = model.reply, iter([True])

    def reply(messages: list[BaseMessage]) -> AIMessage:
        answer = given(messages)
        if [call["name"] for call in answer.tool_calls] == ["Report"] and next(wrong, False):
            bad = {**answer.tool_calls[0], "args": {"up_to": "far"}, "id": "bad"}
            return answer.model_copy(update={"tool_calls": [bad]})
        return answer

    model.reply = reply
    others = (ModelFallbackMiddleware(reporting("tool")), ModelRetryMiddleware(initial_delay=0))
    run = Beside(*others, first=first, model=model, response_format=ToolStrategy(Report))
    run.run((1, 36))
    assert run.values["structured_response"] == Report(up_to=36)
    assert [m.status for m in run.messages if getattr(m, "tool_call_id", "") == "bad"]
    assert len(run.calls) == 38
    assert_valid(run.calls)
    assert_folded_once(run.summaries.folded)


@pytest.mark.parametrize("way", WAYS)
def test_as_a_subgraph_the_stream_has_the_agents_words_alone(way: str) -> None:
    run = Beside(first=True, checkpointer=None)
    builder = StateGraph(CompactionState)
    builder.add_node("worker", run.agent)
    builder.add_edge(START, "worker")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    modes: Any = {
        "stream_mode": ["messages", "updates", "custom"],
        "subgraphs": True,
        "version": "v2",
    }

    async def collected(asked: Any) -> list[Any]:
        return [part async for part in graph.astream(asked, THREAD, **modes)]

    parts: list[Any] = []
    for step in (1, 13, 25):
        asked = {"messages": [request(step, step + 11)]}
        if way == "stream":
            parts += graph.stream(asked, THREAD, **modes)
        else:
            parts += asyncio.run(collected(asked))
    assert steps_done(graph.get_state(THREAD).values["messages"]) == ALL
    assert_folded_once(run.summaries.folded)
    assert_valid(run.calls)
    said = [part["data"][0] for part in parts if part["type"] == "messages"]
    assert not any(DIGEST_WORD in message.text for message in said)
    ai = [m for m in said if isinstance(m, AIMessage)]
    assert {m.text.strip() for m in ai} >= {"call-0001", "call-0036"}
    names = {name for p in parts if p["type"] == "updates" for name in p["data"]}
    assert names == {"worker", "model", "tools", OURS}
    told = [part["data"]["type"] for part in parts if part["type"] == "custom"]
    assert {name.partition(".")[0] for name in told} == {"compaction"}


def test_a_subgraph_keeps_its_record_where_the_graph_around_has_no_channel() -> None:
    run = Beside(first=True, checkpointer=True)
    builder = StateGraph(MessagesState)
    builder.add_node("worker", run.agent)
    builder.add_edge(START, "worker")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    for step in (1, 13, 25):
        graph.invoke({"messages": [request(step, step + 11)]}, THREAD)
    assert steps_done(graph.get_state(THREAD).values["messages"]) == ALL
    assert_folded_once(run.summaries.folded)


@pytest.mark.parametrize("modes", ["values", "updates", "messages", "custom", "tasks"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_each_stream_mode_has_what_is_its_own(modes: Any, version: Any) -> None:
    run = Beside(first=True)
    parts = list(
        run.agent.stream({"messages": [request(1, 36)]}, THREAD, stream_mode=modes, version=version)
    )
    data = [part["data"] for part in parts] if version == "v2" else parts
    assert len(run.summaries.prompts) > 1
    if modes == "messages":
        assert not any(DIGEST_WORD in message.text for message, _ in data)
        streamed = {meta.get("lc_source") for _, meta in data}
        assert streamed == {None}
    elif modes == "values":
        # The digest is in the record, and in no message.
        assert not any(DIGEST_WORD in m.text for one in data for m in one["messages"])
        assert any(DIGEST_WORD in str(one["compaction"]) for one in data)
    elif modes == "custom":
        assert [one["type"] for one in data].count("compaction.completed") >= 2
    elif modes == "updates":
        assert all(len(one) == 1 for one in data)
    else:
        assert {one["name"] for one in data} == {"model", "tools", OURS}


@pytest.mark.parametrize("way", WAYS)
def test_events_of_the_third_version_have_no_summary(way: str) -> None:
    """Its `messages` are one by one what the agent's model said."""
    run = Beside(first=True)

    async def collected() -> list[str]:
        stream = await run.agent.astream_events(asked, THREAD, version="v3")
        return [str(await message.text) async for message in stream.messages]

    asked = {"messages": [request(1, 36)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangGraph's: the protocol is experimental
        if way == "stream":
            stream = run.agent.stream_events(asked, THREAD, version="v3")
            texts = [str(message.text) for message in stream.messages]
        else:
            texts = asyncio.run(collected())
    assert len(run.summaries.prompts) > 1
    assert len(texts) == len(run.calls) == 37
    assert not any(DIGEST_WORD in text for text in texts)


@pytest.mark.parametrize("first", [True, False], ids=["other-first", "ours-first"])
def test_a_named_agent_is_named_in_its_answers_alone(first: bool) -> None:
    run = Beside(ModelRetryMiddleware(), first=first, name="fitter")
    run.work()
    run.assert_sound(ALL)
    assert {m.name for m in run.messages if isinstance(m, AIMessage)} == {"fitter"}


class Traces(Client):
    """Takes the place of LangSmith's: keeps how long the inputs of each run are."""

    def __init__(self) -> None:
        super().__init__(api_url="http://127.0.0.1:9", api_key="x", auto_batch_tracing=False)
        self.inputs: dict[str, list[int]] = {}

    def create_run(self, name: str, inputs: Any, run_type: Any, **kwargs: Any) -> None:
        self.inputs.setdefault(name, []).append(len(str(inputs)))

    def update_run(self, *args: Any, **kwargs: Any) -> None:
        """Outputs are small."""


def test_a_trace_has_the_view_and_not_the_thread_with_every_call() -> None:
    run, traces = Beside(first=True), Traces()
    with tracing_context(enabled=True, client=traces):
        run.agent.invoke(
            {"messages": [request(1, 36)]},
            {**THREAD, "callbacks": [LangChainTracer(client=traces)]},
        )
    ours = [name for name in traces.inputs if name.startswith("CompactionMiddleware.")]
    steps = ["before_model", "wrap_model_call", "wrap_tool_call"]
    assert sorted(ours) == [f"CompactionMiddleware.{step}" for step in steps]
    assert max(size for name in ours for size in traces.inputs[name]) < 100
    assert min(traces.inputs["ScriptedModel"]) > 100
    assert len(traces.inputs["langgraph_compaction.summary"]) == len(run.summaries.prompts) > 1
