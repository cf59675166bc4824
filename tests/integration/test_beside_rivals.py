"""Beside a middleware that summarises the same thread, and beside agents that run in tools.

LangChain's `SummarizationMiddleware` deletes what it has summarised, digest and originals with it.
No order helps, and `create_agent` shows a middleware no others. So it is told by what it leaves.
"""

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from langgraph_compaction import edit_digest, request_compaction
from langgraph_compaction.handoffs import without_foreign_record
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.state import Channels
from tests.support.beside import Beside, beside, steady
from tests.support.doubles import (
    STEPS,
    WINDOW,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    request,
    shows_digest,
    steps_done,
    work,
)
from tests.support.logs import warnings_in

RIVAL = "summarises the thread, too"
THEIRS = "SUMMARY-BY-THEM: all is well."


def theirs(after: int) -> Any:
    """LangChain's middleware, from so many messages on."""
    model = ScriptedModel(reply=lambda _: AIMessage(THEIRS))
    return SummarizationMiddleware(model=model, trigger=("messages", after), keep=("messages", 8))


@beside(SummarizationMiddleware)
@pytest.mark.parametrize("after", [14, 40], ids=["theirs-at-once", "ours-at-once"])
def test_a_middleware_that_deletes_what_it_summarised_is_told_once(
    first: bool, way: str, after: int, caplog: pytest.LogCaptureFixture
) -> None:
    run = Beside(theirs(after), first=first)
    for step in range(1, 60, 2):
        run.run((step, step + 1), way)
    assert THEIRS in run.messages[0].text
    (warning,) = warnings_in(caplog, RIVAL)
    assert "out of the list" in warning
    # The run goes on all the same, and no call is one that a provider would refuse.
    assert steps_done(run.messages)[-1] == 60
    assert_valid(run.calls)
    if run.summaries.folded:
        assert_folded_once(run.summaries.folded)


def test_langchains_middleware_is_told_without_a_thread_by_what_it_took_from_the_digest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    summaries = Summaries()
    compaction = CompactionMiddleware(summaries, context_window=WINDOW)
    agent = create_agent(steady(), [work], middleware=[compaction, theirs(40)])
    state: Any = {"messages": []}
    for step in range(1, 60, 2):
        asked = [*state["messages"], request(step, step + 1)]
        state = agent.invoke({**state, "messages": asked}, STEPS)
    assert summaries.prompts
    assert len(warnings_in(caplog, RIVAL)) == 1


def test_a_thread_that_comes_from_langchains_middleware_is_no_cause_for_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}, **STEPS}
    before = create_agent(steady(), [work], middleware=[theirs(14)], checkpointer=saver)
    for step in range(1, 22, 2):
        before.invoke({"messages": [request(step, step + 1)]}, config)
    run = Beside(first=True, checkpointer=saver)
    assert THEIRS in run.messages[0].text
    for step in range(23, 60, 2):
        run.run((step, step + 1))
    assert run.summaries.prompts
    assert shows_digest(run.calls[-1])
    assert warnings_in(caplog, RIVAL) == []


# ---- agents in tools


def nested(strange: Any) -> Any:
    """A tool that runs an agent of its own and hands back its whole state, as deepagents' does."""

    @tool
    def delegate(
        task: str,
        state: Annotated[Any, InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        """Let another agent do it."""
        given = {key: value for key, value in state.items() if key != "messages"}
        found = strange.invoke({**given, "messages": [HumanMessage(task)]}, STEPS)
        answer = ToolMessage(found["messages"][-1].text, tool_call_id=tool_call_id)
        return Command(update={**found, "messages": [answer]})

    return delegate


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("clear", [True, False])
def test_the_record_of_an_agent_in_a_tool_stays_out_of_the_thread(way: str, clear: bool) -> None:
    summaries = Summaries()
    options = {"clear": clear}
    inner = CompactionMiddleware(summaries, context_window=WINDOW, **options)
    worker = create_agent(steady(), [work], middleware=[inner])
    task = {"task": "Do steps 101 to 140."}
    said = dict.fromkeys((3, 20, 30), ("delegate", task))
    run = Beside(first=True, model=steady(said), tools=[work, nested(worker)], options=options)
    run.work(way=way)
    run.assert_sound([step for step in range(1, 37) if step not in said])
    # Three runs of the inner agent, each with messages of its own.
    assert len(summaries.folded) > len(set(summaries.folded)) > 10


def channels(**state: Any) -> Any:
    return lambda result: without_foreign_record(result, state, Channels())


def folded(first: int, last: int) -> dict[str, Any]:
    """A state of its own with a fold in it."""
    compaction = CompactionMiddleware(Summaries(), context_window=WINDOW, clear=False)
    agent = create_agent(steady(), [work], middleware=[compaction])
    return agent.invoke({"messages": [request(first, last)]}, STEPS)


def test_records_of_the_thread_itself_pass() -> None:
    state = folded(1, 20)
    own, earlier = channels(**state), channels(**{**state, "compaction": {}})
    record = state["compaction"]
    assert record["segments"]
    edited = edit_digest(state, "## Goal\nSet right by a person.")
    on_demand = {**request_compaction(), "compaction": record}
    for update in (edited, on_demand, {"compaction": record}, {"files": {}}, {"compaction": {}}):
        command: Any = Command(update=update)
        assert own(command) is command
        assert earlier(command) is command
    # Of a pruned thread the messages are gone, and the record alone names them.
    pruned = channels(**{**state, "messages": state["messages"][-1:]})
    command = Command(update=edited)
    assert pruned(command) is command


def test_a_record_that_goes_back_to_an_earlier_segment_passes() -> None:
    """Of a pruned thread: where the earlier segment ends, only the record tells."""
    state = folded(1, 40)
    record = state["compaction"]
    (first, *_), others = record["segments"], state["messages"][-1:]
    assert len(record["segments"]) > 1
    back = {
        **record,
        "segments": [first],
        "last_summarized_index": first["last_index"],
        "last_summarized_id": first["last_id"],
        "next_id": None,
    }
    command: Any = Command(update={"compaction": back})
    assert channels(**{**state, "messages": others})(command) is command


def test_records_of_other_messages_do_not() -> None:
    state, other = folded(1, 20), folded(1, 30)
    answer = ToolMessage("Done.", tool_call_id="c")
    update = {
        "files": {"a": 1},
        "messages": [answer],
        "compaction": other["compaction"],
        "compaction_settings": {"keep": ["messages", 1]},
    }
    for given in (state, {**state, "compaction": {}}):
        found = channels(**given)
        command: Any = Command(update=update)
        assert found(command).update == {"files": {"a": 1}, "messages": [answer]}
        assert found([command, answer])[1] is answer
        assert "compaction" not in found([command, answer])[0].update
        assert set(command.update) == set(update)
    # With its messages it may be the thread's own, or take its place.
    whole: Any = Command(update={**update, "messages": other["messages"]})
    assert channels(**state)(whole) is whole
    # What only cleared, or failed, covers nothing, and names messages all the same.
    cleared = {"clearing": {"last_id": "x", "repeats_id": "y"}, "revision": 9}
    for record in (cleared, {"failures": {"last_id": "z"}}, {"id_at_fold": "z", "clearing": None}):
        strange: Any = Command(update={"compaction": record})
        assert channels(**state)(strange).update == {}


def test_a_hand_over_is_not_touched() -> None:
    state, other = folded(1, 20), folded(1, 30)
    for goes in (
        Command(graph=Command.PARENT, update={"compaction": other["compaction"]}),
        Command(update=[("compaction", other["compaction"])]),
        ToolMessage("Done.", tool_call_id="c"),
    ):
        assert channels(**state)(goes) is goes
