"""Any thread has a namespace of its own that every store takes."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraph_compaction.archive import namespace_of
from langgraph_compaction.archive.naming import LABEL_CHARS, TOP_GRAPH, label

HOSTILE = ["", "../x", "a.b", "a/b", ".", "..", " ", "\x00", "~", "~~", "~2e", "%", "_", "*", "ä"]
HOSTILE += ["A", "a", "线程", "🙂", "\ud800", "langgraph", "a|b:c", "'; drop table store;--"]
HOSTILE += ["x" * 10_000, "x" * 10_001, "x" * LABEL_CHARS, "x" * (LABEL_CHARS + 1), "." * 500]


@pytest.mark.parametrize("thread_id", ["user-42", "a_b", "0b7c9f1e-6a9c-4b45-8d54-c3a7d3a5a0b1"])
def test_a_plain_id_stays_as_it_is(thread_id: str) -> None:
    assert namespace_of(thread_id) == ("langgraph_compaction", thread_id, TOP_GRAPH)


@pytest.mark.parametrize("handler", ["__error_handler__agent:2", "__default_error_handler__:2"])
def test_an_error_handler_has_the_archive_of_its_graph(handler: str) -> None:
    assert namespace_of("t", f"agent:1|{handler}") == namespace_of("t", "agent:1")
    assert namespace_of("t", f"sub:1|agent:1|{handler}") == namespace_of("t", "sub:1|agent:1")


def test_hostile_ids_have_labels_of_their_own() -> None:
    labels = [label(one) for one in HOSTILE]
    assert len(set(labels)) == len(HOSTILE)
    store = InMemoryStore()
    for one in labels:
        assert re.fullmatch(r"[A-Za-z0-9_~-]+", one)
        assert len(one) <= LABEL_CHARS
        store.put(("langgraph_compaction", one), "k", {})


@given(st.lists(st.text() | st.from_regex(r"[~.x]{0,200}", fullmatch=True), unique=True))
def test_different_ids_never_have_the_same_label(ids: list[str]) -> None:
    labels = {label(one) for one in ids}
    assert len(labels) == len(ids)
    assert not any("." in one or not one for one in labels)


@pytest.mark.parametrize(
    ("checkpoint_ns", "graph"),
    [
        ("", TOP_GRAPH),
        ("compact:1f-2", TOP_GRAPH),
        ("tools:3a-9", TOP_GRAPH),
        ("sub:1f|compact:2e", "sub"),
        ("sub:77|tools:88", "sub"),
        ("sub|tools:88", "sub"),
        ("outer:1|inner:2|compact:3", "outer+inner"),
        ("sub:1|1|compact:2", "sub+1"),
        ("my agent.v2:1|compact:2", "my~20agent~2ev2"),
    ],
)
def test_all_nodes_of_a_graph_have_one_namespace_in_every_run(
    checkpoint_ns: str, graph: str
) -> None:
    assert namespace_of("t", checkpoint_ns)[2] == graph


def test_a_graph_is_named_as_its_nodes_name_it() -> None:
    assert namespace_of("t", "sub:1", in_node=False) == namespace_of("t", "sub:2|compact:3")
    assert namespace_of("t", "", in_node=False) == namespace_of("t", "compact:3")


@given(st.lists(st.lists(st.text(st.characters(exclude_characters=":|"), min_size=1))))
def test_different_graphs_have_different_namespaces(paths: list[list[str]]) -> None:
    spaces = {namespace_of("t", "|".join([*path, "node:1"])) for path in paths}
    assert len(spaces) == len({tuple(path) for path in paths})


@pytest.mark.parametrize("one", [1, 2**80, -5, True, ("a",)])
def test_an_id_counts_by_its_text_as_it_does_to_checkpointers(one: Any) -> None:
    assert namespace_of(one) == namespace_of(str(one))
