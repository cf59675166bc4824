"""Every built-in middleware of LangChain beside ours, on either side of it.

Here are those that change the agent's state or decide how its run goes on; those around the calls
of models and tools have files of their own. What no test covers is named at the end, with the
reason.
"""

import inspect
import re
from itertools import count
from pathlib import Path
from typing import Any

import langchain.agents.middleware as langchain
import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    InterruptOnConfig,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRetryMiddleware,
    PIIDetectionError,
    PIIMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
    after_agent,
    after_model,
    before_agent,
    before_model,
    hook_config,
)
from langchain.agents.middleware.model_call_limit import ModelCallLimitExceededError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from tests.integration import (  # noqa: F401 - imported, they register what they cover
    test_beside_model_calls,
    test_beside_outputs,
    test_beside_rivals,
    test_beside_tools,
)
from tests.support.beside import COVERED, OURS, Beside, beside, steady
from tests.support.doubles import (
    THREAD,
    ScriptedModel,
    assert_folded_once,
    assert_valid,
    result,
    shows_digest,
    steps_done,
    work,
)

ALL = list(range(1, 37))


@beside(ModelCallLimitMiddleware)
def test_a_limit_of_model_calls_holds_and_the_thread_stays_usable(first: bool, way: str) -> None:
    run = Beside(ModelCallLimitMiddleware(run_limit=20), first=first)
    run.run((1, 36), way)
    assert len(run.calls) == 20
    assert "limits exceeded" in run.messages[-1].text
    run.run((21, 36), way)
    nodes = [f"ModelCallLimitMiddleware.{step}_model" for step in ("before", "after")]
    run.assert_sound(ALL, wrote=nodes)


@beside(ModelCallLimitMiddleware)
def test_a_limit_may_raise(first: bool, way: str) -> None:
    limit = ModelCallLimitMiddleware(thread_limit=30, exit_behavior="error")
    run = Beside(limit, first=first)
    run.work(24, way)
    with pytest.raises(ModelCallLimitExceededError):
        run.run((25, 36), way)
    assert len(run.calls) == 30
    run.assert_sound(
        range(1, 29),
        wrote=[f"ModelCallLimitMiddleware.{step}_model" for step in ("before", "after")],
    )


@pytest.mark.parametrize("first", [True, False])
def test_behind_a_limit_no_fold_is_made_for_a_call_that_is_not(first: bool) -> None:
    run = Beside(ModelCallLimitMiddleware(thread_limit=9), first=first)
    run.run((1, 8))
    assert run.summaries.prompts == []
    run.run({"messages": [HumanMessage("word " * 1_000)]})
    assert "limits exceeded" in run.messages[-1].text
    assert len(run.summaries.prompts) == (0 if first else 1)


MAIL = "ann@example.com"


@tool
def lookup(n: int) -> str:
    """Look up who does step n."""
    return f"{MAIL} does it. {result(n)}"


@beside(PIIMiddleware)
def test_what_is_redacted_stays_redacted(first: bool, way: str) -> None:
    """In the state, in the view, in what the summariser reads, and in the digest."""
    pii = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True)
    said = {step: ("lookup", {"n": step}) for step in (2, 9, 20, 30)}
    run = Beside(pii, first=first, model=steady(said), tools=[lookup, work])
    for step in range(1, 37, 12):
        text = f"Do steps {step} to {step + 11}. Report to {MAIL}."
        run.run({"messages": [HumanMessage(text)]}, way)
    run.assert_sound(
        ALL, wrote=[f"PIIMiddleware[email].{step}_model" for step in ("before", "after")]
    )
    seen = [*run.calls, *run.summaries.prompts, run.messages]
    assert not any(MAIL in message.text for messages in seen for message in messages)
    assert MAIL not in str(run.values["compaction"])
    # After the last word of the run nothing is looked at before the next one: that is PII's own.
    assert "[REDACTED_EMAIL]" in run.messages[0].text


@pytest.mark.parametrize("first", [True, False])
def test_pii_before_ours_holds_for_a_tail_of_nothing(first: bool) -> None:
    """With ``keep=("messages", 0)`` the newest results are folded, too: so the order counts."""
    numbers = count(1)

    def reply(messages: list[BaseMessage]) -> AIMessage:
        n = next(numbers)
        call = {"name": "lookup", "args": {"n": n}, "id": f"c{n}"}
        return AIMessage(f"call-{n:04}", tool_calls=[call] if n % 4 else [])

    pii = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True)
    options = {"keep": ("messages", 0), "min_keep": 0, "clear": False}
    model = ScriptedModel(reply=reply)
    run = Beside(pii, first=first, model=model, tools=[lookup], options=options)
    for part in range(12):
        run.run({"messages": [HumanMessage(f"Look up part {part}.")]})
    assert len(run.summaries.prompts) > 1
    leaked = any(MAIL in prompt[-1].text for prompt in run.summaries.prompts)
    assert leaked is not first


@beside(PIIMiddleware, PIIDetectionError)
def test_a_blocked_message_ends_the_run_before_it_is_sent_anywhere(first: bool, way: str) -> None:
    run = Beside(PIIMiddleware("email", strategy="block"), first=first)
    run.work(24, way)
    with pytest.raises(PIIDetectionError):
        run.ask(f"Write to {MAIL}.", way)
    assert not any(MAIL in m.text for call in run.calls for m in call)
    assert not any(MAIL in prompt[-1].text for prompt in run.summaries.prompts)


@beside(TodoListMiddleware)
def test_to_dos_stay_and_are_shown_behind_the_digest(first: bool, way: str) -> None:
    todos = [{"content": "paint the part", "status": "in_progress"}]
    run = Beside(
        TodoListMiddleware(),
        first=first,
        model=steady({3: ("write_todos", {"todos": todos})}),
        options={"live_state": "todos"},
    )
    run.work(way=way)
    steps = [step for step in ALL if step != 3]
    run.assert_sound(steps, wrote=["TodoListMiddleware.after_model"])
    assert run.values["todos"] == todos
    last = run.calls[-1]
    assert shows_digest(last)
    assert sum("paint the part" in m.text for m in last if isinstance(m, HumanMessage)) == 1
    assert "write_todos" in last[0].text


def decided(run: Beside, way: str, decide: Any) -> None:
    """Answer every interrupt until the run is over."""
    while waiting := run.agent.get_state(THREAD).interrupts:
        (asked,) = waiting
        answers = [decide(one) for one in asked.value["action_requests"]]
        run.run(Command(resume={"decisions": answers}), way)


@beside(HumanInTheLoopMiddleware, InterruptOnConfig)
def test_a_person_approves_edits_and_rejects(first: bool, way: str) -> None:
    def decide(asked: Any) -> dict[str, Any]:
        step = asked["args"]["n"]
        if step == 10:
            return {"type": "reject", "message": "Not this one."}
        if step == 20:
            return {"type": "edit", "edited_action": {"name": "work", "args": {"n": 120}}}
        return {"type": "approve"}

    decisions: Any = {"allowed_decisions": ["approve", "edit", "reject"]}
    run = Beside(HumanInTheLoopMiddleware(interrupt_on={"work": decisions}), first=first)
    for start in (1, 13, 25):
        run.run((start, start + 11), way)
        decided(run, way, decide)
    done = [120 if step == 20 else step for step in ALL if step != 10]
    run.assert_sound(done, wrote=["HumanInTheLoopMiddleware.after_model"])
    rejected = next(m for m in run.messages if getattr(m, "tool_call_id", "") == "c10")
    assert (rejected.status, "Not this one." in rejected.text) == ("error", True)


@beside(HumanInTheLoopMiddleware)
def test_a_person_answers_call_by_call(first: bool, way: str) -> None:
    """The interrupt comes from within the tool call that ours is wrapped around, too."""
    asks = HumanInTheLoopMiddleware(interrupt_on={"work": True}, interrupt_mode="per_call")
    run = Beside(asks, first=first)
    for start in (1, 13):
        run.run((start, start + 11), way)
        while waiting := run.agent.get_state(THREAD).interrupts:
            run.run(Command(resume={one.id: {"type": "approve"} for one in waiting}), way)
    run.run((25, 36), way)
    while waiting := run.agent.get_state(THREAD).interrupts:
        run.run(Command(resume={one.id: {"type": "approve"} for one in waiting}), way)
    run.assert_sound(ALL, wrote=["HumanInTheLoopMiddleware.after_model"])


@beside(before_agent, before_model, after_model, after_agent)
def test_steps_of_ones_own_around_agent_and_model(first: bool, way: str) -> None:
    told: list[str] = []

    @before_agent
    def begins(state: Any, runtime: Any) -> None:
        told.append("begins")

    @before_model
    def asks(state: Any, runtime: Any) -> Any:
        told.append("asks")

    @after_model
    def answered(state: Any, runtime: Any) -> Any:
        """An AI message is written anew, with its id."""
        newest = state["messages"][-1]
        return {"messages": [newest.model_copy(update={"name": "worker"})]}

    @after_agent
    def ends(state: Any, runtime: Any) -> None:
        told.append("ends")

    run = Beside(begins, asks, answered, ends, first=first)
    run.work(way=way)
    steps = ["begins.before_agent", "asks.before_model", "answered.after_model", "ends.after_agent"]
    run.assert_sound(ALL, wrote=steps)
    assert [told.count(name) for name in ("begins", "asks", "ends")] == [3, 39, 3]
    assert {m.name for m in run.messages if isinstance(m, AIMessage)} == {"worker"}


@beside(before_model, hook_config)
def test_a_step_that_jumps_to_the_end_ends_the_run(first: bool, way: str) -> None:
    @before_model(can_jump_to=["end"])
    def stops(state: Any, runtime: Any) -> dict[str, Any] | None:
        if state["messages"][-1].text == "Stop.":
            return {"jump_to": "end", "messages": [AIMessage("Stopped.")]}
        return None

    run = Beside(stops, first=first)
    run.work(24, way)
    assert run.ask("Stop.", way)["messages"][-1].text == "Stopped."
    run.run((25, 36), way)
    run.assert_sound(ALL, wrote=["stops.before_model"])


@beside(before_model)
def test_a_step_that_rewrites_the_whole_list_keeps_the_digest(first: bool, way: str) -> None:
    """deepagents does so to answer calls that nobody will, `create_agent` for invalid ones."""

    @before_model
    def rewrites(state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *state["messages"]]}

    run = Beside(rewrites, first=first)
    run.work(way=way)
    run.assert_sound(ALL, wrote=["rewrites.before_model"])


@pytest.mark.parametrize("first", [True, False])
def test_ours_is_one_step_of_the_graph_on_either_side(first: bool) -> None:
    run = Beside(ModelCallLimitMiddleware(run_limit=99), first=first)
    run.run((1, 2))
    names = [name for update in run.of("updates") for name in update][:3]
    theirs = "ModelCallLimitMiddleware.before_model"
    assert names == ([theirs, OURS, "model"] if first else [OURS, theirs, "model"])


@pytest.mark.parametrize("history", ["full", "prune"])
@pytest.mark.parametrize("documented", [True, False], ids=["as-documented", "the-other-way"])
def test_many_of_them_at_once(history: str, documented: bool) -> None:
    """Each on the side on which the how-to guide has it, and each on the other one."""
    other = steady()
    before = [
        PIIMiddleware("email", apply_to_tool_results=True),
        ModelCallLimitMiddleware(thread_limit=500),
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1_200, keep=3)]),
        ModelRetryMiddleware(max_retries=1, initial_delay=0),
    ]
    behind = [
        ToolCallLimitMiddleware(thread_limit=500),
        ModelFallbackMiddleware(other),
        ModelRefusalMiddleware(),
        TodoListMiddleware(),
        HumanInTheLoopMiddleware(interrupt_on={"work": {"allowed_decisions": ["approve"]}}),
        ToolRetryMiddleware(initial_delay=0),
        ToolErrorMiddleware(lambda error, _: str(error)),
    ]
    model = steady({4: ("write_todos", {"todos": [{"content": "Go on.", "status": "pending"}]})})
    options = {"history": history, "live_state": "todos"}
    stack = (before, behind) if documented else (behind, before)
    run = Beside(
        *stack[0], first=True, behind=stack[1], model=model, options=options, store=InMemoryStore()
    )
    for start in (1, 13, 25):
        run.run((start, start + 11))
        decided(run, "stream", lambda _: {"type": "approve"})
    assert [todo["content"] for todo in run.values["todos"]] == ["Go on."]
    assert_valid(run.calls)
    assert_folded_once(run.summaries.folded)
    assert len(run.summaries.prompts) > 1
    done = steps_done(run.messages)
    if history == "full":
        assert done == [step for step in ALL if step != 4]
    else:
        assert done[-1] == 36
        assert len(done) < 20


NOT_APPLICABLE = {
    "AgentMiddleware": "the base class",
    "AgentState": "the state",
    "CodexSandboxExecutionPolicy": "of the shell tool: needs a program of its own",
    "DockerExecutionPolicy": "of the shell tool: needs Docker",
    "ExtendedModelResponse": "what a wrapper may return: ours does",
    "InputAgentState": "the state",
    "ModelCallResult": "what a wrapper of a model's call may return",
    "ModelResponse": "what a model's call returns",
    "OutputAgentState": "the state",
    "PIIMatch": "what a detector finds",
    "RedactionRule": "of the shell tool: changes what the tool returns",
    "Runtime": "LangGraph's",
    "ToolCallRequest": "what is handed to a wrapper of tools",
    "TracePolicy": "what a trace shows",
    "TriggerClause": "of SummarizationMiddleware, see test_migration",
    "configure_trace_policy": "what a trace shows",
    "omit_payload": "what a trace shows",
}


def builtins() -> set[str]:
    """The names of LangChain's own middleware classes."""
    return {
        name
        for name in langchain.__all__
        if inspect.isclass(kind := getattr(langchain, name))
        and issubclass(kind, AgentMiddleware)
        and kind is not AgentMiddleware
    }


def test_every_name_of_langchains_middleware_is_covered_or_named() -> None:
    covered = set(COVERED)
    assert set(langchain.__all__) - covered - set(NOT_APPLICABLE) == set()
    assert covered & set(NOT_APPLICABLE) == set()
    assert builtins() <= covered


def test_the_how_to_guide_has_a_row_for_each_of_them() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "create-agent-middleware.md"
    table = page.read_text("utf-8").partition("| LangChain's |")[2].partition("\n\n")[0]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    named = {name for first in firsts for name in re.findall(r"`(\w+)`", first)}
    assert named == builtins()
