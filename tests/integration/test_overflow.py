"""A provider that refuses the agent's own call as too long, in a graph with `overflow_handler`."""

import asyncio
from typing import Any, Literal, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ConfigurationError,
    MissingChannelError,
    edit_digest,
    model_view,
    overflow_handler,
)
from langgraph_compaction.run.overflow import is_overflow
from tests.integration.overflowing import (
    ANSWER,
    OVERFLOW,
    PINNED,
    TASK,
    Agent,
    Watched,
    assert_recovered,
    each_way,
    model,
    ran,
    refusing,
    said,
    sent,
    steps_of,
    thread,
)
from tests.support.doubles import THREAD
from tests.support.openai_server import LOOKALIKES, OVERFLOWS, OpenAIServer, rate_limited, text
from tests.support.openai_server.clients import APIS, HALF
from tests.support.validity import violations


def asked(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"And what of part {number}?", id=f"q{number}")]}


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [(shape, *HALF[n % len(HALF)]) for n, shape in enumerate(OVERFLOWS)],
)
def test_every_providers_refusal_is_recovered_from(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    agent = Agent(model(server, wire))
    state = agent.run({"messages": thread()}, way)
    assert state["messages"][-1].text == ANSWER
    assert_recovered(agent, server)
    assert violations(agent.compact.view(state)[:-1]) == []
    assert [m.id for m in state["messages"][:-1]] == [m.id for m in thread()]
    assert {one["model"] for one in state["compaction"]["segments"]} == {"extractive"}
    assert "failures" not in state["compaction"]


@pytest.mark.parametrize("shape", LOOKALIKES)
def test_a_lookalike_is_raised(server: OpenAIServer, shape: str) -> None:
    server.answer(refusing(LOOKALIKES[shape]))
    agent = Agent(model(server))
    with pytest.raises(Exception, match="Error code") as caught:
        agent.run({"messages": thread()})
    assert not is_overflow(caught.value)
    assert agent.events == []


@each_way
def test_the_reduction_commits_before_the_call_is_made_again(
    server: OpenAIServer, way: str
) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Agent(model(server))
    agent.run({"messages": thread()}, way)
    steps = steps_of(agent.graph)
    assert [after for after, _ in steps] == [("__start__",), ("agent",), ("agent",), ()]
    before, reduced, answered = (record for _, record in steps[1:])
    assert before == {}
    assert reduced == answered
    assert reduced["overflow"]["node"] == "agent"
    assert reduced["overflow"]["last_id"] == "t50"
    assert reduced["revision"] == 1


@pytest.mark.parametrize(
    ("window", "shape", "limit", "wrong"),
    [
        (100_000, "vllm", 2_048, True),
        (None, "vllm", 2_048, True),
        (100_000, "openai", 128_000, False),
        (100_000, "bedrock", None, False),
    ],
)
def test_events_have_both_windows_and_a_wrong_one_is_told_once(
    server: OpenAIServer,
    window: int | None,
    shape: str,
    limit: int | None,
    caplog: pytest.LogCaptureFixture,
    *,
    wrong: bool,
) -> None:
    caplog.set_level("WARNING", "langgraph_compaction")
    server.answer(refusing(OVERFLOWS[shape]))
    agent = Agent(model(server), context_window=window, trigger=("tokens", 80_000))
    for number in range(2):
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        agent.run({"messages": thread()}, config=config)
    assert agent.kinds.count("completed") == 2
    for event in agent.events:
        assert (event["provider_limit"], event["context_window"]) == (limit, window)
    told = [one.message for one in caplog.records if one.message.startswith("context_window:")]
    assert len(told) == wrong
    assert all(f"Set context_window={limit}." in one for one in told)


@each_way
def test_events_go_to_the_custom_stream(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Agent(model(server))

    async def streamed() -> list[Any]:
        found = agent.graph.astream({"messages": thread()}, THREAD, stream_mode="custom")
        return [event async for event in found]

    if way == "ainvoke":
        seen = asyncio.run(streamed())
    else:
        seen = [*agent.graph.stream({"messages": thread()}, THREAD, stream_mode="custom")]
    assert seen == agent.events
    assert {event["thread_id"] for event in seen} == {"t"}


@each_way
def test_a_second_refusal_of_the_same_view_ends_the_run_with_sizes(
    server: OpenAIServer, way: str
) -> None:
    server.answer(OVERFLOWS["openai window"])
    agent = Agent(model(server))
    with pytest.raises(BudgetError, match="although it was reduced") as caught:
        agent.run({"messages": thread()}, way)
    first, second = sent(server)
    assert second < first * 0.65
    assert agent.kinds == ["started", "completed", "failed"]
    assert set(caught.value.sizes) >= {"system messages", "user messages", "digest", "tool results"}
    assert sum(caught.value.sizes.values()) == agent.events[-2]["tokens_after"]
    assert 0 < caught.value.limit < sum(caught.value.sizes.values())
    assert is_overflow(caught.value.__cause__)
    assert agent.summariser.calls == 0
    # The reduction stands, and so does what is known of it.
    assert steps_of(agent.graph)[-1][1]["overflow"]["node"] == "agent"
    # Who goes on all the same asks the provider once more: by then it may be another one.
    with pytest.raises(BudgetError):
        agent.run(None, way)
    assert len(server.requests) == 3
    server.answer(text(ANSWER))
    assert agent.run(None, way)["messages"][-1].text == ANSWER


@each_way
def test_a_view_that_cannot_be_reduced_ends_the_run_at_once(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW)
    agent = Agent(model(server))
    prompt = "word " * 4_000
    given = [("system", prompt), ("user", "Hello.")]
    with pytest.raises(BudgetError, match=r"refused \d+ already") as caught:
        agent.run({"messages": given}, way)
    assert len(server.requests) == 1
    assert max(caught.value.sizes, key=caught.value.sizes.__getitem__) == "system messages"
    assert is_overflow(caught.value.__cause__)
    assert agent.kinds == ["started", "failed"]


@each_way
def test_other_errors_pass_and_a_transient_one_after_a_reduction_is_no_second_refusal(
    server: OpenAIServer, way: str
) -> None:
    server.answer(OVERFLOW, rate_limited(7), text(ANSWER))
    agent = Agent(model(server))
    with pytest.raises(Exception, match="429") as caught:
        agent.run({"messages": thread()}, way)
    assert caught.value.status_code == 429
    assert agent.kinds == ["started", "completed"]
    state = agent.run(None, way)
    assert state["messages"][-1].text == ANSWER
    assert len(server.requests) == 3
    assert said(server.requests[1]) == said(server.requests[2])


@each_way
@pytest.mark.parametrize(
    "error",
    [KeyError("x"), MissingChannelError("x", "y"), ConfigurationError("no"), OSError(2, "z")],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_pass_and_the_thread_goes_on_where_it_was(way: str, error: Exception) -> None:
    # As without a handler. (With LangGraph 1.2 a handler that raises what it was given leaves a
    # thread with nothing to go on with.)
    runs: list[str] = []

    def agent(state: CompactionState) -> dict[str, Any]:
        runs.append("agent")
        if len(runs) < 3:
            raise error
        return {"messages": [AIMessage(ANSWER)]}

    watched = Watched()
    graph = watched.builder(agent).compile(checkpointer=InMemorySaver())
    for given in ({"messages": thread()}, None):
        with pytest.raises(type(error)) as caught:
            ran(graph, given, way)
        assert str(caught.value) == str(error)
        assert vars(caught.value).keys() == vars(error).keys()
        assert any(entry.name == "agent" for entry in caught.traceback)
        assert graph.get_state(THREAD).next == ("agent",)
    assert ran(graph, None, way)["messages"][-1].text == ANSWER
    assert runs == ["agent"] * 3
    assert watched.events == []


@each_way
def test_after_an_answer_a_later_refusal_gets_a_reduction_of_its_own(
    server: OpenAIServer, way: str
) -> None:
    server.answer(OVERFLOW, text(ANSWER), OVERFLOW, text(ANSWER))
    agent = Agent(model(server))
    agent.run({"messages": thread()}, way)
    state = agent.run(asked(51), way)
    assert agent.kinds == ["started", "completed"] * 2
    assert state["compaction"]["revision"] == 2
    assert "And what of part 51?" in said(server.requests[-1])
    sizes = sent(server)
    assert sizes[1] < sizes[0]
    assert sizes[3] < sizes[2] < sizes[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: {"messages": [HumanMessage("Go on.")]},
        lambda state: {"messages": [RemoveMessage(id="t50"), RemoveMessage(id="a50")]},
        lambda state: edit_digest(state, "The parts up to 20 are as drawn."),
    ],
    ids=["a new message", "a deleted one", "an edited digest"],
)
def test_what_a_person_changes_after_the_second_refusal_is_new(
    server: OpenAIServer, change: Any
) -> None:
    server.answer(OVERFLOW, OVERFLOW, OVERFLOW, text(ANSWER))
    agent = Agent(model(server))
    with pytest.raises(BudgetError):
        agent.run({"messages": thread()})
    values = agent.graph.get_state(THREAD).values
    agent.graph.update_state(THREAD, change(values), as_node=START)
    state = agent.run(None)
    assert state["messages"][-1].text == ANSWER
    assert agent.kinds[-2:] == ["started", "completed"]


def test_the_newest_request_stays_clipped_where_it_alone_is_too_long(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Agent(model(server))
    lines = "".join(f"Line {n} of the log.\n" for n in range(3_000))
    state = agent.run({"messages": [*thread(5), HumanMessage(f"What failed?\n{lines}", id="q")]})
    assert_recovered(agent, server)
    shown = said(server.requests[-1])
    assert "What failed?" in shown
    assert "Line 2999 of the log." in shown
    assert "characters left out" in shown
    assert state["messages"][-2].text.endswith(lines)


def test_old_results_are_cleared_and_nothing_is_folded_where_that_is_enough(
    server: OpenAIServer,
) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Agent(model(server), clear_min_chars=100, clear_keep=2)
    state = agent.run({"messages": thread()})
    assert_recovered(agent, server)
    assert agent.kinds == ["started", "cleared"]
    assert "segments" not in state["compaction"]
    assert said(server.requests[-1]).count("call-00") == 50


def test_a_hook_that_vetoes_the_fold_leaves_clearing_and_clipping(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW, fits=30_000))
    seen: list[str] = []

    def hook(event: dict[str, Any]) -> bool:
        seen.append(event["type"].removeprefix("compaction."))
        return False

    agent = Agent(model(server), hook=hook)
    state = agent.run({"messages": thread()})
    assert state["messages"][-1].text == ANSWER
    assert seen == ["started", "skipped", "completed"]
    assert "segments" not in state["compaction"]
    assert state["compaction"]["render"]["clip_result_bytes"] > 0


@each_way
@pytest.mark.parametrize("level", ["node", "thread", "run"])
@pytest.mark.parametrize("off", [{"enabled": False}, {"trigger": None}], ids=str)
def test_off_is_off(server: OpenAIServer, level: str, off: dict[str, Any], way: str) -> None:
    server.answer(OVERFLOW)
    agent = Agent(model(server), **(off if level == "node" else {}))
    given: dict[str, Any] = {"messages": thread()}
    if level == "thread":
        given["compaction_settings"] = off
    run = {"configurable": {"thread_id": "t", "compaction_settings": off}}
    with pytest.raises(Exception, match="maximum context length") as caught:
        agent.run(given, way, run if level == "run" else None)
    assert is_overflow(caught.value)
    assert not isinstance(caught.value, BudgetError)
    assert len(server.requests) == 1
    assert agent.events == []
    assert agent.graph.get_state(THREAD).values["compaction"] == {}


def test_threads_share_nothing(server: OpenAIServer) -> None:
    server.answer(OVERFLOW, OVERFLOW, OVERFLOW, text(ANSWER))
    agent = Agent(model(server))
    with pytest.raises(BudgetError):
        agent.run({"messages": thread()})
    other = {"configurable": {"thread_id": "other"}}
    state = agent.run({"messages": thread()}, config=other)
    assert state["messages"][-1].text == ANSWER
    assert agent.kinds == ["started", "completed", "failed", "started", "completed"]


@pytest.mark.parametrize("api", APIS)
def test_streamed_tokens_of_the_second_call_reach_the_user(server: OpenAIServer, api: str) -> None:
    server.answer(OVERFLOWS["openai midway"], text(ANSWER))
    agent = Agent(model(server, f"{api}-streamed"))
    stream = agent.graph.stream({"messages": thread()}, THREAD, stream_mode="messages")
    assert "".join(chunk.text for chunk, _ in stream) == ANSWER


@each_way
def test_commands_and_interrupts_pass(way: str) -> None:
    watched = Watched()

    def agent(state: CompactionState) -> Command[Literal["after"]]:
        said = interrupt("May I?")
        return Command(goto="after", update={"messages": [AIMessage(str(said))]})

    builder = watched.builder(agent)
    builder.add_node("after", lambda state: {"messages": [AIMessage("Done.")]})
    graph = builder.compile(checkpointer=InMemorySaver())
    state = ran(graph, {"messages": thread()}, way)
    assert state["__interrupt__"][0].value == "May I?"
    state = ran(graph, Command(resume="Yes."), way)
    assert [m.text for m in state["messages"][-2:]] == ["Yes.", "Done."]
    assert watched.events == []


@each_way
def test_a_command_for_the_parent_passes(way: str) -> None:
    watched = Watched()

    def agent(state: CompactionState) -> Command[str]:
        return Command(goto="after", graph=Command.PARENT, update={"messages": [AIMessage("Up.")]})

    builder = StateGraph(CompactionState)
    builder.add_node("inner", watched.builder(agent).compile(), destinations=("after",))
    builder.add_node("after", lambda state: {"messages": [AIMessage("Done.")]})
    builder.add_edge(START, "inner")
    state = ran(builder.compile(), {"messages": thread(1)}, way)
    assert [m.text for m in state["messages"][-2:]] == ["Up.", "Done."]


@each_way
def test_the_error_may_be_wrapped(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    watched, chat = Watched(), model(server)

    def agent(state: CompactionState) -> dict[str, Any]:
        try:
            return {"messages": [chat.invoke(watched.compact.view(state))]}
        except Exception as error:
            raise RuntimeError("The agent failed.") from error

    state = ran(watched.builder(agent).compile(), {"messages": thread()}, way)
    assert state["messages"][-1].text == ANSWER
    assert_recovered(watched, server)


@each_way
def test_what_was_folded_leaves_the_state_with_prune(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    store = InMemoryStore()
    watched = Watched(history="prune")
    builder = watched.builder(watched.agent(model(server)))
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    state = ran(graph, {"messages": thread()}, way)
    assert_recovered(watched, server)
    gone = watched.events[-1]["pruned"]
    assert gone > 10
    assert len(state["messages"]) == len(thread()) + 1 - gone
    assert state["compaction"]["pruned"]
    assert store.list_namespaces()
    assert said(server.requests[-1]).count(PINNED) == 1


def test_a_record_that_cannot_be_read_names_the_refusal_as_its_cause(server: OpenAIServer) -> None:
    server.answer(OVERFLOW)
    chat = model(server)

    class Bare(TypedDict):
        messages: Any

    builder = StateGraph(Bare)
    handler = overflow_handler(Watched().compact)
    builder.add_node(
        "agent", lambda s: {"messages": [chat.invoke(s["messages"])]}, error_handler=handler
    )
    builder.add_edge(START, "agent")
    with pytest.raises(MissingChannelError) as caught:
        builder.compile().invoke({"messages": thread()})
    assert is_overflow(caught.value.__cause__)


def test_a_reduced_view_is_a_function_of_the_state(server: OpenAIServer) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Agent(model(server))
    state = agent.run({"messages": thread()})
    shown = model_view(state)
    assert violations(shown[:-1]) == []
    assert shown == agent.compact.view(state)
    ids = [message.id for message in shown]
    assert ids[:2] == ["system", "task"]
    assert {"pin", "a50", "t50"} <= set(ids)
    assert [m.text for m in shown if m.id in {"task", "pin"}] == [TASK, PINNED]


def test_the_handler_takes_nodes_only() -> None:
    with pytest.raises(ConfigurationError, match="is no CompactionNode"):
        overflow_handler("compact")  # type: ignore[arg-type]
    assert callable(overflow_handler(CompactionNode(lambda m: "", context_window=1_000)))


@pytest.mark.parametrize("retry", [5, "", ("agent",), CompactionState])
def test_the_handler_takes_names_only(retry: Any) -> None:
    compact = CompactionNode(lambda m: "", context_window=1_000)
    with pytest.raises(ConfigurationError, match=r"retry: .* is no name of a node"):
        overflow_handler(compact, retry=retry)
    assert callable(overflow_handler(compact, retry="agent"))
