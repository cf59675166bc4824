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
    ALONE_REMEDY,
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


def test_many_results_keep_a_readable_rest_each_and_very_many_a_mark() -> None:
    names = [str(number) for number in range(50)]
    results = [result(n, "x" * 5_000) for n in names]
    found = clip(call(*names), *results, clip_result_bytes=SHORTEST * 20)
    assert all(SHORTEST <= len(message.content) <= SHORTEST + NOTE for message in found[1:])
    found = clip(call(*names), *results, result("50", "small"), clip_result_bytes=1_000)
    mark = f"[... 5,000 characters left out. {RESULT_REMEDY} ...]"
    assert [message.content for message in found[1:]] == [mark] * 50 + ["small"]


def test_marks_alone_are_no_longer_than_the_results() -> None:
    names = [str(number) for number in range(300)]
    messages = [call(*names), *(result(n, "x" * (int(n) % 120)) for n in names)]
    found = clip(*messages, clip_result_bytes=300)
    assert all(len(one.content) <= len(m.content) for one, m in zip(found, messages, strict=True))
    assert sum(map(text_size, found)) < sum(map(text_size, messages))


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

    # By the message's own id: calls of other steps may have the same one.
    text = "line\n" * 400
    assert notes(call("1", "2"), result("1", text), result("2", text)) == [
        'recall(id="t1") shows it.',
        'recall(id="t2") shows it.',
    ]
    bare = result("1", text).model_copy(update={"id": None})
    assert notes(call("1", "1"), bare, bare) == ['recall(id="1") shows it.'] * 2
    nameless = result("", text).model_copy(update={"id": None})
    assert notes(call(""), nameless) == [RESULT_REMEDY]
    # The tool's own result is a copy of what its call names.
    copied = result("1", text).model_copy(update={"name": "recall"})
    assert notes(call("1"), copied) == [RESULT_REMEDY]
    assert notes(call("1", "2"), copied, result("2", text))[0] in {"", ALONE_REMEDY}


def test_a_call_that_changed_something_is_not_to_be_made_again_for_the_rest() -> None:
    def note(recall: str | None, **named: Any) -> str:
        made = {**call("1").tool_calls[0], "name": "bash", "args": {"command": "git push"}}
        members = [AIMessage("", tool_calls=[made]), result("1", "line\n" * 400)]
        members[1] = members[1].model_copy(update={"name": None, **named})
        clipped = clipped_group(members, clip_result_bytes=800, clip_message_bytes=0, recall=recall)
        return note_of(clipped[1])

    assert note(None) == "The call was made: do not repeat it for its result."
    assert note("recall") == 'recall(id="t1") shows it.'
    assert note("bash", name="bash") == RESULT_REMEDY


def recalled(name: str, text: str) -> ToolMessage:
    return result(name, text).model_copy(update={"name": "recall"})


def test_answers_of_the_recall_tool_are_clipped_last() -> None:
    def lengths(*results: ToolMessage) -> list[int]:
        asked = call(*(one.tool_call_id for one in results))
        found = clipped_group(
            [asked, *results], clip_result_bytes=3_000, clip_message_bytes=0, recall="recall"
        )
        return [text_size(one) for one in found[1:]]

    # Alone, as many bytes as prose has: 1,000 tokens.
    assert lengths(recalled("1", "x" * 5_000)) == [5_000]
    assert 5_000 < lengths(recalled("1", "x" * 5_600))[0] < 5_000 + NOTE
    # Beside others these make room, but keep a readable rest.
    page, other = lengths(recalled("1", "x" * 4_000), result("2", "y" * 9_000))
    assert page == 4_000
    assert 600 <= other <= 600 + NOTE
    page, other = lengths(recalled("1", "x" * 5_000), result("2", "y" * 9_000))
    assert SHORTEST <= other <= SHORTEST + NOTE
    assert page >= 4_600
    # Several share what there is, and say what to do.
    found = clipped_group(
        [call("1", "2"), recalled("1", "x" * 5_000), recalled("2", "y" * 5_000)],
        clip_result_bytes=3_000,
        clip_message_bytes=0,
        recall="recall",
    )
    assert [note_of(one) for one in found[1:]] == [ALONE_REMEDY] * 2
    assert all(2_500 <= text_size(one) <= 2_500 + NOTE for one in found[1:])
    # A result without a name is known by its call.
    asked = AIMessage("", tool_calls=[{"name": "recall", "args": {}, "id": "1"}])
    nameless = result("1", "x" * 5_000).model_copy(update={"name": None})
    assert clipped_group(
        [asked, nameless], clip_result_bytes=3_000, clip_message_bytes=0, recall="recall"
    ) == [asked, nameless]


# ---- blocks


BIG = "word " * 4_000


def rows(count: int, text: str = "x y z " * 20) -> list[Any]:
    return [{"type": "text", "text": f"row {number}: {text}"} for number in range(count)]


def test_of_very_many_blocks_the_middle_ones_are_left_out() -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    content = [*rows(1_000), image, *rows(1_000)]
    (found,) = clip(result("1", content), clip_result_bytes=6_000)
    assert text_size(found) <= 6_000 + NOTE
    texts = [block["text"] for block in found.content if block["type"] == "text"]
    (mark,) = [text for text in texts if text.startswith("[... ")]
    place = texts.index(mark)
    assert texts[:place] == [block["text"] for block in content[:place]]
    tail = texts[place + 1 :]
    assert tail == [block["text"] for block in content[-len(tail) :]]
    assert place > len(tail) > 5
    assert image in found.content
    left_out = 2_000 - place - len(tail)
    size = sum(len(block["text"]) for block in content if block["type"] == "text")
    size -= sum(map(len, texts)) - len(mark)
    assert mark == (
        f"[... {left_out:,} of 2,000 blocks left out, {size:,} characters. {RESULT_REMEDY} ...]"
    )


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "non_standard", "value": {"type": "input_text", "text": BIG}}, "value.text"),
        ({"type": "text-plain", "text": BIG, "mime_type": "text/plain"}, "text"),
        ({"text": BIG}, "text"),
        (
            {"type": "search_result", "source": "u", "title": "t", "content": [{"text": BIG}]},
            "content.0.text",
        ),
        ({"type": "tool_result", "content": BIG}, "content"),
        ({"type": "tool_result", "content": [{"type": "text", "text": BIG}]}, "content.0.text"),
        (
            {"type": "document", "source": {"type": "text", "data": BIG}, "title": "t"},
            "source.data",
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"text": BIG}]}},
            "source.content.0.text",
        ),
        ({"document": {"name": "n", "source": {"text": BIG}}}, "document.source.text"),
    ],
)
def test_a_text_is_clipped_where_the_provider_has_it(block: Any, path: str) -> None:
    def at(held: Any) -> Any:
        for key in path.split("."):
            held = held[int(key) if key.isdigit() else key]
        return held

    def without(held: Any) -> str:
        return repr(held).replace(repr(at(held)), "...")

    before = copy.deepcopy(block)
    message = result("1", "").model_copy(update={"content": [block]})
    assert text_size(message) == len(BIG)
    (found,) = clip(message, clip_result_bytes=1_000)
    (shown,) = found.content
    assert at(shown).startswith("word word")
    assert len(at(shown)) <= 1_000 + NOTE
    assert without(shown) == without(block)
    assert block == before


@pytest.mark.parametrize(
    ("block", "kind", "shape"),
    [
        ({"type": "json", "json": {"x": BIG}}, "json", {"type", "text"}),
        ({"json": {"x": BIG}}, "json", {"text"}),
        ({"type": "non_standard", "value": BIG}, "non_standard", {"type", "text"}),
    ],
)
def test_an_unknown_block_that_is_too_large_becomes_head_and_tail_of_its_json(
    block: Any, kind: str, shape: set[str]
) -> None:
    message = result("1", "").model_copy(update={"content": [block, "short"]})
    (found,) = clip(message, clip_result_bytes=1_000)
    shown, short = found.content
    assert set(shown) == shape
    assert shown["text"].startswith(f"[{kind} block of ")
    assert "word word" in shown["text"]
    assert RESULT_REMEDY in shown["text"]
    assert text_size(found) <= 1_000 + NOTE
    assert short == "short"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": "A" * 90_000, "mime_type": "image/png"},
        {"image": {"format": "png", "source": {"bytes": "A" * 90_000}}},
        {"type": "document", "source": {"type": "base64", "data": "A" * 90_000}},
        {"type": "thinking", "thinking": BIG, "signature": "s"},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"text": BIG}]},
        {"type": "picture", "bytes": "A" * 90_000},
    ],
)
def test_blocks_whose_text_is_none_or_may_not_be_changed_stay(block: Any) -> None:
    message = result("1", "").model_copy(update={"content": [block]})
    assert clip(message, clip_result_bytes=300) == [message]


TEXTS = st.integers(0, 900).map("w".__mul__) | st.text("ab \n請👩", max_size=500)
LEAVES = (
    TEXTS
    | TEXTS.map(lambda text: {"type": "text", "text": text})
    | TEXTS.map(lambda text: {"type": "input_text", "text": text, "id": 1})
    | TEXTS.map(lambda text: {"text": text})
    | TEXTS.map(lambda text: {"type": "json", "json": [text]})
    | TEXTS.map(lambda text: {"type": "refusal", "refusal": text})
    | TEXTS.map(lambda text: {"type": "document", "source": {"type": "text", "data": text}})
    | st.sampled_from(
        [
            {},
            {"type": None},
            {"type": "text"},
            {"type": "text", "text": None},
            {"type": "tool_result"},
            {"type": "non_standard", "value": 3},
            {"type": "document", "source": None},
            {"type": "image", "base64": "A" * 3_000, "mime_type": "image/png"},
            {"type": "tool_use", "id": "c", "name": "n", "input": {"x": "y" * 900}},
        ]
    )
)
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=6).map(lambda held: {"type": "tool_result", "content": held})
        | st.lists(inner, max_size=6).map(lambda held: {"type": "search_result", "content": held})
        | inner.map(lambda held: {"type": "non_standard", "value": held})
    ),
    max_leaves=12,
)
CONTENTS: Any = st.lists(BLOCKS, max_size=12) | st.tuples(LEAVES, st.integers(0, 400)).map(
    lambda given: [given[0]] * given[1]
)


def words(content: Any) -> int:
    """Letters of the texts that were drawn; the words of marks have none of them in a row."""
    return json.dumps(content, ensure_ascii=False).count("www")


@given(st.lists(CONTENTS, min_size=1, max_size=4), st.integers(1, 3_000), st.booleans())
def test_whatever_blocks_a_result_has_clipping_only_makes_it_shorter(
    contents: list[Any], limit: int, human: bool
) -> None:
    names = [str(number) for number in range(len(contents))]
    messages: list[BaseMessage] = [
        result(name, "").model_copy(update={"content": content})
        for name, content in zip(names, contents, strict=True)
    ]
    if human:
        messages = [HumanMessage("", id="h").model_copy(update={"content": contents[0]})]
    before = copy.deepcopy(messages)
    found = clip(call(*names), *messages, clip_result_bytes=limit, clip_message_bytes=limit)
    assert messages == before
    for one, other in zip(before, found[1:], strict=True):
        assert text_size(other) <= text_size(one)
        assert words(other.content) <= words(one.content)
        assert "\ufffd" not in json.dumps(other.content, ensure_ascii=False)
        if text_size(one) > limit and other.content == one.content:
            # Nothing but pieces that are shorter than a mark.
            assert text_size(one) <= max(limit, SHORTEST) + NOTE
        marks = other.content.__repr__().count("left out")
        assert text_size(other) <= max(limit, SHORTEST) + NOTE * max(1, marks)
    assert build_view([*messages], {"render": {"clip_result_bytes": limit}})


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
