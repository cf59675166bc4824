"""Whatever happens to a thread, in whatever order, the promises of the package are kept.

`python -m tests.property.machine_report` counts what is driven here, and what it breaks.
"""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.machine import Machine
from tests.support.promises import Tally

STEPS = 40
"""As many steps a history as it takes until most rules have met."""
HAPPENS = [
    "a visit changed the record",
    "a visit wrote segments",
    "a visit wrote clearing",
    "a visit wrote failures",
    "a visit wrote overflow",
    "a visit pruned",
    "a visit raised BudgetError",
    "a fold was begun beside the agent",
    "a digest was corrected",
    "a digest was restored",
    "a digest was forgotten",
    "what was erased was looked up",
    "a fork",
]
"""What has to come of the steps: a step of which nothing comes tests nothing."""


def test_whatever_happens_to_a_thread() -> None:
    class Driven(Machine):
        tally = Tally()

    thorough = settings().max_examples > 100
    run_state_machine_as_test(
        Driven,
        settings=settings(
            max_examples=500 if thorough else settings().max_examples,
            stateful_step_count=2 * STEPS if thorough else STEPS,
            suppress_health_check=[*HealthCheck],
        ),
    )
    assert [what for what in HAPPENS if not Driven.tally.happened[what]] == []
