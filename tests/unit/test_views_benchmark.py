"""The benchmark of views finds what it looks for: broken pairs and prefixes, systems that raise."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

pytest.importorskip("deepagents")
pytest.importorskip("langmem")
views = pytest.importorskip("tests.benchmarks.views")


class Tail:
    """The last three messages, wherever that cuts."""

    def __init__(self, model: Any, limits: Any) -> None:
        self.refused: list[str] = []
        self._messages: list[BaseMessage] = []

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Forget all that is older."""
        self._messages += arrived
        return self._messages[-3:]


class Raises(Tail):
    """Ends every run."""

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Raise."""
        raise ValueError


def test_a_view_that_parts_results_from_calls_is_found() -> None:
    outcome = views.validity(Tail, 20, malformed=False)
    assert outcome.spoilt > 10
    assert outcome.rules["pairs.orphan_result"] > 0
    assert outcome.refused == 0


def test_a_system_that_raises_is_counted_apart() -> None:
    outcome = views.validity(Raises, 5, malformed=True)
    assert (outcome.spoilt, outcome.refused) == (0, 5)


@pytest.mark.parametrize("writes", [False, True])
def test_a_window_that_slides_breaks_the_prefix_at_each_step(writes: bool) -> None:
    thread = views.sound_thread(10, writes=writes)
    assert views.prefix_breaks(Tail, thread) == (9, 0)
    assert views.prefix_breaks(views.SYSTEMS["ours"], thread) == (0, 0)


def test_ours_breaks_nothing() -> None:
    outcome = views.validity(views.SYSTEMS["ours"], 20, malformed=True)
    assert (outcome.spoilt, outcome.refused) == (0, 0)
