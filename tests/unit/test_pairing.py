"""Calls and their results stay together, and what is broken already is repaired in the view.

Every provider refuses a history in which a call has no result or a result has no call, and does so
again at every later step: the thread is stuck. Results come late, twice, or never (a stream died, a
person said no, a run was cancelled), and ids are used again.
"""

import copy
from typing import Any

import pytest
from hypothesis import example, given
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.view.pairing import UNANSWERED, first_open, groups, repaired
from tests.support.histories import histories
from tests.support.validity import Rule, new_violations, violations

S = SystemMessage("Be brief.", id="s")
H = HumanMessage("Check the build.", id="h")
DONE = AIMessage("Done.", id="done")
PAIR_RULES = {Rule.ORPHAN_RESULT, Rule.MISSING_ANSWER, Rule.DUPLICATE_ANSWER}
SERVER_PAIR_RULES = {Rule.SERVER_CALL_OPEN, Rule.SERVER_RESULT_ORPHAN}


def ai(*calls: str | None, invalid: tuple[str, ...] = (), content: Any = "") -> AIMessage:
    return AIMessage(
        content,
        id="ai-" + "-".join(map(str, calls + invalid)),
        tool_calls=[{"name": "shell", "args": {"n": 1}, "id": call} for call in calls],
        invalid_tool_calls=[
            {"type": "invalid_tool_call", "name": "shell", "args": "{", "id": i, "error": "x"}
            for i in invalid
        ],
    )


def t(call: str, content: Any = "ok", **more: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=call, id=f"t-{call}", name="shell", **more)


def server(*blocks: tuple[str, str], kind: str = "anthropic") -> list[Any]:
    """Content with server-side calls and results: ("call" | "result", id)."""
    names = {
        "anthropic": ("server_tool_use", "web_search_tool_result", "tool_use_id"),
        "mcp": ("mcp_tool_use", "mcp_tool_result", "tool_use_id"),
        "standard": ("server_tool_call", "server_tool_result", "tool_call_id"),
    }
    call, result, key = names[kind]
    return [
        {"type": call, "id": i, "name": "search"} if what == "call" else {"type": result, key: i}
        for what, i in blocks
    ]


def cuts(messages: list[BaseMessage]) -> list[int]:
    return [group.start for group in groups(messages)]


# ---- groups


@pytest.mark.parametrize(
    ("messages", "starts"),
    [
        ([], []),
        ([S, H, DONE], [0, 1, 2]),
        # Anthropic refuses system messages in two places, so neighbours are not torn apart.
        ([S, S, H, S, S, DONE], [0, 2, 3, 5]),
        ([H, ai("1", "2"), t("1"), t("2"), H], [0, 1, 4]),
        ([H, ai("1", "2"), t("2"), t("1"), DONE], [0, 1, 4]),
        ([ai("1", invalid=("2",)), t("1"), t("2"), H], [0, 3]),
        ([ai(None), t(""), H], [0, 2]),
        ([AIMessageChunk(content="", tool_calls=ai("1").tool_calls), t("1"), H], [0, 2]),
        # An id may be used again, in another message and in the same.
        ([ai("1"), t("1"), ai("1"), t("1")], [0, 2]),
        ([ai("1", "1"), t("1"), t("1"), DONE], [0, 3]),
        # Results that belong to none of the calls before them stay with the run they stand in.
        ([ai("1"), t("1"), t("1"), H], [0, 3]),
        ([ai("1"), t("9"), t("1"), H], [0, 3]),
        ([H, t("9"), t("8"), H], [0, 1, 3]),
        ([t("9"), H], [0, 1]),
        ([ai("1"), H, t("1")], [0, 1, 2]),
        ([ai("1"), S, t("1")], [0, 1, 2]),
        ([ai("1"), FunctionMessage(content="ok", name="f"), t("1"), H], [0, 3]),
        # Server-side calls: in one message, paused between two, and beside a call of the client.
        ([H, AIMessage(server(("call", "s"), ("result", "s"))), DONE], [0, 1, 2]),
        ([H, AIMessage(server(("call", "s"))), AIMessage(server(("result", "s"))), H], [0, 1, 3]),
        ([AIMessage(server(("call", "s"), ("call", "r"))), AIMessage(server(("result", "r"))),
          AIMessage(server(("result", "s"))), H], [0, 3]),
        ([AIMessage(server(("call", "s"))), DONE, H], [0, 1, 2]),
        ([AIMessage(server(("call", "s"))), AIMessage(server(("result", "other"))), H], [0, 1, 2]),
        ([ai("1", content=server(("call", "s"))), t("1"), AIMessage(server(("result", "s"))), H],
         [0, 3]),
        ([AIMessage(server(("call", "s"), kind="mcp")),
          ai("1", content=server(("result", "s"), kind="mcp")), t("1"), H], [0, 3]),
        ([AIMessage(server(("call", "s"), kind="standard")),
          AIMessage(server(("result", "s"), kind="standard")), H], [0, 2]),
    ],
)  # fmt: skip
def test_the_transcript_is_cut_only_between_whole_groups(
    messages: list[BaseMessage], starts: list[int]
) -> None:
    assert cuts(messages) == starts
    if messages:
        found = list(groups(messages))
        assert [group.stop for group in found] == [*starts[1:], len(messages)]


def test_cutting_can_begin_in_the_middle() -> None:
    messages = [H, ai("1"), t("1"), H, ai("2"), t("2")]
    assert [group.start for group in groups(messages, 3)] == [3, 4]
    assert list(groups(messages, len(messages))) == []


@pytest.mark.parametrize(
    ("messages", "unanswered", "strays"),
    [
        ([ai("1", "2"), t("1")], ["2"], []),
        ([ai("1", "2"), t("2"), t("3")], ["1"], [2]),
        ([ai("1", "1"), t("1")], ["1"], []),
        ([ai("1"), t("1"), t("1")], [], [2]),
        ([ai("1", invalid=("2",))], ["1", "2"], []),
        ([t("1")], [], [0]),
        ([H], [], []),
    ],
)
def test_a_group_knows_what_is_missing_and_what_is_too_much(
    messages: list[BaseMessage], unanswered: list[str], strays: list[int]
) -> None:
    (group,) = groups(messages)
    assert group.unanswered == bool(unanswered)
    assert [call["id"] for run in group.runs for call in run.unanswered] == unanswered
    assert [index for run in group.runs for index in run.strays] == strays


# ---- open calls


@pytest.mark.parametrize(
    ("messages", "waiting"),
    [
        ([H, ai("1")], 1),
        ([H, ai("1", "2"), t("1")], 1),
        ([H, ai("1"), S], 1),
        ([H, ai("1"), S, S], 1),
        ([ai("1")], 0),
        # Another turn: the call is abandoned.
        ([H, ai("1"), H], None),
        ([H, ai("1"), DONE], None),
        ([H, ai("1"), ai("2"), t("2")], None),
        ([H, ai("1"), ai("2")], 2),
        ([H, ai("1"), t("1")], None),
        ([H, ai("1"), t("1"), S], None),
        ([H], None),
        ([], None),
        # A late result of another call is no turn: the newest call still waits.
        ([H, ai("1"), H, ai("2"), t("1")], 3),
        ([H, ai("1", "2"), t("1"), t("1")], 1),
    ],
)
def test_only_the_newest_activity_may_wait(
    messages: list[BaseMessage], waiting: int | None
) -> None:
    found = list(groups(messages))
    assert first_open(messages, found) == (len(found) if waiting is None else waiting)


# ---- repair


def test_what_is_sound_is_passed_through_as_the_same_objects() -> None:
    messages = [S, H, ai("1", "2"), t("2"), t("1"), DONE, S, H, ai("1")]
    found = repaired(messages, newest=True)
    assert all(one is other for one, other in zip(found, messages, strict=True))
    assert found is not messages


def test_an_abandoned_call_gets_its_answer_directly_after_the_others() -> None:
    messages = [H, ai("1", "2", "3"), t("2"), HumanMessage("never mind", id="h2")]
    found = repaired(messages, newest=True)
    assert [message.id for message in found] == [
        "h",
        "ai-1-2-3",
        "t-2",
        "ai-1-2-3:unanswered:1",
        "ai-1-2-3:unanswered:3",
        "h2",
    ]
    answer = found[3]
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.content, answer.status) == ("1", UNANSWERED, "error")


def test_the_newest_call_waits_only_at_the_end_of_the_transcript() -> None:
    messages: list[BaseMessage] = [H, ai("1", "2"), t("1")]
    assert repaired(messages, newest=True) == messages
    closed = repaired(messages, newest=False)
    assert violations([*closed, H]) == []


@pytest.mark.parametrize(
    "content",
    ["42 rows", [{"type": "text", "text": "42 rows"}], ["42 rows"], ""],
)
def test_a_result_that_stands_apart_becomes_labelled_text_at_its_own_place(content: Any) -> None:
    late = t("1", content)
    messages = [H, ai("1"), HumanMessage("never mind", id="h2"), late, DONE]
    found = repaired(messages, newest=True)
    assert [message.id for message in found] == ["h", "ai-1", found[2].id, "h2", "t-1", "done"]
    text = found[4]
    assert isinstance(text, HumanMessage)
    shown = text.text
    assert "shell" in shown
    assert "not a message from the user" in shown
    assert ("42 rows" in shown) == bool(content)
    assert late.content == content


def test_a_second_answer_comes_after_all_first_answers() -> None:
    messages: list[BaseMessage] = [H, ai("1", "2"), t("1"), t("1", "again"), t("2"), H]
    found = repaired(messages, newest=True)
    assert [message.type for message in found] == ["human", "ai", "tool", "tool", "human", "human"]
    assert "again" in str(found[4].content)
    assert violations(found) == []


@given(histories(max_size=25))
@example([H, AIMessage(server(("call", "1"))), t("lost")])
def test_after_the_repair_every_pair_is_whole(history: list[BaseMessage]) -> None:
    before = copy.deepcopy(history)
    found = repaired(history, newest=False)
    left = violations(found)
    assert not {one.rule for one in left} & PAIR_RULES
    # Half a server-side pair inside a message's content is the provider's own matter.
    new = new_violations(violations(history), left)
    assert not {one.rule for one in new} & SERVER_PAIR_RULES
    assert history == before
    text = "\n".join(message.text for message in found)
    assert all(m.text in text for m in history if isinstance(m, ToolMessage))


@given(histories(max_size=25))
def test_groups_cover_the_list_without_gaps(history: list[BaseMessage]) -> None:
    found = list(groups(history))
    assert [i for group in found for i in range(group.start, group.stop)] == [*range(len(history))]
    waiting = first_open(history, found)
    assert waiting == len(found) or found[waiting].unanswered or found[waiting].awaits_server
