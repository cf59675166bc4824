"""Arguments of the node that are names: its own, those of its channels, and where a route leads.

A wrong one would show itself only in a graph, as a channel that is missing or a node that nobody
knows; so the node refuses it, by the name of the argument.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction import CompactionNode, ConfigurationError, ExtractiveSummarizer

KEYS = ("messages_key", "compaction_key", "settings_key", "output_messages_key")
NO_NAMES = st.sampled_from(["", " \n"]) | st.integers() | st.lists(st.text()) | st.binary()


def node(**options: Any) -> CompactionNode:
    return CompactionNode(ExtractiveSummarizer(), context_window=8_000, **options)


def refused(**options: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        node(**options)
    return str(caught.value)


@pytest.mark.parametrize("key", KEYS)
@given(name=NO_NAMES)
def test_a_channel_has_a_name(key: str, name: Any) -> None:
    said = refused(**{key: name})
    assert said.startswith(f"{key}: {name!r:.200}")
    assert "has to be the name of a channel of its own, such as " in said


@pytest.mark.parametrize("key", KEYS[:3])
def test_only_the_channel_for_the_view_may_be_none(key: str) -> None:
    assert refused(**{key: None}).startswith(f"{key}: None has to be the name")
    assert node(output_messages_key=None).output_messages_key is None


@given(st.lists(st.sampled_from("abcdef"), min_size=4, max_size=4))
def test_no_two_channels_have_one_name(names: list[str]) -> None:
    options: dict[str, Any] = dict(zip(KEYS, names, strict=True))
    if len(set(names)) == 4:
        made = node(**options)
        assert [getattr(made, key) for key in KEYS] == names
        return
    second = next(n for n, name in enumerate(names) if name in names[:n])
    first = names.index(names[second])
    assert refused(**options) == (
        f"{KEYS[second]}: {names[second]!r} is the {KEYS[first]}, too. Each has to be the name of "
        "a channel of its own."
    )


def test_a_default_that_is_taken_is_named_with_what_took_it() -> None:
    assert refused(messages_key="compaction").startswith(
        "compaction_key: 'compaction' is the messages_key, too."
    )


@given(NO_NAMES | st.none())
def test_a_node_has_a_name(name: Any) -> None:
    for source in ({}, {"settings": {"task": "first"}}):
        said = refused(name=name, **source)
        assert said.startswith(f"name: {name!r:.200}")
        assert 'has to be the node\'s name in the graph, such as "compact".' in said


@given(target=NO_NAMES | st.none())
@pytest.mark.parametrize("output", [None, "llm_input_messages"])
def test_a_route_leads_to_a_node(output: str | None, target: Any) -> None:
    with pytest.raises(ConfigurationError, match=r'such as compact\.route\("agent"\)') as caught:
        node(output_messages_key=output).route(target)
    assert str(caught.value).startswith(f"route: {target!r:.200}")
