"""No view breaks a provider's rule that the transcript kept.

Thousands of fuzzed histories, most of them broken in some way. The view may repair a fault (an
unanswered call gets an answer); it must never add one. What is checked is the message list by the
strictest rules, and the requests that the providers' own packages build from it.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction import CompactionNode
from tests.support.histories import random_history
from tests.support.payloads import PAYLOAD_KINDS, provider_violations, structural
from tests.support.replay import Thread, good_summary, replay
from tests.support.validity import Rule, new_violations, violations


def small_node(rng: random.Random) -> CompactionNode:
    values: dict[str, Any] = {
        "trigger": rng.choice([("tokens", 500), ("messages", 6), ("steps", 3)]),
        "keep": rng.choice(["auto", ("messages", 0), ("messages", 3), ("tokens", 150)]),
        "task": rng.choice(["first", "latest", None]),
        "digest_role": rng.choice(["human", "human", "system"]),
    }
    return CompactionNode(
        good_summary,
        token_counter="estimate",
        min_fold_tokens=0,
        min_fold_share=0.0,
        context_window=200_000,
        **values,
    )


def payload_faults(thread: Thread, view: list[BaseMessage], broken: set[Rule]) -> Iterator[str]:
    """What the requests built from a view break that those built from the transcript do not.

    ``broken`` are rules that the transcript's own messages break: in a request the same fault may
    count as the newest activity, and be excused there.
    """
    for kind in PAYLOAD_KINDS:
        if kind == "anthropic" and any(getattr(m, "invalid_tool_calls", ()) for m in view):
            continue  # its builder leaves such calls out, but not their results
        known = structural(provider_violations(kind, thread.messages))
        if any(v.rule is Rule.REFUSED_STRUCTURE for v in known):
            continue  # what the builder refuses whole cannot be compared part by part
        shown = structural(provider_violations(kind, view))
        for violation in new_violations(known, shown):
            if violation.rule not in broken:
                yield f"{kind} {violation.rule}"


def check(seed: int, *, payloads: bool) -> tuple[Counter[str], int, int]:
    """Replay one fuzzed history; what its views broke, by rule, with views and folds."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    views = 0

    def at_call(thread: Thread, view: list[BaseMessage]) -> None:
        nonlocal views
        views += 1
        if thread.waits():  # then no agent is called
            return
        ends = isinstance(thread.messages[-1], AIMessage)
        before = violations(thread.messages, state_ends_with_ai=ends)
        for violation in new_violations(before, violations(view, state_ends_with_ai=ends)):
            found[f"messages {violation.rule}"] += 1
        # Two calls of one message with one id: each builder makes something else of it, and the
        # payloads of transcript and view cannot be compared. The same for messages without text.
        doubled = any(v.rule in {Rule.DUPLICATE_CALL_ID, Rule.EMPTY_HUMAN} for v in before)
        if payloads and thread.record and not doubled:
            found.update(payload_faults(thread, view, {v.rule for v in before}))

    history = random_history(rng, length=rng.randint(5, 40))
    thread = replay(small_node(rng), history, at_call)
    for fault in thread.faults:
        if "newest request" not in fault and "task is hidden" not in fault:
            found[fault.partition(": ")[2]] += 1
    return found, views, thread.folds


@pytest.mark.parametrize(
    "block", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 10))]
)
def test_no_view_adds_a_violation(block: int) -> None:
    total: Counter[str] = Counter()
    folds = 0
    for seed in range(block * 100, block * 100 + 100):
        found, _, folded = check(seed, payloads=seed % 5 == 0)
        total += found
        folds += folded
    assert total == Counter()
    assert folds > 50, "the histories hardly ever fold: the test shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_no_view_of_ten_thousand_histories_adds_a_violation(block: int) -> None:
    total: Counter[str] = Counter()
    for seed in range(10_000 + block * 500, 10_000 + block * 500 + 500):
        found, _, _ = check(seed, payloads=seed % 2 == 0)
        total += found
    assert total == Counter()
