"""Running every system over the same threads with the same summariser."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from tests.benchmarks.survival.counting import tokens
from tests.benchmarks.survival.history import History, build
from tests.benchmarks.survival.scoring import Tally, digest_tokens, score
from tests.benchmarks.survival.summariser import ScriptedSummariser
from tests.benchmarks.survival.systems import Factory, Limits


@dataclass
class Outcome:
    """What was measured of one system, loss and number of rounds, over all seeds.

    Attributes:
        tally: facts that survived.
        digests: tokens of the digest, a number for each seed.
        views: tokens of the whole view.
        calls: calls of the summariser up to then.
        refused: texts of the summariser that the system did not accept.
    """

    tally: Tally = field(default_factory=Tally)
    digests: list[int] = field(default_factory=list)
    views: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


Outcomes = dict[tuple[float, str, int], Outcome]
"""By loss, system and number of rounds."""


def measure(
    systems: Mapping[str, Factory],
    *,
    losses: Sequence[float],
    rounds: Sequence[int],
    seeds: Sequence[int],
    limits: Limits,
    progress: Callable[[str], None],
) -> Outcomes:
    """Measure all systems on one thread for each seed.

    Args:
        systems: by name.
        losses: probabilities with which the summariser drops a fact.
        rounds: numbers of rounds after which to look.
        seeds: of thread and losses.
        limits: for all systems. A round has as many tokens as the trigger.
        progress: told what was done.
    """
    outcomes: Outcomes = defaultdict(Outcome)
    for seed in seeds:
        history = build(seed, max(rounds), round_tokens=limits.trigger, lead_tokens=limits.keep)
        for loss in losses:
            for name, factory in systems.items():
                summariser = ScriptedSummariser(
                    facts=history.facts, loss=loss, seed=seed, budget=limits.digest
                )
                system = factory(summariser, limits)
                for number, messages, view in _visits(history, system.visit):
                    if number in rounds:
                        outcome = outcomes[loss, name, number]
                        outcome.tally.add(score(history, messages, view))
                        outcome.digests.append(digest_tokens(messages, view))
                        outcome.views.append(tokens(view))
                        outcome.calls.append(summariser.calls)
                        outcome.refused.append(len(system.refused))
        progress(f"seed {seed} done")
    return outcomes


def _visits(
    history: History, visit: Callable[[Sequence[BaseMessage]], list[BaseMessage]]
) -> Iterator[tuple[int, list[BaseMessage], list[BaseMessage]]]:
    """After each round: its number, the thread so far and the view."""
    messages: list[BaseMessage] = []
    for number, arrived in enumerate(history.rounds, 1):
        messages += arrived
        yield number, messages, visit(arrived)
