"""docs/how-to/migrate.md has every parameter of the packages it is about, and each row has a test.

A new release that adds a parameter fails here, and so does a row whose parameter is gone.
"""

import inspect
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
from tests.integration import (
    test_deepagents,
    test_migration,
    test_migration_deepagents,
    test_migration_editing,
    test_migration_langmem,
)
from tests.support.migrating import BACKED, PACKAGES, PAGE, names_in, table

FILES = (
    test_deepagents,
    test_migration,
    test_migration_deepagents,
    test_migration_editing,
    test_migration_langmem,
)
"""They register what they back."""

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
    assert all(inspect.ismodule(file) for file in FILES)
    assert set(BACKED[package]) == set(table(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_it_is_called_here_exists(package: str) -> None:
    known = parameters(CompactionNode, CompactionSettings) | set(dir(langgraph_compaction))
    known |= {"compaction", "compact_conversation"}  # the channel and the agent's tool
    for name, (here, *_) in table(package).items():
        said = here == "–" or "first argument" in here or "above" in here
        assert said or (names_in(here) and set(names_in(here)) <= known), name
