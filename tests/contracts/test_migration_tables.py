"""docs/how-to/migrate.md has every parameter of the packages it is about, and each row has a test.

A new release that adds a parameter fails here, and so does a row whose parameter is gone.
"""

import inspect
from collections import Counter
from typing import Any

import pytest
from deepagents.middleware.summarization import (
    SummarizationMiddleware as DeepSummarization,
)
from deepagents.middleware.summarization import (
    SummarizationToolMiddleware,
    TruncateArgsSettings,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langmem.short_term import (
    RunningSummary,
    SummarizationNode,
    asummarize_messages,
    summarize_messages,
)

import langgraph_compaction
from langgraph_compaction import CompactionNode, CompactionSettings
from tests.integration import (  # noqa: F401 - imported, they register what they back
    test_deepagents,
    test_migration,
    test_migration_decisions,
    test_migration_deepagents,
    test_migration_editing,
    test_migration_langmem,
)
from tests.support.migrating import (
    BACKED,
    MOST_ROWS,
    PACKAGES,
    PAGE,
    names_in,
    names_used,
    table,
)

THEIRS: dict[str, tuple[Any, ...]] = {
    "langchain": (SummarizationMiddleware,),
    "editing": (ClearToolUsesEdit, ContextEditingMiddleware),
    "deepagents": (
        DeepSummarization,
        create_summarization_middleware,
        SummarizationToolMiddleware,
        create_summarization_tool_middleware,
    ),
    "langmem": (SummarizationNode, summarize_messages, asummarize_messages),
}
ELSEWHERE = {
    "langchain": {"max_tokens_before_summary", "messages_to_keep"},  # of **deprecated_kwargs
    "editing": set[str](),
    "deepagents": {"compact_conversation", "todos"},  # a tool and a channel
    "langmem": {"context", "RunningSummary"},  # a channel and what stands in it
}
"""Names in the tables that are no parameters."""


def parameters(*kinds: Any) -> set[str]:
    """The names of all parameters that classes and functions declare."""
    return {
        name
        for kind in kinds
        for name, found in inspect.signature(kind).parameters.items()
        if found.kind is not inspect.Parameter.VAR_KEYWORD
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_of_theirs_is_in_the_table(package: str) -> None:
    named = set(table(package))
    theirs = parameters(*THEIRS[package])
    assert theirs - named == set()
    assert named - theirs == ELSEWHERE[package]


def test_what_stands_in_settings_of_theirs_is_in_the_table() -> None:
    row = PAGE.read_text("utf-8").partition("| `truncate_args_settings`")[2].partition("\n")[0]
    assert {name for name in TruncateArgsSettings.__annotations__ if f"`{name}`" not in row} == (
        set()
    )
    assert RunningSummary.__name__ in table("langmem")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_row_has_a_test(package: str) -> None:
    assert {backing.theirs for backing in BACKED[package]} == set(table(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_test_uses_what_the_row_names(package: str) -> None:
    rows = table(package)
    for theirs, here, test in BACKED[package]:
        assert here in names_for(rows, theirs), (test.__name__, theirs, here)
        assert here in names_used(test), (test.__name__, here)


def names_for(rows: dict[str, list[str]], theirs: str) -> set[str]:
    """What a test of a row may use: see `backs`."""
    cell = rows[theirs][0]
    if "above" in cell:
        return names_for(table("langchain"), theirs)
    first = {"CompactionNode", "CompactionMiddleware"} if "first argument" in cell else set()
    return {*names_in(cell), *first} or {theirs}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_test_is_about_many_rows(package: str) -> None:
    rows = Counter(backing.test.__name__ for backing in BACKED[package])
    assert {test: count for test, count in rows.items() if count > MOST_ROWS} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_it_is_called_here_exists(package: str) -> None:
    known = parameters(CompactionNode, CompactionSettings) | set(dir(langgraph_compaction))
    known |= {"compaction", "compact_conversation"}  # the channel and the agent's tool
    for name, (here, *_) in table(package).items():
        said = here == "–" or "first argument" in here or "above" in here
        assert said or (names_in(here) and set(names_in(here)) <= known), name
