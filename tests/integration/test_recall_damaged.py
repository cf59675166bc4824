"""One item of the archive is damaged: it is answered in words, and takes no other with it."""

import logging
import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionError
from langgraph_compaction.archive import Archive, namespace_of, perform
from langgraph_compaction.recall.originals import DAMAGED
from tests.integration.recalling import asking, graph, record
from tests.support.doubles import THREAD

GONE = "(gone)"
"""In place of a value: the field is missing."""
NUMBERS = ("zero", "one", "two", "three", "four")
UNREADABLE: list[dict[str, Any]] = [
    {"message": "{broken"},
    {"message": "[]"},
    {"message": 7},
    {"message": GONE},
    {"message": GONE, "serialised": ["msgpack", "%%%"]},
    {"message": GONE, "serialised": None},
    {"message": '{"type": "zebra", "data": {}}'},
    {"message": '{"type": "human", "data": {"content": 7}}'},
]
INCOMPLETE: list[dict[str, Any]] = [
    {"v": GONE},
    {"v": "1"},
    {"position": GONE},
    {"position": "x"},
    {"id": GONE},
    {"id": 7},
    {"type": GONE},
    {"name": 7},
    {"call_ids": GONE},
    {"call_ids": "abc"},
    {"text": GONE},
    {"also": 7},
]


def archived(damage: dict[str, Any]) -> tuple[InMemoryStore, str]:
    """Five messages, the third of them damaged, and the key of the last."""
    store = InMemoryStore()
    messages = [HumanMessage(f"Heron {one} is here.", id=f"m{n}") for n, one in enumerate(NUMBERS)]
    archive = Archive(store, namespace_of("t"))
    head = perform(store, archive.steps_of_write(list(enumerate(messages)), None))
    (item,) = [one for one in store.search(archive.namespace) if one.value["id"] == "m2"]
    value = {key: held for key, held in {**item.value, **damage}.items() if held != GONE}
    store.put(item.namespace, item.key, value)
    return store, head


def answer(store: InMemoryStore, head: str, **arguments: Any) -> str:
    messages: list[Any] = [asking(**arguments)]
    covers = record(0, 5, messages, pruned=True, archived=head)
    state = {"messages": messages, "compaction": covers}
    return str(graph(store).invoke(state, THREAD)["messages"][-1].content)


@pytest.mark.parametrize("damage", UNREADABLE, ids=str)
def test_what_cannot_be_read_is_said_where_it_stands(
    damage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "langgraph_compaction")
    store, head = archived(damage)
    for arguments in ({"id": "m2"}, {"first": 2}):
        caplog.clear()
        said = answer(store, head, **arguments)
        (warning,) = caplog.messages
        assert "cannot be read" in warning
        assert '<original position=2 id="m2" type=human mark=' in said
        assert DAMAGED in said
        assert "Heron two is here." in said  # the text for the search is whole
    said = answer(store, head, first=0, last=9)
    assert re.findall(r"<original position=(\d)", said) == ["0", "1", "2", "3", "4", "5"]
    assert all(f"Heron {one} is here." in said for one in NUMBERS)
    assert said.count(DAMAGED) == 1
    assert "Heron four" in answer(store, head, query="four")
    assert "Heron two" in answer(store, head, query="two")


@pytest.mark.parametrize("damage", INCOMPLETE, ids=str)
def test_a_field_that_is_missing_or_of_another_type_hides_no_other_original(
    damage: dict[str, Any],
) -> None:
    store, head = archived(damage)
    said = answer(store, head, first=0, last=9)
    assert re.findall(r"<original position=(\d)", said) == ["0", "1", "2", "3", "4", "5"]
    assert all(f"Heron {one} is here." in said for one in NUMBERS)
    assert "Heron zero" in answer(store, head, id="m0")
    assert "Heron zero" in answer(store, head, query="zero")


@pytest.mark.parametrize("previous", [GONE, 7])
def test_where_the_way_to_older_originals_is_lost_the_answer_says_so(previous: Any) -> None:
    store, head = archived({"previous": previous})
    said = answer(store, head, first=0, last=9)
    assert re.findall(r"Heron (\w+)", said) == ["two", "three", "four"]
    assert "[Some older messages were archived, but are not in the store" in said


def test_a_damaged_item_may_have_kept_nothing_at_all() -> None:
    store, head = archived({"message": GONE, "text": GONE})
    said = answer(store, head, id="m2")
    assert re.search(rf">\n{re.escape(DAMAGED)}\n</original \w+>$", said)


def test_a_newer_item_is_an_error_all_the_same() -> None:
    store, head = archived({"v": 2})
    with pytest.raises(CompactionError, match="Upgrade langgraph_compaction"):
        answer(store, head, id="m2")


def test_a_damaged_item_of_a_message_that_stayed_is_not_shown_beside_it() -> None:
    store, head = archived({"message": "{broken"})
    messages: list[Any] = [
        HumanMessage("Heron two is here.", id="m2"),
        AIMessage("Well.", id="a"),
        asking(id="m2"),
    ]
    covers = record(0, 5, messages, pruned=True, archived=head)
    state = {"messages": messages, "compaction": covers}
    said = graph(store).invoke(state, THREAD)["messages"][-1].content
    assert said.count("<original ") == 1
    assert DAMAGED not in said
