"""langmem's documented examples run on `CompactionNode` with the renames of the how-to guide.

The examples are those of its docstrings and of LangGraph's guide to `create_react_agent`. Their
windows are of a few hundred tokens, so each says what a window of that size needs here.
"""

import json
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.prebuilt.chat_agent_executor import AgentState
from langmem.short_term import RunningSummary, SummarizationNode, summarize_messages

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    ConfigurationError,
    ExtractiveSummarizer,
    MissingChannelError,
    merge_compaction,
)
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
    worker,
)
from tests.support.migrating import backs

SAID = (
    "hi, my name is bob",
    "write a short poem about cats",
    "now do the same but for dogs",
    "what's my name?",
)
POEM = "A cat sat on the mat and looked at the moon. " * 12
SMALL: Any = {"min_fold_tokens": 0, "min_keep": 0, "keep": ("tokens", 100)}
"""What windows of a few hundred tokens need: by default no span so small is folded."""


def poet() -> ScriptedModel:
    """Knows the user's name if it can be read from what it is given."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        knows = any("my name is bob" in message.text for message in messages)
        asked = messages[-1].text.endswith("name?")
        return AIMessage(("You are Bob." if knows else "Who are you?") if asked else POEM)

    return ScriptedModel(reply=reply)


def chat(graph: Any) -> dict[str, Any]:
    """Say what the example says, one message a run."""
    found: dict[str, Any] = {}
    for text in SAID:
        found = graph.invoke({"messages": text}, THREAD)
    return found


@backs("langmem", theirs="model", here="CompactionNode")
@backs("langmem", theirs="max_tokens_before_summary", here="trigger")
@backs("langmem", theirs="output_messages_key", here="output_messages_key")
@pytest.mark.parametrize("written", [True, False], ids=["channel", "view"])
def test_the_example_of_the_node(written: bool) -> None:
    model, summaries = poet(), Summaries()

    class State(CompactionState):
        summarized_messages: list[AnyMessage]

    compact = CompactionNode(
        summaries,
        trigger=("tokens", 256),
        max_digest_tokens=200,
        token_counter="approximate",
        output_messages_key="summarized_messages" if written else None,
        name="summarize",
        **SMALL,
    )

    def call_model(state: State) -> dict[str, Any]:
        shown = state["summarized_messages"] if written else compact.view(state)
        return {"messages": [model.invoke(shown)]}

    workflow = StateGraph(State)
    workflow.add_node("call_model", call_model)
    workflow.add_node("summarize", compact)
    workflow.add_edge(START, "summarize")
    workflow.add_edge("summarize", "call_model")
    state = chat(workflow.compile(checkpointer=InMemorySaver()))
    assert state["messages"][-1].text == "You are Bob."
    assert len(state["messages"]) == 8
    assert len(summaries.prompts) == 2
    assert shows_digest(model.calls[-1])
    assert_valid(model.calls)


def spoken(count: int = 40) -> list[AnyMessage]:
    """A chat of some 150 tokens a message, each with a number of its own."""
    kinds = (HumanMessage, AIMessage)
    said = [f"Report {n}: room {n} is {n} m wide. " * 15 for n in range(count)]
    return [kinds[n % 2](text, id=f"m{n}") for n, text in enumerate(said)]


@backs("langmem", theirs="max_tokens", here="target")
@pytest.mark.parametrize("most", [1_500, 2_500])
def test_a_fold_brings_the_view_down_to_the_most_tokens(most: int) -> None:
    messages, limit = spoken(), 3_000
    theirs = SummarizationNode(
        model=ScriptedModel(reply=lambda _: AIMessage("Rooms.")),
        max_tokens=most,
        max_tokens_before_summary=limit,
        max_summary_tokens=200,
    )
    found = theirs.invoke({"messages": messages[:-1], "context": {}})["summarized_messages"]
    assert count_tokens_approximately(found) <= most
    compact = CompactionNode(
        Summaries(),
        trigger=("tokens", limit),
        keep=("tokens", 2_900),
        target=most,
        max_digest_tokens=200,
        token_counter="approximate",
        clear=False,
    )
    state: Any = {"messages": messages, "compaction": {}}
    assert compact.measure(state).tokens > limit
    state |= compact.invoke(state)
    assert most - 400 < compact.measure(state).tokens <= most


@backs("langmem", theirs="max_summary_tokens", here="max_digest_tokens")
@pytest.mark.parametrize(("most", "fewest"), [(200, 0), (600, 200)])
def test_a_digest_has_no_more_than_its_tokens(most: int, fewest: int) -> None:
    compact = CompactionNode(
        ExtractiveSummarizer(),
        trigger=("tokens", 3_000),
        keep=("tokens", 900),
        max_digest_tokens=most,
        token_counter="approximate",
        clear=False,
    )
    state: Any = {"messages": [], "compaction": {}}
    for message in spoken(80):
        state["messages"] = [*state["messages"], message]
        state |= compact.invoke(state)
        segments = state["compaction"].get("segments", [])
        assert sum(one["tokens"] for one in segments) <= most
        assert sum(len(one["text"]) for one in segments) <= 4 * most
    assert sum(one["tokens"] for one in segments) > fewest


@backs("langmem", theirs="name", here="name")
def test_the_node_has_the_name_that_it_is_given() -> None:
    model = ScriptedModel(reply=lambda _: AIMessage("Rooms."))
    theirs = SummarizationNode(model=model, max_tokens=256, name="summarize")
    compact = CompactionNode(Summaries(), context_window=60_000, name="summarize")
    for one in (theirs, compact):
        builder = StateGraph(CompactionState)
        builder.add_node(one)
        assert list(builder.nodes) == ["summarize"]


@backs("langmem", theirs="context", here="compaction")
@backs("langmem", theirs="RunningSummary", here="compaction")
def test_the_record_is_plain_and_stands_in_a_channel_of_its_own() -> None:
    compact = CompactionNode(
        Summaries(), trigger=("tokens", 3_000), keep=("tokens", 900), clear=False
    )
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    graph = builder.compile()
    state = graph.invoke({"messages": spoken()})
    assert "context" not in state
    assert state["compaction"]["segments"]
    state["compaction"] = json.loads(json.dumps(state["compaction"]))
    assert shows_digest(compact.view(state))
    assert graph.invoke(state)["compaction"] == state["compaction"]


@backs("langmem", theirs="messages", here="messages_key")
@backs("langmem", theirs="running_summary", here="compaction")
def test_the_example_of_the_function() -> None:
    """`summarize_messages` is the node outside a graph: the record is the running summary."""
    model, summaries = poet(), Summaries()
    compact = CompactionNode(
        summaries,
        trigger=("tokens", 256),
        max_digest_tokens=200,
        token_counter="approximate",
        messages_key="chat",
        **SMALL,
    )
    state: Any = {"chat": [], "compaction": {}}
    for number, text in enumerate(SAID):
        state["chat"] = [*state["chat"], HumanMessage(text, id=f"h{number}")]
        state |= compact.invoke(state)
        answer = model.invoke(compact.view(state))
        state["chat"] = [*state["chat"], answer]
    assert answer.text == "You are Bob."
    assert len(summaries.prompts) == 2
    # Messages without ids, as a program may have them, do as well.
    assert compact.invoke(state) == {}


class HookState(AgentState):
    compaction: Annotated[CompactionRecord, merge_compaction]


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
@pytest.mark.filterwarnings("ignore:AgentState has been moved")
@backs("langmem", theirs="token_counter", here="token_counter")
@pytest.mark.parametrize("counter", ["approximate", "function"])
def test_the_example_with_a_pre_model_hook(counter: str) -> None:
    """LangGraph's guide: a node that writes to `llm_input_messages`, and a state with its key."""
    summaries, model = Summaries(), worker()
    compact = CompactionNode(
        summaries,
        token_counter=count_tokens_approximately if counter == "function" else counter,
        trigger=("tokens", 2_000),
        keep=("tokens", 600),
        max_digest_tokens=600,
        output_messages_key="llm_input_messages",
        clear=False,
    )
    agent: Any = create_react_agent(
        model,
        [work],
        pre_model_hook=compact,
        state_schema=HookState,
        checkpointer=InMemorySaver(),
    )
    for step in range(1, 40, 10):
        agent.invoke({"messages": [request(step, step + 9)]}, THREAD)
    values = agent.get_state(THREAD).values
    assert steps_done(values["messages"]) == list(range(1, 41))
    assert len(summaries.prompts) > 1
    assert_folded_once(summaries.folded)
    assert_valid(model.calls)
    assert compact.measure(values).counted == count_tokens_approximately(compact.view(values))


def test_a_digest_of_langmems_size_is_refused_with_the_least_one() -> None:
    with pytest.raises(ConfigurationError, match="at least 200"):
        CompactionNode(Summaries(), trigger=("tokens", 256), max_digest_tokens=128)


def test_the_window_of_langmem_is_none_for_which_the_trigger_leaves_no_room() -> None:
    """Where `max_tokens` is the trigger, too, it is no `context_window`."""
    with pytest.raises(ConfigurationError, match="Lower the trigger"):
        CompactionNode(Summaries(), trigger=("tokens", 384), context_window=384)


@backs("langmem", theirs="input_messages_key", here="messages_key")
def test_messages_may_stand_under_another_name() -> None:
    compact = CompactionNode(
        Summaries(),
        trigger=("tokens", 256),
        token_counter="approximate",
        messages_key="chat",
        **SMALL,
    )

    class Chat(AgentState):
        chat: Annotated[list[AnyMessage], add_messages]
        compaction: Annotated[CompactionRecord, merge_compaction]

    said = [
        HumanMessage("Go on.", id="h"),
        AIMessage(POEM * 3, id="a"),
        HumanMessage("Go.", id="i"),
    ]
    state: Any = {"chat": said, "compaction": {}}
    state |= compact.invoke(state)
    assert state["compaction"]["segments"]
    with pytest.raises(MissingChannelError, match="compaction"):
        compact.invoke({"chat": said})


@backs("langmem", theirs="initial_summary_prompt", here="prompt")
@backs("langmem", theirs="existing_summary_prompt", here="prompt")
@backs("langmem", theirs="final_prompt", here="digest_header")
def test_prompts_are_instructions_and_the_last_one_frames_the_digest() -> None:
    """Theirs are templates with a place for messages; here nothing is formatted."""
    given = "Sum up, and keep {braces} and every number."
    summaries, model = Summaries(), worker()
    compact = CompactionNode(
        summaries,
        trigger=("tokens", 2_000),
        keep=("tokens", 600),
        prompt=given,
        digest="rolling",
        digest_header="Summary of the conversation so far:",
        digest_footer="End of the summary.",
        digest_role="system",
        clear=False,
    )
    state: Any = {"messages": [], "compaction": {}}
    for step in range(1, 40):
        asked = request(step, step)
        answer = model.reply([asked]).model_copy(update={"id": f"a{step}"})
        done = work.invoke({**answer.tool_calls[0], "type": "tool_call"})
        state["messages"] = [*state["messages"], asked.model_copy(update={"id": f"h{step}"})]
        state["messages"] += [answer, done.model_copy(update={"id": f"t{step}"})]
        state |= compact.invoke(state)
    assert len(summaries.prompts) > 1
    assert all(given in prompt[0].text for prompt in summaries.prompts)
    # The second one reads the record so far, as theirs extends the existing summary.
    assert "Logbook entry 1" in summaries.prompts[1][-1].text
    assert len(state["compaction"]["segments"]) == 1
    view = compact.view(state)
    assert isinstance(view[0], SystemMessage)
    assert "Summary of the conversation so far:" in view[0].text


def test_langmems_node_and_function_take_what_the_examples_give() -> None:
    """So that the examples above stay those of the installed release."""
    model = ScriptedModel(reply=lambda _: AIMessage("Bob likes cats."))
    node = SummarizationNode(
        model=model,
        max_tokens=256,
        max_tokens_before_summary=256,
        max_summary_tokens=128,
        initial_summary_prompt=ChatPromptTemplate([("placeholder", "{messages}")]),
    )
    messages: list[AnyMessage] = []
    for text in SAID:
        messages += [HumanMessage(text, id=text), AIMessage(POEM, id=f"poem of {text}")]
    found = node.invoke({"messages": messages, "context": {}})
    assert isinstance(found["context"]["running_summary"], RunningSummary)
    result = summarize_messages(
        messages, running_summary=None, model=model, max_tokens=256, max_summary_tokens=128
    )
    assert result.running_summary is not None
    # A thread of theirs has all messages in its state: ours folds them anew.
    compact = CompactionNode(
        Summaries(), trigger=("tokens", 256), token_counter="approximate", **SMALL
    )
    state: Any = {"messages": messages, "compaction": {}, "context": found["context"]}
    state |= compact.invoke(state)
    assert shows_digest(compact.view(state))
