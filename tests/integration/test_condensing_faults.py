"""A chain that no tier can condense stays as it is for a while, and holds up nothing else."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import CompactionNode
from langgraph_compaction.digest.prompts import system_prompt
from tests.support.doubles import digest

LOG = "The log says that the part was made as planned. " * 20


def never_condenses(messages: Sequence[BaseMessage]) -> str:
    if messages[0].content == system_prompt(None, None, task="condense"):
        return "I'm sorry, but I can't assist with that request."
    return digest(1)


def test_the_next_fold_is_tried_at_once_where_only_condensing_failed() -> None:
    events: list[dict[str, Any]] = []
    node = CompactionNode(
        never_condenses,
        context_window=20_000,
        trigger=("messages", 8),
        keep=("messages", 2),
        min_fold_tokens=0,
        min_fold_share=0.0,
        max_digest_tokens=200,
        hook=events.append,
    )
    messages: list[BaseMessage] = [HumanMessage("Make the parts.", id="task")]
    state: dict[str, Any] = {"messages": messages, "compaction": {}}
    failed = False
    for number in range(60):
        step = AIMessage(f"Step {number}. {LOG}", id=f"a{number}")
        seen = len(events)
        state = {**state, "messages": [*state["messages"], step]}
        state = {**state, **node.invoke(state)}
        new = [event["type"] for event in events[seen:]]
        if "compaction.failed" in new:
            failed = True
            assert "compaction.completed" in new
            assert "failures" not in state["compaction"]
    assert failed
