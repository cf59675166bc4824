"""Agents whose provider refuses long calls: real graphs, a real client, a server that counts."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState, overflow_handler
from tests.support.doubles import THREAD
from tests.support.openai_server import OVERFLOWS, Case, Exchange, OpenAIServer, text
from tests.support.openai_server.clients import wire_model
from tests.support.openai_server.runs import transcript
from tests.support.openai_server.wire import Json

OVERFLOW = OVERFLOWS["openai"]
WAYS = ("invoke", "ainvoke")
each_way = pytest.mark.parametrize("way", WAYS)
FITS = 24_000
"""Characters of all messages together, as JSON, that the server takes; `thread` has some 32,000."""
ANSWER = "All parts are as drawn."
PINNED = "[pin] Part 7 must never be touched."
TASK = "Measure every part."


def thread(steps: int = 50) -> list[BaseMessage]:
    """A transcript that is longer than the server takes: a prompt, a task, a pin, many steps."""
    task, *work = transcript(steps)
    pin = HumanMessage(PINNED, id="pin")
    return [SystemMessage("You measure.", id="system"), task, pin, *work]


def said(request: Json) -> str:
    """The messages of a request to either API, as JSON."""
    return json.dumps(request.get("messages") or request["input"], ensure_ascii=False)


def sent(server: OpenAIServer) -> list[int]:
    """Characters of the messages of each request that came in."""
    return [len(said(request)) for request in server.requests]


def refusing(overflow: Case, fits: int = FITS) -> Case:
    """The overflow for every call that is longer than ``fits``, else an answer."""
    good = text(ANSWER)

    def case(exchange: Exchange) -> None:
        (overflow if len(said(exchange.body)) > fits else good)(exchange)

    return case


class Unasked:
    """A summariser that must not be asked."""

    calls = 0

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.calls += 1
        return "No digest."


class Watched:
    """A compaction node with a window that `thread` is far from filling, and what it told.

    Attributes:
        events: of all runs.
        summariser: the node's.
        compact: the node.
    """

    def __init__(self, **options: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.summariser = Unasked()
        rules = {
            "context_window": 100_000,
            "pinned": {"contains": "[pin]"},
            "hook": self.events.append,
            **options,
        }
        self.compact = CompactionNode(self.summariser, **rules)

    @property
    def kinds(self) -> list[str]:
        """The types of the events, without what all of them begin with."""
        return [event["type"].removeprefix("compaction.") for event in self.events]

    def agent(self, model: Runnable[Any, Any]) -> Runnable[Any, Any]:
        """A graph's node that calls the model with the view."""

        def agent(state: CompactionState) -> dict[str, Any]:
            return {"messages": [model.invoke(self.compact.view(state))]}

        async def aagent(state: CompactionState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(self.compact.view(state))]}

        return RunnableLambda(agent, afunc=aagent)

    def builder(self, agent: Any) -> Any:
        """A graph of nothing but an agent with the handler."""
        builder = StateGraph(CompactionState)
        builder.add_node("agent", agent, error_handler=overflow_handler(self.compact))
        builder.add_edge(START, "agent")
        return builder


class Agent(Watched):
    """A compiled graph of nothing but an agent with the handler."""

    def __init__(self, model: Runnable[Any, Any], *, saver: Any = None, **options: Any) -> None:
        super().__init__(**options)
        builder = self.builder(self.agent(model))
        self.graph = builder.compile(checkpointer=saver or InMemorySaver())

    def run(self, given: Any, way: str = "invoke", config: Any = None) -> Any:
        """Run the graph in one of two ways: "invoke" or "ainvoke"."""
        return ran(self.graph, given, way, config)


def ran(graph: Any, given: Any, way: str, config: Any = None) -> Any:
    """What a graph or another Runnable returns, called in one of two ways."""
    config = THREAD if config is None else config
    if way == "invoke":
        return graph.invoke(given, config)
    return asyncio.run(graph.ainvoke(given, config))


def steps_of(graph: Any) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Of each checkpoint, the oldest first, what runs next and the record in it."""
    history = [*graph.get_state_history(THREAD)][::-1]
    return [(state.next, state.values.get("compaction", {})) for state in history]


def assert_recovered(watched: Watched, server: OpenAIServer) -> None:
    """The server refused one call, one reduction followed, and the second call was answered."""
    first, second = sent(server)
    assert second <= FITS < first
    kinds = watched.kinds
    assert kinds in (
        ["started", "cleared"],
        ["started", "completed"],
        ["started", "cleared", "completed"],
    )
    assert {event["need"] for event in watched.events} == {"overflow"}
    assert watched.events[-1]["tokens_after"] < watched.events[-1]["tokens_before"] * 0.65
    assert watched.summariser.calls == 0
    shown = said(server.requests[-1])
    assert PINNED in shown
    assert TASK in shown


def model(server: OpenAIServer, wire: str = "chat-whole") -> ChatOpenAI:
    """The agent's model, as a client of the server."""
    return wire_model(server, wire, "agent-model")
