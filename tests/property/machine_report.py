"""How many histories and steps the machine drove, and which promises they broke.

    python -m tests.property.machine_report --histories 400 --steps 40

Every history is an own draw: none is shrunk, none ends the run. Of each promise that was broken the
first history is printed step by step.
"""

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import tests.conftest  # noqa: F401  # no keys, no tracing
from tests.property.machine import Machine
from tests.support.promises import Tally


def driven(histories: int, steps: int, first: int) -> Tally:
    """Drive so many histories of so many steps each at most."""
    tally = Tally()
    machine = type("Driven", (Machine,), {"tally": tally, "collects": True})
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
    return tally


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=400)
    parser.add_argument("--steps", type=int, default=40, help="of each history, at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    tally = driven(given.histories, given.steps, given.seed)
    lines = [*tally.lines, "", f"{time.monotonic() - began:.0f} s, seed {given.seed}"]
    for promise, told in tally.broken.items():
        lines += ["", f"== {promise.name}", told[0]]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
