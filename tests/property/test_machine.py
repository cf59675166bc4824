"""Whatever happens to a thread, in whatever order, the promises of the package are kept.

`python -m tests.property.machine_report` counts what is driven here, and what it breaks.
"""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.machine import Machine

STEPS = 40
"""As many steps a history as it takes until most rules have met."""


def test_whatever_happens_to_a_thread() -> None:
    thorough = settings().max_examples > 100
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=500 if thorough else settings().max_examples,
            stateful_step_count=2 * STEPS if thorough else STEPS,
            suppress_health_check=[*HealthCheck],
        ),
    )
