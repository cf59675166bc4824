"""After a chat is cleared the recall tool hands out nothing of it, whatever it is asked."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, create_recall_tool, forget
from langgraph_compaction.archive import archive_of, perform
from langgraph_compaction.recall.answering import CLEARED
from tests.support.doubles import THREAD, WINDOW, Summaries, loop, request, shows_digest, worker
from tests.support.runtimes import runtime

STEPS = 40
TOOL = create_recall_tool()


class Chat:
    """A thread whose first steps were folded and pruned."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.compact = CompactionNode(
            Summaries(), context_window=WINDOW, token_counter="estimate", history="prune"
        )
        self.graph: Any = loop(
            self.compact, worker(), checkpointer=InMemorySaver(), store=self.store
        )
        self.graph.invoke({"messages": [request(1, STEPS)]}, THREAD)
        self.old = self.archived()
        assert len(self.old) > STEPS

    @property
    def state(self) -> Any:
        return self.graph.get_state(THREAD).values

    def archived(self) -> list[Any]:
        archive = archive_of(self.store, THREAD, in_node=False)
        return perform(self.store, archive.steps_of_all())

    def clear(self) -> None:
        everything = {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}
        self.graph.update_state(THREAD, everything, as_node="compact")

    def ask(self, **asked: Any) -> str:
        return str(TOOL.invoke({**asked, "runtime": runtime(self.state, THREAD, self.store)}))


def questions(chat: Chat) -> list[dict[str, Any]]:
    """By words, by the ids of a message and of a call, and by position."""
    result = next(one for one in chat.old if "result-0003" in one.text)
    return [
        {"query": "the log of step 3"},
        {"id": result.id},
        {"id": "c3"},
        {"first": result.position},
        {"first": 0, "last": 10_000},
    ]


@pytest.fixture(scope="module")
def cleared() -> tuple[Chat, list[dict[str, Any]]]:
    chat = Chat()
    asked = questions(chat)
    assert all("result-0003" in chat.ask(**one) or "last" in one for one in asked)
    chat.clear()
    return chat, asked


@pytest.mark.parametrize("which", range(5))
def test_nothing_of_a_cleared_chat_is_handed_out_and_that_is_said(
    cleared: tuple[Chat, list[dict[str, Any]]], which: int
) -> None:
    chat, asked = cleared
    assert not shows_digest(chat.compact.view(chat.state))
    answer = chat.ask(**asked[which])
    assert "result-00" not in answer
    assert CLEARED in answer


def test_what_is_archived_of_the_chat_after_it_is_handed_out_and_nothing_from_before() -> None:
    chat = Chat()
    asked = questions(chat)
    chat.clear()
    chat.graph.invoke({"messages": [request(101, 100 + STEPS)]}, THREAD)
    assert shows_digest(chat.compact.view(chat.state))
    assert len(chat.archived()) > len(chat.old) + STEPS
    for one in asked:
        answer = chat.ask(**one)
        assert "result-00" not in answer
        assert CLEARED in answer
    assert "result-0103" in chat.ask(query="result-0103")
    assert "result-0103" in chat.ask(id="c103")
    # Nothing is lost track of: all of it can be forgotten.
    chat.graph.update_state(
        THREAD, forget(chat.state, store=chat.store, config=THREAD), as_node="compact"
    )
    assert chat.archived() == []


def test_clearing_alone_leaves_the_archive_to_be_forgotten_later() -> None:
    chat = Chat()
    chat.clear()
    chat.graph.update_state(
        THREAD, {"messages": [HumanMessage("And now?", id="now")]}, as_node="compact"
    )
    assert len(chat.archived()) == len(chat.old)
    update = forget(chat.state, store=chat.store, config=THREAD)
    chat.graph.update_state(THREAD, update, as_node="compact")
    assert chat.archived() == []
    assert [one.id for one in chat.state["messages"]] == ["now"]
