"""The setting ``recall_tool`` and the agent's tools: what does not match is noticed."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    ExtractiveSummarizer,
    create_recall_tool,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.doubles import ScriptedModel, work
from tests.support.logs import warnings_in
from tests.support.runtimes import runtime


def recall(id: str) -> str:
    """Look a message up."""
    return id


PROVIDERS_OWN = {"type": "web_search_20250305", "max_uses": 3}
"""A tool that the provider runs, without a name."""
ANTHROPIC = {"name": "recall", "input_schema": {"type": "object", "properties": {}}}
GOOGLE = {"function_declarations": [{"name": "work"}, {"name": "recall"}]}
BEDROCK = {"toolSpec": {"name": "recall", "inputSchema": {"json": {"type": "object"}}}}
JSON_SCHEMA = {"title": "recall", "type": "object", "properties": {"name": {"type": "string"}}}

FORMS: list[Any] = [
    create_recall_tool(search=False),
    recall,
    tool(recall),
    convert_to_openai_tool(recall),
    ANTHROPIC,
    GOOGLE,
    BEDROCK,
    JSON_SCHEMA,
]


def node(**options: Any) -> CompactionNode:
    return CompactionNode(ExtractiveSummarizer(), context_window=8_000, **options)


def test_a_name_that_none_of_the_nodes_tools_has_is_refused() -> None:
    unnamed = {"type": "object", "properties": {"name": {"type": "string"}}}
    with pytest.raises(ConfigurationError) as caught:
        node(tools=[work, PROVIDERS_OWN, unnamed], recall_tool="recall")
    said = str(caught.value)
    assert said.startswith("recall_tool: 'recall' is none of the agent's tools (work), but ")
    assert said.endswith(
        'Give the agent create_recall_tool(name="recall"), or leave recall_tool out.'
    )
    with pytest.raises(ConfigurationError, match=r"\(none has a name\)"):
        node(tools=[PROVIDERS_OWN], recall_tool="recall")


def test_the_name_of_a_recall_tool_that_is_there_is_the_remedy() -> None:
    tools = [work, create_recall_tool(name="look_up", search=False)]
    with pytest.raises(ConfigurationError, match=r'set recall_tool="look_up"\.$'):
        node(tools=tools, recall_tool="recall")
    with pytest.raises(ConfigurationError, match=r'set recall_tool="look_up"\.$'):
        CompactionMiddleware(
            ExtractiveSummarizer(), context_window=8_000, tools=tools, recall_tool="recall"
        )


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_a_tool_of_that_name_is_found_in_any_form(
    form: Any, caplog: pytest.LogCaptureFixture
) -> None:
    node(tools=[PROVIDERS_OWN, work, form], recall_tool="recall")
    assert warnings_in(caplog) == []


@pytest.mark.parametrize(("most", "times"), [(1_999, 1), (2_000, 0), (None, 0), ("auto", 0)])
def test_pages_that_would_be_clipped_are_logged(
    most: Any, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [PROVIDERS_OWN, work, create_recall_tool(search=False)]
    settings: Any = {"max_result_tokens": most, "recall_tool": "recall", "context_window": 8_000}
    CompactionNode(ExtractiveSummarizer(), tools=tools, **settings)
    assert len(warnings_in(caplog)) == times
    agent = create_agent(
        ScriptedModel(reply=lambda _: AIMessage("Hm.")),
        [work, create_recall_tool(search=False)],
        middleware=[CompactionMiddleware(ExtractiveSummarizer(), **settings)],
    )
    for _ in range(2):
        agent.invoke({"messages": [HumanMessage("Go on.")]})
    assert len(warnings_in(caplog)) == 2 * times
    for said in warnings_in(caplog):
        assert "may have 1999 tokens, but a page of the recall tool up to 2000" in said
        assert "max_tokens of create_recall_tool" in said
        assert "raise max_result_tokens" in said


def test_where_no_tools_are_given_nothing_is_compared(caplog: pytest.LogCaptureFixture) -> None:
    node(recall_tool="recall")
    assert warnings_in(caplog) == []


def test_a_recall_tool_that_no_setting_names_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    node(tools=[work, recall])  # somebody's own: it may be for something else
    assert warnings_in(caplog) == []
    node(tools=[work, create_recall_tool(name="look_up", search=False)])
    (said,) = warnings_in(caplog)
    assert said.startswith('recall_tool="look_up" is missing')


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("named", "times"), [("look_up", 1), ("recall", 0), (None, 0)])
async def test_a_tool_that_the_record_calls_otherwise_says_so_once(
    named: str | None, times: int, asynchronous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    compact = node(trigger=("messages", 6), keep=("messages", 2), recall_tool=named)
    messages = [HumanMessage(f"Note {n}. {'It is warm. ' * 30}", id=f"m{n}") for n in range(12)]
    state: dict[str, Any] = {"messages": messages, "compaction": {}}
    state |= compact.invoke(state)
    assert state["compaction"]["segments"]
    recall: Any = create_recall_tool(search=False)
    for number in (0, 1):
        given = {"first": number, "runtime": runtime(state, {})}
        shown = await recall.ainvoke(given) if asynchronous else recall.invoke(given)
        assert f"Note {number}." in shown
    assert len(warnings_in(caplog)) == times
    for said in warnings_in(caplog):
        assert "named 'recall', but placeholders of this thread tell the agent to call" in said
        assert "create_recall_tool(name='look_up')" in said


def answer(messages: list[BaseMessage]) -> AIMessage:
    """Two calls of the model for each request."""
    if isinstance(messages[-1], ToolMessage):
        return AIMessage("Done.")
    return AIMessage("", tool_calls=[{"name": "work", "args": {"n": 1}, "id": "c"}])


RECALL = create_recall_tool(search=False)


class Extra(AgentMiddleware[Any, Any, Any]):
    """A middleware that brings a tool along."""

    def __init__(self) -> None:
        self.tools = [RECALL]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("tools", "options", "said"),
    [
        ([work], {"recall_tool": "recall"}, "recall_tool: 'recall' is none of the agent's"),
        ([], {"recall_tool": "recall"}, "recall_tool: 'recall' is none of the agent's"),
        ([work, PROVIDERS_OWN], {"recall_tool": "recall"}, "tools (work), but"),
        ([work, RECALL], {}, 'recall_tool="recall" is missing'),
        ([work, RECALL], {"tools": [RECALL]}, 'recall_tool="recall" is missing'),
        ([work], {"tools": [RECALL], "recall_tool": "recall"}, "agent's tools (work), but"),
        ([work, Extra], {}, 'recall_tool="recall" is missing'),
        ([work, RECALL], {"recall_tool": "recall"}, None),
        ([work, Extra], {"recall_tool": "recall"}, None),
        ([work, PROVIDERS_OWN], {}, None),
    ],
)
async def test_a_middleware_says_once_what_does_not_match(
    tools: list[Any],
    options: dict[str, Any],
    said: str | None,
    asynchronous: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = ScriptedModel(reply=answer if work in tools else lambda _: AIMessage("Done."))
    compaction = CompactionMiddleware(ExtractiveSummarizer(), context_window=8_000, **options)
    brought: list[Any] = [Extra()] if Extra in tools else []
    own = [one for one in tools if one is not Extra]
    agent: Any = create_agent(model, own, middleware=[compaction, *brought])
    state: dict[str, Any] = {"messages": [HumanMessage("Work.")]}
    for _ in range(2):
        state = await agent.ainvoke(state) if asynchronous else agent.invoke(state)
        state["messages"] = [*state["messages"], HumanMessage("Again.")]
    assert len(model.calls) >= 2
    assert len(warnings_in(caplog)) == (said is not None)
    assert (said or "") in "".join(warnings_in(caplog))


def test_a_middleware_compares_every_name_of_a_tool(caplog: pytest.LogCaptureFixture) -> None:
    """As the node does where it is given the tools."""
    compaction = CompactionMiddleware(
        ExtractiveSummarizer(), context_window=8_000, protected_tools=["wrok"]
    )
    model = ScriptedModel(reply=lambda _: AIMessage("Done."))
    agent: Any = create_agent(model, [work], middleware=[compaction])
    for _ in range(2):
        agent.invoke({"messages": [HumanMessage("Work.")]})
    assert len(warnings_in(caplog)) == 1
    assert "did you mean 'work'?" in warnings_in(caplog)[0]
