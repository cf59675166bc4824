"""Tokens of summary calls in the events: the provider's count, or an estimate that says so.

Whoever adds them up over all events of a run has what its summaries took: each call is told once.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import CompactionNode, ExtractiveSummarizer, ModelTier
from tests.support.doubles import ScriptedModel
from tests.support.openai_server import OpenAIServer, text
from tests.support.openai_server.clients import WIRES, wire_model
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6


def thread(count: int = 24) -> dict[str, Any]:
    found = [AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}") for n in range(count)]
    return {"messages": [HumanMessage("Check the pumps.", id="task"), *found], "compaction": {}}


class Visited:
    """A visit of one node, and its events."""

    def __init__(self, model: Any, state: dict[str, Any] | None = None, **options: Any) -> None:
        self.events: list[dict[str, Any]] = []
        values: dict[str, Any] = {"trigger": ("tokens", 900), "keep": ("tokens", 300)}
        self.compact = CompactionNode(
            model, context_window=50_000, clear=False, hook=self.events.append, **values | options
        )
        self.update = self.compact.invoke(state or thread())

    def told(self) -> list[tuple[str, int, int, str | None]]:
        return [
            (
                event["type"].removeprefix("compaction."),
                event["input_tokens"],
                event["output_tokens"],
                event["usage"],
            )
            for event in self.events
            if "usage" in event
        ]


def reporting(usage: Any, answers: list[str] | None = None) -> ScriptedModel:
    def reply(messages: list[BaseMessage]) -> AIMessage:
        said = answers.pop(0) if answers else good_summary(messages)
        return AIMessage(said, usage_metadata=usage)

    return ScriptedModel(reply=reply)


USAGE = {"input_tokens": 700, "output_tokens": 90, "total_tokens": 790}


def test_what_the_provider_reports_is_told() -> None:
    assert Visited(reporting(USAGE)).told() == [("completed", 700, 90, "reported")]


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_server_reports_is_told(server: OpenAIServer, wire: str) -> None:
    server.answer(text(good_summary([HumanMessage("Check the pumps.")])))
    (told,) = Visited(wire_model(server, wire, "gpt-5-mini")).told()
    assert min(told[1:3]) > 0
    # A stream of Chat Completions has no usage unless it is asked for (`stream_usage`).
    assert told[3] == ("estimated" if wire == "chat-streamed" else "reported")


@pytest.mark.parametrize(
    "usage", [None, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}]
)
def test_where_none_is_reported_both_are_estimated(usage: Any) -> None:
    model = reporting(usage)
    visited = Visited(model)
    ((kind, read, written, source),) = visited.told()
    count = visited.compact._visits.counter.text
    (prompt,) = model.calls
    assert (kind, source) == ("completed", "estimated")
    assert read == sum(count(str(message.content)) for message in prompt)
    assert written == count(good_summary(prompt))


def test_rejected_texts_and_repairs_count_too() -> None:
    refusal = "I'm sorry, but I can't help with that request. Please ask something else."
    second = Visited([reporting(USAGE, [refusal]), reporting(USAGE)])
    assert second.told() == [("completed", 1_400, 180, "reported")]
    mixed = Visited([reporting(None, [refusal]), reporting(USAGE)])
    ((_, read, _, source),) = mixed.told()
    assert read > 700
    assert source == "estimated"


def test_a_failed_fold_tells_what_it_took_and_extracts_take_nothing() -> None:
    refusal = "I'm sorry, but I can't help with that request. Please ask something else."
    assert Visited(reporting(USAGE, [refusal])).told() == [("failed", 700, 90, "reported")]

    def fails(_: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    assert Visited(fails).told() == [("failed", 0, 0, None)]
    assert Visited(ExtractiveSummarizer()).told() == [("completed", 0, 0, None)]


def test_where_a_visit_tells_twice_each_call_is_told_once() -> None:
    """Some parts were written, a later one was not: one event fails, one completes."""
    answers = [good_summary([HumanMessage("Check the pumps.")]), "No."]
    model = reporting(USAGE, answers)
    told = Visited(ModelTier(model, window=4_000), thread(90)).told()
    assert [one[0] for one in told] == ["failed", "completed"]
    assert sum(one[1] for one in told) == 700 * len(model.calls)
    assert sum(one[2] for one in told) == 90 * len(model.calls)
