"""What of a fold reaches those who watch a run: the custom events, and nothing of the summary.

A summariser is whatever a user passes; a chat model inside it streams where the agent's does, and
must stay out of `stream_mode="messages"` all the same.
"""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.func import entrypoint

from langgraph_compaction import CompactionNode
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.doubles import (
    DIGEST_WORD,
    STEPS,
    WINDOW,
    ScriptedModel,
    digest,
    loop,
    request,
    result,
    steps_done,
    work,
    worker,
)

ASKED: Any = {"messages": [request(1, 20)]}


def chat_model() -> ScriptedModel:
    return ScriptedModel(reply=lambda _: AIMessage(digest(1)))


def configured() -> Any:
    return chat_model().with_config(tags=["mine"], run_name="agent")


def chain() -> Any:
    passing: RunnableLambda[Any, Any] = RunnableLambda(lambda messages: messages)
    return passing | chat_model()


def function() -> Any:
    model = chat_model()

    def summarise(messages: list[BaseMessage]) -> BaseMessage:
        return model.invoke(messages)

    return summarise


def coroutine() -> Any:
    model = chat_model()

    async def summarise(messages: list[BaseMessage]) -> BaseMessage:
        return await model.ainvoke(messages)

    return summarise


def graph(summariser: Any) -> Any:
    return loop(CompactionNode(summariser, context_window=WINDOW), worker())


def graph_with_the_runs_name(summariser: Any) -> Any:
    # LangGraph takes what a run of a node's own name returns for that node's output.
    compact = CompactionNode(summariser, context_window=WINDOW, name="compaction")
    return loop(compact, worker())


def agent(summariser: Any) -> Any:
    middleware = CompactionMiddleware(summariser, context_window=WINDOW)
    return create_agent(worker(), [work], middleware=[middleware])


Make = Callable[[], Any]
Build = Callable[[Any], Any]
kinds = pytest.mark.parametrize("kind", [chat_model, configured, chain, function])
doors = pytest.mark.parametrize("build", [graph, graph_with_the_runs_name, agent])


def assert_no_summary(shown: list[Any], events: list[Any], state: Any) -> None:
    """The stream shows the agent's words and tool results; events tell of the folds."""
    texts = [message.text for message, _ in shown]
    assert "Finished " in texts
    assert sum(text.startswith("result-") for text in texts) == 20
    assert not any(DIGEST_WORD in text or "Goal" in text for text in texts)
    assert events[0]["type"] == "compaction.started"
    assert "compaction.completed" in {event["type"] for event in events}
    assert state["compaction"]["segments"]
    assert steps_done(state["messages"]) == list(range(1, 21))


@kinds
@doors
def test_nothing_of_a_summary_is_streamed(kind: Make, build: Build) -> None:
    parts: dict[str, list[Any]] = {"messages": [], "custom": [], "values": []}
    for mode, part in build(kind()).stream(ASKED, STEPS, stream_mode=list(parts)):
        parts[mode].append(part)
    assert_no_summary(parts["messages"], parts["custom"], parts["values"][-1])


@pytest.mark.parametrize("kind", [chat_model, configured, chain, function, coroutine])
@doors
async def test_nothing_of_a_summary_is_streamed_asynchronously(kind: Make, build: Build) -> None:
    parts: dict[str, list[Any]] = {"messages": [], "custom": [], "values": []}
    async for mode, part in build(kind()).astream(ASKED, STEPS, stream_mode=list(parts)):
        parts[mode].append(part)
    assert_no_summary(parts["messages"], parts["custom"], parts["values"][-1])


@kinds
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_nothing_of_a_summary_is_in_run_messages(kind: Make) -> None:
    run = agent(kind()).stream_events(ASKED, version="v3")
    texts = [str(message.text) for message in run.messages]
    assert any("Finished" in text for text in texts)
    assert not any(DIGEST_WORD in text for text in texts)


HISTORY: list[BaseMessage] = [AIMessage(result(n), id=str(n)) for n in range(1, 21)]


@pytest.mark.parametrize("caller", ["none", "function", "chain", "entrypoint"])
def test_outside_a_state_graph_events_go_to_the_log(
    caller: str, caplog: pytest.LogCaptureFixture
) -> None:
    compact = CompactionNode(lambda _: digest(1), context_window=WINDOW)

    def function(state: Any) -> Any:
        return compact.invoke(state)

    runnables: dict[str, Runnable[Any, Any]] = {
        "none": compact,
        "function": RunnableLambda(function),
        "chain": RunnableLambda(lambda state: state) | compact,
        "entrypoint": entrypoint()(function),
    }
    caplog.set_level(logging.INFO, "langgraph_compaction")
    update = runnables[caller].invoke({"messages": HISTORY, "compaction": {}})
    assert update["compaction"]["segments"]
    assert [record.event["type"] for record in caplog.records if hasattr(record, "event")] == [
        "compaction.started",
        "compaction.completed",
    ]
