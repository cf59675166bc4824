"""How many histories and steps the machine drove, and which promises they broke.

    python -m tests.property.machine_report --histories 400 --steps 40
    python -m tests.property.machine_report --minutes 10

Every history is a draw of its own: none is shrunk, none ends the run. Of each promise that was
broken the first history is printed step by step.
"""

import argparse
import logging
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import tests.conftest  # noqa: F401  # no keys, no tracing
from tests.property.machine import Machine
from tests.support.promises import Tally

BATCH = 50
"""Histories that are drawn together: they avoid each other's draws."""


def drive(machine: type[Machine], histories: int, steps: int, first: int) -> None:
    """Drive so many histories of so many steps each at most."""
    options = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    run_state_machine_as_test(seed(first)(machine), settings=options)


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, help="at least so many; 400 by default")
    parser.add_argument("--minutes", type=float, help="until so much time has passed")
    parser.add_argument("--steps", type=int, default=40, help="of each history, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # summarisers fail here on purpose
    wanted = given.histories or (sys.maxsize if given.minutes else 400)
    tally, began, batches = Tally(), time.monotonic(), 0
    until = began + 60 * given.minutes if given.minutes else float("inf")
    while tally.histories < wanted and time.monotonic() < until:
        # A class of its own for every batch: Hypothesis keeps the seed in it.
        machine = type("Driven", (Machine,), {"tally": tally, "collects": True})
        batch = min(BATCH, wanted - tally.histories)
        drive(machine, batch, given.steps, 1_000_000 * given.seed + batches)
        batches += 1
    lines = [*tally.lines, "", f"{time.monotonic() - began:.0f} s, seed {given.seed}"]
    for promise, told in tally.broken.items():
        lines += ["", f"== {promise.name}", told[0]]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
