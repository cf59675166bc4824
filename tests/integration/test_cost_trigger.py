"""The trigger by costs in a thread: it folds where the sums say so, and the bill is smaller."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, load_settings, merge_compaction
from tests.benchmarks.clearing.pricing import Bill
from tests.support.replay import good_summary

PRICES = {"input": 1.0, "cache_read": 0.1, "cache_write": 1.25, "output": 5.0}


def step(number: int, words: int) -> list[BaseMessage]:
    call = {"name": "read", "args": {"part": number}, "id": f"c{number}"}
    return [
        AIMessage(f"I read part {number}.", tool_calls=[call], id=f"a{number}"),
        ToolMessage(f"part {number} " * words, tool_call_id=f"c{number}", id=f"t{number}"),
    ]


class Thread:
    """A thread of many steps, its bill, and at which foldable tokens it was compacted."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"context_window": 128_000, "token_counter": "estimate"}
        self.node = CompactionNode(good_summary, hook=self._event, **(usual | settings))
        self.bill = Bill(self.node._visits.counter)
        self.state: dict[str, Any] = {"messages": [HumanMessage("Read all.", id="h")]}
        self.state["compaction"] = {}
        self.folds = 0
        self.due: list[tuple[float, float]] = []

    def _event(self, event: dict[str, Any]) -> None:
        self.folds += event["type"] in {"compaction.completed", "compaction.cleared"}

    def run(self, steps: int, words: int = 300) -> "Thread":
        for number in range(steps):
            told = self.node.explain(self.state)
            update = self.node.invoke(self.state)
            if update:
                checks = [one for clause in told.trigger for one in clause if one.sums]
                self.due += [(one.measured, one.threshold) for one in checks]
                record = merge_compaction(self.state["compaction"], update["compaction"])
                self.state["compaction"] = record
            self.bill.call(self.node.view(self.state))
            self.state["messages"] += step(number, words)
        return self


def test_it_compacts_when_that_pays_and_not_before() -> None:
    thread = Thread(trigger=("cost", PRICES), clear=False).run(120)
    assert thread.folds >= 4
    for measured, threshold in thread.due:
        assert threshold <= measured < threshold + 3_000  # a step is 1,000 tokens


def test_explain_shows_its_arithmetic_and_changes_nothing() -> None:
    thread = Thread(trigger=("cost", PRICES)).run(10)
    told = thread.node.explain(thread.state)
    assert told.action == "none"
    assert [one.kind for clause in told.trigger for one in clause] == ["cost"]
    assert "Cost: " in str(told)
    assert "it pays from" in str(told)
    assert thread.node.measure(thread.state).trigger is None


@pytest.mark.parametrize("clear", [True, False])
def test_it_costs_less_than_the_default_and_keeps_within_the_window(clear: bool) -> None:
    default = Thread(clear=clear).run(300)
    cheap = Thread(trigger=("cost", PRICES), clear=clear).run(300)
    assert cheap.bill.agent < 0.75 * default.bill.agent


def test_the_hard_limit_stands_though_nothing_would_pay() -> None:
    dear = {**PRICES, "cache_write": 10_000.0}
    thread = Thread(trigger=("cost", dear), context_window=20_000)
    sizes = []
    for number in range(40):
        update = thread.node.invoke(thread.state)
        if update:
            record = merge_compaction(thread.state["compaction"], update["compaction"])
            thread.state["compaction"] = record
        sizes.append(thread.node.measure(thread.state).tokens)
        thread.state["messages"] += step(number, 300)
    assert max(sizes) <= 18_000
    assert thread.folds


def test_a_file_may_name_the_prices(tmp_path: Any) -> None:
    file = tmp_path / "compaction.yaml"
    file.write_text(
        "trigger:\n  - [cost, {input: 3, cache_read: 0.3, cache_write: 3.75, output: 15}]\n"
        "  - [fraction, 0.8]\ncontext_window: 128000\n"
    )
    node = CompactionNode(good_summary, settings=load_settings(file), token_counter="estimate")
    assert node.measure({"messages": [], "compaction": {}}).trigger == 102_400
    assert CompactionNode(good_summary, trigger=("cost", "gpt-5.2"), context_window=9_000)
