"""Agents and threads with LangChain's `SummarizationMiddleware` go on with this package.

Its documented examples run here with the import and the name of the class changed, or the
parameters that docs/how-to/migrate.md names; and a thread that it has compacted goes on. Those of
`ContextEditingMiddleware`, deepagents and langmem have files of their own.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import ConfigurationError, ModelTier, model_view
from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import agent, filled, human
from tests.support.doubles import (
    STEPS,
    THREAD,
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
from tests.support.migrating import backs
from tests.support.validity import violations

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
def test_an_agent_works_on_with_each_form_of_trigger_and_keep(trigger: Any, keep: Any) -> None:
    """Those that LangChain documents; what they mean is in `test_migration_decisions`."""
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


# ---- the documented parameters


def folding(summariser: Any, *, model: Any = None, **options: Any) -> Any:
    """A run of an agent whose middleware folds several times, as LangChain's would summarise."""
    model = model or worker()
    rules = {"trigger": ("tokens", 3_000), "keep": ("messages", 8), "clear": False, **options}
    compaction = CompactionMiddleware(summariser, **rules)
    agent = create_agent(model, [work], middleware=[compaction], checkpointer=InMemorySaver())
    state = agent.invoke({"messages": [request(1, 60)]}, THREAD)
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert_valid(model.calls)
    return state


@backs("langchain", theirs="model", here="agent_model")
def test_the_agents_model_gives_the_window_and_writes_where_nobody_else_can() -> None:
    """`model=` of theirs is `agent_model=` here; a fraction is of its profile's window."""
    summaries = Summaries()
    model = worker()
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if "<transcript>" in messages[-1].text:
            return AIMessage(summaries(messages))
        return working(messages)

    agents = ScriptedModel(reply=reply, profile={"max_input_tokens": 6_000})

    def broken(_: Any) -> str:
        raise ConnectionError("down")

    for writer in (agents, broken):
        state = folding(
            writer,
            model=agents,
            agent_model=agents,
            trigger=("fraction", 0.5),
            keep=("fraction", 0.2),
        )
        assert state["compaction"]["segments"]
    assert len(summaries.prompts) > 2


async def later(messages: list[BaseMessage]) -> str:
    return Summaries()(messages)


@backs("langchain", theirs="summarizer", here="CompactionMiddleware")
@pytest.mark.parametrize("kind", ["function", "model", "runnable", "async function"])
async def test_a_summariser_may_be_what_langchains_may_be(kind: str) -> None:
    summaries = Summaries()
    writes: Any = {
        "function": summaries,
        "model": ScriptedModel(reply=lambda messages: AIMessage(summaries(messages))),
        "runnable": RunnableLambda(summaries),
        "async function": later,
    }[kind]
    if kind == "async function":
        compaction = CompactionMiddleware(writes, trigger=("tokens", 3_000), keep=("messages", 8))
        agent = create_agent(worker(), [work], middleware=[compaction])
        state = await agent.ainvoke({"messages": [request(1, 60)]}, STEPS)
        assert state["compaction"]["segments"]
        return
    folding(writes)
    assert summaries.prompts
    # One system and one human message, not the messages of the thread.
    assert all([m.type for m in prompt] == ["system", "human"] for prompt in summaries.prompts)


@backs("langchain", theirs="token_counter", here="token_counter")
@pytest.mark.parametrize("named", [True, False])
def test_tokens_may_be_counted_as_langchain_does(named: bool) -> None:
    summaries, exact = Summaries(), Summaries()
    folding(summaries, token_counter="approximate" if named else count_tokens_approximately)
    folding(exact)
    assert_folded_once(summaries.folded)
    assert summaries.folded != exact.folded


@backs("langchain", theirs="summary_prompt", here="prompt")
def test_a_prompt_is_not_formatted() -> None:
    """A template of theirs would have `{messages}` in it; here braces are only braces."""
    given = "Keep {braces}, {messages} and every number."
    summaries, more = Summaries(), Summaries()
    folding(summaries, prompt=given)
    assert all(given in prompt[0].text for prompt in summaries.prompts)
    folding(more, instructions="Keep the numbers.")
    assert all("Keep the numbers." in prompt[0].text for prompt in more.prompts)
    assert all(len(prompt[0].text) > 500 for prompt in more.prompts)


@backs("langchain", theirs="trim_tokens_to_summarize", here="trim_tokens_to_summarize")
def test_nothing_of_a_long_span_is_left_out() -> None:
    """Theirs shows its summariser the last 4,000 tokens; here a long span is read in parts."""
    shown: list[Any] = []
    theirs: Any = SummarizationMiddleware(
        worker(),
        trigger=("messages", 20),
        keep=("messages", 4),
        trim_tokens_to_summarize=4_000,
        summarizer=lambda messages: str(shown.extend(messages)),
    )
    long: list[Any] = [agent(f"a{n}", words=100) for n in range(40)]
    kept = theirs.before_model({"messages": [human("h"), *long]}, None)["messages"][2:]
    assert len(shown) + len(kept) < 41
    summaries = Summaries()
    small = ModelTier(summaries, window=4_000)
    state = folding(small, trigger=("tokens", 8_000), keep=("messages", 4))
    covered = state["messages"][1 : state["compaction"]["last_summarized_index"] + 1]
    assert len(summaries.folded) == len(covered) > 80
    assert_folded_once(summaries.folded)
    assert len(summaries.prompts) > 2


@backs("langchain", theirs="max_tokens_before_summary", here="trigger")
@backs("langchain", theirs="messages_to_keep", here="keep")
def test_the_old_names_of_langchain_are_trigger_and_keep() -> None:
    model = ScriptedModel(reply=lambda _: AIMessage(THEIR_SUMMARY))
    with pytest.warns(DeprecationWarning, match="deprecated"):
        theirs: Any = SummarizationMiddleware(
            model, max_tokens_before_summary=3_000, messages_to_keep=8
        )
    assert (theirs.trigger, theirs.keep) == (("tokens", 3_000), ("messages", 8))
    summaries = Summaries()
    folding(summaries, trigger=theirs.trigger, keep=theirs.keep)
    assert_folded_once(summaries.folded)
    with pytest.raises(ConfigurationError, match="max_tokens_before_summary"):
        CompactionMiddleware(summaries, max_tokens_before_summary=3_000)


def test_a_keep_that_the_trigger_never_gets_below_is_refused() -> None:
    """Theirs summarises at every step then: `trigger=[..., ("messages", 6)]`, and 20 are kept."""
    with pytest.raises(ConfigurationError, match="Keep less than the trigger"):
        CompactionMiddleware(
            Summaries(), trigger=[("tokens", 3_000), ("messages", 6)], keep=("messages", 20)
        )


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
