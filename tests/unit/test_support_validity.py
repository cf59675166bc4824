"""The checker that judges every view must itself be right: each rule, broken alone and kept.

A checker that sees too little would let faulty views pass; one that sees too much would make the
view repair what no provider minds. So beside each broken history stands its nearest sound one. The
generators are held to it: well-formed histories break nothing, malformed ones every rule.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import find, given, settings
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from tests.support.histories import (
    FAULTS,
    histories,
    load_transcripts,
    random_history,
    well_formed_histories,
)
from tests.support.validity import (
    MESSAGE_RULES,
    WHOLE_LIST,
    Rule,
    Violation,
    counts_by_rule,
    new_violations,
    violations,
)

S = SystemMessage("Be brief.")
H = HumanMessage("Check the build.")
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
TEXT = {"type": "text", "text": "Found it."}


def ai(*ids: str | None, invalid: Sequence[str] = (), content: Any = "") -> AIMessage:
    return AIMessage(
        content,
        tool_calls=[{"name": "shell", "args": {}, "id": call_id} for call_id in ids],
        invalid_tool_calls=[
            {"type": "invalid_tool_call", "name": "shell", "args": "{", "id": i, "error": None}
            for i in invalid
        ],
    )


def t(call_id: str) -> ToolMessage:
    return ToolMessage("ok", tool_call_id=call_id)


# For each rule: a history that breaks it alone, where it does so, and the nearest sound history.
CASES: dict[Rule, tuple[list[BaseMessage], int, list[BaseMessage]]] = {
    Rule.ORPHAN_RESULT: ([H, ai("1"), t("1"), H, t("1")], 4, [H, ai("1"), t("1"), H]),
    Rule.MISSING_ANSWER: ([H, ai("1", "2"), t("1"), H], 1, [H, ai("1", "2"), t("2"), t("1"), H]),
    Rule.DUPLICATE_ANSWER: ([H, ai("1"), t("1"), t("1")], 3, [H, ai("1"), t("1")]),
    Rule.DUPLICATE_CALL_ID: (
        [H, ai("1", "1"), t("1"), t("1")],
        1,
        [H, ai("1"), t("1"), ai("1"), t("1")],
    ),
    Rule.EMPTY_LIST: ([], WHOLE_LIST, [H]),
    Rule.LATE_SYSTEM: ([S, H, S], 2, [S, S, H]),
    Rule.FIRST_NOT_HUMAN: ([S, ai("1"), t("1")], 1, [S, H, ai("1"), t("1")]),
    Rule.ENDS_WITH_AI: ([H, AIMessage("Done.")], 1, [H, AIMessage("Done."), H]),
    Rule.SERVER_CALL_OPEN: (
        [H, AIMessage([SEARCH, TEXT]), H],
        1,
        [H, AIMessage([SEARCH, FOUND, TEXT]), H],
    ),
    Rule.SERVER_RESULT_ORPHAN: (
        [H, AIMessage([FOUND, TEXT]), H],
        1,
        [H, AIMessage([SEARCH]), AIMessage([FOUND, TEXT]), H],
    ),
    Rule.EMPTY_HUMAN: ([HumanMessage(" \n")], 0, [HumanMessage([TEXT])]),
}


def rules(messages: Sequence[BaseMessage], *, state_ends_with_ai: bool = False) -> list[Rule]:
    return [v.rule for v in violations(messages, state_ends_with_ai=state_ends_with_ai)]


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == MESSAGE_RULES


@pytest.mark.parametrize("rule", CASES)
def test_the_broken_history_breaks_this_rule_alone(rule: Rule) -> None:
    broken, index, _ = CASES[rule]
    assert [(v.rule, v.index) for v in violations(broken)] == [(rule, index)]


@pytest.mark.parametrize("rule", CASES)
def test_its_nearest_sound_history_breaks_none(rule: Rule) -> None:
    assert violations(CASES[rule][2]) == []


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ([H, t("1"), ai("1"), H], [Rule.ORPHAN_RESULT, Rule.MISSING_ANSWER]),
        ([H, ai("1"), AIMessage("wait"), t("1")], [Rule.MISSING_ANSWER, Rule.ORPHAN_RESULT]),
        ([H, ai("1"), S, t("1")], [Rule.MISSING_ANSWER, Rule.LATE_SYSTEM, Rule.ORPHAN_RESULT]),
        ([H, ai("1"), t("1"), t("2")], [Rule.ORPHAN_RESULT]),
        ([H, ai(invalid=["1"]), H], [Rule.MISSING_ANSWER]),
        ([H, ai("1", invalid=["1"]), t("1"), t("1")], [Rule.DUPLICATE_CALL_ID]),
        ([H, ai(None), H], [Rule.MISSING_ANSWER]),
        ([S], [Rule.FIRST_NOT_HUMAN]),
        ([t("1")], [Rule.FIRST_NOT_HUMAN, Rule.ORPHAN_RESULT]),
    ],
)
def test_other_ways_to_break_the_rules(messages: list[BaseMessage], broken: list[Rule]) -> None:
    assert sorted(rules(messages)) == sorted(broken)


def test_calls_open_at_the_end_are_the_states_own_matter() -> None:
    assert rules([H, ai("1", "2")]) == [Rule.ENDS_WITH_AI]
    assert rules([H, ai("1", "2")], state_ends_with_ai=True) == []
    assert rules([H, ai("1", "2"), t("2")]) == []
    assert rules([H, ai("1", "2"), t("2"), H]) == [Rule.MISSING_ANSWER]


def test_answers_to_invalid_calls_count() -> None:
    assert rules([H, ai("1", invalid=["2"]), t("2"), t("1")]) == []


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (SEARCH, FOUND),
        (
            {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
            {"type": "bash_code_execution_tool_result", "tool_use_id": "s1", "content": {}},
        ),
        (
            {"type": "mcp_tool_use", "id": "s1", "name": "echo", "server_name": "x", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "s1", "content": []},
        ),
        (
            {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {}},
            {"type": "server_tool_result", "tool_call_id": "s1", "status": "success"},
        ),
        (
            {"type": "non_standard", "value": SEARCH},
            {"type": "non_standard", "value": FOUND},
        ),
    ],
)
def test_server_side_pairs_of_every_kind(call: dict[str, Any], result: dict[str, Any]) -> None:
    assert rules([H, AIMessage([call, result]), H]) == []
    assert rules([H, AIMessage([call]), AIMessage([result]), H]) == []
    assert rules([H, ai("1", content=[call]), t("1"), AIMessage([result]), H]) == []
    assert rules([H, AIMessage([call, TEXT]), H]) == [Rule.SERVER_CALL_OPEN]
    assert rules([H, AIMessage([result, TEXT]), H]) == [Rule.SERVER_RESULT_ORPHAN]
    assert sorted(rules([H, AIMessage([result, call]), H])) == [
        Rule.SERVER_CALL_OPEN,
        Rule.SERVER_RESULT_ORPHAN,
    ]
    assert sorted(rules([H, AIMessage([call]), H, AIMessage([result]), H])) == [
        Rule.SERVER_CALL_OPEN,
        Rule.SERVER_RESULT_ORPHAN,
    ]
    assert rules([H, AIMessage([call])], state_ends_with_ai=True) == []


def test_one_server_search_of_openai_is_a_pair_in_itself() -> None:
    assert rules([H, AIMessage([{"type": "web_search_call", "id": "ws_1"}, TEXT]), H]) == []


@pytest.mark.parametrize("content", ["", " \n", [], [""], [{"type": "text", "text": " "}]])
def test_blank_human_content(content: Any) -> None:
    assert rules([HumanMessage(content)]) == [Rule.EMPTY_HUMAN]


def test_an_image_alone_is_content() -> None:
    assert rules([HumanMessage([{"type": "image", "url": "https://example.com/a.png"}])]) == []


def test_a_rule_broken_before_excuses_as_many_violations_after() -> None:
    before = [Violation(Rule.ORPHAN_RESULT, 3, ""), Violation(Rule.LATE_SYSTEM, 4, "")]
    after = [Violation(Rule.ORPHAN_RESULT, i, "") for i in (1, 2)]
    assert new_violations(before, after) == [Violation(Rule.ORPHAN_RESULT, 2, "")]
    assert new_violations(before, after[:1]) == []
    assert new_violations([], after) == after


def test_counts_by_rule_and_groups() -> None:
    found = violations([H, ai("1", "2"), t("3"), H])
    assert counts_by_rule(found) == {Rule.MISSING_ANSWER: 2, Rule.ORPHAN_RESULT: 1}
    assert {violation.rule.group for violation in found} == {"pairs"}


@given(well_formed_histories())
def test_well_formed_histories_break_no_rule(messages: list[BaseMessage]) -> None:
    assert violations(messages) == []
    assert 1 <= len(messages) <= 30


@given(well_formed_histories(max_size=12, complete=False))
def test_incomplete_ones_end_as_a_state_may(messages: list[BaseMessage]) -> None:
    assert violations(messages, state_ends_with_ai=True) == []


@given(histories(max_size=12))
def test_message_ids_are_unique_or_absent(messages: list[BaseMessage]) -> None:
    ids = [message.id for message in messages]
    assert len(set(ids)) == len(ids) or set(ids) == {None}
    assert len(messages) <= 12


@pytest.mark.parametrize("rule", [Rule.MISSING_ANSWER, Rule.LATE_SYSTEM])
def test_a_counterexample_shrinks_to_what_breaks_the_rule(rule: Rule) -> None:
    smallest = find(
        histories(max_size=8),
        lambda messages: rule in rules(messages),
        settings=settings(database=None, max_examples=2_000),
    )
    assert len(smallest) <= 4
    assert sum(len(str(message.content)) for message in smallest) < 100


def test_seeded_histories_repeat_and_well_formed_ones_are_sound() -> None:
    for seed in range(50):
        first, second = (random_history(random.Random(seed)) for _ in range(2))
        assert first == second
        assert 30 <= len(first) <= 40
        assert violations(random_history(random.Random(seed), malformed=False)) == []


def test_seeded_histories_break_every_rule_and_some_of_them_few() -> None:
    fuzz = [rules(random_history(random.Random(seed))) for seed in range(200)]
    assert {rule for found in fuzz for rule in found} == MESSAGE_RULES - {Rule.EMPTY_LIST}
    # Rules that a history keeps are what its views are judged by.
    assert all(sum(rule in found for found in fuzz) < 140 for rule in MESSAGE_RULES)
    assert len(FAULTS) == len(set(FAULTS))


def test_ids_as_asked_for() -> None:
    absent, repeated = (random_history(random.Random(1), ids=ids) for ids in ("none", "repeated"))
    assert {message.id for message in absent} == {None}
    assert len({message.id for message in repeated}) == 7


def test_transcripts_are_read_line_by_line(tmp_path: Path) -> None:
    lines = [
        {"role": "user", "content": "one\u2028two\x85three"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
    (tmp_path / "run.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "run.truth.json").write_text("{}", encoding="utf-8")
    loaded = load_transcripts(tmp_path)
    assert list(loaded) == ["run"]
    assert [message.id for message in loaded["run"]] == ["m0", "m1", "m2"]
    assert loaded["run"][0].content == "one\u2028two\x85three"
    assert violations(loaded["run"]) == []
