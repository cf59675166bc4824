"""The machine can fail: a package that breaks one of its rules is found out.

Each fault is put into the package for one test.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from langgraph_compaction import view, visiting
from langgraph_compaction.engine import answers, folding, parts
from langgraph_compaction.plan import boundaries, pins
from langgraph_compaction.run import background as run_background
from langgraph_compaction.view import anchors, places
from tests.property.machine import Machine
from tests.support.promises import BrokenPromiseError

Patch = Callable[[pytest.MonkeyPatch], None]


def anchors_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    def by_position(messages: Any, record: Any) -> int:
        return min(places._hint(record), len(messages))

    patch.setattr(places, "_at_hint", by_position)


def one_message_too_many_is_covered(patch: pytest.MonkeyPatch) -> None:
    def further(messages: Any, record: Any) -> Any:
        place = real(messages, record)
        if place is None or place.boundary >= len(messages):
            return place
        return place._replace(boundary=place.boundary + 1)

    real = anchors.place_in_full
    patch.setattr(anchors, "place_in_full", further)


def pins_are_lost(patch: pytest.MonkeyPatch) -> None:
    def unpinned(messages: Any, indexes: Any, is_pinned: Any, also: Any) -> Any:
        return pins.protected(messages, indexes, lambda message: False, also)

    patch.setattr(boundaries, "protected", unpinned)


def the_task_is_folded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(boundaries, "_task", lambda *given: None)


def answers_to_other_questions_are_applied(patch: pytest.MonkeyPatch) -> None:
    for module in answers, run_background:
        patch.setattr(module, "question_of", lambda call: b"")


def calls_and_results_are_not_paired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(view, "repaired", lambda messages, *given, **values: list(messages))


def the_summariser_misses_the_first_group(patch: pytest.MonkeyPatch) -> None:
    def shortened(*given: Any) -> Any:
        part = real(*given)
        return replace(part, chunks=part.chunks[1:] or part.chunks)

    real = parts.Divided.part
    patch.setattr(parts.Divided, "part", shortened)


def what_is_pruned_is_not_archived(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visiting, "archive_for", lambda *given: None)


def the_settings_change_a_frozen_rendering(patch: pytest.MonkeyPatch) -> None:
    def filled(record: Any, defaults: Any = None) -> Any:
        return {**record.get("render", {}), **(defaults or {})}

    patch.setattr(view, "render_of", filled)


def extracts_miss_what_is_newest(patch: pytest.MonkeyPatch) -> None:
    def shorter(source: Any, visit: Any) -> Any:
        return real(replace(source, span=source.span[:2]), visit)

    real = folding.extracts
    patch.setattr(folding, "extracts", shorter)


FAULTS: dict[Patch, set[str]] = {
    anchors_are_not_checked: {"COVERED"},
    # The last message is not covered: one more moves the boundary, and the view is another one.
    one_message_too_many_is_covered: {"COVERED", "STAYS", "PREFIX"},
    pins_are_lost: {"STAYS"},
    the_task_is_folded: {"STAYS"},
    answers_to_other_questions_are_applied: {"PRESENT"},
    calls_and_results_are_not_paired: {"VALID"},
    the_summariser_misses_the_first_group: {"COVERED"},
    extracts_miss_what_is_newest: {"COVERED"},
    what_is_pruned_is_not_archived: {"FOUND"},
    the_settings_change_a_frozen_rendering: {"SAME_VIEW", "PREFIX"},
}
"""Each with the promises that it may break: which of them is found first is chance."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_found(fault: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises(BrokenPromiseError) as caught:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=400,
                stateful_step_count=40,
                phases=[Phase.generate],
                derandomize=True,
                database=None,
                report_multiple_bugs=False,
                suppress_health_check=[*HealthCheck],
            ),
        )
    promises = {one.promise.name for one in caught.value.faults}
    assert promises <= FAULTS[fault]
