"""An oversized result is cut to head and tail, alike in every view, and never loses its call.

One giant result fills the window by itself; if it reaches the model whole, the request is refused
and so is every later one. Clipping depends on a group's content and two frozen limits alone, so
that it needs no visit of the compaction node and breaks no cached prefix.
"""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.view import build_view
from langgraph_compaction.view.clipping import (
    MESSAGE_REMEDY,
    RESULT_REMEDY,
    SHORTEST,
    clip_text,
    clipped_group,
    text_size,
)
from tests.support.histories import histories

NOTE = 200
"""Characters that the line between head and tail may take."""


def call(*names: str) -> AIMessage:
    return AIMessage(
        "", id="a", tool_calls=[{"name": "shell", "args": {}, "id": name} for name in names]
    )


def result(name: str, content: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=name, id=f"t{name}", name="shell", artifact={"n": 1})


def clip(
    *messages: BaseMessage, clip_result_bytes: int = 0, clip_message_bytes: int = 0
) -> list[Any]:
    return list(
        clipped_group(
            messages, clip_result_bytes=clip_result_bytes, clip_message_bytes=clip_message_bytes
        )
    )


# ---- one text


def test_head_and_tail_stay_and_the_size_of_the_middle_is_told() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    clipped = clip_text(text, 600, "Ask for less.")
    assert clipped.startswith("line 0\nline 1\n")
    assert clipped.endswith("line 998\nline 999\n")
    head, note, tail = clipped.partition("\n[... ")
    told = note + tail
    assert f"of {len(text):,} characters left out. Ask for less. ...]" in told
    missing = int(tail.split(" of ")[0].replace(",", ""))
    rest = tail.partition("...]\n")[2]
    assert len(head) + len(rest) + missing == len(text)
    assert text.startswith(head)
    assert text.endswith(rest)
    # Whole lines, where one ends nearby.
    assert head.rpartition("\n")[2].startswith("line ")
    assert rest.startswith("line ")


@pytest.mark.parametrize("letter", ["é", "請", "👩", "\ud800"])
def test_the_limit_is_in_bytes_and_every_code_point_stays_whole(letter: str) -> None:
    text = letter * 1_000
    for limit in range(SHORTEST, SHORTEST + 12):
        clipped = clip_text(text, limit, RESULT_REMEDY)
        head, note, tail = clipped.partition("\n[... ")
        kept = head + tail.partition("...]\n")[2]
        assert note
        assert set(kept) == {letter}
        size = len(letter.encode("utf-8", "surrogatepass"))
        assert limit - 2 * size <= len(kept) * size <= limit
        assert f"{1_000 - len(kept):,} of 1,000 characters" in clipped


@given(
    st.text(alphabet="ab \n請👩\u0301", max_size=1_500) | st.integers(0, 1_500).map("x".__mul__),
    st.integers(-5, 1_200),
)
@example("x" * 201, 200)
@example("x" * 290, 200)
@example("x" * 1_001, 1_000)
def test_a_clipped_text_is_never_longer_than_before(text: str, limit: int) -> None:
    clipped = clip_text(text, limit, RESULT_REMEDY)
    assert len(clipped) <= len(text)
    assert len(clipped) <= max(limit, SHORTEST) + NOTE
    assert clipped == text or len(text) > max(limit, SHORTEST)


# ---- a group


def test_what_fits_is_passed_through_as_the_same_objects() -> None:
    messages = [
        call("1", "2"),
        result("1", "x" * 500),
        result("2", [{"type": "text", "text": "y"}]),
    ]
    found = clip(*messages, clip_result_bytes=501)
    assert all(one is other for one, other in zip(found, messages, strict=True))
    assert clip(*messages) == messages


def test_the_largest_results_of_a_group_share_the_budget_equally() -> None:
    messages = [call("1", "2", "3"), result("1", "small"), *(result(n, "x" * 9_000) for n in "23")]
    found = clip(*messages, clip_result_bytes=2_005)
    assert found[0] is messages[0]
    assert found[1] is messages[1]
    for before, after in zip(messages[2:], found[2:], strict=True):
        assert 900 <= len(after.content) <= 1_000 + NOTE
        assert RESULT_REMEDY in after.content
        same = {"id", "tool_call_id", "name", "status", "artifact"}
        assert after.model_dump(include=same) == before.model_dump(include=same)
    assert messages[2].content == "x" * 9_000


def test_many_results_keep_a_readable_rest_each() -> None:
    names = [str(number) for number in range(50)]
    found = clip(call(*names), *(result(n, "x" * 5_000) for n in names), clip_result_bytes=1_000)
    assert all(SHORTEST <= len(message.content) <= SHORTEST + NOTE for message in found[1:])


def test_calls_are_never_clipped() -> None:
    arguments = {"text": "x" * 50_000}
    asked = AIMessage(
        "y" * 50_000, tool_calls=[{"name": "write_file", "args": arguments, "id": "1"}]
    )
    found = clip(asked, result("1", "z" * 50_000), clip_result_bytes=300, clip_message_bytes=300)
    assert found[0] is asked
    assert len(found[1].content) < 600


def test_only_the_text_of_blocks_is_clipped() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}
    content = [
        {"type": "text", "text": "x" * 5_000, "cache_control": {"type": "ephemeral"}},
        image,
        "short",
        {"type": "refusal", "refusal": "y" * 5_000},
        "z" * 5_000,
    ]
    before = copy.deepcopy(content)
    (found,) = clip(result("1", content), clip_result_bytes=1_000)
    first, same_image, short, refusal, plain = found.content
    assert (same_image, short) == (image, "short")
    assert first["cache_control"] == {"type": "ephemeral"}
    for text in (first["text"], refusal["refusal"], plain):
        assert len(text) <= 1_000 // 3 + NOTE
    assert content == before


def test_human_messages_have_a_limit_of_their_own() -> None:
    human = HumanMessage("x" * 5_000, id="h")
    assert clip(human, clip_result_bytes=300) == [human]
    (found,) = clip(human, clip_message_bytes=300)
    assert MESSAGE_REMEDY in found.content
    assert found.id == "h"
    answer = result("1", "x" * 5_000)
    assert clip(answer, clip_message_bytes=300) == [answer]


def test_a_result_that_fills_its_group_by_blocks_without_text_is_left_alone() -> None:
    image = result("1", [{"type": "image", "base64": "A" * 9_000, "mime_type": "image/png"}])
    assert text_size(image) == 0
    assert clip(image, clip_result_bytes=300) == [image]


def note_of(message: Any) -> str:
    return str(message.content).partition("left out. ")[2].partition(" ...]")[0]


def test_a_clipped_result_says_what_brings_the_rest() -> None:
    def notes(*messages: BaseMessage) -> list[str]:
        found = clipped_group(
            messages, clip_result_bytes=800, clip_message_bytes=0, recall="recall"
        )
        return [note_of(message) for message in found[1:]]

    text = "line\n" * 400
    assert notes(call("1", "2"), result("1", text), result("2", text)) == [
        'recall(id="1") shows it.',
        'recall(id="2") shows it.',
    ]
    # Parallel calls with one id: that of the message tells their results apart.
    twins = [result("1", text).model_copy(update={"id": name}) for name in ("x", "y")]
    assert notes(call("1", "1"), *twins) == ['recall(id="x") shows it.', 'recall(id="y") shows it.']
    bare = [one.model_copy(update={"id": None}) for one in twins]
    assert notes(call("1", "1"), *bare) == ['recall(id="1") shows it.'] * 2
    # The tool's own result is a copy of what its call names.
    copied = result("1", text).model_copy(update={"name": "recall"})
    assert notes(call("1"), copied) == [RESULT_REMEDY]


# ---- in the view


def test_a_giant_result_is_clipped_in_the_view_where_no_visit_lies_between() -> None:
    answer = result("1", json.dumps(["row"] * 50_000))
    messages = [HumanMessage("Go.", id="h"), call("1"), answer]
    view = build_view(messages, {}, defaults={"clip_result_bytes": 4_000})
    assert text_size(view[2]) <= 4_000 + NOTE
    assert text_size(answer) > 100_000


def test_a_message_looks_the_same_alone_and_among_others() -> None:
    group = [call("1"), result("1", "x" * 9_000)]
    messages = [HumanMessage("Go.", id="h"), *group, HumanMessage("y" * 900, id="h2")]
    limits: Any = {"clip_result_bytes": 500, "clip_message_bytes": 400}
    short = build_view(messages[:3], {"render": limits})
    longer = build_view([*messages, call("2"), result("2", "z" * 9_000)], {"render": limits})
    assert longer[:3] == short


@given(histories(max_size=20), st.integers(1, 3_000))
def test_clipping_keeps_every_message_and_changes_no_input(
    history: list[BaseMessage], limit: int
) -> None:
    before = copy.deepcopy(history)
    plain = build_view(history, {})
    limits: Any = {"clip_result_bytes": limit, "clip_message_bytes": limit}
    clipped = build_view(history, {"render": limits})
    assert history == before
    assert [(m.type, m.id) for m in clipped] == [(m.type, m.id) for m in plain]
    for one, other in zip(plain, clipped, strict=True):
        assert text_size(other) <= text_size(one)
        if one.type == "ai":
            assert one is other
