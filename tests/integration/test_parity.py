"""The synchronous and the asynchronous run of everything do the same.

The same histories give the same records, the same prompts and the same events.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ExtractiveSummarizer,
)
from tests.support.doubles import THREAD, ScriptedModel, Summaries
from tests.support.histories import random_history


class FailsNow(Summaries):
    """Bad at every third call, whoever asks."""

    def __call__(self, messages: list[BaseMessage]) -> str:
        answer = super().__call__(messages)
        if len(self.prompts) % 3 == 1:
            raise RuntimeError("500")
        return "" if len(self.prompts) % 3 == 2 else answer


class Model(Summaries):
    """A chat model with the same interface."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ScriptedModel(reply=lambda prompt: AIMessage(self(prompt)))


def function(_: bool) -> tuple[Any, list[Summaries]]:
    one = Summaries()
    return one, [one]


def coroutine(asynchronous: bool) -> tuple[Any, list[Summaries]]:
    one = Summaries()

    def summarise(messages: list[BaseMessage]) -> str:
        return one(messages)

    async def asummarise(messages: list[BaseMessage]) -> str:
        return one(messages)

    asummarise.__name__ = summarise.__name__  # a segment names who wrote it
    return asummarise if asynchronous else summarise, [one]


def chat_model(_: bool) -> tuple[Any, list[Summaries]]:
    one = Model()
    return one.model, [one]


def failing(_: bool) -> tuple[Any, list[Summaries]]:
    one, two = FailsNow(), FailsNow()
    return [one, two], [one, two]


def extractive(_: bool) -> tuple[Any, list[Summaries]]:
    return ExtractiveSummarizer(), []


Make = Callable[[bool], tuple[Any, list[Summaries]]]


async def visits(
    make: Make, history: list[BaseMessage], options: dict[str, Any], *, asynchronous: bool
) -> dict[str, Any]:
    """Everything that comes of a thread that grows by eight messages a visit."""
    summariser, seen = make(asynchronous)
    builder = StateGraph(CompactionState)
    builder.add_node("compact", CompactionNode(summariser, **options))
    builder.add_edge(START, "compact")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    records: list[Any] = []
    errors: list[str] = []
    events: list[Any] = []
    for start in range(0, len(history), 8):
        given = {"messages": deepcopy(history[start : start + 8])}
        try:
            if asynchronous:
                events += [e async for e in graph.astream(given, THREAD, stream_mode="custom")]
            else:
                events += list(graph.stream(given, THREAD, stream_mode="custom"))
        except BudgetError as error:
            errors.append(str(error))
        records.append(graph.get_state(THREAD).values["compaction"])
    for event in events:
        event.pop("duration", None)
    prompts = [[message.content for message in p] for one in seen for p in one.prompts]
    return {"records": records, "prompts": prompts, "events": events, "errors": errors}


SOFT = {"context_window": 100_000, "trigger": ("tokens", 500), "max_digest_tokens": 300}
HARD = {"context_window": 3_000, "max_digest_tokens": 300}
ALL = {"context_window": 100_000, "trigger": ("steps", 5), "keep": ("messages", 0)}


@pytest.mark.parametrize("make", [function, coroutine, chat_model, failing, extractive])
@pytest.mark.parametrize("options", [SOFT, HARD, ALL])
async def test_both_ways_end_in_the_same(make: Make, options: dict[str, Any]) -> None:
    folds = 0
    for seed in range(2):
        history = random_history(random.Random(seed), length=64)
        one = await visits(make, history, options, asynchronous=False)
        other = await visits(make, history, options, asynchronous=True)
        assert one == other
        folds += len(one["records"][-1].get("segments", ()))
    assert folds
