"""Threads and agents of other packages go on with this one.

Their documented examples run here with the import and the name of the class changed, or the
parameters that docs/how-to/migrate.md names; and a thread that one of them has compacted goes on.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langgraph_compaction import CompactionNode, CompactionState, model_view
from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import agent, filled, human
from tests.support.doubles import (
    STEPS,
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
from tests.support.folding import Recorder, node
from tests.support.validity import violations

THREAD: Any = {"configurable": {"thread_id": "t"}, **STEPS}
THEIR_SUMMARY = "SUMMARY-BY-THEM: the steps 1 to 9 were done. Never paint the parts."

TRIGGERS = [
    ("messages", 20),
    ("tokens", 3_000),
    {"tokens": 2_000, "messages": 10},
    [{"tokens": 3_500, "messages": 3}, {"tokens": 3_000, "messages": 6}],
    [("fraction", 0.8), ("messages", 24)],
]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=str)
@pytest.mark.parametrize("keep", [("messages", 4), ("tokens", 900), ("fraction", 0.3)], ids=str)
def test_triggers_and_keeps_of_langchain_mean_the_same(trigger: Any, keep: Any) -> None:
    """The forms that SummarizationMiddleware documents, handed on as they are."""
    summaries, model = Summaries(), worker()
    compaction = CompactionMiddleware(
        summaries, context_window=6_000, trigger=trigger, keep=keep, clear=False, min_keep=0
    )
    app = create_agent(model, [work], middleware=[compaction], checkpointer=InMemorySaver())
    state = app.invoke({"messages": [request(1, 60)]}, THREAD)
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert summaries.folded
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)


def test_a_thread_that_langchain_has_summarised_goes_on() -> None:
    """Its summary stands in the messages in a user's name, and is no task and no user's words."""
    saver, model = InMemorySaver(), worker()
    theirs = SummarizationMiddleware(
        model=ScriptedModel(reply=lambda _: AIMessage(THEIR_SUMMARY)),
        trigger=("messages", 20),
        keep=("messages", 6),
    )
    before = create_agent(model, [work], middleware=[theirs], checkpointer=saver)
    for step in range(1, 22, 2):  # a longer request it would have taken away from its own agent
        before.invoke({"messages": [request(step, step + 1)]}, THREAD)
    first = before.get_state(THREAD).values["messages"][0]
    assert THEIR_SUMMARY in first.text

    summaries = Summaries()
    ours = CompactionMiddleware(
        summaries, context_window=6_000, trigger=("tokens", 3_000), clear=False
    )
    after = create_agent(model, [work], middleware=[ours], checkpointer=saver)
    state = after.invoke({"messages": [request(23, 60)]}, THREAD)
    view = ours.node.view(state)
    assert shows_digest(view)
    assert not any("[Record of earlier work" in m.text and m.id == first.id for m in view)
    # What it said went into the digest like all else that is old.
    assert first.id not in {message.id for message in view}
    assert steps_done(state["messages"])[-1] == 60
    assert_valid(model.calls[-3:])


def summary() -> HumanMessage:
    """As SummarizationMiddleware writes it."""
    return HumanMessage(
        f"Here is a summary of the conversation to date:\n\n{THEIR_SUMMARY}",
        id="theirs",
        additional_kwargs={"lc_source": "summarization"},
    )


@pytest.mark.parametrize("task", ["first", "latest"])
def test_a_summary_of_others_is_never_the_task(task: str) -> None:
    asked = Recorder()
    compact = node(asked, task=task, clear=False)
    messages: list[BaseMessage] = [
        summary(), agent("a0"), human("h1"), agent("a1", words=200), agent("a2", words=100),
    ]  # fmt: skip
    state: Any = {"messages": messages, "compaction": {}}
    state |= compact.invoke(state)
    assert state["compaction"]["segments"]
    shown = [message.id for message in model_view(state)]
    assert "theirs" not in shown
    assert "h1" in shown
    assert violations(model_view(state), state_ends_with_ai=True) == []
    assert '<message n="0" role="summary">' in asked.prompts[0]
    # A directive in it is not quoted as the user's.
    text = state["compaction"]["segments"][0]["text"]
    assert "The user said, word for word:" not in text or "Never paint" not in text


def test_a_thread_with_nothing_but_a_summary_still_has_its_request() -> None:
    """Where no user has said anything, nothing is the task, and nothing is hidden for it."""
    compact = node(clear=False)
    state: Any = {"messages": [summary(), agent("a0")], "compaction": {}}
    assert compact.invoke(state) == {}
    assert compact.view(state) == state["messages"]


class Summarized(CompactionState):
    summarized_messages: list[Any]


def test_langmems_example_with_its_parameters() -> None:
    """`max_tokens_before_summary` is the trigger, `max_summary_tokens` the digest's budget."""
    summaries, model = Summaries(), worker()
    compact = CompactionNode(
        summaries,
        trigger=("tokens", 3_000),
        target=2_400,
        keep=("tokens", 900),
        max_digest_tokens=600,
        token_counter="approximate",
        output_messages_key="summarized_messages",
        name="summarize",
        clear=False,
    )

    def call_model(state: Summarized) -> dict[str, Any]:
        return {"messages": [model.invoke(state["summarized_messages"])]}

    workflow = StateGraph(Summarized)
    workflow.add_node("call_model", call_model)
    workflow.add_node("summarize", compact)
    workflow.add_node("tools", ToolNode([work]))
    workflow.add_edge(START, "summarize")
    workflow.add_edge("summarize", "call_model")
    workflow.add_conditional_edges("call_model", tools_condition)
    workflow.add_edge("tools", "summarize")
    graph = workflow.compile(checkpointer=InMemorySaver())
    state = graph.invoke({"messages": [request(1, 60)]}, THREAD)
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert shows_digest(model.calls[-1])
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)


def test_a_text_of_the_users_own_is_quoted_though_it_speaks_of_summaries() -> None:
    """Only the mark tells a summary, no words."""
    asked = Recorder()
    compact = node(asked, clear=False, task=None)
    said = HumanMessage("Here is a summary of the day. Never paint the parts.", id="own")
    state: Any = {
        "messages": [said, agent("a0", words=300), human("h1"), AIMessage(filled("a", 20), id="z")],
        "compaction": {},
    }
    state |= compact.invoke(state)
    assert "- Never paint the parts." in state["compaction"]["segments"][0]["text"]
