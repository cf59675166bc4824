"""Clearing over every kind of broken history: it loses nothing that it may not take."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langgraph_compaction import CompactionNode
from langgraph_compaction.plan.pins import protected
from langgraph_compaction.view.clipping import text_size
from langgraph_compaction.view.json import safe_json
from langgraph_compaction.view.pairing import groups
from tests.support import folding
from tests.support.histories import histories
from tests.support.replay import Thread, good_summary, replay

SETTINGS = st.fixed_dictionaries(
    {
        "trigger": st.sampled_from([("tokens", 200), ("tokens", 600), ("fraction", 0.02)]),
        "keep": st.sampled_from(["auto", ("messages", 2), ("messages", 0), ("tokens", 100)]),
        "clear_keep": st.integers(1, 3),
        "clear_min_chars": st.sampled_from([0, 1, 80, 400]),
        "clear_argument_chars": st.sampled_from([0, 1, 60]),
        "clear_min_share": st.sampled_from([0.0, 0.1]),
        "protected_tools": st.sampled_from([[], ["search"], ["read_file", "shell"]]),
        "recall_tool": st.sampled_from([None, "recall"]),
        "digest": st.sampled_from(["chain", "rolling"]),
    }
)


def node(**values: Any) -> CompactionNode:
    return folding.node(good_summary, **values)


@given(histories(max_size=30), SETTINGS)
def test_every_promise_holds_where_results_are_cleared(
    history: list[BaseMessage], settings: dict[str, Any]
) -> None:
    thread = replay(node(**settings), history)
    faults = thread.faults
    if settings["keep"] == ("messages", 0):  # then the newest request is quoted in the digest
        faults = [fault for fault in faults if "newest request" not in fault]
    assert faults == []
    assert thread.budget_errors == 0


@given(histories(max_size=30), SETTINGS)
def test_only_what_may_be_cleared_is_cleared(
    history: list[BaseMessage], settings: dict[str, Any]
) -> None:
    def check(thread: Thread, view: list[BaseMessage]) -> None:
        strays = {i for g in groups(thread.messages) for run in g.runs for i in run.strays}
        pinned = protected(thread.messages, range(len(thread.messages)), _nothing, set())
        for index, message in enumerate(thread.messages):
            shown = [one for one in view if one.id == message.id and one.type == message.type]
            if message.id is None or index in strays or len(shown) != 1:
                continue
            if isinstance(message, ToolMessage):
                cleared = str(shown[0].content).startswith("[Cleared: result of ")
                if cleared:
                    assert message.status != "error"
                    assert index not in pinned
                    assert message.name not in settings["protected_tools"]
                    assert text_size(shown[0]) < text_size(message) or isinstance(
                        message.content, list
                    )
            elif isinstance(message, AIMessage):
                assert isinstance(shown[0], AIMessage)
                for call, now in zip(message.tool_calls, shown[0].tool_calls, strict=True):
                    assert call["args"].keys() == now["args"].keys()
                    assert len(safe_json(now["args"])) <= len(safe_json(call["args"]))
                    assert (call["id"], call["name"]) == (now["id"], now["name"])

    replay(node(**settings), history, check)


def _nothing(message: BaseMessage) -> bool:
    return bool(message.additional_kwargs.get("compaction_pinned"))
