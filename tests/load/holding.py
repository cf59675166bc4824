"""A summariser that holds all calls until it is let, and a node that folds soon."""

import random
import threading
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from langgraph_compaction import CompactionNode
from tests.load.crew import MODES, Scribe

WAIT = 30.0
"""Seconds after which a test that waits in vain gives up."""


def node_of(scribe: Scribe, mode: str) -> CompactionNode:
    return CompactionNode(
        scribe.model,
        context_window=20_000,
        max_digest_tokens=800,
        trigger=("tokens", 900),
        keep=("tokens", 300),
        min_fold_tokens=100,
        token_counter="estimate",
        clear=False,
        **MODES[mode],
    )


class Held(Scribe):
    """A summariser that holds all calls until it is let."""

    def __init__(self) -> None:
        super().__init__(seconds=(0.0, 0.0), fails=0.0)
        self.open, self.waiting = threading.Event(), threading.Semaphore(0)

    def _asked(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        found = super()._asked(messages, config)
        self.waiting.release()
        return found

    def _said(self, chance: random.Random, reply: str) -> Any:
        assert self.open.wait(WAIT)
        return super()._said(chance, reply)

    def arrived(self, calls: int) -> None:
        """Wait until so many calls are being held."""
        for _ in range(calls):
            assert self.waiting.acquire(timeout=WAIT)
