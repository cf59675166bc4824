"""An archived message comes back as it was, and its item is plain JSON that every store takes."""

import itertools
import json
import math
import re
from collections import UserDict
from datetime import date
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, field_serializer

from langgraph_compaction.archive import items
from langgraph_compaction.archive.items import TEXT_CHARS, Archived, item_of
from langgraph_compaction.archive.jsonable import jsonable
from langgraph_compaction.archive.redacting import redacted_originals
from langgraph_compaction.archive.texts import CALL, full_text
from langgraph_compaction.errors import CompactionError
from tests.support.histories import histories

PICTURE = "iVBORw0KGgo" * 400
IMAGE = {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PICTURE}


class Unknown:
    """A value that no serializer knows."""


class Own(HumanMessage):
    """A message class of an application."""


def stored(message: BaseMessage, position: int = 3, previous: str | None = None) -> Archived:
    """What comes back from a store that holds JSON: PostgreSQL refuses NUL, SQLite surrogates."""
    key, value = item_of(message, position, previous)
    text = json.dumps(value, allow_nan=False)
    assert "\\u0000" not in text.replace("\\\\", "")
    assert orjson.loads(orjson.dumps(value)) == value
    return Archived.of(key, json.loads(text))


MESSAGES: list[BaseMessage] = [
    HumanMessage("Hello", id="h", name="anna", additional_kwargs={"pinned": True}),
    HumanMessage(""),
    HumanMessage([{"type": "text", "text": "Look:"}, IMAGE, "and a plain text"], id="image"),
    HumanMessage("NUL \x00, a lone \ud800, \u2028, 数据库 and 🙂", id="odd \x00 id"),
    SystemMessage("Be brief.", id="s"),
    AIMessage(
        "I look.",
        id="a",
        tool_calls=[{"name": "ls", "args": {"path": ".", "deep": [1, 2.5e300]}, "id": "c1"}],
        invalid_tool_calls=[{"name": "rm", "args": "{", "id": "c2", "error": "no JSON"}],
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_token_details": {"cache_read": 4},
        },
        response_metadata={"id": "resp_1", "big": 2**70, "logprob": -0.0},
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"q": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []},
        ]
    ),
    AIMessageChunk("part", id="chunk"),
    ToolMessage("3 files", tool_call_id="c1", name="ls", id="t", artifact={"rows": [1, None]}),
    ToolMessage("no", tool_call_id="c2", status="error", artifact=b"\x00\xff"),
    ToolMessage("t", tool_call_id="c3", artifact=[1, {2, 3}, date(2024, 1, 2)]),
    ToolMessage([IMAGE], tool_call_id="c4"),
    FunctionMessage("42", name="answer"),
    ChatMessage("Critique", role="critic", id="c"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.type}-{message.id}")
def test_every_kind_of_message_comes_back_equal(message: BaseMessage) -> None:
    before = message.model_copy(deep=True)
    back = stored(message).message()
    assert back == message == before
    assert type(back) is type(message)


@given(histories())
def test_every_message_of_a_history_comes_back_equal(history: list[BaseMessage]) -> None:
    key = None
    for position, message in enumerate(history):
        archived = stored(message, position, key)
        assert archived.message() == message
        assert (archived.position, archived.previous) == (position, key)
        key = archived.key


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers() | st.floats() | st.text()))
def test_any_text_and_arguments_come_back(text: str, name: str, args: dict[str, Any]) -> None:
    message = AIMessage(text, name=name, tool_calls=[{"name": "f", "args": args, "id": text}])
    back = stored(message).message()
    assert repr(back) == repr(message)  # nan is not equal to itself


def test_a_class_of_an_application_comes_back_as_far_as_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Registered or not, strict or not: its type and fields are there.
    permissive = JsonPlusSerializer(allowed_msgpack_modules=True)
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    for writes, reads in itertools.product([permissive, strict], repeat=2):
        monkeypatch.setattr(items, "_SERIALIZER", writes)
        archived = stored(Own("of its own", id="own", name="n"))
        monkeypatch.setattr(items, "_SERIALIZER", reads)
        back = archived.message()
        assert isinstance(back, HumanMessage)
        assert (back.text, back.id, back.name) == ("of its own", "own", "n")
        assert type(back) is (Own if writes is reads is permissive else HumanMessage)


def test_a_tuple_comes_back_as_from_a_checkpointer() -> None:
    message = ToolMessage("t", tool_call_id="c", artifact=(1, {2}))
    assert stored(message).message() == ToolMessage("t", tool_call_id="c", artifact=[1, {2}])


def test_an_array_comes_back() -> None:
    message = ToolMessage("plot", tool_call_id="c", artifact=np.arange(3))
    back = stored(message).message()
    assert isinstance(back, ToolMessage)
    assert list(back.artifact) == [0, 1, 2]


@pytest.mark.parametrize("artifact", [Unknown(), {"rows": Unknown(), "n": 1}, {(1, 2): Unknown()}])
def test_what_nothing_can_hold_costs_only_itself(artifact: Any) -> None:
    message = ToolMessage("the text", tool_call_id="c", id="t", artifact=artifact)
    back = stored(message).message()
    assert isinstance(back, ToolMessage)
    assert (back.text, back.id, back.tool_call_id) == ("the text", "t", "c")
    assert "[Unknown]" in str(back.artifact)
    if isinstance(artifact, dict) and "n" in artifact:
        assert back.artifact == {"rows": "[Unknown]", "n": 1}


def containing_itself() -> dict[str, Any]:
    value: dict[str, Any] = {"name": "ring", "n": 1}
    value["self"] = [value]
    return value


def deep(kind: Any = list) -> Any:
    value: Any = "the end"
    for _ in range(20_000):  # json gives up at 1,000 levels, from Python 3.12 on at 10,000
        value = [value] if kind is list else {"in": value}
    return value


class Refusing(BaseModel):
    """A value that cannot be dumped."""

    secret: str = "s"

    @field_serializer("secret")
    def refuse(self, value: str) -> str:
        raise RuntimeError(value)


class Closed(UserDict[str, Any]):
    """A mapping that cannot be read any more."""

    def __iter__(self) -> Any:
        raise ValueError("closed")


HARD: dict[str, Any] = {
    "itself": containing_itself(),
    "lists": deep(),
    "mappings": deep(dict),
    "a model": Refusing(),
    "a closed mapping": Closed(),
    "a long number": 10**5_000,
}


@pytest.mark.parametrize("hook", [None, str.upper], ids=["plain", "redacted"])
@pytest.mark.parametrize("name", HARD)
def test_an_artifact_that_nothing_can_hold_costs_only_itself(name: str, hook: Any) -> None:
    message = ToolMessage(
        "the text", tool_call_id="c", id="t", artifact={"rows": [1, "a"], "odd": HARD[name]}
    )
    back = stored(redacted_originals([message], hook)[0]).message()
    assert isinstance(back, ToolMessage)
    assert (back.text.lower(), back.id, back.tool_call_id) == ("the text", "t", "c")
    artifact = {str(key).lower(): held for key, held in back.artifact.items()}
    assert artifact["rows"] in ([1, "a"], [1, "A"])
    assert re.search(r"\[[A-Za-z]+\]", str(artifact["odd"]))
    if name == "itself":
        assert "ring" in str(artifact["odd"]).lower()


@pytest.mark.parametrize("arguments", [containing_itself(), {"x": deep()}])
@pytest.mark.parametrize("hook", [None, str.upper], ids=["plain", "redacted"])
def test_a_call_that_nothing_can_hold_costs_only_itself(arguments: Any, hook: Any) -> None:
    call = {"name": "f", "args": arguments, "id": "c"}
    message = AIMessage("the text", id="a").model_copy(update={"tool_calls": [call]})
    back = stored(redacted_originals([message], hook)[0]).message()
    assert isinstance(back, AIMessage)
    assert (back.text.lower(), back.tool_calls[0]["id"]) == ("the text", "c")


def test_keys_that_become_alike_lose_no_value() -> None:
    assert jsonable({1: "a", "1": "b"}) == {"1": "a", "1 (2)": "b"}
    assert list(jsonable({"k1": "a", "k2": "b"}, lambda _: "x").values()) == ["x", "x"]


def test_only_text_passes_as_data() -> None:
    given = {"data": {"env": "key"}, "base64": "key", "url": "data:key"}
    hidden = jsonable(given, lambda text: text.replace("key", "[hidden]"))
    assert hidden == {"data": {"env": "[hidden]"}, "base64": "key", "url": "data:key"}


def test_the_text_has_markers_for_media_and_no_reasoning_and_no_data() -> None:
    shown = stored(MESSAGES[2]).text
    assert shown.splitlines() == ["Look:", "[image image/png 3,300 bytes]", "and a plain text"]
    thought = stored(MESSAGES[6]).text
    assert "Hm." not in thought
    assert f'{CALL}web_search {{"q": "x"}}' in thought
    uploaded = AIMessage("", tool_calls=[{"name": "up", "args": {"data": PICTURE}, "id": "c"}])
    assert stored(uploaded).text == f'{CALL}up {{"data": "[data]"}}'
    assert PICTURE in full_text(uploaded)


def test_the_text_is_capped_and_the_message_is_not() -> None:
    message = ToolMessage("line of a log\n" * 60_000 + "the end", tool_call_id="c", name="sh")
    archived = stored(message)
    assert len(archived.text) < TEXT_CHARS + 100
    assert archived.text.startswith("sh\nline")
    assert archived.text.endswith("the end")
    assert archived.message() == message


def test_an_item_names_the_calls_that_are_made_or_answered() -> None:
    assert stored(MESSAGES[5]).call_ids == ("c1", "c2")
    assert stored(MESSAGES[6]).call_ids == ("srv",)
    assert stored(MESSAGES[8]).call_ids == ("c1",)
    assert stored(MESSAGES[0]).call_ids == ()


def test_the_key_follows_from_all_that_the_item_says() -> None:
    base = item_of(HumanMessage("a", id="1"), 7, None)[0]
    assert base == item_of(HumanMessage("a", id="1"), 7, None)[0]
    assert base.startswith("0000000007-")
    assert len(base) == 10 + 1 + 32
    others = [
        item_of(HumanMessage("b", id="1"), 7, None)[0],
        item_of(HumanMessage("a", id="2"), 7, None)[0],
        item_of(HumanMessage("a", id="1"), 8, None)[0],
        item_of(HumanMessage("a", id="1"), 7, base)[0],
        item_of(SystemMessage("a", id="1"), 7, None)[0],
        item_of(HumanMessage("a", id="1", name="n"), 7, None)[0],
    ]
    assert len({base, *others}) == 7


def test_a_newer_format_is_an_error_that_says_so() -> None:
    key, value = item_of(HumanMessage("a"), 0, None)
    with pytest.raises(CompactionError, match="Upgrade langgraph_compaction"):
        Archived.of(key, {**value, "v": 2}).message()


def test_not_a_number_is_no_obstacle() -> None:
    message = AIMessage("", tool_calls=[{"name": "f", "args": {"x": math.nan}, "id": "c"}])
    back = stored(message).message()
    assert isinstance(back, AIMessage)
    assert math.isnan(back.tool_calls[0]["args"]["x"])
