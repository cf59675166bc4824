"""What deepagents' summarization does, with the settings of this package.

`tests/integration/test_deepagents.py` runs whole agents; here are the parameters of its class and
factories, and its threads.
"""

from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import (
    SummarizationMiddleware,
    create_summarization_tool_middleware,
)
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import create_compact_tool
from langgraph_compaction.middleware import CompactionMiddleware
from tests.integration.test_migration_editing import arguments
from tests.support.beside import steady
from tests.support.doubles import (
    THREAD,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    request,
    shows_digest,
    steps_done,
    work,
)
from tests.support.migrating import backs

NAME = "SummarizationMiddleware"
THEIRS = "SUMMARY-BY-THEM"


def summarising(model: Any) -> Any:
    """The agent's model, which theirs lets write the summaries, too."""
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if len(messages) == 1 and "<messages>" in messages[0].text:
            return AIMessage(THEIRS)
        answer: AIMessage = working(messages)
        return answer

    return ScriptedModel(reply=reply)


def ran(middleware: Any, model: Any, *, tools: Any = (work,), saver: Any = None) -> dict[str, Any]:
    """Thirty steps of a deep agent, two with each request."""
    agent: Any = create_deep_agent(
        model,
        list(tools),
        middleware=[middleware],
        checkpointer=saver or InMemorySaver(),
    )
    for step in range(1, 30, 2):
        agent.invoke({"messages": [request(step, step + 1)]}, THREAD)
    state: dict[str, Any] = agent.get_state(THREAD).values
    return state


def their_class(model: Any, **options: Any) -> Any:
    """Their middleware as its docstring has it."""
    return SummarizationMiddleware(model=model, backend=StateBackend(), **options)


@backs("deepagents", theirs="model", here="CompactionMiddleware")
@pytest.mark.parametrize(
    ("trigger", "keep"),
    [
        (("messages", 30), ("messages", 12)),
        ({"tokens": 1_000, "messages": 24}, ("tokens", 900)),
        ([("tokens", 3_000), ("messages", 20)], ("messages", 8)),
    ],
    ids=["pair", "all-of", "any-of"],
)
def test_the_middleware_folds_in_place_of_deepagents_own(trigger: Any, keep: Any) -> None:
    theirs = summarising(steady())
    before = ran(their_class(theirs, trigger=trigger, keep=keep), theirs)
    assert THEIRS in before["_summarization_event"]["summary_message"].text
    summaries, model = Summaries(), steady()
    ours = CompactionMiddleware(
        summaries,
        trigger=trigger,
        keep=keep,
        token_counter="approximate",
        clear=False,
        name=NAME,
    )
    after = ran(ours, model)
    assert steps_done(after["messages"]) == list(range(1, 31))
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)


@backs("deepagents", theirs="summary_prompt", here="prompt")
@backs("deepagents", theirs="summarizer", here="CompactionMiddleware")
@backs("deepagents", theirs="trim_tokens_to_summarize", here="trim_tokens_to_summarize")
def test_prompt_and_summariser_are_handed_over_and_nothing_is_trimmed() -> None:
    rules: Any = {"trigger": ("messages", 30), "keep": ("messages", 12)}
    shown: list[Any] = []
    theirs = their_class(
        steady(),
        summarizer=lambda messages: str(shown.extend(messages)),
        trim_tokens_to_summarize=800,
        **rules,
    )
    before = ran(theirs, steady())["_summarization_event"]
    assert 0 < len(shown) < before["cutoff_index"]

    given = "Sum up what was made, with {braces}."
    summaries, model = Summaries(), steady()
    ours = CompactionMiddleware(summaries, prompt=given, clear=False, name=NAME, **rules)
    state = ran(ours, model)
    assert all(given in prompt[0].text for prompt in summaries.prompts)
    covered = state["compaction"]["last_summarized_index"] + 1
    results = [m.text[:11] for m in state["messages"][:covered] if isinstance(m, ToolMessage)]
    assert set(results) <= set(summaries.folded)


@backs("deepagents", theirs="truncate_args_settings", here="clear_argument_chars")
def test_old_arguments_are_shortened_together_with_a_clearing() -> None:
    long = "A long text that was written. " * 300
    said = {3: ("write_file", {"file_path": "/log.txt", "content": long})}
    theirs = summarising(steady(said))
    settings: Any = {
        "trigger": ("messages", 20),
        "keep": ("messages", 10),
        "max_length": 200,
        "truncation_text": "...",
    }
    ran(their_class(theirs, truncate_args_settings=settings), theirs)
    assert len(arguments(theirs.calls[-1], 3)["content"]) < 100
    model = steady(said)
    ours = CompactionMiddleware(
        Summaries(),
        context_window=40_000,
        trigger=("tokens", 5_000),
        clear_argument_chars=200,
        name=NAME,
    )
    ran(ours, model)
    shown = [arguments(call, 3) for call in model.calls if any(m.text == "call-0003" for m in call)]
    assert shown[0]["content"] == long
    assert len(str(shown[-1])) <= 300


@backs("deepagents", theirs="compact_conversation", here="create_compact_tool")
@backs("deepagents", theirs="summarization", here="create_compact_tool")
@backs("deepagents", theirs="system_prompt", here="system_prompt")
def test_the_agent_compacts_by_a_tool_of_the_same_name() -> None:
    """Theirs is a middleware that brings the tool; ours is the tool, described by itself."""
    said = "Compact when the task changes."
    theirs = create_summarization_tool_middleware(
        summarising(steady()), StateBackend(), system_prompt=said
    )
    tool = create_compact_tool()
    assert "when" in tool.description
    assert [one.name for one in theirs.tools] == [tool.name] == ["compact_conversation"]
    summaries, model = Summaries(), steady({20: ("compact_conversation", {})})
    ours = CompactionMiddleware(summaries, context_window=100_000, clear=False, name=NAME)
    ran(ours, model, tools=[work, tool])
    assert len(summaries.prompts) == 1
    assert shows_digest(model.calls[-1])


def test_a_thread_of_deepagents_goes_on_and_is_folded_anew_once() -> None:
    """Their state has all messages; what they had summarised stands in an event beside them."""
    saver, theirs = InMemorySaver(), summarising(steady())
    before = ran(
        their_class(theirs, trigger=("messages", 30), keep=("messages", 12)), theirs, saver=saver
    )
    assert before["_summarization_event"]
    assert steps_done(before["messages"]) == list(range(1, 31))
    summaries, model = Summaries(), steady()
    ours = CompactionMiddleware(
        summaries, trigger=("messages", 30), keep=("messages", 12), clear=False, name=NAME
    )
    agent: Any = create_deep_agent(model, [work], middleware=[ours], checkpointer=saver)
    for step in range(31, 60, 2):
        agent.invoke({"messages": [request(step, step + 1)]}, THREAD)
    state = agent.get_state(THREAD).values
    assert steps_done(state["messages"]) == list(range(1, 61))
    assert_folded_once(summaries.folded)
    assert "call-0001" in summaries.folded
    assert not any(THEIRS in message.text for call in model.calls for message in call)
