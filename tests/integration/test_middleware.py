"""`CompactionMiddleware` in real `create_agent` agents: what the model is called with, what commits
when, what callers and interfaces get to see."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    TodoListMiddleware,
    dynamic_prompt,
)
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langgraph_compaction import CompactionState, ConfigurationError
from langgraph_compaction.middleware import CompactionMiddleware
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
from tests.support.templates import turn_fault


class Setup:
    """An agent with the middleware, and what its models saw."""

    def __init__(
        self,
        *others: Any,
        before: Any = (),
        model: ScriptedModel | None = None,
        summariser: Any = None,
        options: dict[str, Any] | None = None,
        **agent: Any,
    ) -> None:
        self.model = model or worker()
        self.summaries = Summaries()
        self.compaction = CompactionMiddleware(
            summariser or self.summaries, context_window=WINDOW, **(options or {})
        )
        self.agent = create_agent(
            self.model, [work], middleware=[*before, self.compaction, *others], **agent
        )

    def run(self, first: int, last: int, config: Any = None) -> dict[str, Any]:
        return self.agent.invoke({"messages": [request(first, last)]}, config)


def test_the_model_sees_the_view_and_the_state_keeps_everything() -> None:
    setup = Setup(system_prompt="You are a worker.")
    state = setup.run(1, 30)
    assert steps_done(state["messages"]) == list(range(1, 31))
    assert len(state["messages"]) == 62
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)
    last = setup.model.calls[-1]
    assert shows_digest(last)
    assert len(last) < 40
    systems = [m for m in last if isinstance(m, SystemMessage)]
    assert systems == [SystemMessage("You are a worker.")]
    assert setup.compaction.node.measure(state).tokens < 0.8 * WINDOW


def test_the_digest_commits_in_a_step_of_its_own_before_the_model_is_called() -> None:
    setup = Setup()
    names, segments = [], []
    for update in setup.agent.stream({"messages": [request(1, 20)]}, stream_mode="updates"):
        ((name, values),) = update.items()
        names.append(name)
        segments += (
            [len(values["compaction"]["segments"])] if "compaction" in (values or {}) else []
        )
    assert names[:4] == [
        "CompactionMiddleware.before_model",
        "model",
        "tools",
        "CompactionMiddleware.before_model",
    ]
    assert segments[:1] == [1]


def test_a_failing_model_costs_no_second_summary() -> None:
    broken: list[bool] = []
    working = worker().reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if broken:
            raise RuntimeError("429")
        return working(messages)

    setup = Setup(model=ScriptedModel(reply=reply), checkpointer=InMemorySaver())
    node = setup.compaction.node
    setup.run(1, 9, THREAD)
    assert setup.summaries.prompts == []
    values = setup.agent.get_state(THREAD).values
    room = node.measure(values).trigger
    assert room
    fill = HumanMessage("word " * (room - node.measure(values).tokens))
    setup.agent.update_state(THREAD, {"messages": [fill]}, as_node="__start__")
    broken.append(True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="429"):
            setup.run(10, 12, THREAD)
    assert len(setup.summaries.prompts) == 1
    broken.clear()
    state = setup.agent.invoke(None, THREAD)
    assert len(setup.summaries.prompts) == 1
    assert steps_done(state["messages"])[-1] == 12


def test_a_caller_gets_the_record_and_need_not_know_it() -> None:
    setup = Setup()
    assert setup.agent.get_input_jsonschema()["required"] == ["messages"]
    assert setup.run(1, 2)["compaction"] == {}
    state = setup.run(1, 20)
    assert set(state) == {"messages", "compaction", "compaction_settings"}
    assert state["compaction"]["segments"]


def test_without_a_checkpointer_the_state_can_be_handed_back() -> None:
    setup = Setup()
    state: dict[str, Any] = {"messages": []}
    for first in range(1, 60, 10):
        asked = [*state["messages"], request(first, first + 9)]
        state = setup.agent.invoke({**state, "messages": asked})
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert_folded_once(setup.summaries.folded)


def test_a_thread_goes_on_over_runs() -> None:
    setup = Setup(checkpointer=InMemorySaver())
    for first in range(1, 60, 10):
        setup.run(first, first + 9, THREAD)
    values = setup.agent.get_state(THREAD).values
    assert steps_done(values["messages"]) == list(range(1, 61))
    assert len(values["compaction"]["segments"]) > 1
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)


async def test_async_runs_do_the_same() -> None:
    async def summarise(messages: list[BaseMessage]) -> str:
        return summaries(messages)

    summaries, setup = Summaries(), Setup()
    asynchronous = Setup(summariser=summarise, checkpointer=InMemorySaver())
    expected = setup.run(1, 30)
    state = await asynchronous.agent.ainvoke({"messages": [request(1, 30)]}, THREAD)
    assert [m.content for m in state["messages"]] == [m.content for m in expected["messages"]]
    assert [[m.content for m in p] for p in summaries.prompts] == [
        [m.content for m in p] for p in setup.summaries.prompts
    ]
    assert [[m.content for m in call] for call in asynchronous.model.calls] == [
        [m.content for m in call] for call in setup.model.calls
    ]


def test_as_a_node_of_a_graph_with_the_channel_it_folds_nothing_twice() -> None:
    setup = Setup()
    builder = StateGraph(CompactionState)
    builder.add_node("worker", setup.agent)
    builder.add_edge(START, "worker")
    graph = builder.compile(checkpointer=InMemorySaver())
    for first in range(1, 60, 10):
        graph.invoke({"messages": [request(first, first + 9)]}, THREAD)  # type: ignore[call-overload]
    values = graph.get_state(THREAD).values
    assert steps_done(values["messages"]) == list(range(1, 61))
    assert values["compaction"]["segments"]
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)


def test_as_a_node_of_a_graph_without_the_channel_it_still_works() -> None:
    setup = Setup()
    builder = StateGraph(MessagesState)
    builder.add_node("worker", setup.agent)
    builder.add_edge(START, "worker")
    graph = builder.compile(checkpointer=InMemorySaver())
    for first in (1, 21):
        graph.invoke({"messages": [request(first, first + 19)]}, THREAD)
    assert steps_done(graph.get_state(THREAD).values["messages"]) == list(range(1, 41))
    assert_valid(setup.model.calls)


def test_the_record_may_have_another_name() -> None:
    setup = Setup(options={"compaction_key": "memory"}, checkpointer=InMemorySaver())
    state = setup.run(1, 30, THREAD)
    assert set(state) == {"messages", "memory", "compaction_settings"}
    assert state["memory"]["segments"]
    assert_folded_once(setup.summaries.folded)
    assert shows_digest(setup.model.calls[-1])


def test_a_middleware_before_it_decides_which_messages_the_view_is_made_of() -> None:
    edit = ClearToolUsesEdit(trigger=300, keep=1, placeholder="[cleared]")
    setup = Setup(before=[ContextEditingMiddleware(edits=[edit])])
    state = setup.run(1, 30)
    assert steps_done(state["messages"]) == list(range(1, 31))
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)
    last = setup.model.calls[-1]
    assert shows_digest(last)
    assert len(last) < 40
    assert sum(m.text == "[cleared]" for m in last if isinstance(m, ToolMessage)) > 1


def test_middlewares_after_it_see_the_view_and_keep_the_system_prompt() -> None:
    sizes = []

    @dynamic_prompt
    def prompt(seen: ModelRequest) -> str:
        sizes.append(len(seen.messages))
        return "Work well."

    failures = iter([True, False] * 100)
    working = worker().reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if next(failures):
            raise RuntimeError("overloaded")
        return working(messages)

    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    model = ScriptedModel(reply=reply)
    setup = Setup(prompt, retry, TodoListMiddleware(), model=model)
    state = setup.run(1, 30)
    assert steps_done(state["messages"]) == list(range(1, 31))
    assert max(sizes) < 40
    assert_folded_once(setup.summaries.folded)
    assert_valid(model.calls)
    assert all(call[0].text.startswith("Work well.") for call in model.calls)


def test_a_system_digest_survives_a_prompt_set_after_it() -> None:
    prompt = dynamic_prompt(lambda _: "Work well.")
    setup = Setup(prompt, options={"digest_role": "system"})
    setup.run(1, 30)
    last = setup.model.calls[-1]
    assert [m.type for m in last[:3]] == ["system", "system", "human"]
    assert last[0].text == "Work well."
    assert DIGEST_WORD in last[1].text
    assert_valid(setup.model.calls)


def test_an_interrupted_call_is_never_folded() -> None:
    human = HumanInTheLoopMiddleware(interrupt_on={"work": True})
    setup = Setup(human, model=worker(parallel=2), checkpointer=InMemorySaver())
    setup.run(1, 30, THREAD)
    approve = {"type": "approve"}
    while (state := setup.agent.get_state(THREAD)).next:
        asked = len(state.tasks[0].interrupts[0].value["action_requests"])
        setup.agent.invoke(Command(resume={"decisions": [approve] * asked}), THREAD)
    assert steps_done(state.values["messages"]) == list(range(1, 31))
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)


def test_calls_that_create_agent_repairs_stay_paired() -> None:
    # create_agent rewrites the messages channel when it answers an invalid call, which moves every
    # later message by one.
    invalid = {"name": "work", "args": "{", "id": "bad", "error": "cut off"}
    broken = AIMessage("", id="broken", invalid_tool_calls=[invalid])
    setup = Setup(checkpointer=InMemorySaver())
    setup.run(1, 3, THREAD)
    setup.agent.update_state(THREAD, {"messages": [broken]}, as_node="model")
    for first in range(4, 40, 4):
        setup.run(first, first + 3, THREAD)
    values = setup.agent.get_state(THREAD).values
    assert steps_done(values["messages"]) == list(range(1, 40))
    assert_folded_once(setup.summaries.folded)
    assert_valid(setup.model.calls)
    assert shows_digest(setup.model.calls[-1])


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: CompactionMiddleware(Summaries(), context_window=9, messages_key="chat"), "chat"),
        (lambda: CompactionMiddleware(Summaries()), "agent_model"),
        (lambda: CompactionMiddleware(Summaries(), context_window=9, keeep=1), "keep"),
    ],
)
def test_wrong_options_are_refused_at_once(build: Callable[[], Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        build()


def test_without_langchain_the_import_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['langchain'] = None\n"
        "import langgraph_compaction\n"
        "try:\n    import langgraph_compaction.middleware\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 'pip install "langgraph-compaction[langchain]"' in done.stdout


@pytest.mark.parametrize("digest_role", ["human", "system"])
def test_roles_that_alternate_leave_one_system_message_and_turns(digest_role: str) -> None:
    setup = Setup(
        system_prompt="You are a worker.",
        options={"roles": "alternating", "digest_role": digest_role},
    )
    given: Any = [SystemMessage("Be brief."), request(1, 10), HumanMessage("At once.")]
    state = setup.agent.invoke({"messages": given}, {"recursion_limit": 1_000})
    setup.agent.invoke({**state, "messages": [*state["messages"], request(11, 30)]}, STEPS)
    assert_folded_once(setup.summaries.folded)
    assert any(shows_digest(call) for call in setup.model.calls)
    for call in setup.model.calls:
        assert turn_fault(call, tools=True) is None
        assert call[0].text.startswith("You are a worker.\n\nBe brief.")
