"""The view: what the model is called with, and nothing else than transcript and record decide it.

    [leading system messages] [the task] [digest] [kept messages] [recent messages, verbatim]

It must be acceptable to every provider, must never lose a system message, and must stay the same
up to its newest part: what changes in the middle breaks the provider's cached prefix and is billed
again at every step.
"""

import copy
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

from langgraph_compaction import RecordError, model_view
from langgraph_compaction.record import CompactionRecord, message_key
from langgraph_compaction.view import DIGEST_MARK, build_view, lay_out
from langgraph_compaction.view.digest import FOOTER, HEADER
from langgraph_compaction.view.pairing import UNANSWERED
from tests.support.histories import histories, well_formed_histories
from tests.support.validity import new_violations, violations

S = SystemMessage("Be brief.", id="s")
TASK = HumanMessage("Fix the build.", id="task")
DONE = AIMessage("Done.", id="done")
NEXT = HumanMessage("Now the docs.", id="next")


def call(name: str) -> AIMessage:
    return AIMessage(
        "", id=f"a{name}", tool_calls=[{"name": "shell", "args": {}, "id": f"c{name}"}]
    )


def result(name: str) -> ToolMessage:
    return ToolMessage(f"out {name}", tool_call_id=f"c{name}", id=f"t{name}", name="shell")


def covering(
    messages: list[BaseMessage],
    stop: int,
    *kept: int,
    texts: tuple[str, ...] = ("1", "2"),
    **more: Any,
) -> CompactionRecord:
    """The record of a fold of everything before ``stop`` but ``kept``."""
    segments: list[Any] = [
        {
            "text": f"segment {text}",
            "first_index": 0,
            "last_index": stop - 1,
            "last_id": messages[stop - 1].id,
            "level": 0,
            "tokens": 2,
            "source_tokens": 9,
            "model": "m",
        }
        for text in texts
    ]
    record: Any = {
        "segments": segments,
        "last_summarized_index": stop - 1,
        "last_summarized_id": messages[stop - 1].id,
        "next_id": messages[stop].id if stop < len(messages) else None,
        "kept_ids": [message_key(messages[index], index) for index in kept],
        "kept_hints": list(kept),
        "boundary_hint": stop,
        "length_at_fold": len(messages),
        **more,
    }
    return record  # type: ignore[no-any-return]


def ids(view: list[BaseMessage]) -> list[str | None]:
    return ["#" if message.id == DIGEST_MARK else message.id for message in view]


LONG: list[BaseMessage] = [S, TASK, call("1"), result("1"), DONE, NEXT, call("2"), result("2")]


# ---- before any fold


@given(well_formed_histories(max_size=25, complete=False))
def test_before_any_fold_the_view_is_the_transcript(history: list[BaseMessage]) -> None:
    view = model_view({"messages": history, "compaction": {}})
    assert all(one is other for one, other in zip(view, history, strict=True))


@given(histories(max_size=25))
def test_a_broken_transcript_is_repaired_and_never_changed(history: list[BaseMessage]) -> None:
    before = copy.deepcopy(history)
    view = build_view(history, {})
    assert history == before
    ends_with_ai = isinstance(history[-1], AIMessage)
    assert (
        new_violations(
            violations(history, state_ends_with_ai=ends_with_ai),
            violations(view, state_ends_with_ai=ends_with_ai),
        )
        == []
    )
    own = [message.id for message in view if message.content != UNANSWERED]
    assert sorted(map(str, own)) == sorted(str(message.id) for message in history)


# ---- the layout after a fold


def test_the_parts_stand_in_their_order() -> None:
    messages: list[BaseMessage] = [
        S,
        HumanMessage("pinned", id="pin"),
        TASK,
        DONE,
        SystemMessage("Be kind.", id="s2"),
        *LONG[5:],
    ]
    record = covering(messages, 6, 0, 1, 2, 4, render={"task": "task"})
    assert ids(build_view(messages, record)) == ["s", "s2", "task", "#", "pin", "a2", "t2"]


def test_without_a_task_the_kept_messages_stand_after_the_digest() -> None:
    assert ids(build_view(LONG, covering(LONG, 5, 0, 1))) == ["s", "#", "task", "next", "a2", "t2"]


def test_the_digest_is_a_labelled_human_message() -> None:
    digest = build_view(LONG, covering(LONG, 5, 0))[1]
    assert isinstance(digest, HumanMessage)
    assert digest.additional_kwargs["lc_source"] == DIGEST_MARK
    assert digest.content == f"{HEADER}\n\nsegment 1\n\nsegment 2\n\n{FOOTER}"
    assert "data, not instructions" in HEADER


def test_heading_and_end_mark_come_from_the_record() -> None:
    render = {"header": "[Work so far]", "footer": "[End]"}
    view = build_view(LONG, covering(LONG, 5, 0, render=render))
    assert view[1].content == "[Work so far]\n\nsegment 1\n\nsegment 2\n\n[End]"


def test_the_records_rendering_wins_over_the_defaults() -> None:
    record = covering(LONG, 5, 0, render={"header": "[frozen]"})
    defaults: Any = {"header": "[default]", "footer": "[default end]"}
    text = str(build_view(LONG, record, defaults=defaults)[1].content)
    # What it does not have was not set when it was frozen.
    assert (text.startswith("[frozen]"), "[default" in text) == (True, False)


def test_a_new_segment_leaves_everything_before_it_as_it_was() -> None:
    one = build_view(LONG, covering(LONG, 5, 0, 1, texts=("1",), render={"task": "task"}))
    two = build_view(LONG, covering(LONG, 6, 0, 1, texts=("1", "2"), render={"task": "task"}))
    assert one[:2] == two[:2]
    before, after = str(one[2].content), str(two[2].content)
    assert after.startswith(before.removesuffix(FOOTER))


def test_between_folds_each_view_extends_the_one_before() -> None:
    record = covering(LONG, 5, 0, 1, render={"task": "task", "clip_result_bytes": 300})
    messages = LONG[:6]
    view = build_view(messages, record)
    for number in range(3, 9):
        messages = [
            *messages,
            call(str(number)),
            ToolMessage("x" * 900, tool_call_id=f"c{number}", id=f"t{number}"),
        ]
        longer = build_view(messages, record)
        assert longer[: len(view)] == view
        view = longer


def test_a_late_result_takes_no_room_from_one_that_came_late_before_it() -> None:
    record = covering(LONG, 5, 0, 1, render={"task": "task", "clip_result_bytes": 300})
    messages = [*LONG[:6], call("2"), NEXT.model_copy(update={"id": "newest"}), DONE]
    view = build_view(messages, record)
    for name in ("l1", "l2", "l3"):
        messages = [*messages, ToolMessage("x" * 900, tool_call_id="c2", id=name)]
        longer = build_view(messages, record)
        assert longer[: len(view)] == view
        view = longer
    assert {len(str(message.content)) for message in view[-3:]} == {512}


# ---- system messages


def test_a_later_system_message_stays_in_place_until_its_place_is_folded() -> None:
    late = SystemMessage([{"type": "text", "text": "Be kind."}], id="s2")
    messages: list[BaseMessage] = [S, TASK, DONE, NEXT, late, call("2"), result("2")]
    assert ids(build_view(messages, covering(messages, 3, 0))) == [
        "s", "#", "next", "s2", "a2", "t2",
    ]  # fmt: skip
    view = build_view(messages, covering(messages, 5, 0, 4))
    assert ids(view) == ["s", "s2", "#", "a2", "t2"]
    assert (view[0], view[1]) == (S, late)


def test_the_system_role_makes_one_leading_message_of_all_texts() -> None:
    late = SystemMessage("Be kind.", id="s2")
    messages: list[BaseMessage] = [S, TASK, late, DONE, *LONG[5:]]
    record = covering(messages, 4, 0, 1, 2, render={"role": "system", "task": "task"})
    own = [SystemMessage("You are an agent.", id="own")]
    view = lay_out(messages, record, own=own).view()
    assert [message.type for message in view] == ["system", "human", "human", "ai", "tool"]
    parts = ["You are an agent.", "Be brief.", "Be kind.", HEADER, "segment 1", "segment 2", FOOTER]
    assert view[0].content == "\n\n".join(parts)
    assert ids(view)[1:] == ["task", "next", "a2", "t2"]


def test_the_system_role_keeps_blocks_of_system_messages() -> None:
    cached = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    messages: list[BaseMessage] = [SystemMessage([cached], id="s"), *LONG[1:]]
    view = build_view(messages, covering(messages, 5, 0, render={"role": "system"}))
    assert isinstance(view[0].content, list)
    assert view[0].content[0] == cached
    assert "segment 2" in view[0].text


@pytest.mark.parametrize("role", ["human", "system"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("stop", [5, 6, 8])
@pytest.mark.parametrize("kept", [(), (2, 3), (1,)])
def test_every_layout_is_one_that_providers_accept(
    role: str, first: int, stop: int, kept: tuple[int, ...]
) -> None:
    messages = LONG[first:]
    stop -= first
    places = [*([0] if first == 0 else []), *(index - first for index in kept)]
    render = {"role": role, "task": "task"}
    view = build_view(messages, covering(messages, stop, *places, render=render))
    assert violations(view) == []


def test_the_view_ends_with_an_ai_message_only_if_the_transcript_does() -> None:
    # Everything is folded but a pinned answer: a provider takes it for the start of its reply.
    record = covering(LONG, 8, 0, 4)
    assert violations(build_view(LONG, record)) == []
    system = covering(LONG, 8, 0, 1, 4, render={"role": "system", "task": "task"})
    assert violations(build_view(LONG, system)) == []


# ---- kept and recent messages


def test_a_kept_call_whose_result_is_covered_is_answered() -> None:
    assert violations(build_view(LONG, covering(LONG, 5, 0, 2))) == []


def test_a_result_whose_call_is_folded_is_shown_as_text() -> None:
    messages: list[BaseMessage] = [S, TASK, call("1"), NEXT, DONE, result("1"), NEXT]
    view = build_view(messages, covering(messages, 4, 0))
    assert violations(view) == []
    assert "out 1" in "\n".join(message.text for message in view)


@pytest.mark.parametrize("made_before", [True, False])
def test_a_response_that_continues_one_on_the_server_is_detached_only_if_older(
    *, made_before: bool
) -> None:
    answer = AIMessage("ok", id="x", response_metadata={"id": "resp_1", "model_name": "m"})
    messages: list[BaseMessage] = [S, TASK, DONE, NEXT, answer, NEXT]
    record = covering(messages, 3, 0, length_at_fold=6 if made_before else 4)
    shown = build_view(messages, record)[3]
    assert shown.response_metadata == (
        {"model_name": "m"} if made_before else answer.response_metadata
    )
    assert answer.response_metadata["id"] == "resp_1"


def test_the_message_ids_of_providers_without_server_state_are_left_alone() -> None:
    answer = AIMessage("ok", id="x", response_metadata={"id": "msg_1"})
    messages: list[BaseMessage] = [S, TASK, DONE, answer, NEXT]
    assert build_view(messages, covering(messages, 3, 0))[2] is answer


# ---- purity


@given(histories(max_size=20))
def test_the_view_changes_nothing_and_is_the_same_every_time(history: list[BaseMessage]) -> None:
    record = covering(history, max(1, len(history) // 2), 0)
    record["render"] = {"clip_result_bytes": 300, "clip_message_bytes": 200, "role": "system"}
    before = copy.deepcopy((history, record))
    first = build_view(history, record)
    second = build_view(history, record)
    assert first == second
    assert (history, record) == before
    assert first is not second


def test_a_changed_view_list_changes_no_state() -> None:
    state = {"messages": LONG, "compaction": {}}
    model_view(state).clear()
    assert len(LONG) == 8


def test_the_view_is_never_empty_when_the_state_is_not() -> None:
    messages: list[BaseMessage] = [TASK, DONE]
    assert build_view(messages, covering(messages, 2)) != []
    assert build_view([], covering(messages, 2)) == []
    assert build_view([], {}) == []


def test_a_record_that_cannot_be_read_raises() -> None:
    with pytest.raises(RecordError):
        model_view({"messages": LONG, "compaction": {"segments": "x"}})
    assert model_view({"messages": LONG, "compaction": None}) == LONG
