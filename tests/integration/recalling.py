"""A thread whose older messages were folded, and the recall tool's answers in it."""

import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionState, create_recall_tool
from langgraph_compaction.archive import Archive, namespace_of, perform
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.recall.answering import HEADER
from tests.support.doubles import THREAD

PICTURE = "iVBORw0KGgo" * 40
IMAGE = {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PICTURE}
LOG = "\n".join(f"{n:04} pump {n % 7} ran at {n * 13 % 997} rpm" for n in range(2_000))


def transcript() -> list[BaseMessage]:
    """What the tests look for, all of it to be folded."""
    return [
        HumanMessage("The archive's password hint is blue heron.", id="m0"),
        AIMessage(
            [
                {"type": "thinking", "thinking": "Secret thought."},
                {"type": "text", "text": "I see."},
            ],
            id="m1",
            tool_calls=[
                {"name": "read", "args": {"path": "pumps.log"}, "id": "call-1"},
                {"name": "read", "args": {"path": "other.log"}, "id": "call-2"},
            ],
        ),
        ToolMessage(LOG, tool_call_id="call-1", name="read", id="m2"),
        ToolMessage("no such file: other.log", tool_call_id="call-2", name="read", status="error"),
        HumanMessage(
            [
                {"type": "text", "text": "二号泵的密码是三七四"},
                {
                    "type": "image",
                    "source_type": "base64",
                    "mime_type": "image/png",
                    "data": PICTURE,
                },
            ],
            id="m4",
        ),
    ]


def record(boundary: int, count: int, messages: list[BaseMessage], **more: Any) -> dict[str, Any]:
    """A record that covers ``count`` messages of the thread, of which ``boundary`` are present."""
    segment = {"text": "Digest.", "first_index": 0, "last_index": count - 1, "last_id": "m4"}
    segment |= {"level": 0, "tokens": 2, "source_tokens": 20, "model": "m"}
    return {
        "version": 1,
        "revision": 1,
        "segments": [segment],
        "last_summarized_index": count - 1,
        "last_summarized_id": "m4",
        "next_id": messages[boundary].id,
        "boundary_hint": boundary,
        "first_id": messages[0].id,
        **more,
    }


def asking(**arguments: Any) -> AIMessage:
    """The agent's call of the tool."""
    return AIMessage(
        "", id="ask", tool_calls=[{"name": "recall", "args": arguments, "id": "ask-1"}]
    )


def graph(store: BaseStore | None = None, **options: Any) -> Any:
    """Only the tools' node."""
    builder = StateGraph(CompactionState)
    builder.add_node("tools", ToolNode([create_recall_tool(**options)]))
    builder.add_edge(START, "tools")
    return builder.compile(store=store)


def from_state(arguments: dict[str, Any], **options: Any) -> Any:
    """The answer where everything is in the state."""
    messages = [*transcript(), asking(**arguments)]
    state = {"messages": messages, "compaction": record(5, 5, messages)}
    return graph(**options).invoke(state, THREAD)["messages"][-1].content


def from_archive(arguments: dict[str, Any], **options: Any) -> Any:
    """The answer where the folded messages were pruned into the archive."""
    store = InMemoryStore()
    head = perform(
        store, Archive(store, namespace_of("t")).steps_of_write(list(enumerate(transcript())), None)
    )
    messages: list[BaseMessage] = [asking(**arguments)]
    state = {
        "messages": messages,
        "compaction": record(0, 5, messages, pruned=True, archived=head),
    }
    return graph(store, **options).invoke(state, THREAD)["messages"][-1].content


def frameless(answer: str) -> str:
    """A page without its header and its foot."""
    assert answer.startswith(f"{HEADER}\n")
    return re.sub(r"\n?\[Page \d+ of \d+[^\n]*\]$", "", answer.removeprefix(f"{HEADER}\n"))


def whole(ask: Any, **arguments: Any) -> str:
    """All pages of an answer, joined; each within the cap."""
    count = token_counter("estimate").text
    text, page = "", 1
    while True:
        answer = ask({**arguments, "page": page})
        assert count(answer) <= 2_000
        shown = answer.removeprefix(f"{HEADER}\n")
        foot = re.search(r"\[Page (\d+) of (\d+)[^\n]*\]$", shown)
        if foot is None:
            return text + shown
        assert int(foot[1]) == page
        text += shown[: foot.start()]
        if foot[1] == foot[2]:
            return text
        assert f"page={page + 1}) goes on" in foot[0]
        page += 1
