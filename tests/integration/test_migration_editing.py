"""What `ContextEditingMiddleware` and `ClearToolUsesEdit` do, with the settings of this package.

Their documented example is one edit in one middleware; each parameter of it has a row in
docs/how-to/migrate.md.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.beside import steady
from tests.support.doubles import (
    THREAD,
    Summaries,
    assert_valid,
    request,
    result,
    steps_done,
)
from tests.support.migrating import backs

WINDOW, TRIGGER = 40_000, 8_000
CLEARED = "[cleared]"


@tool
def work(n: int) -> str:
    """Do step n. Some 650 tokens, of which a placeholder is a small part."""
    return result(n) * 5


class Run:
    """An agent at work for some steps with one middleware: as many as clearing is enough for."""

    def __init__(
        self, middleware: Any, *, model: Any = None, tools: Any = (work,), steps: int = 20
    ) -> None:
        self.model = model or steady()
        agent: Any = create_agent(
            self.model, list(tools), middleware=[middleware], checkpointer=InMemorySaver()
        )
        self.state = agent.invoke({"messages": [request(1, steps)]}, THREAD)
        assert_valid(self.model.calls)

    @property
    def last(self) -> list[Any]:
        calls: list[list[Any]] = self.model.calls
        return calls[-1]

    def whole(self, call: list[Any]) -> list[int]:
        """The steps whose results a call shows as they were."""
        return sorted(set(steps_done(call)))


def ours(summaries: Summaries | None = None, **options: Any) -> Any:
    rules = {"context_window": WINDOW, "trigger": ("tokens", TRIGGER), "clear": True, **options}
    return CompactionMiddleware(summaries or Summaries(), **rules)


def theirs(**options: Any) -> Any:
    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(**options)])


@backs("editing", theirs="edits", here="clear")
@backs("editing", theirs="trigger", here="trigger")
@backs("editing", theirs="keep", here="clear_keep")
@pytest.mark.parametrize("keep", [3, 5])
def test_the_documented_edit_keeps_the_newest_results_from_a_trigger_on(keep: int) -> None:
    """`edits=[ClearToolUsesEdit(trigger=..., keep=...)]` is `clear=True` with two settings."""
    before = Run(theirs(trigger=TRIGGER, keep=keep, placeholder=CLEARED), steps=40)
    after = Run(ours(clear=True, trigger=("tokens", TRIGGER), clear_keep=keep), steps=40)
    for run in (before, after):
        assert run.whole(run.state["messages"]) == list(range(1, 41))
        first = run.model.calls[9]
        assert run.whole(first) == list(range(1, 10))  # below the trigger nothing is cleared
        assert run.whole(run.last)[-keep:] == list(range(41 - keep, 41))
        assert run.whole(run.last)[0] > 10
    # Theirs clears one more at each step; ours all at once, so that the prefix stays.
    assert len(before.whole(before.last)) == keep
    changes = sum(
        after.whole(one) != after.whole(two)[: len(after.whole(one))]
        for one, two in zip(after.model.calls, after.model.calls[1:], strict=False)
    )
    assert 0 < changes < 10


@backs("editing", theirs="exclude_tools", here="protected_tools")
def test_results_of_excluded_tools_stay() -> None:
    @tool
    def load_skill(n: int) -> str:
        """Load a skill."""
        return f"SKILL. {result(n) * 5}"

    said = {2: ("load_skill", {"n": 2})}
    tools = [work, load_skill]
    for middleware in (
        theirs(trigger=TRIGGER, exclude_tools=["load_skill"]),
        ours(protected_tools=["load_skill"]),
    ):
        run = Run(middleware, model=steady(said), tools=tools)
        assert any("SKILL" in m.text for m in run.last if isinstance(m, ToolMessage))
        assert 3 not in run.whole(run.last)


def arguments(call: list[Any], step: int) -> dict[str, Any]:
    """What a call of a tool shows as its arguments."""
    calls = [one for m in call if isinstance(m, AIMessage) for one in m.tool_calls]
    found: dict[str, Any] = next(one["args"] for one in calls if one["id"] == f"c{step}")
    return found


@tool
def write(n: int, text: str) -> str:
    """Write a text."""
    return result(n) * 5


@backs("editing", theirs="clear_tool_inputs", here="clear_argument_chars")
def test_inputs_are_emptied_by_langchain_and_shortened_here() -> None:
    long = "A long text that was written. " * 60
    said = {step: ("write", {"n": step, "text": long}) for step in (2, 3)}

    def seen(middleware: Any) -> dict[str, Any]:
        return arguments(Run(middleware, model=steady(said), tools=[work, write]).last, 3)

    assert seen(theirs(trigger=TRIGGER, clear_tool_inputs=True)) == {}
    assert seen(theirs(trigger=TRIGGER)) == {"n": 3, "text": long}
    shortened = seen(ours(clear_argument_chars=200))
    assert set(shortened) == {"n", "text"}
    assert len(str(shortened)) <= 300
    assert seen(ours(clear_argument_chars=0)) == {"n": 3, "text": long}


@backs("editing", theirs="clear_at_least", here="clear_min_share")
def test_what_is_not_worth_it_is_not_cleared() -> None:
    """Theirs clears until so many tokens are free; here it is not begun for less than a share."""
    summaries = Summaries()
    Run(ours(summaries, clear_min_share=0.2))
    assert summaries.prompts == []
    # Nothing frees nine tenths of the view: then a span is folded.
    Run(ours(summaries, clear_min_share=0.9))
    assert summaries.prompts


@backs("editing", theirs="placeholder", here="placeholder")
def test_a_placeholder_says_what_it_stands_for() -> None:
    assert any(m.text == CLEARED for m in Run(theirs(trigger=TRIGGER, placeholder=CLEARED)).last)
    shown = next(m for m in Run(ours()).last if isinstance(m, ToolMessage))
    assert "result-0001" not in shown.text
    assert "work" in shown.text
    assert any(character.isdigit() for character in shown.text)


@backs("editing", theirs="token_count_method", here="token_counter")
@backs("editing", theirs="token_counter", here="token_counter")
@pytest.mark.parametrize(
    "counter", ["approximate", count_tokens_approximately], ids=["named", "function"]
)
def test_tokens_may_be_counted_as_langchain_does(counter: Any) -> None:
    """Their default counts approximately, and so does "approximate" here."""
    before = Run(theirs(trigger=TRIGGER, keep=3))
    after = Run(ours(clear_keep=3, token_counter=counter))

    def begins(run: Run) -> int:
        whole = [run.whole(call) for call in run.model.calls]
        return next(n for n, steps in enumerate(whole) if steps and steps[0] > 1)

    assert begins(after) == pytest.approx(begins(before), abs=1)
