"""What stays wrong is told once: of a thread its settings, of a node that nothing bounds its views.

At every visit anew it would bury what is new, and no alert could be set on it.
"""

from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_compaction import (
    CascadeExhaustedError,
    CompactionNode,
    CompactionState,
    ExtractiveSummarizer,
)
from langgraph_compaction.engine.events import UNLIMITED
from langgraph_compaction.run.telling import MOST_TOLD, ToldTexts
from tests.support.replay import good_summary

WRONG = {"compaction_settings": {"trigger": ["messages", "many"]}}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def state(**more: Any) -> dict[str, Any]:
    text = "It was opened, cleaned, closed and run for an hour without a fault. " * 6
    messages: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    messages += [AIMessage(f"Pump {n}. {text}", id=f"a{n}") for n in range(16)]
    return {"messages": messages, "compaction": {}, **more}


def broken(_: Any) -> str:
    raise ConnectionError("no route")


class Told(list[dict[str, Any]]):
    """A hook that keeps the reasons of the failures, and hands them out once."""

    def __call__(self, event: dict[str, Any]) -> None:
        if event["type"] == "compaction.failed":
            self.append(event)

    def reasons(self) -> list[str]:
        found = [event["reason"] for event in self]
        self.clear()
        return found


@pytest.fixture
def told() -> Told:
    return Told()


def node(told: Any, model: Any = good_summary, **options: Any) -> CompactionNode:
    return CompactionNode(
        model, hook=told, **{"context_window": 50_000, "trigger": ("tokens", 40_000), **options}
    )


# ---- a setting that cannot be used


def test_it_is_told_once_of_each_thread_and_explained_at_every_look(told: Told) -> None:
    compact, wrong = node(told), state(**WRONG)
    for _ in range(3):
        compact.invoke(wrong, thread("one"))
        assert len(compact.explain(wrong, thread("one")).problems) == 1
    assert len(told.reasons()) == 1
    compact.invoke(wrong, thread("other"))
    assert len(told.reasons()) == 1
    other: Any = state(compaction_settings={"trigger": ["messages", "a few"]})
    compact.invoke(other, thread("one"))
    (reason,) = told.reasons()
    assert "'a few'" in reason
    node(told).invoke(wrong, thread("one"))
    assert len(told.reasons()) == 1, "another node has told nothing"


async def test_it_is_told_once_by_asynchronous_visits_and_without_a_thread(told: Told) -> None:
    compact = node(told)
    for _ in range(3):
        await compact.ainvoke(state(**WRONG))
        compact.invoke(state(**WRONG))
    assert len(told.reasons()) == 1


def test_looking_tells_nothing_and_takes_nothing_from_the_next_visit(told: Told) -> None:
    compact = node(told)
    compact.explain(state(**WRONG), thread("one"))
    compact.measure(state(**WRONG), thread("one"))
    assert told.reasons() == []
    compact.invoke(state(**WRONG), thread("one"))
    assert len(told.reasons()) == 1


def test_what_an_interrupt_kept_from_being_told_is_told_when_it_goes_on() -> None:
    heard: list[str] = []

    def hook(event: dict[str, Any]) -> None:
        interrupt("Is that right?")
        heard.append(event["reason"])

    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(hook))
    builder.add_edge(START, "compact")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(state(**WRONG), thread("one"))
    assert heard == []
    graph.invoke(Command(resume="yes"), thread("one"))
    assert len(heard) == 1


def test_the_memory_is_bounded_and_what_is_met_again_gives_way_last() -> None:
    memory = ToldTexts()

    def tell(text: str) -> None:
        if memory.untold(("t",), [text]):
            memory.telling(lambda _: False, ("t",), [text])({"reason": text})

    for number in range(MOST_TOLD):
        tell(f"{number}.")
    assert memory.untold(("t",), ["0."]) == []
    tell("one more")
    assert memory.untold(("t",), ["0.", "1.", "2."]) == ["1."]
    assert deepcopy(memory).untold(("t",), ["0."]) == ["0."], "a copy has told nothing"


# ---- no hard limit


def test_a_failed_fold_says_once_that_nothing_bounds_the_view(told: Told) -> None:
    compact = node(told, broken, context_window=None, trigger=("tokens", 900))
    for name in "abc":
        compact.invoke(state(), thread(name))
    first, *rest = told.reasons()
    assert first == f"no tier wrote an acceptable digest; the digest is as it was. {UNLIMITED}"
    assert len(rest) == 2
    assert all("hard limit" not in one for one in rest)


def test_it_says_so_where_the_failure_ends_the_run(told: Told) -> None:
    rules = {"context_window": None, "trigger": ("tokens", 900), "on_error": "raise"}
    with pytest.raises(CascadeExhaustedError):
        node(told, broken, **rules).invoke(state())
    assert told.reasons()[0].endswith(UNLIMITED)


def test_it_says_so_of_a_fold_beside_the_agent(told: Told) -> None:
    rules = {"context_window": None, "trigger": ("tokens", 900), "background": True}
    compact = node(told, broken, **rules)
    reasons: list[str] = []
    while not reasons:  # the fold is begun at one visit, and fails at a later one
        assert compact.invoke(state(), thread("one")) is not None
        reasons = told.reasons()
    assert reasons[0].endswith(UNLIMITED)


def test_it_says_nothing_of_that_where_it_would_not_help(told: Told) -> None:
    def leaks(_: str) -> str:
        raise ValueError("no")

    node(told, broken, trigger=("tokens", 900)).invoke(state())
    without = {"context_window": None, "trigger": ("tokens", 900)}
    node(told, ExtractiveSummarizer(), redact=leaks, **without).invoke(state())
    node(told, [broken, ExtractiveSummarizer()], **without).invoke(state())
    reasons = told.reasons()
    assert len(reasons) == 2
    assert not any("hard limit" in one for one in reasons)
