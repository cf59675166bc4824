"""Tier 1: old tool results are cleared before any model is asked, and nothing is lost by it."""

import asyncio
import json
import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    create_recall_tool,
    merge_compaction,
    model_view,
    pin,
    request_compaction,
    restore,
)
from langgraph_compaction.state import merge_messages
from tests.support import folding
from tests.support.folding import Recorder, State, failing, state_of
from tests.support.runtimes import runtime

BIG = 3_200
"""Characters of a result: about 1,000 tokens."""


def node(model: Any = None, **values: Any) -> CompactionNode:
    settings = {"trigger": ("tokens", 8_000), "target": 6_000, "keep": ("tokens", 1_000)}
    return folding.node(Recorder() if model is None else model, **(settings | values))


def text_of(n: int, size: int = BIG) -> str:
    line = f"result {n} line of text that says {n * 7919}; "
    return (line * (size // len(line) + 1))[:size]


def read(n: int, *, path: str = "", text: str = "", **more: Any) -> list[BaseMessage]:
    """A call with its result of about 1,000 tokens."""
    call: Any = {"name": "read_file", "args": {"path": path or f"/src/{n}.py"}, "id": f"c{n}"}
    return [
        AIMessage("", id=f"a{n}", tool_calls=[call]),
        ToolMessage(text or text_of(n), tool_call_id=f"c{n}", name="read_file", id=f"t{n}", **more),
    ]


def talk(count: int = 12) -> list[BaseMessage]:
    """What no clearing takes: about 600 tokens each."""
    return [HumanMessage(f"word{n} " * 200, id=f"w{n}") for n in range(count)]


def history(length: int = 10, *odd: BaseMessage) -> list[BaseMessage]:
    return [
        HumanMessage("Fix it.", id="h"),
        *odd,
        *[message for n in range(length) for message in read(n)],
    ]


def visited(compact: CompactionNode, state: State) -> State:
    before = deepcopy(state)
    update = compact.invoke(state)
    assert state == before
    assert asyncio.run(compact.ainvoke(deepcopy(state))).keys() == update.keys()
    return {**state, "compaction": merge_compaction(state["compaction"], update.get("compaction"))}


def cleared(view: Sequence[BaseMessage]) -> list[str]:
    return [str(one.id) for one in view if str(one.content).startswith("[Cleared: result of ")]


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


# ---- clearing and folding


def test_where_clearing_is_not_enough_the_summariser_reads_the_originals() -> None:
    summariser = Recorder()
    compact = node(summariser, target=2_500)
    state = visited(compact, state_of(history(10, *talk())))
    assert summariser.prompts
    assert "result 0 line of text" in summariser.read
    assert "[Cleared" not in summariser.read
    assert "clearing" not in state["compaction"]


def test_where_a_fold_would_leave_no_less_results_are_cleared() -> None:
    """Large results in a small window: neither reaches the target, and clearing asks nobody."""
    summariser = Recorder()
    compact = node(summariser, target=2_500)
    told = compact.explain(state_of(history()))
    assert told.action == "clear"
    assert "no more than a fold would" in str(told)
    state = visited(compact, state_of(history()))
    assert not summariser.prompts
    assert 2_500 < compact.measure(state).tokens == told.tokens_after
    small = {"context_window": 8_000, "trigger": ("fraction", 0.8)}
    hard = node(summariser, target="auto", keep="auto", **small)
    assert hard.explain(state_of(history(7))).need == "hard"
    visited(hard, state_of(history(7)))
    assert not summariser.prompts


def test_a_restore_shows_cleared_results_again_where_there_is_no_digest() -> None:
    state = visited(node(), state_of(history()))
    assert cleared(node().view(state))
    state |= restore(state)
    assert not cleared(node().view(state))
    assert model_view(state) == state["messages"]
    with pytest.raises(ConfigurationError, match="no segments yet"):
        restore(state)


def test_without_a_target_all_is_cleared_that_may_be() -> None:
    """Else each clearing would end just below the trigger, and break the prefix at every step."""
    state = visited(node(target=None), state_of(history()))
    assert len(cleared(node().view(state))) == 7


def test_what_was_cleared_is_folded_from_its_originals_later() -> None:
    summariser = Recorder()
    compact = node(summariser)
    state = visited(compact, state_of(history()))
    assert "clearing" in state["compaction"]
    state["messages"] += [message for n in range(20, 60) for message in read(n, text="x " * 400)]
    while not summariser.prompts:
        state = visited(compact, state)
        state["messages"] += [HumanMessage("go on " * 400, id=f"h{len(state['messages'])}")]
    assert "result 0 line of text" in summariser.read
    assert "[Cleared" not in summariser.read


def test_a_clearing_only_grows_until_the_next_fold() -> None:
    compact = node(clear_keep=1)
    state = state_of(history())
    marks = []
    for n in range(20, 40):
        state = visited(compact, state)
        if "segments" in state["compaction"]:
            break
        before = set(cleared(compact.view(state)))
        marks.append(state["compaction"].get("clearing", {}).get("last_index", -1))
        state["messages"] += read(n, path="/src/0.py")  # would supersede an older one
        assert set(cleared(compact.view(state))) == before
    assert marks == sorted(marks)
    assert len(set(marks)) > 1


def test_a_restore_shows_originals_and_not_their_placeholders() -> None:
    state = visited(node(clear=False), state_of(history()))
    state["messages"] += [message for n in range(20, 30) for message in read(n)]
    state = visited(node(clear=False), state)
    assert len(state["compaction"]["segments"]) == 2
    state["messages"] += [message for n in range(30, 40) for message in read(n)]
    state = visited(node(), state)
    assert cleared(model_view(state))
    for segment in range(len(state["compaction"]["segments"])):
        update = restore(state, segment=segment)
        back = {**state, "compaction": merge_compaction(state["compaction"], update["compaction"])}
        assert cleared(model_view(back)) == []


def test_a_clearing_has_to_be_worth_the_broken_prefix() -> None:
    small = [m for n in range(3) for m in read(n, text=text_of(n, 1_200))]
    filler = [HumanMessage("w " * 3_600, id=f"f{n}") for n in range(2)]
    tail = [m for n in range(4, 7) for m in read(n, text="ok")]
    state = state_of([HumanMessage("Go.", id="h"), *small, *filler, *tail])
    assert node(clear_min_share=0.2, target=None).explain(state).action == "fold"
    # Two results would bring the view below the trigger, but are not worth it: three are.
    compact = node(target=None)
    assert compact.explain(state).action == "clear"
    assert cleared(compact.view(visited(compact, state))) == ["t0", "t1", "t2"]


def test_off_means_off() -> None:
    compact = node(clear=False)
    state = visited(compact, state_of(history()))
    assert "segments" in state["compaction"]
    assert cleared(compact.view(state)) == []


def test_a_thread_that_prunes_folds_unless_it_is_told_to_clear() -> None:
    pruning: dict[str, Any] = {"history": "prune", "archive": None}
    assert node(**pruning).explain(state_of(history())).action == "fold"
    assert node(clear=True, **pruning).explain(state_of(history())).action == "clear"


def unfoldable() -> State:
    """A task that fills the window, one old result that is worth no fold, and the newest one."""
    task = HumanMessage("word " * 9_000, id="h")
    return state_of([task, *read(0, text=text_of(0, 700)), *read(1, text="ok")])


def test_at_the_hard_limit_a_visit_clears_and_clips_and_explain_says_so() -> None:
    events = list[dict[str, Any]]()
    limits: dict[str, Any] = {"context_window": 9_000, "trigger": ("tokens", 7_900)}
    compact = node(hook=events.append, clear_keep=1, clear_min_chars=100, **limits)
    state = unfoldable()
    told = compact.explain(state)
    assert (told.need, told.action, told.span) == ("hard", "clear", None)
    state = {**state, "compaction": compact.invoke(state)["compaction"]}
    assert [event["type"] for event in events] == ["compaction.cleared", "compaction.completed"]
    assert (events[0]["first_index"], events[0]["last_index"]) == told.cleared
    assert events[0]["reason"] == told.reason
    assert events[0]["tokens_after"] == told.tokens_after
    assert cleared(compact.view(state)) == ["t0"]
    assert events[1]["tokens_after"] == compact.measure(state).tokens <= 8_100


def test_a_veto_at_the_hard_limit_clears_before_it_clips() -> None:
    events = list[dict[str, Any]]()

    def veto(event: dict[str, Any]) -> bool:
        events.append(event)
        return False

    compact = node(hook=veto, context_window=9_000, trigger=("tokens", 7_900), clear_min_share=0.99)
    state = state_of(history())
    assert compact.explain(state).action == "fold"
    state = {**state, "compaction": compact.invoke(state)["compaction"]}
    assert [event["type"].partition(".")[2] for event in events] == [
        "started", "skipped", "cleared"
    ]  # fmt: skip
    assert compact.measure(state).tokens <= 8_100


def test_a_request_folds() -> None:
    compact = node()
    asked = {"messages": history(4), "compaction": {}, **request_compaction()}
    assert compact.explain(asked).action == "fold"


def test_steps_and_messages_are_brought_down_by_folds_alone() -> None:
    for trigger in (("messages", 10), ("steps", 5)):
        assert node(trigger=trigger, target=None).explain(state_of(history())).action == "fold"


# ---- where the summarisers fail


def test_at_the_hard_limit_clearing_comes_before_extracts() -> None:
    compact = node(failing, context_window=9_000, trigger=("tokens", 7_900), target=2_000)
    state = visited(compact, state_of(history()))
    assert "segments" not in state["compaction"]
    assert cleared(compact.view(state))
    assert compact.measure(state).tokens <= 8_100


def test_extracts_follow_where_clearing_is_not_enough_at_the_hard_limit() -> None:
    talk = [HumanMessage(f"word{n} " * 600, id=f"w{n}") for n in range(12)]
    compact = node(failing, context_window=9_000, trigger=("tokens", 7_900))
    state = visited(compact, state_of([*talk, *history(3)]))
    assert state["compaction"]["segments"][0]["model"] == "extractive"
    assert compact.measure(state).tokens <= 8_100


def test_a_fold_that_failed_and_a_clearing_complete_nothing() -> None:
    events: list[dict[str, Any]] = []
    compact = node(failing, target=2_500, hook=events.append)
    compact.invoke(state_of(history(10, *talk())))
    kinds = [event["type"].removeprefix("compaction.") for event in events]
    assert kinds == ["started", "tier_failed", "failed", "cleared"]
    assert "the digest is as it was" in events[2]["reason"]
    assert events[3]["tokens_after"] < events[3]["tokens_before"]


def test_while_the_summarisers_rest_clearing_goes_on() -> None:
    compact = node(failing, target=2_500)
    state = visited(compact, state_of(history(10, *talk())))
    assert state["compaction"]["failures"]["count"] == 1
    assert len(cleared(compact.view(state))) == 7  # in the visit whose fold failed
    assert compact.invoke(state) == {}
    state["compaction"]["failures"]["count"] = 3  # the breaker is open
    state["messages"] += [m for n in (20, 21) for m in read(n, text=text_of(n, 9_000))]
    again = compact.explain(state)
    assert again.action == "clear"
    assert again.cooling is not None
    state = visited(compact, state)
    assert len(cleared(compact.view(state))) == 9
    assert state["compaction"]["failures"]["count"] == 3


# ---- what the agent has not seen, and what is no newer result


def test_results_of_parallel_calls_do_not_supersede_each_other() -> None:
    calls: Any = [{"name": "draw_sample", "args": {}, "id": f"d{n}"} for n in range(4)]
    drawn = [ToolMessage(text_of(n), tool_call_id=f"d{n}", id=f"s{n}") for n in range(4)]
    messages = [*history(6), AIMessage("", id="d", tool_calls=calls), *drawn]
    compact = node()
    assert not {"s0", "s1", "s2", "s3"} & set(
        cleared(compact.view(visited(compact, state_of(messages))))
    )


@pytest.mark.parametrize("shared", ["", "c"])
def test_parallel_calls_that_share_an_id_are_told_apart_by_their_order(shared: str) -> None:
    def step(name: str, paths: str) -> list[BaseMessage]:
        calls: Any = [{"name": "look", "args": {"path": p}, "id": shared} for p in paths]
        results = [
            ToolMessage(text_of(ord(p)) + name, tool_call_id=shared, name="look", id=f"{name}{p}")
            for p in paths
        ]
        return [AIMessage("", id=name, tool_calls=calls), *results]

    messages = [*history(0), *step("old", "ab"), *history(6)[1:], *step("new", "b")]
    compact = node(trigger=("tokens", 8_500), target=8_400, clear_keep=50)
    shown = {one.id: one.text for one in compact.view(visited(compact, state_of(messages)))}
    assert "A newer result of the same call" in shown["oldb"]
    assert shown["olda"] == text_of(ord("a")) + "old"


def in_content(n: int, path: Any, *, key: str = "input") -> list[BaseMessage]:
    """A call that stands in the content alone."""
    block = {"type": "tool_use", "id": f"c{n}", "name": "read_file"}
    asked, told = read(n)
    held = block if path is None else {**block, key: path}
    return [asked.model_copy(update={"tool_calls": [], "content": [held]}), told]


@pytest.mark.parametrize("as_text", [False, True])
def test_calls_in_content_blocks_are_compared_by_their_arguments(as_text: bool) -> None:
    def given(path: str) -> Any:
        return json.dumps({"path": path}) if as_text else {"path": path}

    paths = ["/a", "/b", "/c", "/a", "/d", "/e", "/f", "/g", "/h"]
    calls = [m for n, path in enumerate(paths) for m in in_content(n, given(path))]
    compact = node(target=8_400, trigger=("tokens", 8_500), clear_keep=50)
    view = compact.view(visited(compact, state_of([*history(0), *calls])))
    assert cleared(view) == ["t0"]


def test_calls_whose_arguments_are_unknown_supersede_nothing() -> None:
    calls = [m for n in range(9) for m in in_content(n, None)]
    compact = node(target=None, clear_min_share=0.0)
    view = compact.view(visited(compact, state_of([*history(0), *calls])))
    assert cleared(view)
    assert "newer result" not in str(view)


@pytest.mark.parametrize("tool", ["read_file", "grep"])
def test_a_copy_that_is_clipped_is_no_reason_to_clear_a_longer_one(tool: str) -> None:
    big = text_of(70, 14_000)
    calls: Any = [{"name": tool, "args": {"path": "/src/0.py"}, "id": "g0"}]
    calls += [{"name": "other", "args": {"n": n}, "id": f"g{n}"} for n in range(1, 4)]
    texts = [big, *(text_of(n, 14_000) for n in range(1, 4))]
    answers = [ToolMessage(text, tool_call_id=f"g{n}", id=f"g{n}") for n, text in enumerate(texts)]
    messages = [*history(0), *read(0, text=big), AIMessage("", id="a", tool_calls=calls), *answers]
    compact = node(
        context_window=128_000, trigger=("tokens", 18_000), target=17_900, clear_keep=50,
        max_result_tokens=40_000,
    )  # fmt: skip
    state = visited(compact, state_of(messages))
    assert cleared(compact.view(state)) == ["t0"]
    state["compaction"]["render"]["clip_result_bytes"] = 12_000
    shown = {one.id: one.text for one in compact.view(state)}
    assert len(shown["g0"]) < 4_000
    assert 11_000 < len(shown["t0"]) < 13_000
    # Where both are cut to the same length, one of them is enough.
    state["messages"] = [*history(0), *read(0, text=big), *read(1, path="/src/0.py", text=big)]
    state["compaction"]["clearing"] |= {"repeats_index": 4, "repeats_id": "t1"}
    assert cleared(compact.view(state)) == ["t0"]


def test_only_a_copy_that_stays_is_a_reason_to_clear_the_other() -> None:
    same, edited = text_of(70), text_of(71)
    messages = [
        HumanMessage("Compare them.", id="h"), *read(0, path="/a.yaml", text=same),
        *read(1, path="/b.yaml", text=same), *[m for n in range(2, 7) for m in read(n)],
        *read(7, path="/b.yaml", text=edited), *read(8), *read(9),
    ]  # fmt: skip
    compact = node(target=9_400, trigger=("tokens", 9_500), clear_min_share=0.0)
    view = compact.view(visited(compact, state_of(messages)))
    assert "t1" in cleared(view)
    assert "t0" not in cleared(view)


def test_a_note_that_nothing_changed_supersedes_nothing() -> None:
    note = "The file is unchanged since it was last read; the earlier result is still current."
    again = read(8, path="/src/0.py", text=note)
    compact = node(target=None, trigger=("tokens", 8_900))
    messages = [*history(8), *again, *read(9), *read(10)]
    view = {one.id: one for one in compact.view(visited(compact, state_of(messages)))}
    assert "newer result" not in str(view["t0"].content)


def test_a_marked_message_that_was_added_again_proves_nothing() -> None:
    state = visited(node(), state_of(history()))
    marked = state["compaction"]["clearing"]
    moved = next(one for one in state["messages"] if one.id == marked["repeats_id"])
    rest = [one for one in state["messages"] if one.id not in {moved.id, marked["last_id"]}]
    state["messages"] = [*rest, *read(30), *read(31), moved]
    assert cleared(model_view(state)) == []


def test_another_chat_without_ids_is_not_cleared() -> None:
    bare = [message.model_copy(update={"id": None}) for message in history()]
    state = visited(node(), state_of(bare))
    other = [message.model_copy(update={"id": None}) for n in range(40, 50) for message in read(n)]
    state["messages"] = [HumanMessage("Something else."), *other]
    assert not any(str(one.content).startswith("[Cleared") for one in model_view(state))


def test_a_late_result_behind_the_mark_brings_nothing_back() -> None:
    state = visited(node(), state_of(history()))
    before = cleared(model_view(state))
    late = ToolMessage("late", tool_call_id="c2", id="late")
    assert cleared(model_view({**state, "messages": [*state["messages"], late]})) == before


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
