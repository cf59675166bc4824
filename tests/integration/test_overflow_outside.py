"""`with_overflow_recovery`: a call that is refused as too long, where no graph could commit."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    ConfigurationError,
    ExtractiveSummarizer,
    MissingChannelError,
    with_overflow_recovery,
)
from langgraph_compaction.run.overflow import is_overflow
from langgraph_compaction.run.telling import MOST_WARNINGS
from tests.integration.overflowing import (
    ANSWER,
    OVERFLOW,
    PINNED,
    Watched,
    assert_recovered,
    ran,
    refusing,
    said,
    sent,
    thread,
)
from tests.support.folding import chat
from tests.support.logs import warnings_in
from tests.support.openai_server import (
    LOOKALIKES,
    OVERFLOWS,
    OpenAIServer,
    rate_limited,
    text,
)
from tests.support.openai_server.clients import OTHER_HALF, WAYS, chat_model, wire_model

LOG = "".join(f"Line {n} of the log.\n" for n in range(1_500))
each_way = pytest.mark.parametrize("way", WAYS)


def called(runnable: Any, given: Any, way: str) -> Any:
    """What a Runnable returns, or all of what it streams, in one of four ways."""

    async def collected() -> list[Any]:
        return [chunk async for chunk in runnable.astream(given)]

    if way == "stream":
        return [*runnable.stream(given)]
    if way == "astream":
        return asyncio.run(collected())
    return ran(runnable, given, way, {})


def text_of(found: Any) -> str:
    return "".join(chunk.text for chunk in found) if isinstance(found, list) else found.text


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [(shape, *OTHER_HALF[n % len(OTHER_HALF)]) for n, shape in enumerate(OVERFLOWS)],
)
def test_every_providers_refusal_is_recovered_from(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    watched = Watched()
    answering = with_overflow_recovery(wire_model(server, wire, "m"), watched.compact)
    assert called(answering, {"messages": thread(), "compaction": {}}, way).text == ANSWER
    assert_recovered(watched, server)


@each_way
@pytest.mark.parametrize("shape", ["openai", "openai midway"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_streams_begin_anew_as_long_as_nothing_was_said(
    server: OpenAIServer, api: str, shape: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, api), watched.compact)
    assert text_of(called(answering, {"messages": thread(), "compaction": {}}, way)) == ANSWER
    assert_recovered(watched, server)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_has_said_something_is_not_repeated(way: str) -> None:
    chunks = [AIMessageChunk(""), AIMessageChunk("All parts")]

    def stream(messages: Any) -> Any:
        yield from chunks
        raise ValueError("maximum context length is 8192 tokens")

    async def astream(messages: Any) -> Any:
        for chunk in chunks:
            yield chunk
        raise ValueError("maximum context length is 8192 tokens")

    watched = Watched()
    model = RunnableLambda(stream, afunc=astream)
    answering = with_overflow_recovery(model, watched.compact)
    state = {"messages": thread(), "compaction": {}}
    heard: list[Any] = []

    async def listen() -> None:
        async for chunk in answering.astream(state):
            heard.append(chunk)  # noqa: PERF401  # one by one: it ends with an error

    def listen_in_time() -> None:
        for chunk in answering.stream(state):
            heard.append(chunk)  # noqa: PERF402  # the same

    with pytest.raises(ValueError, match="maximum context"):
        asyncio.run(listen()) if way == "astream" else listen_in_time()
    assert heard == chunks
    assert watched.events == []


@each_way
def test_an_answer_without_a_refusal_is_the_models(server: OpenAIServer, way: str) -> None:
    server.answer(text(ANSWER))
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    assert text_of(called(answering, {"messages": thread(), "compaction": {}}, way)) == ANSWER
    assert len(server.requests) == 1
    assert watched.events == []


@each_way
def test_refused_twice_it_is_a_budget_error_with_sizes(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW)
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    with pytest.raises(BudgetError, match="although it was reduced") as caught:
        called(answering, {"messages": thread(), "compaction": {}}, way)
    first, second = sent(server)
    assert second < first * 0.65
    assert sum(caught.value.sizes.values()) == watched.events[-2]["tokens_after"]
    assert is_overflow(caught.value.__cause__)
    assert watched.summariser.calls == 0


@each_way
def test_other_errors_pass_as_they_are(server: OpenAIServer, way: str) -> None:
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    server.answer(LOOKALIKES["rate"])
    with pytest.raises(Exception, match="tokens per minute"):
        called(answering, {"messages": thread(), "compaction": {}}, way)
    assert len(server.requests) == 1
    server.answer(OVERFLOW, rate_limited(7))
    with pytest.raises(Exception, match="429"):
        called(answering, {"messages": thread(), "compaction": {}}, way)
    assert len(server.requests) == 3


@each_way
@pytest.mark.parametrize("off", [{"enabled": False}, {"trigger": None}], ids=str)
def test_off_is_off(server: OpenAIServer, off: dict[str, Any], way: str) -> None:
    server.answer(OVERFLOW)
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    state = {"messages": thread(), "compaction": {}, "compaction_settings": off}
    with pytest.raises(Exception, match="maximum context length") as caught:
        called(answering, state, way)
    assert not isinstance(caught.value, BudgetError)
    assert len(server.requests) == 1


class Model(BaseModel):
    """A pydantic state."""

    messages: list[Any]
    compaction: dict[str, Any] = {}


@dataclass
class Data:
    """A dataclass as state."""

    messages: list[Any]
    compaction: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "given",
    [
        thread,
        lambda: [(m.type, m.text) for m in thread() if m.type != "tool"] + [("user", LOG)],
        lambda: Model(messages=thread()),
        lambda: Data(messages=thread()),
        lambda: ChatPromptTemplate([MessagesPlaceholder("all")]).invoke({"all": thread()}),
    ],
    ids=["messages", "pairs", "pydantic", "dataclass", "prompt"],
)
def test_it_takes_states_of_every_kind_and_lists_of_messages(
    server: OpenAIServer, given: Any
) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    assert answering.invoke(given()).text == ANSWER
    assert_recovered(watched, server)


def test_the_state_is_not_changed_and_the_digest_in_it_counts(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    state: dict[str, Any] = {"messages": thread(), "compaction": {}}
    answering.invoke(state)
    assert state == {"messages": thread(), "compaction": {}}
    # Nothing was kept, so the next call begins with the whole view again.
    answering.invoke(state)
    assert len(server.requests) == 4
    assert said(server.requests[0]) == said(server.requests[2])
    assert said(server.requests[1]) == said(server.requests[3])


def test_nothing_is_archived_or_pruned(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    store = InMemoryStore()
    watched = Watched(history="prune", archive=store)
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    config: Any = {"configurable": {"thread_id": "t"}}
    answering.invoke({"messages": thread(), "compaction": {}}, config)
    assert_recovered(watched, server)
    assert store.list_namespaces() == []


def test_it_is_part_of_a_chain_and_takes_the_agents_prompt(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    answering = with_overflow_recovery(
        chat_model(server.url, "chat"), watched.compact, system="Be brief."
    )
    chain = RunnableLambda(lambda text: [*thread(), HumanMessage(text)]) | answering
    assert (chain | StrOutputParser()).invoke("Well?") == ANSWER
    assert_recovered(watched, server)
    assert [m["content"] for m in server.requests[-1]["messages"][:2]] == [
        "Be brief.",
        "You measure.",
    ]
    assert PINNED in said(server.requests[-1])


def test_other_threads_go_their_own_way_at_the_same_time(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    watched = Watched()
    answering = with_overflow_recovery(chat_model(server.url, "chat"), watched.compact)
    answers = answering.batch([thread(), thread(3), thread(52)])
    assert [answer.text for answer in answers] == [ANSWER] * 3
    assert len(server.requests) == 5
    assert watched.kinds.count("completed") == 2


def test_the_view_is_the_nodes(server: OpenAIServer) -> None:
    watched = Watched()
    seen: list[Any] = []

    def model(messages: list[Any]) -> AIMessage:
        seen.append(messages)
        return AIMessage(ANSWER)

    answering = with_overflow_recovery(RunnableLambda(model), watched.compact)
    state = {"messages": thread(), "compaction": {}}
    answering.invoke(state)
    assert seen == [watched.compact.view(state)]
    with pytest.raises(MissingChannelError):
        answering.invoke({"messages": thread()})


def test_wrong_arguments() -> None:
    with pytest.raises(ConfigurationError, match="is no CompactionNode"):
        with_overflow_recovery(RunnableLambda(len), "compact")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="is no Runnable"):
        with_overflow_recovery(len, Watched().compact)  # type: ignore[arg-type]


def test_of_more_warnings_than_the_most_the_rest_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A text that names another limit each time is another warning each time."""
    compact = CompactionNode(ExtractiveSummarizer(), context_window=60_000, clear=False)
    refused: set[int] = set()

    for limit in range(1_500, 1_500 + 2 * MOST_WARNINGS):

        def provider(_: Any, limit: int = limit) -> AIMessage:
            if limit in refused:
                return AIMessage(ANSWER)
            refused.add(limit)
            raise ValueError(f"This model's maximum context length is {limit} tokens.")

        answering = with_overflow_recovery(RunnableLambda(provider), compact)
        state = {"messages": chat(40), "compaction": {}}
        assert answering.invoke(state).text == ANSWER
    warnings = warnings_in(caplog, "names a limit of")
    assert len(set(warnings)) == len(warnings) == MOST_WARNINGS
