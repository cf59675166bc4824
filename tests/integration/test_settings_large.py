"""Settings of a thread or a run that are beyond reason, as a hostile client writes them."""

import time
from typing import Any

import pytest

from tests.support.folding import chat, node, state_of

LARGE: dict[str, Any] = {
    "many keys": {f"k{n}": 1 for n in range(100_000)},
    "many conditions": {"trigger": [{"tokens": 5, "messages": 2}] * 50_000},
    "deep": {"pinned": [[[[n]]] for n in range(1_000)]},
    "long": {"instructions": "x" * 2_000_000},
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("of_run", [False, True])
def test_settings_beyond_reason_are_not_used_and_told(kind: str, of_run: bool) -> None:
    """Whoever may write a thread's settings may not make each visit to it slow."""
    events: list[dict[str, Any]] = []
    compact = node(hook=events.append)
    state: dict[str, Any] = {**state_of(chat(30)), "compaction_settings": {"min_keep": 3}}
    config: Any = {"configurable": {}}
    if of_run:
        config["configurable"]["compaction_settings"] = LARGE[kind]
    else:
        state["compaction_settings"] = LARGE[kind]
    start = time.perf_counter()
    update = compact.invoke(state, config)
    compact.explain(state, config)
    assert time.perf_counter() - start < 1.5
    assert update["compaction"]["segments"]
    told = list(compact.explain(state, config).problems)
    assert len(told) == 1
    assert "more than 2,000 values or 1,000,000 characters" in told[0]
    assert ("run's config" if of_run else "of the thread") in told[0]


def test_a_request_with_an_id_beyond_reason_is_none() -> None:
    compact = node(trigger=("messages", 1_000))
    state: dict[str, Any] = state_of(chat(30))
    for length, acts in ((200, True), (201, False), (900_000, False)):
        request = {"request": {"id": "x" * length, "instructions": "Keep it."}}
        now = {**state, "compaction_settings": request}
        assert bool(compact.invoke(now)) is acts
        assert any("is no request" in one for one in compact.explain(now).problems) is not acts
