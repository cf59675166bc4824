"""The recall tool as agents have it: its options, their graphs, and what is refused at once."""

import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    ExtractiveSummarizer,
    MissingChannelError,
    create_recall_tool,
)
from langgraph_compaction.archive import Archive, namespace_of, perform
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.recall.answering import HEADER
from tests.integration.recalling import LOG, PICTURE, asking, from_state, graph, record, transcript
from tests.support.doubles import THREAD, ScriptedModel, loop


def test_an_image_is_returned_itself_where_it_was_asked_for(ask: Any) -> None:
    content = ask({"id": "m4"}, media=True)
    assert content[0] == {"type": "text", "text": HEADER}
    assert [block["type"] for block in content[1:]] == ["text", "image"]
    assert content[2]["data"] == PICTURE
    assert isinstance(ask({"id": "m0"}, media=True), str)
    assert isinstance(ask({"id": "m4"}, media=True, max_tokens=300), str)  # it does not fit


def test_without_search_there_is_no_query() -> None:
    tool = create_recall_tool(search=False, name="look_up")
    assert set(tool.args) == {"id", "first", "last", "page"}
    assert "query" not in tool.description
    assert "blue heron" in from_state({"id": "m0"}, search=False)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("search", [False, True])
async def test_a_tools_node_and_an_agent_give_it_the_state(
    search: bool, asynchronous: bool
) -> None:
    tool = create_recall_tool(search=search)
    schema: Any = tool.tool_call_schema
    told = schema.model_json_schema()["properties"]  # what the model is told
    assert set(told) == {"id", "first", "last", "page"} | ({"query"} if search else set())
    assert all(one["description"] for one in told.values())
    builder = StateGraph(CompactionState)
    builder.add_node("tools", ToolNode([tool]))
    builder.add_edge(START, "tools")
    # What a model makes up is not given on, least of all in place of the state.
    made_up = asking(id="m0", runtime="mine", zebra=1)

    def reply(messages: list[BaseMessage]) -> AIMessage:
        return AIMessage("Done.") if isinstance(messages[-1], ToolMessage) else made_up

    agent: Any = create_agent(ScriptedModel(reply=reply), [tool], state_schema=CompactionState)
    for run, last in ((builder.compile(), [made_up]), (agent, [])):
        values = {"messages": [*transcript(), *last], "compaction": {}}
        after = await run.ainvoke(values) if asynchronous else run.invoke(values)
        answer = next(one for one in after["messages"] if getattr(one, "name", "") == "recall")
        assert "blue heron" in answer.text


def test_a_search_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_compaction.recall.ranking.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"langgraph-compaction\[recall\]"):
        create_recall_tool()
    create_recall_tool(search=False)


def test_arguments_of_the_factory_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="max_tokens"):
        create_recall_tool(max_tokens=10)
    with pytest.raises(ConfigurationError, match="token_counter"):
        create_recall_tool(token_counter="words")


def test_a_state_without_the_record_s_channel_is_an_error() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([create_recall_tool()]))
    builder.add_edge(START, "tools")
    with pytest.raises(MissingChannelError, match="compaction"):
        builder.compile().invoke({"messages": [asking(id="m0")]}, THREAD)


def test_nothing_in_the_state_is_changed() -> None:
    messages: Any = add_messages([], [*transcript(), asking(query="pump")])  # gives ids
    copies = [message.model_copy(deep=True) for message in messages]
    graph().invoke({"messages": messages, "compaction": record(5, 5, messages)}, THREAD)
    assert messages == copies


def recaller() -> ScriptedModel:
    """An agent that hears facts, and looks one up when it is asked for it."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        newest = messages[-1]
        if isinstance(newest, ToolMessage):
            return AIMessage(f"It was: {newest.text}")
        asked = re.search(r"What is fact (\d+)", newest.text)
        if asked is None:
            return AIMessage("Noted. " + "That is one more of many, and I keep it. " * 8)
        call = {"name": "recall", "args": {"query": f"fact {asked[1]} code"}, "id": "r1"}
        return AIMessage("", tool_calls=[call])

    return ScriptedModel(reply=reply)


def fact(n: int) -> str:
    return f"Fact {n} of the plant: " + f"page {n} of the book has it, word for word. " * 12


FOLDING: dict[str, Any] = {
    "trigger": ("messages", 12),
    "keep": ("messages", 4),
    "context_window": 8_000,
    "recall_tool": "recall",
}


def own_agent() -> Any:
    compact = CompactionNode(ExtractiveSummarizer(), **FOLDING)
    return loop(compact, recaller(), tools=[create_recall_tool()], checkpointer=InMemorySaver())


def ready_made_agent() -> Any:
    return create_agent(
        recaller(),
        [create_recall_tool()],
        middleware=[CompactionMiddleware(ExtractiveSummarizer(), **FOLDING)],
        checkpointer=InMemorySaver(),
    )


@pytest.mark.parametrize("build", [own_agent, ready_made_agent])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_agent_looks_up_what_was_folded(build: Any, asynchronous: bool) -> None:
    agent = build()
    config = THREAD

    async def say(text: str) -> dict[str, Any]:
        values = {"messages": [HumanMessage(text)]}
        done = await agent.ainvoke(values, config) if asynchronous else agent.invoke(values, config)
        return dict(done)

    for n in range(1, 21):
        await say(fact(n))
    done = await say("What is fact 7?")
    assert done["compaction"]["last_summarized_index"] > 2 * 7
    answer = done["messages"][-1].text
    assert f"position={2 * 6} " in answer.partition("</excerpt")[0]
    assert "page 7 of the book" in answer.partition("</excerpt")[0]


def test_a_placeholder_names_a_call_of_the_tool_that_brings_the_original_back() -> None:
    from langgraph_compaction.view.remedies import again

    named = re.fullmatch(r'recall\(id="(.+)"\) shows it\.', again("recall", "call-1"))
    assert named is not None
    assert LOG.splitlines()[0] in from_state({"id": named[1]})


@pytest.mark.parametrize("written_in", ["sub:1|compact:2", "compact:2"])
def test_a_subgraph_finds_its_originals_whichever_graph_archived_them(written_in: str) -> None:
    store = InMemoryStore()
    archive = Archive(store, namespace_of("t", written_in))
    head = perform(
        archive.store, archive.steps_of_write([(0, HumanMessage("Mine.", id="m0"))], None)
    )
    outer = StateGraph(CompactionState)
    outer.add_node("sub", graph())
    outer.add_edge(START, "sub")
    messages: list[BaseMessage] = [asking(id="m0")]
    state = {"messages": messages, "compaction": record(0, 1, messages, pruned=True, archived=head)}
    answer = outer.compile(store=store).invoke(state, THREAD)["messages"][-1].content
    assert "Mine." in answer


@pytest.mark.parametrize(
    ("given", "said"), [({"archive": "x"}, "archive: 'x' is no store"), ({"name": ""}, "name: ''")]
)
def test_a_tool_that_could_not_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        create_recall_tool(search=False, **given)
