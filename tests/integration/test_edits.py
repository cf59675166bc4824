"""What people do to the messages of a folded thread: delete, clear, edit, insert, add again.

The thread is one that was folded several times. After each change, and as the thread goes on, every
message that no digest covers is in the view, in order and unchanged.
"""

from collections.abc import Sequence
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
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langgraph_compaction import restore
from tests.integration.travelling import MODES, Line, line, numbered
from tests.support.doubles import THREAD

__all__ = ["line"]

LENGTH = 18
"""Messages of the thread; the newest four to seven are not covered."""


def folded(mode: str) -> Line:
    found = Line(InMemorySaver(), mode)
    found.ask(*numbered(1, LENGTH // 2))
    assert found.values()["compaction"]["segments"]
    return found


def removals(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [RemoveMessage(id=str(message.id)) for message in messages]


def goes_on(line: Line, name: str = "after", exempt: Sequence[BaseMessage] = ()) -> None:
    """Whether nothing is lost now, nor in the turns that follow."""
    edited = {str(message.id) for message in exempt}
    for text in ("", *numbered(1, 3, name)):
        if text:
            line.ask(text)
        values = line.values()
        found = line.ledger.faults(values["messages"], line.compact.view(values))
        assert [fault for fault in found if fault.partition(" ")[0] not in edited] == []


WHOLE = ("full", "background")
"""Modes in which the thread has all of its messages."""
PRUNED = "delta-prune"


def places(mode: str) -> range:
    return range(LENGTH if mode in WHOLE else 6)


EACH = [
    *(("full", place) for place in places("full")),
    *(("background", place) for place in places("background")[::3]),
    *((PRUNED, place) for place in places(PRUNED)),
]


@pytest.mark.parametrize(("mode", "place"), EACH)
def test_any_message_may_be_deleted(mode: str, place: int) -> None:
    line = folded(mode)
    line.update(removals([line.values()["messages"][place]]))
    goes_on(line)
    # One anchor is enough: nothing is folded a second time. A fold that is under way is begun anew.
    assert mode == "background" or line.ledger.read_twice(line.seen.values()) == []


SPANS = [
    (mode, first, last)
    for mode in ("full", PRUNED)
    for first in places(mode)[::3]
    for last in (first + 2, len(places(mode)))
]


@pytest.mark.parametrize(("mode", "first", "last"), SPANS)
def test_any_span_may_be_deleted(mode: str, first: int, last: int) -> None:
    line = folded(mode)
    line.update(removals(line.values()["messages"][first:last]))
    goes_on(line)


@pytest.mark.parametrize("mode", MODES)
def test_both_anchors_may_be_deleted(mode: str) -> None:
    line = folded(mode)
    record = line.values()["compaction"]
    anchors = {record["last_summarized_id"], record["next_id"]}
    gone = [m for m in line.values()["messages"] if m.id in anchors]
    assert len(gone) == (1 if line.pruning else 2)
    line.update(removals(gone))
    goes_on(line)


@pytest.mark.parametrize("length", range(1, LENGTH, 2))
def test_a_thread_that_is_cut_back_shows_the_request_that_is_to_be_answered(length: int) -> None:
    line = folded("full")
    messages = line.values()["messages"]
    newest = messages[length - 1]
    assert isinstance(newest, HumanMessage)
    line.update(removals(messages[length:]))
    assert newest in line.compact.view(line.values())
    # And asked in other words.
    line.update([HumanMessage("In other words.", id=newest.id)])
    assert "In other words." in [m.text for m in line.compact.view(line.values())]
    goes_on(line, exempt=[newest])


@pytest.mark.parametrize("length", range(1, LENGTH, 2))
def test_the_request_of_a_thread_that_was_cut_back_stays_while_the_agent_works(length: int) -> None:
    line = folded("full")
    line.update(removals(line.values()["messages"][length:]))
    call: Any = {"name": "read", "args": {}, "id": "again"}
    for new in AIMessage("", tool_calls=[call]), ToolMessage("Text.", tool_call_id="again"):
        view = line.compact.view(line.values())
        line.update([new])
        assert line.compact.view(line.values())[: len(view)] == view
    goes_on(line)


# ---- the whole list


def test_a_cleared_chat_begins_anew(line: Line) -> None:
    line.ask(*numbered(1, 9))
    line.update([RemoveMessage(id=REMOVE_ALL_MESSAGES)])
    assert line.values()["messages"] == []
    line.ask("anew-001")
    view = line.compact.view(line.values())
    assert [m.text for m in view][-2:][0] == "anew-001: go on."
    assert line.ledger.covers(view) == "" or line.pruning
    goes_on(line)


def test_another_list_in_place_of_the_old_one(line: Line) -> None:
    line.ask(*numbered(1, 9))
    new = [HumanMessage(f"new-{number:03} " + "word " * 40) for number in range(12)]
    line.update([RemoveMessage(id=REMOVE_ALL_MESSAGES), *new])
    goes_on(line)


def test_the_same_list_written_anew_is_the_same(line: Line) -> None:
    line.ask(*numbered(1, 9))
    before = line.values()
    view = line.compact.view(before)
    line.update([RemoveMessage(id=REMOVE_ALL_MESSAGES), *before["messages"]])
    assert line.compact.view(line.values()) == view
    goes_on(line)
    assert line.ledger.read_twice(line.seen.values()) == []


@pytest.mark.parametrize("words", ["the same", "other"])
@pytest.mark.parametrize("mode", ["full", PRUNED])
def test_deleted_messages_that_are_added_again_are_shown(mode: str, words: str) -> None:
    for place in places(mode)[::2]:
        line = folded(mode)
        gone = line.values()["messages"][place]
        line.update(removals([gone]))
        again = gone if words == "the same" else HumanMessage(f"again-{place:03}", id=gone.id)
        line.update([again])
        goes_on(line)


@pytest.mark.parametrize("mode", ["full", PRUNED])
def test_what_is_put_in_anywhere_is_shown(mode: str) -> None:
    # Before the task it is shown behind the digest, which is another order.
    for place in range(mode == PRUNED, len(places(mode)) + 1, 2):
        line = folded(mode)
        for name in ("first", "second"):
            messages = line.values()["messages"]
            put = [*messages[:place], HumanMessage(f"{name} insertion"), *messages[place:]]
            line.update([RemoveMessage(id=REMOVE_ALL_MESSAGES), *put])
            goes_on(line, name)


# ---- edits


@pytest.mark.parametrize(("mode", "place"), EACH)
def test_an_edit_shows_where_the_message_does(mode: str, place: int) -> None:
    line = folded(mode)
    old = line.values()["messages"][place]
    before = line.compact.view(line.values())
    new = old.model_copy(update={"content": f"edited-{place:03} " + "word " * 30})
    line.update([new])
    after = line.compact.view(line.values())
    assert after == [new if message.id == old.id else message for message in before]
    # Where a digest covers it, that tells of it as it was; else the new text is folded.
    goes_on(line, exempt=[] if old in before else [old])
    hidden = old not in before
    assert any(f"edited-{place:03}" in text for text in line.ledger.folds) <= (not hidden)


def test_a_restore_shows_an_edited_message_as_it_is_now() -> None:
    line = folded("full")
    old = line.values()["messages"][3]
    line.update([old.model_copy(update={"content": "edited-003"})])
    line.graph.update_state(THREAD, restore(line.values(), segment=0))
    assert "edited-003" in [m.text for m in line.compact.view(line.values())]
    goes_on(line)


@pytest.mark.parametrize("as_node", [None, "compact", "agent"])
def test_an_update_counts_whoever_it_is_said_to_be_from(as_node: Any) -> None:
    line = folded("full")
    note = HumanMessage("a note " + "word " * 30, id="note")
    line.graph.update_state(THREAD, {"messages": [note]}, as_node=as_node)
    if line.graph.get_state(THREAD).next:
        line.run(None)
    assert note in line.compact.view(line.values())
    goes_on(line)
