"""What errors say of texts that are none, and of arguments that are no settings."""

import inspect
from ast import literal_eval
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
from langgraph_compaction.setting_names import IN_FILES, ONLY_IN_CODE
from langgraph_compaction.settings import DEFAULT_TRIGGER, NAMES


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("agent_modell", "'agent_model', an argument of the node?"),
        ("messagesKey", "'messages_key', an argument of the node?"),
        ("output_message_key", "'output_messages_key', an argument of the node?"),
        ("presets", "'preset', which stands in a settings file?"),
        ("min_kep", "'min_keep'?"),
    ],
)
def test_a_misspelt_argument_names_the_nearest_one(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CompactionNode(ExtractiveSummarizer(), context_window=8_000, **{name: "x"})
    assert str(caught.value) == f"{name!r} is not a setting; did you mean {hint}"


@pytest.mark.parametrize("name", sorted(ONLY_IN_CODE | {*NAMES, *IN_FILES}))
def test_every_name_is_near_itself(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"did you mean '{name}'"):
        CompactionSettings.of({f"{name}_": 1})


def test_the_default_trigger_is_shown_as_one_writes_it() -> None:
    trigger = '[("fraction", 0.8), ("tokens", 200_000)]'
    for options in ({}, {"context_window": 8_000, "reserve_tokens": 3_000}):
        with pytest.raises(ConfigurationError) as caught:
            CompactionNode(ExtractiveSummarizer(), **options)
        assert trigger in str(caught.value)
    assert CompactionSettings(trigger=literal_eval(trigger)).trigger == [*DEFAULT_TRIGGER]


@pytest.mark.parametrize(
    ("trigger", "shown"),
    [
        (("tokens", 7_900), '("tokens", 7_900)'),
        (("fraction", 0.95), '("fraction", 0.95)'),
        ((("tokens", 7_900), {"messages": 9, "tokens": 7_800}), '[("tokens", 7_900), {'),
        (["tokens", 7_900], "['tokens', 7900]"),  # as a file has it
        ({"tokens": 7_900}, "{'tokens': 7900}"),
    ],
)
def test_a_trigger_is_shown_as_it_was_written(trigger: Any, shown: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CompactionNode(ExtractiveSummarizer(), context_window=8_000, trigger=trigger)
    assert str(caught.value).startswith(f"trigger: {shown}")
