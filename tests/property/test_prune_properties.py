"""A pruned thread shows the agent what it would have seen, and loses no message, whatever happens.

Each history is fed to two threads, of which one is pruned. Where the store fails now and then, the
fold counts all the same, and what could not be archived stays until it can.
"""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from langgraph_compaction import CompactionNode
from tests.support import folding
from tests.support.histories import histories, random_history
from tests.support.pruning import Twins, fed
from tests.support.replay import good_summary

KEEPS: list[Any] = ["auto", ("messages", 2), ("messages", 0), ("tokens", 200)]
TRIGGERS: list[Any] = [("tokens", 600), ("messages", 8), ("steps", 4)]
PINS: list[Any] = [{"task": None}, {"task": "latest"}, {"pinned": {"contains": "e"}}, {}]


def node(**changed: Any) -> CompactionNode:
    # By default a thread that prunes does not clear.
    return folding.node(good_summary, **({"keep": "auto", "clear": True} | changed))


@given(
    histories(max_size=30, ids="unique"),
    st.sampled_from(KEEPS),
    st.sampled_from(TRIGGERS),
    st.sampled_from(PINS),
)
def test_a_pruned_thread_looks_like_one_that_kept_all(
    history: list[BaseMessage], keep: Any, trigger: Any, pins: Any
) -> None:
    twins = Twins(lambda **more: node(keep=keep, trigger=trigger, **pins, **more))
    assert fed(twins, history, lambda: False).faults == []


def test_a_store_that_fails_at_times_loses_nothing() -> None:
    pruned = 0
    for seed in range(60):
        rng = random.Random(seed)
        history = random_history(rng, length=60, ids="unique")
        rules = {"keep": rng.choice(KEEPS), "trigger": rng.choice(TRIGGERS)} | rng.choice(PINS)
        twins = Twins(lambda rules=rules, **more: node(**rules, **more))  # type: ignore[misc]
        assert fed(twins, history, lambda rng=rng: rng.random() < 0.5).faults == [], seed  # type: ignore[misc]
        pruned += "archived" in twins.states["pruned"]["compaction"]
    assert pruned > 30
