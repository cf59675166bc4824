"""Real runs of real agents, replayed message by message through small windows.

The transcripts are not part of the repository; where they are missing there is nothing to replay.
"""

import os
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction import CompactionNode
from tests.support.histories import load_transcripts
from tests.support.replay import Thread, good_summary, replay
from tests.support.validity import new_violations, violations

FOLDER = Path(os.environ.get("TRANSCRIPTS", Path(__file__).parents[3] / "shared" / "transcripts"))
TRANSCRIPTS = load_transcripts(FOLDER) if FOLDER.is_dir() else {}


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
@pytest.mark.parametrize("name", sorted(TRANSCRIPTS))
def test_a_real_run_keeps_every_promise(name: str, window: int) -> None:
    faults: list[str] = []

    def at_call(thread: Thread, view: list[BaseMessage]) -> None:
        ends = isinstance(thread.messages[-1], AIMessage)
        before = violations(thread.messages, state_ends_with_ai=ends)
        faults.extend(
            f"after {len(thread.messages)} messages: {violation}"
            for violation in new_violations(before, violations(view, state_ends_with_ai=ends))
        )

    node = CompactionNode(good_summary, context_window=window, token_counter="estimate")
    thread = replay(node, TRANSCRIPTS[name], at_call)
    assert thread.faults == []
    assert faults == []
    assert thread.peak <= window
