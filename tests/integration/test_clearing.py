"""Which old tool results a visit clears, what stands in their place, and the mark in the record."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionState, create_recall_tool, model_view, pin
from langgraph_compaction.state import merge_messages
from tests.integration.clearing import BIG, cleared, history, node, read, text_of, visited
from tests.support.folding import Recorder, State, state_of
from tests.support.runtimes import runtime

# ---- what is cleared


def test_clearing_that_is_enough_calls_no_model() -> None:
    summariser, events = Recorder(), list[dict[str, Any]]()
    compact = node(summariser, hook=events.append)
    state = state_of(history())
    decision = compact.explain(state)
    assert decision.action == "clear"
    assert decision.cleared == (2, 10)
    assert "would be cleared" in str(decision)
    assert compact.route("agent")(state) == "compact"
    state = visited(compact, state)
    assert summariser.prompts == []
    view = compact.view(state)
    assert cleared(view) == ["t0", "t1", "t2", "t3", "t4"]  # the oldest, as many as it takes
    assert compact.measure(state).tokens <= 6_000
    assert compact.measure(state).tokens == pytest.approx(decision.tokens_after, rel=0.01)
    told = [event for event in events if event["type"] != "compaction.skipped"]
    assert [event["type"] for event in told] == ["compaction.cleared"] * 2  # sync and async
    assert told[0]["results"] == 5
    assert told[0]["arguments"] == 0
    assert (told[0]["first_index"], told[0]["last_index"]) == (2, 10)
    assert told[0]["tokens_after"] == compact.measure(state).tokens < told[0]["tokens_before"]
    assert model_view(state) == view
    assert compact.invoke(state) == {}
    assert compact.route("agent")(state) == "agent"


def test_a_placeholder_says_what_it_was_and_how_to_get_it_back() -> None:
    view = node().view(visited(node(), state_of(history())))
    assert view[2].content == (
        "[Cleared: result of read_file, 3,200 characters, outcome ok. "
        "Call the tool again if you need it.]"
    )
    recalling = node(recall_tool="recall")
    view = recalling.view(visited(recalling, state_of(history())))
    assert str(view[2].content).endswith('outcome ok. recall(id="t0") shows it.]')
    assert model_view(visited(recalling, state_of(history()))) == view
    assert (view[2].id, view[2].type) == ("t0", "tool")


def test_repeats_and_superseded_reads_come_first() -> None:
    twice = [
        HumanMessage("Fix it.", id="h"),
        *read(0, path="/a.py"), *read(1), *read(2, path="/a.py"), *read(3), *read(4), *read(5),
        *read(6, text=text_of(4)), *read(7), *read(8, text=text_of(1)), *read(9),
    ]  # fmt: skip
    compact = node(target=7_500)
    view = compact.view(visited(compact, state_of(twice)))
    assert cleared(view) == ["t0", "t1", "t4"]
    assert "A newer result of the same call stands further below." in str(view[2].content)
    assert "The same text stands further below." in str(view[4].content)
    # Where that is not enough, the oldest of the others follow.
    compact = node(target=6_000)
    view = compact.view(visited(compact, state_of(twice)))
    assert cleared(view) == ["t0", "t1", "t2", "t3", "t4"]


def test_what_is_repeated_or_shortened_names_its_handle_too() -> None:
    long: Any = {"path": "/a.py", "text": "x = y\n" * 500}
    call: Any = {"name": "write", "args": long, "id": "w"}
    wrote = [
        AIMessage("", id="aw", tool_calls=[call]),
        ToolMessage("ok", tool_call_id="w", id="tw"),
    ]
    compact = node(recall_tool="recall")
    messages = [*history(0), *wrote, *history(9)[1:]]
    first: Any = compact.view(visited(compact, state_of(messages)))[1]
    assert first.tool_calls[0]["args"]["text"].endswith('cleared ... recall(id="w") shows it.]')
    compact = node(recall_tool="recall", target=8_600, trigger=("tokens", 8_700))
    messages = [*history(7), *read(21, text=text_of(0)), *read(20)]
    older = compact.view(visited(compact, state_of(messages)))[2]
    assert str(older.content).endswith(
        'The same text stands further below. recall(id="t0") shows it.]'
    )


def looked_up(state: State, named: str) -> str:
    """What the recall tool answers to the call that ends a text, such as ``recall(id="t0")``."""
    call = re.search(r"recall\((id|first)=(.+?)\) shows it\.\]$", named)
    assert call is not None, named
    given = {call[1]: json.loads(call[2]), "runtime": runtime(state, {})}
    return str(create_recall_tool(search=False, max_tokens=9_000).invoke(given))


def with_one_call_id(messages: Sequence[BaseMessage], *, ids: bool) -> list[BaseMessage]:
    """The messages with calls that all have the same id, as some providers number them."""
    found = []
    for message in messages:
        update: dict[str, Any] = {} if ids else {"id": None}
        if isinstance(message, ToolMessage):
            update["tool_call_id"] = "c"
        elif isinstance(message, AIMessage):
            update["tool_calls"] = [{**call, "id": "c"} for call in message.tool_calls]
        found.append(message.model_copy(update=update))
    return found


@pytest.mark.parametrize("ids", [True, False])
def test_where_all_calls_have_the_same_id_each_original_is_found(ids: bool) -> None:
    text = "x = y\n" * 500
    call: Any = {"name": "write", "args": {"path": "/a.py", "text": text}, "id": "w"}
    wrote = [AIMessage("", tool_calls=[call], id="aw"), ToolMessage("ok", tool_call_id="w")]
    messages = with_one_call_id([*history(0), *wrote, *history(9)[1:]], ids=ids)
    compact = node(recall_tool="recall")
    state = visited(compact, state_of(messages))
    view = compact.view(state)
    places = [n for n, one in enumerate(view) if str(one.content).startswith("[Cleared")]
    assert len(places) > 2
    for index in places:
        answer = looked_up(state, str(view[index].content))
        assert answer.count("<original ") == 1
        assert str(messages[index].content) in answer
    writing: Any = view[1]
    answer = looked_up(state, writing.tool_calls[0]["args"]["text"])
    assert answer.count("<original ") == 1
    assert json.dumps(text)[1:-1] in answer
    # Nothing that comes later changes a handle, whatever its id is.
    later = [*messages, *with_one_call_id(read(50), ids=ids), *read(3)]
    assert model_view({**state, "messages": later})[: len(view)] == view


def test_a_handle_that_others_have_too_is_not_given() -> None:
    # Ids that are numbers: that of a call is that of another message.
    messages: list[BaseMessage] = [HumanMessage("Go.", id="0")]
    for n in range(9):
        asked, told = read(n)
        call: Any = {"name": "read_file", "args": {"n": n, "text": "x" * 900}, "id": f"{n}"}
        messages.append(asked.model_copy(update={"id": f"{2 * n + 1}", "tool_calls": [call]}))
        messages.append(told.model_copy(update={"id": f"{2 * n + 2}", "tool_call_id": f"{n}"}))
    compact = node(recall_tool="recall")
    state = visited(compact, state_of(messages))
    view = compact.view(state)
    assert cleared(view)
    for index, shown in enumerate(view):
        if shown is not messages[index] and isinstance(shown, ToolMessage):
            assert messages[index].text in looked_up(state, shown.text)
        elif shown is not messages[index]:
            asked: Any = shown
            answer = looked_up(state, asked.tool_calls[0]["args"]["text"])
            assert f'"n": {(index - 1) // 2}, ' in answer


def test_a_call_id_that_comes_again_later_leaves_the_handles_as_they_are() -> None:
    compact = node(recall_tool="recall")
    state = visited(compact, state_of(history()))
    view = compact.view(state)
    assert str(view[2].content).endswith('recall(id="t0") shows it.]')
    again = [message.model_copy(update={"id": f"{message.id}-2"}) for message in read(0)]
    assert compact.view({**state, "messages": [*state["messages"], *again]})[: len(view)] == view


MADE = "The call was made: do not repeat it for its result."


@pytest.mark.parametrize(
    ("name", "given"),
    [("send_email", {"to": "ann"}), ("bash", {"command": "git push"}), (None, {"to": "ann"})],
)
def test_no_placeholder_asks_to_repeat_what_changed_something(name: str | None, given: Any) -> None:
    call: Any = {"name": name or "send_email", "args": given, "id": "e"}
    sent = [
        AIMessage("", tool_calls=[call], id="ae"),
        ToolMessage(text_of(70), tool_call_id="e", name=name, id="te"),
    ]
    state = state_of(history(9, *sent))
    what = f"[Cleared: result of {call['name']}, 3,200 characters. {MADE}"
    view = node().view(visited(node(), state))
    assert view[2].content == f"{what}]"
    assert str(view[4].content).endswith("outcome ok. Call the tool again if you need it.]")
    recalling = node(recall_tool="recall")
    after = visited(recalling, state)
    assert recalling.view(after)[2].content == f'{what} recall(id="te") shows it.]'
    assert model_view(after) == recalling.view(after)


def test_what_changed_something_twice_is_not_to_be_repeated_either() -> None:
    sent: list[BaseMessage] = []
    for n in range(2):
        call: Any = {"name": "send_email", "args": {"to": "ann"}, "id": f"e{n}"}
        answer = ToolMessage(text_of(70 + n), tool_call_id=f"e{n}", id=f"te{n}")
        sent += [AIMessage("", tool_calls=[call], id=f"ae{n}"), answer]
    compact = node(clear_keep=20, target=7_500, recall_tool="recall")
    view = compact.view(visited(compact, state_of(history(6, *sent))))
    newer = "A newer result of the same call stands further below."
    assert str(view[2].content).endswith(f'{newer} {MADE} recall(id="te0") shows it.]')


def test_the_recall_tool_changes_nothing_whatever_its_name() -> None:
    call: Any = {"name": "restore", "args": {"id": "c7"}, "id": "r"}
    recalled = [
        AIMessage("", tool_calls=[call], id="ar"),
        ToolMessage(text_of(70), tool_call_id="r", name="restore", id="tr"),
    ]
    compact = node(recall_tool="restore")
    view = compact.view(visited(compact, state_of(history(9, *recalled))))
    assert str(view[2].content).endswith("outcome ok. Call the tool again if you need it.]")


@pytest.mark.parametrize("name", ["recall", None])
def test_what_the_recall_tool_brought_is_not_looked_up_as_a_copy(name: str | None) -> None:
    call: Any = {"name": "recall", "args": {"id": "c7"}, "id": "r"}
    recalled = [
        AIMessage("", tool_calls=[call], id="ar"),
        ToolMessage(text_of(70), tool_call_id="r", name=name, id="tr"),
    ]
    compact = node(recall_tool="recall")
    view = compact.view(visited(compact, state_of(history(9, *recalled))))
    assert view[2].content == (
        "[Cleared: result of recall, 3,200 characters, outcome ok. "
        "Call the tool again if you need it.]"
    )
    assert str(view[4].content).endswith('recall(id="t0") shows it.]')


def test_an_error_does_not_supersede_a_result_and_is_kept() -> None:
    failing = read(9, path="/src/0.py", text="no such file\n" * 200, status="error")
    compact = node(target=2_000, clear_keep=1)
    messages = [*history(8), *failing, *read(10)]
    view = compact.view(visited(compact, state_of(messages)))
    assert "t9" not in cleared(view)
    assert "newer result" not in str(view[2].content)


def test_protected_tools_pins_and_the_newest_groups_stay() -> None:
    skill: Any = {"name": "load_skill", "args": {"text": "y" * 5_000}, "id": "s"}
    odd = [
        AIMessage("", id="as", tool_calls=[skill]),
        ToolMessage(text_of(77), tool_call_id="s", id="ts"),
        AIMessage("", id="ap", tool_calls=[{**skill, "name": "other", "id": "p"}]),
        pin(ToolMessage(text_of(78), tool_call_id="p", id="tp")),
        AIMessage("", id="ar", tool_calls=[{"name": "notes", "args": {}, "id": "r"}]),
        ToolMessage(text_of(79), tool_call_id="r", name="notes", id="tr"),
    ]
    rule = {"type": "tool", "name": "notes"}
    compact = node(
        protected_tools=["load_skill"],
        pinned=rule,
        trigger=("tokens", 10_000),
        target=None,
        clear_keep=4,
    )
    state = visited(compact, state_of(history(8, *odd)))
    view = compact.view(state)
    assert not {"ts", "tp", "tr"} & set(cleared(view))
    assert "t7" not in cleared(view)
    shown = {str(one.id): one for one in view}
    assert shown["as"].tool_calls[0]["args"] == {"text": "y" * 5_000}  # type: ignore[attr-defined]
    assert model_view(state) == view


def test_results_that_are_short_and_arguments_that_are_not() -> None:
    long: Any = {"path": "/a.py", "text": "x = y\n" * 350}
    calls = [
        message
        for n in range(12)
        for message in (
            AIMessage("", id=f"a{n}", tool_calls=[{"name": "write", "args": long, "id": f"c{n}"}]),
            ToolMessage("ok", tool_call_id=f"c{n}", id=f"t{n}"),
        )
    ]
    events = list[dict[str, Any]]()
    compact = node(hook=events.append)
    state = visited(compact, state_of([HumanMessage("Go.", id="h"), *calls]))
    view = compact.view(state)
    assert cleared(view) == []
    first: Any = view[1]
    assert first.tool_calls[0]["args"]["path"] == "/a.py"
    assert "characters cleared" in first.tool_calls[0]["args"]["text"]
    assert events[0]["arguments"] > 0 == events[0]["results"]
    newest: Any = view[-2]
    assert newest.tool_calls[0]["args"] == long


def test_media_in_old_results_become_markers() -> None:
    image = {"type": "image", "base64": "aGk=" * 90, "mime_type": "image/png"}
    odd = [
        AIMessage("", id="ai", tool_calls=[{"name": "screenshot", "args": {}, "id": "i"}]),
        ToolMessage([image, {"type": "text", "text": "done"}], tool_call_id="i", id="ti"),
    ]
    view = node().view(visited(node(), state_of(history(10, *odd))))
    assert view[2].content == (
        "[Cleared: result of screenshot, 4 characters, [image image/png 270 bytes], outcome ok. "
        "Call the tool again if you need it.]"
    )


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "reference", "id": "7"}],
        [{"type": "reference", "id": "7"}, {"type": "text", "text": "x" * 60}],
        [{"type": "document", "source": {"type": "text", "data": "short"}}],
        [{"json": {"rows": 3}}],
        [{"type": "thinking", "thinking": "x" * 900}, {"type": "text", "text": "ok"}],
    ],
)
@pytest.mark.parametrize("least", [0, 60, 500])
def test_a_placeholder_is_never_longer_than_what_it_stands_for(content: Any, least: int) -> None:
    odd = read(20)
    odd[1] = odd[1].model_copy(update={"content": content})
    compact = node(recall_tool="recall", clear_min_chars=least)
    view = compact.view(visited(compact, state_of(history(10, *odd))))
    assert cleared(view)
    assert "t20" not in cleared(view)


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (
            {
                "type": "search_result",
                "source": "u",
                "content": [{"type": "text", "text": "x" * 900}],
            },
            "900 characters, [search_result block]",
        ),
        ({"json": {"rows": "y " * 521}}, "1,064 characters, [unknown block]"),
        ({"type": "non_standard", "value": {"type": "input_text", "text": "x" * 900}}, "900 char"),
        ({"text": "x" * 900}, "900 characters, outcome"),
    ],
)
def test_a_placeholder_counts_the_text_of_any_block(block: Any, what: str) -> None:
    odd = read(20)
    odd[1] = odd[1].model_copy(update={"content": [block]})
    compact = node(clear_min_chars=100)
    view = compact.view(visited(compact, state_of(history(10, *odd))))
    assert view[2].text.startswith(f"[Cleared: result of read_file, {what}")


# ---- the record


def test_the_record_is_plain_json_and_does_not_grow_with_what_is_cleared() -> None:
    sizes = []
    for length in (10, 40):
        record = visited(node(target=None), state_of(history(length)))["compaction"]
        assert json.loads(json.dumps(record)) == record
        sizes.append(len(json.dumps(record)))
    assert abs(sizes[1] - sizes[0]) < 20


def test_where_the_mark_is_gone_everything_is_shown() -> None:
    state = visited(node(), state_of(history()))
    marked = state["compaction"]["clearing"]
    gone = [RemoveMessage(id=marked[key]) for key in ("last_id", "repeats_id")]
    state["messages"] = merge_messages(state["messages"], gone)
    assert cleared(model_view(state)) == []


def test_a_deleted_message_before_the_mark_moves_nothing() -> None:
    state = visited(node(), state_of(history()))
    before = cleared(model_view(state))
    state["messages"] = merge_messages(state["messages"], [RemoveMessage(id="h")])
    assert cleared(model_view(state)) == before


def test_messages_without_ids_are_cleared_by_position() -> None:
    bare = [message.model_copy(update={"id": None}) for message in history()]
    compact = node()
    state = visited(compact, state_of(bare))
    shown = [str(one.content).startswith("[Cleared") for one in compact.view(state)]
    assert sum(shown) == 5


def test_it_works_in_a_graph_with_a_checkpointer() -> None:
    compact = node(recall_tool="recall")
    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_edge(START, "compact")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": history()}, config)
    values = graph.get_state(config).values
    assert cleared(model_view(values)) == ["t0", "t1", "t2", "t3", "t4"]
    assert len(values["messages"]) == 21
    assert all(len(str(m.content)) == BIG for m in values["messages"] if m.type == "tool")
    graph.invoke({"messages": read(50)}, config)
    assert len(cleared(model_view(graph.get_state(config).values))) == 5


# ---- results too large for the window


def test_a_giant_newest_result_shows_head_tail_and_handle_and_breaks_no_character() -> None:
    lines = [f"line {n} of the log: 👩‍👩‍👧 naïve 日本語 {n * 7919}" for n in range(20_000)]
    giant = "\n".join(lines)
    assert len(giant) > 800_000
    messages = [*history(2), *read(9, text=giant)]
    compact = node(recall_tool="recall", context_window=16_000, trigger=("fraction", 0.8))
    for state in (state_of(messages), visited(compact, state_of(messages))):
        shown = compact.view(state)[-1].text
        assert len(shown) < 20_000
        head, mark, tail = shown.partition("\n[... ")
        assert set(head.split("\n")) <= set(lines)  # whole lines, and so whole characters
        note, _, tail = tail.partition(" ...]\n")
        assert set(tail.split("\n")) <= set(lines)
        assert (head.split("\n")[0], tail.split("\n")[-1]) == (lines[0], lines[-1])
        assert f"of {len(giant):,} characters left out" in note
        assert note.endswith('recall(id="t9") shows it.')
        assert mark
        assert compact.measure(state).tokens <= 16_000
