"""A real model server with a tokenizer of its own: counts, overflow, a summariser that is useless.

SmolLM2-135M behind llama.cpp's server, through ChatOpenAI. Run with `make test-llm`.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    ExtractiveSummarizer,
    ModelTier,
)
from langgraph_compaction.run.overflow import is_overflow
from tests.integration.overflowing import PINNED, Agent
from tests.support.doubles import THREAD
from tests.support.llama import LlamaServer
from tests.support.templates import TEMPLATES

pytestmark = pytest.mark.llm

WITHIN = 0.02
"""Share of the provider's count by which ours may differ."""

KINDS = {
    "prose": "The pump was opened, cleaned, closed and run for an hour without a fault. ",
    "code": "def add(a: int, b: int) -> int:\n    return a + b\n\n",
    "json": '{"id": 17, "name": "pump", "values": [1, 2.5, null]}\n',
    "log": "2031-05-07T11:02:19Z WARN pump[17] rpm=119 temp=71.5 state=ok\n",
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4\n",
    "german": "Die Pumpe wurde geöffnet, gereinigt und eine Stunde lang geprüft. ",
    "russian": "Насос был открыт, очищен, закрыт и проработал целый час. ",
    "chinese": "水泵已经打开、清洗、关闭,并且运行了一个小时没有故障。",
    "thai": "ปั๊มถูกเปิด ทำความสะอาด ปิด และทำงานหนึ่งชั่วโมง ",
    "emoji": "🚀🔥✅😀 ",
}
"""Text by content type, repeated to fill a message."""


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with LlamaServer(1_024) as running:
        yield running


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all: langchain-openai's clients keep their connections, and share them."""
    with asyncio.Runner() as running:
        yield running


def model(server: LlamaServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=server.model,
        base_url=server.url,
        api_key=SecretStr("unused"),
        temperature=0,
        max_retries=0,
        **{"max_tokens": 4, **options},
    )


def filled(server: LlamaServer, text: str, tokens: int) -> str:
    """The text, as often as it takes for about so many tokens."""
    return text * max(1, round(tokens / server.count(text)))


def templated(server: LlamaServer) -> Any:
    """A counter with the server's tokenizer and the framing of its template."""

    def count(messages: list[BaseMessage]) -> int:
        return sum(server.count(m.text) + (6 if isinstance(m, AIMessage) else 5) for m in messages)

    return count


def reported(message: Any) -> int:
    return int(message.usage_metadata["input_tokens"])


@pytest.mark.parametrize("kind", KINDS)
def test_from_the_fourth_call_on_the_count_is_the_providers(server: LlamaServer, kind: str) -> None:
    # tiktoken's vocabulary is not the model's: up to 4.6 tokens are one of ours.
    compact = CompactionNode(ExtractiveSummarizer(), context_window=1_024, trigger=None)
    agent = model(server)
    state: Any = {"messages": [SystemMessage("You inspect pumps.")], "compaction": {}}
    for turn in range(5):
        said = f"{turn}: " + filled(server, KINDS[kind], 70)
        state["messages"] = [*state["messages"], HumanMessage(said)]
        expected = compact.measure(state).tokens
        answer = agent.invoke(compact.view(state))
        if turn >= 3:
            assert expected == pytest.approx(reported(answer), rel=WITHIN)
        state["messages"] = [*state["messages"], answer]


def test_a_counter_of_the_models_own_is_exact_from_the_first_call_and_after_a_fold(
    server: LlamaServer,
) -> None:
    compact = CompactionNode(
        ExtractiveSummarizer(),
        context_window=1_024,
        trigger=("tokens", 600),
        keep=("tokens", 150),
        token_counter=templated(server),
        overhead_tokens=4,
        min_keep=0,
    )
    agent = model(server)
    state: Any = {"messages": [SystemMessage("You inspect pumps.")], "compaction": {}}
    folds = 0
    for kind, text in [*KINDS.items(), *KINDS.items()]:
        said = f"{kind}: " + filled(server, text, 60)
        state["messages"] = [*state["messages"], HumanMessage(said)]
        update = compact.invoke(state)
        folds += bool(update)
        state.update(update)
        expected = compact.measure(state).tokens
        answer = agent.invoke(compact.view(state))
        assert expected == pytest.approx(reported(answer), rel=WITHIN)
        state["messages"] = [*state["messages"], answer]
    assert folds


def test_streamed_answers_carry_usage_only_where_they_are_asked_to(server: LlamaServer) -> None:
    compact = CompactionNode(ExtractiveSummarizer(), context_window=1_024, trigger=None)
    thread: list[BaseMessage] = [HumanMessage("Is the pump well?")]
    for asked in (False, True):
        answer = model(server, streaming=True, stream_usage=asked).invoke(thread)
        state = {"messages": [*thread, answer], "compaction": {}}
        assert (compact.measure(state).reported is not None) is asked


def test_a_cached_prompt_counts_in_full(server: LlamaServer) -> None:
    compact = CompactionNode(ExtractiveSummarizer(), context_window=1_024, trigger=None)
    thread = [HumanMessage(filled(server, KINDS["prose"], 100))]
    first, second = (model(server).invoke(thread) for _ in range(2))
    assert second.usage_metadata["input_token_details"]["cache_read"] > 50
    state = {"messages": [*thread, second], "compaction": {}}
    assert compact.measure(state).reported == reported(first)


def span() -> list[BaseMessage]:
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    for n in range(20):
        call: Any = {"name": "check", "args": {"n": n}, "id": f"c{n}"}
        found.append(AIMessage("", id=f"a{n}", tool_calls=[call]))
        text = f"Pump {n} runs at {n * 7} rpm. " + KINDS["prose"] * 6
        found.append(ToolMessage(text, id=f"t{n}", tool_call_id=f"c{n}"))
    return found


def test_its_overflow_is_recognised(server: LlamaServer) -> None:
    with pytest.raises(Exception, match="exceeds the available context size") as caught:
        model(server).invoke([HumanMessage(KINDS["log"] * 100)])
    assert is_overflow(caught.value)


@pytest.mark.parametrize("window", [None, 1_024])
def test_a_useless_summariser_changes_nothing(server: LlamaServer, window: int | None) -> None:
    # It loops and invents. Without a known window it overflows first.
    events: list[dict[str, Any]] = []
    compact = CompactionNode(
        ModelTier(model(server, max_tokens=48), timeout=60, window=window),
        context_window=50_000,
        trigger=("tokens", 1_500),
        keep=("tokens", 300),
        hook=events.append,
    )
    update = compact.invoke({"messages": span(), "compaction": {}})
    assert set(update["compaction"]) == {"version", "revision", "failures"}
    kinds = [event["type"] for event in events]
    assert kinds[-1] == "compaction.failed"
    assert "compaction.rejected" in kinds
    assert ("compaction.tier_failed" in kinds) is (window is None)


def called(agent: Agent, given: Any, way: str, loop: asyncio.Runner) -> Any:
    """What the agent's graph comes to."""
    if way == "invoke":
        return agent.graph.invoke(given, THREAD)
    return loop.run(agent.graph.ainvoke(given, THREAD))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_agent_outlives_real_overflows(
    server: LlamaServer, loop: asyncio.Runner, way: str
) -> None:
    # Nobody told the node of the window: the server's refusals are all that it knows of it.
    agent = Agent(model(server))
    recovered, pinned = 0, HumanMessage(PINNED, id="pin")
    for turn, (kind, text) in enumerate([*KINDS.items(), *KINDS.items()][:14]):
        said = HumanMessage(f"{turn}, {kind}: " + filled(server, text, 130), id=f"h{turn}")
        state = called(agent, {"messages": [said] if turn else [pinned, said]}, way, loop)
        assert reported(state["messages"][-1]) <= server.n_ctx
        recovered += agent.kinds.count("completed")
        agent.events.clear()
        shown = agent.compact.view(state)
        assert {"pin", said.id} <= {message.id for message in shown}
    assert len(state["messages"]) == 29
    assert 2 <= recovered <= 5
    assert agent.summariser.calls == 0


@pytest.mark.parametrize("kind", ["prose", "base64", "chinese", "thai"])
def test_a_first_call_that_is_far_too_long_is_recovered_from(
    server: LlamaServer, kind: str
) -> None:
    # Up to 4.6 of the server's tokens are one of ours; it says how many it found.
    agent = Agent(model(server))
    turns: list[BaseMessage] = []
    for turn in range(20):
        said = HumanMessage(f"{turn}: " + filled(server, KINDS[kind], 150), id=f"h{turn}")
        turns += [said, AIMessage("Noted.", id=f"a{turn}")]
    state = agent.run({"messages": [*turns, HumanMessage("Well?", id="q")]})
    assert reported(state["messages"][-1]) <= server.n_ctx
    assert agent.kinds == ["started", "completed"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_what_no_reduction_makes_fit_ends_with_sizes(
    server: LlamaServer, loop: asyncio.Runner, way: str
) -> None:
    agent = Agent(model(server))
    prompt = SystemMessage(filled(server, KINDS["prose"], 2_000))
    given = {"messages": [prompt, HumanMessage("Is the pump well?")]}
    with pytest.raises(BudgetError, match="system messages") as caught:
        called(agent, given, way, loop)
    assert is_overflow(caught.value.__cause__)


def rambling(prompt: bool, tools: bool) -> list[BaseMessage]:
    """A person who writes twice in a row, an agent that says twice the same, a late instruction."""
    found: list[BaseMessage] = [SystemMessage("You inspect pumps.", id="s")] if prompt else []
    for n in range(8):
        found += [HumanMessage(f"Look at pump {n}. " + KINDS["prose"], id=f"h{n}")]
        found += [HumanMessage("At once.", id=f"i{n}")] if n % 2 else []
        if tools and n % 3:
            call: Any = {"name": "check", "args": {"n": n}, "id": f"c{n}"}
            found.append(AIMessage("I look.", id=f"k{n}", tool_calls=[call]))
            found.append(ToolMessage(f"Pump {n} runs.", id=f"t{n}", tool_call_id=f"c{n}"))
        found += [AIMessage("It is well.", id=f"a{n}")] if n % 4 else []
        found += [SystemMessage("Be brief.", id="late")] if prompt and n == 4 else []
    return [*found, HumanMessage("Are all well?", id="last")]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_strict_chat_template_takes_every_view(name: str) -> None:
    # The server runs the template itself, and refuses what it raises on.
    history = rambling(prompt=name != "Gemma", tools=name == "Mistral 3")
    with LlamaServer(1_024, TEMPLATES[name]) as server:
        refused = dict.fromkeys(["alternating", "any"], 0)
        for roles in refused:
            compact = CompactionNode(
                ExtractiveSummarizer(),
                context_window=1_024,
                trigger=("tokens", 300),
                keep=("messages", 4),
                min_fold_tokens=0,
                roles=roles,
            )
            state: Any = {"messages": [], "compaction": {}}
            for message in history:
                state["messages"] = [*state["messages"], message]
                if isinstance(message, HumanMessage | ToolMessage):
                    state.update(compact.invoke(state))
                    view = compact.view(state)
                    try:
                        server.template(view)
                    except RuntimeError:
                        refused[roles] += 1
            assert state["compaction"]["segments"]
            if roles == "alternating" and name != "Mistral 3":  # the model knows no tools
                assert reported(model(server).invoke(compact.view(state))) <= server.n_ctx
        assert refused["alternating"] == 0
        assert refused["any"] > 3


def test_the_models_own_template_writes_each_role_in_turn(server: LlamaServer) -> None:
    compact = CompactionNode(
        ExtractiveSummarizer(), context_window=1_024, trigger=("tokens", 300), roles="alternating"
    )
    state: Any = {"messages": rambling(prompt=True, tools=False), "compaction": {}}
    state.update(compact.invoke(state))
    written = server.template(compact.view(state))
    turns = [part.partition("\n")[0] for part in written.split("<|im_start|>")[1:]]
    assert turns[0] == "system"
    assert turns[1:] == ["user", "assistant"] * (len(turns[1:]) // 2)
    assert written.count("You inspect pumps.\n\nBe brief.") == 1
    assert reported(model(server).invoke(compact.view(state))) <= server.n_ctx
