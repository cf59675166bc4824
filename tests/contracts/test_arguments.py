"""What an editor completes and a checker accepts is what node and middleware take, and no more."""

import inspect
from typing import get_type_hints

import pytest

import langgraph_compaction
from langgraph_compaction import (
    CompactionNode,
    CompactionSettings,
    ExtractiveSummarizer,
    SettingValues,
    presets,
)
from langgraph_compaction.arguments import MiddlewareArguments
from langgraph_compaction.middleware import CompactionMiddleware

DECIDED = {"messages_key", "output_messages_key"}
"""Names of channels that `create_agent` decides on; the middleware refuses others."""


def test_the_values_are_the_settings_with_their_types() -> None:
    assert get_type_hints(SettingValues) == get_type_hints(CompactionSettings)
    assert list(get_type_hints(SettingValues)) == list(get_type_hints(CompactionSettings))
    assert SettingValues.__required_keys__ == frozenset()


def test_the_middleware_takes_what_the_node_takes() -> None:
    parameters = inspect.signature(CompactionNode).parameters
    own = [name for name in parameters if name not in {"model", "values", *DECIDED}]
    hints = get_type_hints(CompactionNode.__init__)
    assert get_type_hints(MiddlewareArguments) == {
        **{name: hints[name] for name in own},
        **get_type_hints(SettingValues),
    }
    assert MiddlewareArguments.__required_keys__ == frozenset()


@pytest.mark.parametrize("kind", [CompactionNode, CompactionMiddleware])
def test_the_signatures_name_them(kind: type) -> None:
    last = list(inspect.signature(kind).parameters.values())[-1]
    assert last.kind is inspect.Parameter.VAR_KEYWORD
    assert str(last.annotation).startswith("Unpack[")


def test_the_middleware_says_where_it_is() -> None:
    with pytest.raises(ImportError, match=r"from langgraph_compaction\.middleware import"):
        from langgraph_compaction import CompactionMiddleware as _
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from langgraph_compaction import Nothing as _  # noqa: F401
    assert not hasattr(langgraph_compaction, "nothing")


def test_the_presets_come_with_the_package() -> None:
    found: dict[str, object] = {}
    exec("from langgraph_compaction import *", found)
    assert found["presets"] is presets


def test_the_middleware_looks_as_its_node_does() -> None:
    middleware = CompactionMiddleware(
        ExtractiveSummarizer(), context_window=8_000, live_state=lambda _: "Open: 3."
    )
    state = {
        "messages": [("user", "Hi.")],
        "compaction": {},
        "compaction_settings": {"task": "x"},
    }
    state["messages"] = langgraph_compaction.merge_messages([], state["messages"])
    node = middleware.node
    assert middleware.view(state, system="Be brief.") == node.view(state, system="Be brief.")
    assert middleware.measure(state) == node.measure(state)
    assert middleware.explain(state) == node.explain(state)
    run = {"configurable": {"compaction_settings": {"trigger": ("tokens", 5)}}}
    assert middleware.measure(state, run).trigger == 5
    assert middleware.explain(state, run).need == "soft"
