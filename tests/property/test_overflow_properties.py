"""A reduction after a refused call keeps every promise, whatever history it meets.

Then the thread goes on: under the reduced record, and the one that a later visit makes of it.
"""

import random
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import BudgetError, CompactionNode, model_view
from langgraph_compaction.recovery import Recovery
from langgraph_compaction.state import updated
from tests.support.histories import random_history
from tests.support.replay import Thread, good_summary
from tests.support.validity import new_violations, violations

REFUSED = ValueError("Your input exceeds the context window of this model.")


def node(rng: random.Random) -> CompactionNode:
    values: dict[str, Any] = {
        "keep": rng.choice(["auto", ("messages", 0), ("messages", 3), ("tokens", 150)]),
        "task": rng.choice(["first", "latest", None]),
        "digest": rng.choice(["chain", "rolling"]),
        "digest_role": rng.choice(["human", "human", "system"]),
        "clear_min_chars": rng.choice([50, 1_000]),
        "pinned": rng.choice([None, {"type": "human"}]),
    }
    return CompactionNode(
        good_summary,
        token_counter="estimate",
        trigger=("tokens", rng.choice([800, 100_000])),
        target=None if values["keep"] == ("messages", 0) else "auto",
        context_window=200_000,
        **values,
    )


def faults_of(node: CompactionNode, state: Any) -> list[str]:
    """What is wrong with the view of a state, and is not with its transcript."""
    view = node.view(state)
    messages: list[BaseMessage] = state["messages"]
    ends = isinstance(messages[-1], AIMessage)
    before = violations(messages, state_ends_with_ai=ends)
    found = [
        str(fault.rule)
        for fault in new_violations(before, violations(view, state_ends_with_ai=ends))
    ]
    ids = {message.id for message in view}
    shown = "\n".join(str(message.content) for message in view)
    humans = [m for m in messages if isinstance(m, HumanMessage)]
    if humans and humans[-1].id not in ids and node.settings.keep != ("messages", 0):
        found.append("the newest request is hidden")
    if humans and node.settings.task == "first" and humans[0].id not in ids:
        found.append("the task is hidden")
    if node.settings.pinned:
        found += ["a pin is hidden" for m in humans if m.id not in ids and m.text not in shown]
    if model_view(state) != view and "render" in state["compaction"]:
        found.append("the record's view is another one")
    return found


def check(seed: int) -> Counter[str]:
    """Reduce one history as often as the provider refuses; what was wrong, and what was done."""
    rng = random.Random(seed)
    history = random_history(rng, length=rng.randint(5, 40))
    compact = node(rng)
    recovery = Recovery(compact._visits, "agent", prune=False)
    thread = Thread(compact)
    thread.messages = history
    if thread.waits():  # then no agent is called
        return Counter()
    state: Any = {"messages": history, "compaction": {}}
    seen: Counter[str] = Counter()
    if rng.random() < 0.5:
        state = updated(state, compact.invoke(state))
    copy, size = deepcopy(state), compact.measure(state).tokens
    try:
        update = recovery.update(state, REFUSED, None)
    except BudgetError:
        assert state == copy
        return Counter(["cannot be reduced"])
    assert state == copy
    reduced = updated(state, update)
    seen["reduced"] += 1
    seen.update(faults_of(compact, reduced))
    seen["not less"] += compact.measure(reduced).tokens > size * 0.9
    with pytest.raises(BudgetError):
        recovery.update(reduced, REFUSED, None)
    more = [AIMessage("Well.", id="w"), HumanMessage("And?", id="q")]
    later = {**reduced, "messages": [*reduced["messages"], *more]}
    visited = updated(later, compact.invoke(later))
    seen.update(faults_of(compact, visited))
    try:
        again = updated(visited, recovery.update(visited, REFUSED, None))
    except BudgetError:
        return seen
    seen["again"] += 1
    seen.update(faults_of(compact, again))
    return +seen


@pytest.mark.parametrize("block", range(4))
def test_a_reduction_keeps_every_promise(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 100, block * 100 + 100):
        seen += check(seed)
    done = {name: seen.pop(name, 0) for name in ("reduced", "again", "cannot be reduced")}
    assert seen == Counter()
    assert done["reduced"] > 50
    assert done["again"] > 5
