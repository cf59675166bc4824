"""Long arguments, shortened: the same keys, valid JSON, and how much is missing."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langgraph_compaction.view.arguments import HEAD_CHARS, HEAD_ITEMS, shortened_calls
from langgraph_compaction.view.json import safe_json


def called(arguments: dict[str, Any], **more: Any) -> AIMessage:
    call: Any = {"name": "write", "args": arguments, "id": "c1", "type": "tool_call"}
    return AIMessage("", tool_calls=[call], **more)


def shortened(arguments: dict[str, Any], limit: int = 200) -> Any:
    message = called(arguments)
    before = deepcopy(message)
    found = shortened_calls(message, limit)
    assert message == before
    return None if found is None else found.tool_calls[0]["args"]


def test_a_long_text_keeps_its_beginning_and_says_what_is_missing() -> None:
    found = shortened({"path": "/a/b.py", "text": "x = 1\n" * 1_000})
    assert found["path"] == "/a/b.py"
    assert found["text"].startswith("x = 1\n")
    assert found["text"].endswith(f"[... {6_000 - HEAD_CHARS:,} characters cleared ...]")


def test_short_arguments_stay() -> None:
    assert shortened({"path": "/a/b.py"}) is None
    assert shortened({"text": "x" * 500}, limit=0) is None
    assert shortened({"text": "x" * (HEAD_CHARS + 5)}, limit=10) is None  # it would get no shorter


def test_lists_and_nested_values_are_shortened_too() -> None:
    found = shortened({"rows": list(range(500)), "deep": {"a": [{"b": "y" * 900}]}, "on": True})
    assert found["rows"] == [*range(HEAD_ITEMS), "[... 490 items cleared ...]"]
    assert found["deep"]["a"][0]["b"].startswith("y" * HEAD_CHARS)
    assert found["on"] is True


def test_arguments_without_end_are_cut() -> None:
    loop: dict[str, Any] = {"text": "z" * 90_000}
    message = called({})
    message.tool_calls[0]["args"] = loop
    loop["self"] = loop
    found = shortened_calls(message, 100)
    assert found is not None
    assert json.dumps(found.tool_calls[0]["args"])


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "c1", "name": "write", "input": {"text": "x" * 900}},
        {"type": "tool_call", "id": "c1", "name": "write", "args": {"text": "x" * 900}},
        {
            "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "write",
            "arguments": json.dumps({"text": "x" * 900}),
        },
    ],
)  # fmt: skip
def test_blocks_that_repeat_the_call_are_shortened_with_it(block: dict[str, Any]) -> None:
    raw = {"tool_calls": [{"function": {"arguments": "x" * 900}}], "refusal": None}
    text = {"type": "text", "text": "I write."}
    message = called({"text": "x" * 900}, additional_kwargs=raw).model_copy(
        update={"content": [text, block]}
    )
    found = shortened_calls(message, 200)
    assert found is not None
    assert "x" * 200 not in repr(found)
    assert found.content[0] == text
    assert found.additional_kwargs == {"refusal": None}
    given = next(found.content[1][key] for key in ("input", "args", "arguments") if key in block)
    assert (json.loads(given) if isinstance(given, str) else given) == found.tool_calls[0]["args"]


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=300)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=30), st.dictionaries(st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=60,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=6), st.integers(1, 400))
def test_what_is_shortened_is_shorter_json_with_the_same_keys(
    arguments: dict[str, Any], limit: int
) -> None:
    found = shortened(arguments, limit)
    if found is None:
        return
    assert len(safe_json(arguments)) > limit
    assert json.loads(json.dumps(found)) == found
    assert len(safe_json(found)) < len(safe_json(arguments))
    assert found.keys() == arguments.keys()


def test_an_integer_of_any_length_is_no_obstacle() -> None:
    huge = 10**5_000
    assert shortened_calls(called({"n": huge, "text": "x" * 900}), 200) is not None
    assert "[int]" in safe_json({"n": huge})
