"""The checks of provider requests must be right themselves: each rule, broken alone and kept.

The broken requests are written by hand, as the builders could not make some of them; beside each
stands its nearest sound one. Requests that the real builders make of well-formed histories break no
structural rule: the checks and the builders agree on what is sound.
"""

import copy
import random
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from tests.support.histories import random_history, well_formed_histories
from tests.support.payloads import (
    PAYLOAD_KINDS,
    NetworkAttemptedError,
    PayloadKind,
    anthropic_payload,
    google_payload,
    openai_chat_payload,
    openai_responses_payload,
    payload_violations,
    provider_violations,
    structural,
)
from tests.support.validity import MESSAGE_RULES, WHOLE_LIST, Rule

Turn = dict[str, Any]
Case = tuple[Sequence[Turn], int, Sequence[Turn]]

S, H = SystemMessage("Be brief."), HumanMessage("Check the build.")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
U: Turn = {"role": "user", "content": "Check the build."}


def call(*ids: str, name: str = "shell") -> Turn:
    made = [{"id": i, "function": {"name": name, "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def tool(call_id: str, content: Any = "ok") -> Turn:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# For each rule: a request that breaks it alone, where it does so, and the nearest sound one.
CHAT: dict[Rule, Case] = {
    Rule.EMPTY_LIST: ([], WHOLE_LIST, [U]),
    Rule.ORPHAN_RESULT: ([call("1"), tool("1"), U, tool("1")], 3, [call("1"), tool("1"), U]),
    Rule.MISSING_ANSWER: (
        [call("1", "2"), tool("1"), U],
        0,
        [call("1", "2"), tool("2"), tool("1")],
    ),
    Rule.DUPLICATE_ANSWER: ([call("1"), tool("1"), tool("1")], 2, [call("1"), tool("1")]),
    Rule.DUPLICATE_CALL_ID: (
        [call("1", "1"), tool("1"), tool("1")],
        0,
        [call("1"), tool("1"), call("1"), tool("1")],
    ),
    Rule.EMPTY_CONTENT: (
        [{"role": "assistant", "content": None}],
        0,
        [{"role": "assistant", "content": ""}],
    ),
    Rule.FOREIGN_BLOCK: (
        [call("1"), tool("1", [IMAGE])],
        1,
        [{"role": "user", "content": [IMAGE]}],
    ),
    Rule.FOREIGN_CALL: ([call("1", name=""), tool("1")], 0, [call("1"), tool("1")]),
}


def item_call(call_id: str, **more: str) -> Turn:
    return {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}", **more}


def item_out(call_id: str) -> Turn:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


THOUGHT: Turn = {"type": "reasoning", "id": "rs_1", "summary": []}
RESPONSES: dict[Rule, Case] = {
    Rule.EMPTY_LIST: ([], WHOLE_LIST, [U]),
    Rule.ORPHAN_RESULT: ([item_out("1")], 0, [item_call("1"), U, item_out("1")]),
    Rule.MISSING_ANSWER: ([U, item_call("1"), U], 1, [item_call("1"), item_out("1"), U]),
    Rule.REASONING_ALONE: (
        [item_call("1"), THOUGHT, item_out("1")],
        1,
        [THOUGHT, item_call("1"), item_out("1")],
    ),
    Rule.DUPLICATE_ITEM: (
        [item_call("1", id="fc_1"), item_out("1"), item_call("2", id="fc_1"), item_out("2")],
        2,
        [item_call("1", id="fc_1"), item_out("1"), item_call("2", id="fc_2"), item_out("2")],
    ),
    Rule.FOREIGN_REUSED_ID: (
        [item_call("1"), item_out("1"), item_out("1")],
        2,
        [item_call("1"), item_out("1"), item_call("1"), item_out("1")],
    ),
    Rule.FOREIGN_CALL: ([item_call("1") | {"name": ""}, item_out("1")], 0, [U]),
}


def use(*ids: str, then: Sequence[Turn] = ()) -> Turn:
    made = [{"type": "tool_use", "id": i, "name": "shell", "input": {}} for i in ids]
    return {"role": "assistant", "content": [*made, *then]}


def result(*ids: str, first: Sequence[Turn] = ()) -> Turn:
    made = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in ids]
    return {"role": "user", "content": [*first, *made]}


def ai(*content: Turn) -> Turn:
    return {"role": "assistant", "content": list(content)}


TEXT = {"type": "text", "text": "Found it."}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
ANTHROPIC: dict[Rule, Case] = {
    Rule.EMPTY_LIST: ([], WHOLE_LIST, [U]),
    Rule.FIRST_NOT_HUMAN: ([use("1"), result("1")], 0, [U, use("1"), result("1")]),
    Rule.ENDS_WITH_AI: ([U, ai(TEXT)], 1, [U, ai(TEXT), U]),
    Rule.ORPHAN_RESULT: ([U, ai(TEXT), result("1")], 2, [U, use("1"), result("1")]),
    Rule.MISSING_ANSWER: (
        [U, use("1", "2"), result("2")],
        1,
        [U, use("1"), use("2"), result("2", "1")],
    ),
    Rule.DUPLICATE_ANSWER: (
        [U, use("1"), result("1"), result("1")],
        2,
        [U, use("1"), result("1"), U],
    ),
    Rule.DUPLICATE_CALL_ID: (
        [U, use("1"), use("1"), result("1", "1")],
        1,
        [U, use("1"), use("2"), result("1", "2")],
    ),
    Rule.RESULTS_NOT_FIRST: (
        [U, use("1", "2"), result("1"), result("2", first=[TEXT])],
        2,
        [U, use("1", "2"), result("1"), result("2"), U],
    ),
    Rule.CALLS_NOT_LAST: (
        [U, use("1", then=[TEXT]), result("1")],
        1,
        [U, ai(TEXT), use("1"), result("1")],
    ),
    Rule.SERVER_CALL_OPEN: (
        [U, ai(SEARCH, TEXT), U],
        1,
        [U, use("1", then=[SEARCH]), result("1"), ai(FOUND, TEXT), U],
    ),
    Rule.SERVER_RESULT_ORPHAN: ([U, ai(FOUND), U], 1, [U, ai(SEARCH), ai(FOUND), U]),
    Rule.EMPTY_CONTENT: ([U, {"role": "assistant", "content": ""}, U], 1, [U, ai(TEXT), U]),
    Rule.EMPTY_TEXT: ([{"role": "user", "content": " "}], 0, [U]),
    Rule.FOREIGN_BLOCK: (
        [U, ai(THOUGHT), U],
        1,
        [U, ai({"type": "thinking", "thinking": "Hm"}), U],
    ),
    Rule.FOREIGN_CALL: ([U, use(""), result("")], 1, [U, use("1"), result("1")]),
    Rule.FOREIGN_REUSED_ID: (
        [U, use("1"), result("1"), use("1"), result("1")],
        3,
        [U, use("1"), result("1"), use("2"), result("2")],
    ),
}


def said(text: str = "Hello") -> Turn:
    return {"role": "user", "parts": [{"text": text}]}


def model(*names: str) -> Turn:
    made = [{"function_call": {"name": n, "args": {}}} for n in names]
    return {"role": "model", "parts": made or [{"text": "Done."}]}


def returned(*names: str) -> Turn:
    made = [{"function_response": {"name": n, "response": {"output": "ok"}}} for n in names]
    return {"role": "user", "parts": made}


GOOGLE: dict[Rule, Case] = {
    Rule.EMPTY_LIST: ([], WHOLE_LIST, [said()]),
    Rule.FIRST_NOT_HUMAN: ([model("a"), returned("a")], 0, [said(), model("a"), returned("a")]),
    Rule.ENDS_WITH_AI: ([said(), model()], 1, [said(), model(), said()]),
    Rule.CALL_AFTER_MODEL: (
        [said(), model(), model("a"), returned("a")],
        2,
        [said(), model("b"), returned("b"), model("a"), returned("a")],
    ),
    Rule.ORPHAN_RESULT: ([said(), returned("a")], 1, [said(), said()]),
    Rule.MISSING_ANSWER: ([said(), model("a", "b"), returned("a")], 1, [said(), model(), said()]),
    Rule.DUPLICATE_ANSWER: ([said(), model("a"), returned("a", "a")], 2, [said(), model(), said()]),
    Rule.EMPTY_CONTENT: ([{"role": "user", "parts": [{}]}], 0, [said("")]),
    Rule.FOREIGN_CALL: ([said(), model(""), returned("a")], 1, [said(), model("a"), returned("a")]),
}

CASES: dict[PayloadKind, dict[Rule, Case]] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "google": GOOGLE,
}
KEYS = {"openai_chat": "messages", "openai_responses": "input", "google": "contents"}
EACH_CASE = [(kind, rule) for kind, cases in CASES.items() for rule in cases]


def broken(kind: PayloadKind, turns: Sequence[Turn]) -> list[tuple[Rule, int]]:
    found = payload_violations(kind, {KEYS.get(kind, "messages"): turns})
    return [(violation.rule, violation.index) for violation in found]


@pytest.mark.parametrize(("kind", "rule"), EACH_CASE)
def test_the_broken_request_breaks_this_rule_alone(kind: PayloadKind, rule: Rule) -> None:
    turns, index, _ = CASES[kind][rule]
    assert broken(kind, turns) == [(rule, index)]


@pytest.mark.parametrize(("kind", "rule"), EACH_CASE)
def test_its_nearest_sound_request_breaks_none(kind: PayloadKind, rule: Rule) -> None:
    assert broken(kind, CASES[kind][rule][2]) == []


def test_every_rule_has_a_case() -> None:
    elsewhere = {Rule.REFUSED_CONTENT, Rule.REFUSED_STRUCTURE, Rule.TRAILING_SPACE} | MESSAGE_RULES
    assert {rule for cases in CASES.values() for rule in cases} | elsewhere == set(Rule)
    for seed in range(15):
        history = random_history(random.Random(seed))
        for kind in PAYLOAD_KINDS:
            found = {violation.rule for violation in provider_violations(kind, history)}
            assert found <= set(CASES[kind]) | elsewhere


def test_a_last_assistant_turn_may_be_empty_but_not_end_with_white_space() -> None:
    trailing = [U, {"role": "assistant", "content": "I think "}]
    empty = [U, {"role": "assistant", "content": ""}]
    assert broken("anthropic", trailing) == [(Rule.TRAILING_SPACE, 1), (Rule.ENDS_WITH_AI, 1)]
    assert broken("anthropic", empty) == [(Rule.ENDS_WITH_AI, 1)]
    blank = {"system": [{"type": "text", "text": ""}], "messages": [U]}
    assert [v.rule for v in payload_violations("anthropic", blank)] == [Rule.EMPTY_TEXT]


@given(well_formed_histories(max_size=15, complete=True))
def test_real_requests_of_well_formed_histories_are_sound(messages: list[BaseMessage]) -> None:
    for kind in PAYLOAD_KINDS:
        assert structural(provider_violations(kind, messages)) == []


def test_the_builders_are_the_real_ones() -> None:
    history = [S, H, AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}])]
    history.append(ToolMessage("ok", tool_call_id="1"))
    assert [m["role"] for m in openai_chat_payload(history)["messages"]] == [
        *("system", "user", "assistant", "tool")
    ]
    assert [i["type"] for i in openai_responses_payload(history)["input"][-2:]] == [
        *("function_call", "function_call_output")
    ]
    assert anthropic_payload(history)["system"] == "Be brief."
    assert google_payload(history)["contents"][-1]["parts"][0]["function_response"]["name"] == "f"


def test_refusals_of_structure_and_of_content() -> None:
    late = [H, AIMessage("ok"), S, H, AIMessage("ok"), S, H]
    mixed = [HumanMessage(["a string", {"type": "text", "text": "a block"}])]
    remote = [HumanMessage([IMAGE])]
    assert [v.rule for v in provider_violations("anthropic", late)] == [Rule.REFUSED_STRUCTURE]
    assert [v.rule for v in provider_violations("openai_responses", mixed)] == [
        Rule.REFUSED_CONTENT
    ]
    assert [v.rule for v in provider_violations("google", remote)] == [Rule.REFUSED_CONTENT]
    assert structural(provider_violations("google", remote)) == []


def test_a_refusal_hides_no_other_violation() -> None:
    orphan = ToolMessage("ok", tool_call_id="1")
    found = provider_violations("anthropic", [S, H, AIMessage("ok"), S, orphan])
    assert [v.rule for v in found] == [Rule.REFUSED_STRUCTURE, Rule.ORPHAN_RESULT]


def test_no_builder_reaches_for_the_network_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **_: attempts.append(args))
    monkeypatch.setattr(socket.socket, "connect", lambda *args: attempts.append(args))
    for seed in range(20):
        for kind in PAYLOAD_KINDS:
            provider_violations(kind, random_history(random.Random(seed)))
    with pytest.raises(NetworkAttemptedError, match=r"example\.com"):
        google_payload([HumanMessage([IMAGE])])
    assert attempts == []


def test_builders_leave_the_messages_alone() -> None:
    for seed in range(20):
        history = random_history(random.Random(seed))
        before = copy.deepcopy(history)
        for kind in PAYLOAD_KINDS:
            provider_violations(kind, history)
        assert history == before
