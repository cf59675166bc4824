"""What errors say of texts that are none, and of arguments that are no settings."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CompactionNode,
    CompactionSettings,
    ConfigurationError,
    ExtractiveSummarizer,
    load_settings,
)
from langgraph_compaction.settings import IN_FILES, ONLY_IN_CODE


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("prompt", "None for the built-in one."),
        ("instructions", "None for none."),
        ("digest_header", "None for the built-in one."),
        ("digest_footer", "None for the built-in one."),
        ("recall_tool", "None where the agent has no recall tool."),
    ],
)
def test_what_is_no_text_is_told_what_none_stands_for(name: str, without: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CompactionSettings.of({name: 7})
    assert str(caught.value) == f"{name}: 7 is no text; write a non-empty string, or {without}"


def test_the_arguments_that_are_no_settings_are_those_of_the_node() -> None:
    parameters = set(inspect.signature(CompactionNode).parameters) - {"values"}
    assert parameters == ONLY_IN_CODE


def said_of(name: str) -> str:
    return f"{name!r} is not a setting: it can be passed only in code, as an argument of "


@pytest.mark.parametrize("name", sorted(ONLY_IN_CODE))
def test_an_argument_of_the_node_among_settings_is_told_where_it_belongs(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CompactionSettings.of({name: "x"})
    assert str(caught.value).startswith(said_of(name))
    assert str(caught.value).endswith(f": {name}=...")
    if name in IN_FILES:
        return
    path = tmp_path / "file.yaml"
    path.write_text(f"{name}: x\n", "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path)
    assert said_of(name) in str(caught.value)
    assert "file.yaml" in str(caught.value)


@pytest.mark.parametrize("value", ["x", InMemoryStore(), len], ids=["text", "store", "function"])
@pytest.mark.parametrize("name", ["archive", "hook", "redact", "tools"])
def test_a_thread_or_a_run_is_told_the_same(name: str, value: Any) -> None:
    node = CompactionNode(ExtractiveSummarizer(), context_window=8_000)
    values = {"compaction_settings": {name: value}}
    state: Any = {"messages": [HumanMessage("Hello.")], "compaction": {}}
    for explanation in (
        node.explain({**state, **values}),
        node.explain(state, {"configurable": values}),
    ):
        (problem,) = explanation.problems
        assert said_of(name) in problem
