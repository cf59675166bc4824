"""A recall tool beside a node with a store of its own: it says what it cannot read, and the log
says what to do."""

import logging
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, ExtractiveSummarizer, create_recall_tool
from tests.support.doubles import THREAD, ScriptedModel, loop

FIRST = "The first reading was 4711 rpm."


def reply(messages: list[BaseMessage]) -> AIMessage:
    """Notes what it is told; asked for the first reading, it looks it up."""
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return AIMessage(newest.text)
    if "What was" in newest.text:
        call = {"name": "recall", "args": {"first": 0, "last": 3}, "id": "r"}
        return AIMessage("", tool_calls=[call])
    return AIMessage("Noted. " + "It goes on as before. " * 20)


def asked(
    *,
    node: BaseStore | None,
    run: BaseStore | None,
    tool: BaseStore | None,
    meanwhile: Callable[[], None] = lambda: None,
) -> str:
    """What the agent is told of the first messages, which were pruned."""
    compact = CompactionNode(
        ExtractiveSummarizer(),
        context_window=8_000,
        trigger=("messages", 8),
        keep=("messages", 2),
        task=None,
        history="prune",
        recall_tool="recall",
        **({} if node is None else {"archive": node}),
    )
    recall = create_recall_tool(archive=tool, search=False)
    model = ScriptedModel(reply=reply)
    graph = loop(compact, model, tools=[recall], checkpointer=InMemorySaver(), store=run)
    for n in range(20):
        text = f"{FIRST} " if n == 0 else f"Reading {n}. "
        graph.invoke({"messages": [HumanMessage(text + "It is warm. " * 30)]}, THREAD)
    meanwhile()
    state = graph.invoke({"messages": [HumanMessage("What was it?")]}, THREAD)
    assert state["compaction"]["archived"]
    return str(state["messages"][-1].text)


def test_the_same_store_serves_node_and_tool(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "langgraph_compaction")
    own, runs = InMemoryStore(), InMemoryStore()
    assert FIRST in asked(node=own, run=None, tool=own)
    assert FIRST in asked(node=None, run=runs, tool=None)
    assert FIRST in asked(node=None, run=runs, tool=runs)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (None, "archived, but this run has no store or no thread."),
        (InMemoryStore(), "Older messages were archived, but are not in the store that this tool"),
    ],
    ids=["no store", "another store"],
)
def test_originals_in_a_store_that_the_tool_does_not_read_are_no_empty_archive(
    run: BaseStore | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "langgraph_compaction")
    answer = asked(node=InMemoryStore(), run=run, tool=None)
    assert FIRST not in answer
    assert said in answer
    assert "empty" not in answer
    (warning,) = caplog.messages
    assert "the recall tool 'recall'" in warning
    assert "create_recall_tool(archive=...)" in warning


def test_an_archive_of_which_a_part_is_gone_is_told_as_such(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "langgraph_compaction")

    store = InMemoryStore()

    def expire() -> None:
        items = store.search(("langgraph_compaction", "t"))
        (first,) = [item for item in items if item.value["previous"] is None]
        store.delete(first.namespace, first.key)

    answer = asked(node=None, run=store, tool=None, meanwhile=expire)
    assert FIRST not in answer
    assert "[Some older messages were archived, but are not in the store" in answer
    assert "create_recall_tool(archive=...)" in caplog.text
