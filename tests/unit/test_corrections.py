"""What people do to a digest: correct it, take it back, have it forgotten.

A correction that a fold in the background undoes is worse than none. A restore that hides one
message too many, or shows one twice, is a lie. And what was forgotten must not come back. So each
is tried in a graph with a checkpointer, through ``update_state``, with folds before and after.
"""

import contextlib
import copy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import (
    CompactionState,
    ConfigurationError,
    MissingChannelError,
    RecordError,
    edit_digest,
    forget,
    merge_compaction,
    model_view,
    restore,
)
from langgraph_compaction.changes import advanced, last_covered, pruned, revised
from langgraph_compaction.record import CompactionRecord, DigestSegment, message_key
from langgraph_compaction.view.anchors import locate

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def chat(count: int, *, named: bool = True) -> list[BaseMessage]:
    kinds = (HumanMessage, AIMessage)
    made: list[BaseMessage] = [
        kinds[n % 2](f"text {n}", id=f"m{n}" if named else None) for n in range(count)
    ]
    return made


def folded(
    messages: list[BaseMessage],
    record: CompactionRecord,
    stop: int,
    *,
    kept: tuple[int, ...] = (0,),
    absorbed: tuple[int, ...] = (),
) -> CompactionRecord:
    """The record after a fold, as the engine writes it."""
    anchor = locate(messages, record)
    chain = record.get("segments", []) if anchor.digest else []
    last, last_id = last_covered(record, messages, anchor, stop)
    segment = DigestSegment(
        text=f"segment {len(chain)}",
        first_index=min(anchor.position, last),
        last_index=last,
        last_id=last_id,
        level=0,
        tokens=10,
        source_tokens=100,
        model="m",
    )
    if absorbed:
        segment["absorbed_ids"] = [message_key(messages[i], i) for i in absorbed]
        segment["absorbed_indexes"] = [anchor.position_of(i) for i in absorbed]
    return revised(
        advanced(
            record,
            messages,
            anchor,
            stop=stop,
            kept=kept,
            segments=[*chain, segment],
            render={"task": "m0"},
            steps=0,
        )
    )


def state(count: int = 12, *stops: int, **given: Any) -> dict[str, Any]:
    """A state of ``count`` messages that was folded up to each of ``stops``."""
    messages = chat(count, named=given.pop("named", True))
    record: CompactionRecord = {}
    for stop in stops:
        record = folded(messages, record, stop, **given)
    return {"messages": messages, "compaction": record}


def shown(values: Any) -> list[str]:
    """Texts of the view; the digest as the list of its segments."""
    texts = []
    for message in model_view(values):
        text = message.text
        if "Record of earlier work" in text:
            texts += ["#" + line.split()[1] for line in text.splitlines() if "segment " in line]
        else:
            texts.append(text.removeprefix("text "))
    return texts


def applied(values: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """The state after a reducer took the update."""
    removed = {message.id for message in update.get("messages", ())}
    return {
        "messages": [message for message in values["messages"] if message.id not in removed],
        "compaction": merge_compaction(values["compaction"], update["compaction"]),
    }


def after_prune(values: dict[str, Any]) -> dict[str, Any]:
    """The state once what its record hides has left the channel."""
    messages, record = values["messages"], values["compaction"]
    anchor = locate(messages, record)
    left = [messages[index] for index in anchor.kept] + messages[anchor.boundary :]
    return {"messages": left, "compaction": pruned(record, messages, anchor, None)}


# ---- edit


def test_an_edit_replaces_the_text_of_one_segment() -> None:
    values = state(12, 4, 8)
    before = copy.deepcopy(values)
    update = edit_digest(values, "a segment corrected", segment=0)
    assert values == before
    assert list(update) == ["compaction"]
    first, second = update["compaction"]["segments"]
    assert (first["text"], first["model"]) == ("a segment corrected", "edited")
    assert first["tokens"] > 10
    assert second == before["compaction"]["segments"][1]
    assert edit_digest(values, "x")["compaction"]["segments"][1]["text"] == "x"


def test_an_edit_sticks_against_a_fold_made_before_and_is_kept_by_one_made_after() -> None:
    values = state(12, 4)
    raced = folded(values["messages"], values["compaction"], 10)
    edited = applied(values, edit_digest(values, "segment corrected"))
    assert applied(edited, {"compaction": raced}) == edited
    later = folded(edited["messages"], edited["compaction"], 10)
    assert shown(applied(edited, {"compaction": later})) == ["0", "#corrected", "#1", "10", "11"]


def test_an_edit_believes_no_count_that_cannot_be() -> None:
    values = state(12, 4)
    values["compaction"]["segments"][0]["tokens"] = 2**50
    (edited,) = edit_digest(values, "x" * 1_000)["compaction"]["segments"]
    assert edited["tokens"] == 4_000


@pytest.mark.parametrize(
    ("text", "segment", "named"),
    [
        ("", -1, "empty"),
        (" \n", 0, "empty"),
        ("x", 2, "segment=2"),
        ("x", -3, "segment=-3"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(text: str, segment: int, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        edit_digest(state(12, 4, 8), text, segment=segment)


@pytest.mark.parametrize("change", [restore, lambda values: edit_digest(values, "x")])
def test_without_a_digest_there_is_nothing_to_change(change: Any) -> None:
    with pytest.raises(ConfigurationError, match="no segments yet"):
        change(state(4))


@pytest.mark.parametrize("change", [restore, forget, lambda values: edit_digest(values, "x")])
def test_a_state_without_the_channel_is_a_clear_error(change: Any) -> None:
    with pytest.raises(MissingChannelError):
        change({"messages": chat(4)})


def test_a_segment_of_another_hand_is_edited_or_refused_by_name() -> None:
    values = state(12, 4)
    del values["compaction"]["segments"][0]["tokens"]
    with contextlib.suppress(RecordError):
        assert edit_digest(values, "x")["compaction"]["segments"][0]["text"] == "x"


# ---- restore


def test_a_restore_shows_the_originals_of_the_newest_segment_again() -> None:
    values = state(12, 4, 8)
    assert shown(values) == ["0", "#0", "#1", "8", "9", "10", "11"]
    restored = applied(values, restore(values))
    assert shown(restored) == ["0", "#0", "4", "5", "6", "7", "8", "9", "10", "11"]
    everything = applied(values, restore(values, segment=0))
    assert shown(everything) == [str(n) for n in range(12)]


def test_a_restore_brings_back_messages_that_the_segment_had_absorbed() -> None:
    values = state(12, 4, kept=(0, 2))
    values["compaction"] = folded(
        values["messages"], values["compaction"], 8, kept=(0,), absorbed=(2,)
    )
    assert shown(values) == ["0", "#0", "#1", "8", "9", "10", "11"]
    restored = applied(values, restore(values))
    assert shown(restored) == ["0", "#0", "2", *(str(n) for n in range(4, 12))]


@pytest.mark.parametrize("gone", [(5,), (7,), (4, 5, 6, 7), (8,), (1,), (3,)])
def test_a_restore_is_exact_after_deletions(gone: tuple[int, ...]) -> None:
    values = state(12, 4, 8)
    for index in reversed(gone):
        del values["messages"][index]
    restored = applied(values, restore(values))
    left = [str(n) for n in range(4, 12) if n not in gone]
    assert shown(restored) == ["0", "#0", *left]


@pytest.mark.parametrize("gone", [(3, 7), (7, 8), (0, 1, 2, 3), (3, 4, 8), (3, 7, 8)])
def test_a_restore_shows_at_least_what_it_gives_back(gone: tuple[int, ...]) -> None:
    values = state(12, 4, 8)
    for index in reversed(gone):
        del values["messages"][index]
    restored = shown(applied(values, restore(values)))
    left = [str(n) for n in range(4, 12) if n not in gone]
    assert restored[-len(left) :] == left


def test_what_was_restored_can_be_folded_again() -> None:
    values = state(12, 4, 8)
    restored = applied(values, restore(values))
    again = folded(restored["messages"], restored["compaction"], 10)
    assert [s["first_index"] for s in again["segments"]] == [0, 4]
    assert shown(applied(restored, {"compaction": again})) == ["0", "#0", "#1", "10", "11"]


def test_a_restored_chat_without_ids_still_knows_itself() -> None:
    values = state(12, 4, 8, named=False)
    restored = applied(values, restore(values))
    assert shown(restored) == ["#0", "0", *(str(n) for n in range(4, 12))]
    restored["messages"] = [AIMessage(f"new {n}") for n in range(6)]
    assert shown(restored) == [f"new {n}" for n in range(6)]


def test_pruned_messages_cannot_be_restored() -> None:
    values = state(12, 4)
    values["compaction"]["pruned"] = True  # of a hand, that does not say which
    with pytest.raises(ConfigurationError, match="position 0 to 3 were pruned"):
        restore(values)
    values["compaction"] |= {"pruned": True, "pruned_index": 3}
    with pytest.raises(ConfigurationError, match="position 0 to 3 were pruned"):
        restore(values)
    # What was folded later, and stayed, can be.
    values["compaction"] = folded(values["messages"], values["compaction"], 8)
    assert restore(values)["compaction"]["last_summarized_index"] == 3
    with pytest.raises(ConfigurationError, match="position 0 to 3 were pruned"):
        restore(values, segment=0)


def test_what_a_segment_took_in_cannot_be_restored_once_it_is_pruned() -> None:
    values = after_prune(state(12, 4, kept=(0, 2)))
    record = folded(values["messages"], values["compaction"], 2, kept=(0,), absorbed=(1,))
    taken = {**values, "compaction": record}
    assert "2" not in shown(taken)
    assert shown(applied(taken, restore(taken)))[2] == "2"
    with pytest.raises(ConfigurationError, match="position 2 to 3 were pruned"):
        restore(after_prune(taken))


def test_a_restore_shows_what_only_the_dropped_segment_covered() -> None:
    values = state(12, 4, kept=[0])
    messages = list(values["messages"])
    # Put in among what is covered, it loses the place: all but the task is shown, and folded anew.
    messages.insert(2, HumanMessage("text new", id="new"))
    again = folded(messages, values["compaction"], 9, kept=[0])
    now = {"messages": messages, "compaction": again}
    assert shown(now) == ["0", "#0", "#1", "8", "9", "10", "11"]
    restored = shown(applied(now, restore(now, segment=1)))
    assert restored == ["0", "#0", "1", "new", *map(str, range(2, 12))]


# ---- forget


def test_forgetting_removes_what_is_covered_and_keeps_the_rest() -> None:
    values = state(12, 4, 8, kept=(0, 3))
    update = forget(values)
    assert all(isinstance(message, RemoveMessage) for message in update["messages"])
    assert [message.id for message in update["messages"]] == ["m1", "m2", "m4", "m5", "m6", "m7"]
    assert shown(applied(values, update)) == ["0", "3", "8", "9", "10", "11"]
    assert "segment" not in str(update["compaction"])


def test_what_was_forgotten_does_not_come_back_with_an_older_fold() -> None:
    values = state(12, 4)
    raced = folded(values["messages"], values["compaction"], 10)
    forgotten = applied(values, forget(values))
    assert applied(forgotten, {"compaction": raced}) == forgotten
    later = folded(forgotten["messages"], forgotten["compaction"], 6)
    assert [segment["text"] for segment in later["segments"]] == ["segment 0"]


def test_forgetting_without_a_digest_removes_nothing() -> None:
    update = forget(state(4))
    assert list(update) == ["compaction"]


def test_messages_without_ids_cannot_be_forgotten_one_by_one() -> None:
    with pytest.raises(ConfigurationError, match="add_messages"):
        forget(state(12, 4, named=False))


def test_a_store_that_is_none_is_refused_where_nothing_was_archived_too() -> None:
    wrong: Any = "./store.db"
    with pytest.raises(ConfigurationError, match=r"store='./store.db' is no store"):
        forget(state(12, 4), store=wrong)


# ---- in a graph


def graph() -> Any:
    """A thread that is folded up to the message that the input names, if it names one."""

    def fold(values: Any) -> dict[str, Any]:
        newest = values["messages"][-1].text
        if not newest.startswith("fold "):
            return {}
        stop = int(newest.split()[1])
        return {"compaction": folded(values["messages"], values["compaction"], stop)}

    builder: Any = StateGraph(CompactionState)
    builder.add_node("fold", fold)
    builder.add_edge(START, "fold")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("change", "expected", "later"),
    [
        (lambda v: edit_digest(v, "segment mended"), ["0", "#mended"], ["0", "#mended", "#1"]),
        (restore, [str(n) for n in range(8)], ["0", "#0"]),
        (forget, ["0", "4", "5", "6", "7"], ["0", "#0"]),
    ],
)
def test_changes_last_through_update_state(
    change: Any, expected: list[str], later: list[str]
) -> None:
    thread = graph()
    thread.invoke({"messages": [*chat(8), HumanMessage("fold 4", id="f")]}, CONFIG)
    folded_at = thread.get_state(CONFIG).config
    thread.update_state(CONFIG, change(thread.get_state(CONFIG).values))
    assert shown(thread.get_state(CONFIG).values)[: len(expected)] == expected
    stop = len(thread.get_state(CONFIG).values["messages"]) - 1
    thread.invoke({"messages": [HumanMessage(f"fold {stop}", id="g")]}, CONFIG)
    assert shown(thread.get_state(CONFIG).values)[: len(later)] == later
    # A fork from before the change sees its own record.
    assert shown(thread.get_state(folded_at).values)[:3] == ["0", "#0", "4"]


def test_a_system_message_is_never_forgotten() -> None:
    values: dict[str, Any] = {
        "messages": [SystemMessage("Be brief.", id="s"), *chat(8)],
        "compaction": {},
    }
    values["compaction"] = folded(values["messages"], {}, 5, kept=(0, 1))
    assert shown(applied(values, forget(values)))[:2] == ["Be brief.", "0"]
