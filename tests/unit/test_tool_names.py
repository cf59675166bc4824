"""Names of tools in the settings that no tool has: told once, with what was meant, and no error."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langgraph_compaction import CompactionNode, CompactionSettings, ExtractiveSummarizer
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.plan.tool_names import MOST_NAMES, listed, unknown_names
from tests.support.logs import warnings_in


def load_skill(name: str) -> str:
    """Load a skill."""
    return name


def search(query: str) -> str:
    """Search."""
    return query


TOOLS = [load_skill, search, {"type": "web_search_20250305"}]


def node(**options: Any) -> CompactionNode:
    return CompactionNode(ExtractiveSummarizer(), context_window=8_000, **options)


def test_a_protected_tool_that_is_misspelt_is_told_with_what_was_meant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node(tools=TOOLS, protected_tools=["load_skil", "search", "load_skil"])
    (said,) = warnings_in(caplog)
    assert said.startswith(
        "protected_tools: 'load_skil' is none of the agent's tools (load_skill, search); "
        "did you mean 'load_skill'?"
    )
    assert said.endswith("Where a tool of that name is bound elsewhere, nothing is wrong.")


def test_without_a_likely_name_none_is_proposed(caplog: pytest.LogCaptureFixture) -> None:
    node(tools=TOOLS, settings=CompactionSettings(protected_tools=("deploy",)))
    (said,) = warnings_in(caplog)
    assert "'deploy' is none of the agent's tools (load_skill, search). Where" in said


@pytest.mark.parametrize(
    "pinned",
    [
        {"type": "tool", "name": "serch"},
        [{"type": "human"}, {"contains": "x", "type": "tool", "name": "serch"}],
    ],
)
def test_a_pinned_tool_is_looked_for_too(pinned: Any, caplog: pytest.LogCaptureFixture) -> None:
    node(tools=TOOLS, pinned=pinned)
    (said,) = warnings_in(caplog)
    assert said.startswith("pinned: 'serch' is none")
    assert "did you mean 'search'?" in said


@pytest.mark.parametrize(
    "options",
    [
        {
            "tools": TOOLS,
            "protected_tools": ["search"],
            "pinned": {"type": "tool", "name": "search"},
        },
        {"tools": TOOLS, "pinned": [{"type": "ai", "name": "alice"}, {"name": "bob"}]},
        {"tools": TOOLS, "pinned": lambda message: False},
        {"protected_tools": ["no_such_tool"]},  # who knows what the agent has
    ],
)
def test_what_matches_or_is_not_known_is_not_told(
    options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    node(**options)
    assert warnings_in(caplog) == []


def test_settings_of_a_thread_are_not_compared(caplog: pytest.LogCaptureFixture) -> None:
    """There the tool may be bound in some runs only."""
    state = {
        "messages": [HumanMessage("Go on.", id="h")],
        "compaction": {},
        "compaction_settings": {"protected_tools": ["load_skil"]},
    }
    compact = node(tools=TOOLS)
    assert compact.invoke(state) == {}
    assert warnings_in(caplog) == []


def test_the_middleware_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    CompactionMiddleware(
        ExtractiveSummarizer(), context_window=8_000, tools=TOOLS, protected_tools=["serch"]
    )
    assert len(warnings_in(caplog)) == 1


def test_a_long_list_of_tools_is_cut_short_and_none_is_said() -> None:
    assert listed([f"t{n}" for n in range(MOST_NAMES + 1)]).endswith("t9, ...")
    assert listed([]) == "none has a name"
    (said,) = unknown_names({"protected_tools": ["x" * 100_000]}, [{"type": "web_search"}])
    assert "(none has a name)." in said
