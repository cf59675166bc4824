"""Whatever middlewares make of the messages of a call, the record hides what it covers and no more.

The state has what it had; only the list that one call is made with is another. A note put in front
of every call must not make the digest disappear, and a note between covered messages must not go
with them.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction import model_view
from langgraph_compaction.asked import asked_with
from langgraph_compaction.state import Channels
from langgraph_compaction.view import lay_out
from langgraph_compaction.view.anchors import locate
from tests.support.folding import State, node, state_of

NOTE = "NOTE"


def history(steps: int) -> list[BaseMessage]:
    """A request, and calls with their results; every text occurs once."""
    messages: list[BaseMessage] = [HumanMessage("Do it all. " + "go " * 30, id="task")]
    for n in range(steps):
        call = {"name": "work", "args": {"n": n}, "id": f"c{n}"}
        messages += [
            AIMessage(f"call {n}", tool_calls=[call], id=f"a{n}"),
            ToolMessage(f"result {n}: " + f"w{n} " * 90, tool_call_id=f"c{n}", id=f"r{n}"),
            AIMessage(f"Step {n} is done.", id=f"s{n}"),
        ]
    return messages


def folded(steps: int, **options: Any) -> State:
    """A thread after a visit."""
    state = state_of(history(steps))
    state |= node(**options).invoke(state)
    return state


SOON: dict[str, Any] = {"clear_keep": 1, "clear_min_chars": 20, "clear_min_share": 0.0}
FOLDED = folded(12, clear=False)
CLEARED = folded(12, trigger=("tokens", 2_000), target=1_500, **SOON)
BOTH = folded(12, trigger=("tokens", 600), target=560, keep=("tokens", 300), **SOON)
STATES = {
    "folded": FOLDED,
    "cleared": CLEARED,
    "both": BOTH,
    "neither": state_of(history(12)),
}


def view_of(messages: list[Any], state: State) -> list[BaseMessage]:
    """What the model is called with where the middlewares before left these messages."""
    asked = asked_with(messages, state, Channels())
    layout = lay_out(asked.state["messages"], asked.state["compaction"], among=asked.among)
    return layout.view()


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(message.content) for message in messages]


@pytest.mark.parametrize("kind", STATES)
def test_what_is_left_alone_is_seen_as_the_state_is(kind: str) -> None:
    state = STATES[kind]
    assert view_of(list(state["messages"]), state) == model_view(state)


def strip(message: BaseMessage) -> BaseMessage:
    return message.model_copy(update={"id": None})


def rename(message: BaseMessage) -> BaseMessage:
    return message.model_copy(update={"id": f"new-{message.id}"})


def copied(message: BaseMessage) -> BaseMessage:
    return message.model_copy()


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("change", [strip, rename, copied])
def test_messages_that_lost_their_ids_are_found_by_what_they_say(
    kind: str, change: Callable[[BaseMessage], BaseMessage]
) -> None:
    state = STATES[kind]
    assert view_of([change(m) for m in state["messages"]], state) == model_view(state)


@pytest.mark.parametrize("kind", STATES)
@settings(max_examples=150, deadline=None)
@given(
    notes=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from([HumanMessage, SystemMessage])), max_size=5
    ),
    gone=st.sets(st.integers(0, 36), max_size=12),
    nameless=st.sets(st.integers(0, 36), max_size=36),
    dicts=st.booleans(),
)
def test_others_messages_are_shown_and_move_nothing(
    kind: str, notes: list[tuple[int, Any]], gone: set[int], nameless: set[int], dicts: bool
) -> None:
    state = STATES[kind]
    thread = state["messages"]
    hidden = {thread[index].content for index in locate(thread, state["compaction"]).hidden}
    call: list[Any] = [
        strip(message) if index in nameless else message
        for index, message in enumerate(thread)
        if index not in gone
    ]
    for number, (place, made) in enumerate(notes):
        text = f"{NOTE} {number}"
        role = "user" if made is HumanMessage else "system"
        note = {"role": role, "content": text} if dicts else made(text)
        call.insert(min(place, len(call)), note)
    before = list(call)
    view = view_of(call, state)
    seen = texts(view)
    assert call == before
    # What others put in is shown, once; what they took out is not there; nothing else is hidden.
    assert sorted(t for t in seen if t.startswith(NOTE)) == [
        f"{NOTE} {n}" for n in range(len(notes))
    ]
    assert set(seen).isdisjoint(thread[index].content for index in gone)
    assert hidden.isdisjoint(seen)
    digest = [message.content for message in model_view(state) if message.id == "summarization"]
    assert [message.content for message in view if message.id == "summarization"] == digest
    if not gone:
        ours = {message.id for message in thread}
        assert [m.id for m in view if m.id in ours] == [
            m.id for m in model_view(state) if m.id in ours
        ]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("place", [0, *range(1, 38, 3)])
def test_a_note_between_two_steps_changes_nothing_else(kind: str, place: int) -> None:
    state = STATES[kind]
    thread = state["messages"]
    view = view_of([*thread[:place], HumanMessage(NOTE, id="note"), *thread[place:]], state)
    assert [m for m in view if m.id != "note"] == model_view(state)
    assert sum(m.id == "note" for m in view) == 1


def test_the_threads_of_these_tests_are_what_they_are_called() -> None:
    assert FOLDED["compaction"]["segments"]
    assert "clearing" not in FOLDED["compaction"]
    assert not CLEARED["compaction"].get("segments")
    assert BOTH["compaction"]["segments"]
    for state in (CLEARED, BOTH):
        assert any("[Cleared" in text for text in texts(model_view(state)))


def test_notes_between_messages_of_any_order_hide_nothing_that_is_not_covered() -> None:
    rng = random.Random(7)
    shown = {str(m.content) for m in model_view(FOLDED)}
    for _ in range(300):
        call = [m for m in FOLDED["messages"] if rng.random() < 0.8]
        rng.shuffle(call)
        seen = " ".join(texts(view_of(call, FOLDED)))
        assert [m.content for m in call if m.content in shown and m.content not in seen] == []


def test_a_message_that_is_said_again_is_shown_where_it_is_said_again() -> None:
    thread = FOLDED["messages"]
    covered = thread[3]
    assert covered.content not in texts(model_view(FOLDED))
    for again in (covered, strip(covered)):
        view = view_of([*thread, again], FOLDED)
        assert view[-1].content == covered.content
        assert view[:-1] == model_view(FOLDED)


def test_only_what_stands_at_its_place_is_taken_for_a_message_that_lost_its_id() -> None:
    """Said again behind the rest it is new, though the one it repeats is gone."""
    thread = FOLDED["messages"]
    covered, rest = strip(thread[3]), [*thread[:3], *thread[4:]]
    assert view_of([*rest, covered], FOLDED)[-1].content == covered.content
    assert covered.content in texts(view_of([covered, *rest], FOLDED))
    assert covered.content not in texts(view_of([*rest[:3], covered, *rest[3:]], FOLDED))


def test_a_call_that_has_nothing_of_what_is_covered_has_the_digest() -> None:
    thread = FOLDED["messages"]
    assert texts(view_of(thread[-1:], FOLDED)) == texts(model_view(FOLDED))[1:2] + texts(
        thread[-1:]
    )
    view = view_of([SystemMessage(NOTE), *thread[-1:]], FOLDED)
    assert [message.type for message in view] == ["system", "human", "ai"]
    assert view[1].id == "summarization"


def test_where_nothing_is_found_all_is_shown_and_told() -> None:
    call: list[Any] = [HumanMessage("A summary of theirs."), HumanMessage("Go on.")]
    asked = asked_with(call, FOLDED, Channels())
    assert view_of(call, FOLDED) == call
    assert asked.warning is not None
    assert "keep the ids" in asked.warning
    assert not asked.commits
    fresh = STATES["neither"]
    quiet = asked_with(call, fresh, Channels())
    assert quiet.warning is None


def test_a_call_commits_as_long_as_the_states_messages_are_all_there() -> None:
    thread = FOLDED["messages"]

    def commits(call: list[BaseMessage]) -> bool:
        return asked_with(call, FOLDED, Channels()).commits

    note = HumanMessage(NOTE)
    assert commits(thread)
    assert commits([note, *thread[:5], note, *map(strip, thread[5:]), note])
    assert not commits(thread[1:])
    assert not commits([*thread[5:], *thread[:5]])
