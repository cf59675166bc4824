"""What is planted: facts by kind, each with a value that stands nowhere else in the thread."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.benchmarks.survival.phrasings import CALLED, PRINTED, SAID, SUBJECTS
from tests.benchmarks.survival.values import MAKERS, phrase

Place = Literal["user", "agent", "arguments", "result"]

REFERENCES = tuple(MAKERS)
USERS = ("constraint", "pin")
PROSE = ("decision", "commitment")
UPDATE = "update"
KINDS = (*REFERENCES, *USERS, *PROSE, UPDATE)
UPDATES_PER_ROUND = 2
"""Statements of a changing value in a round. There are as many such values as `SUBJECTS`."""
PIN_EVERY = 2
"""One message is pinned in every so many rounds, the first among them."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One planted fact.

    Attributes:
        number: facts are numbered as they are said, so the greater is the newer.
        kind: one of `KINDS`.
        place: where it stands.
        value: what has to stand in the view, exactly; of a user's directive the whole sentence.
        sentence: how it is said.
        note: how a summariser records it.
        series: of an updated value: what it is the value of.
    """

    number: int
    kind: str
    place: Place
    value: str
    sentence: str
    note: str
    series: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A fact that is to be made, and where it will stand."""

    kind: str
    place: Place


def orders(rng: random.Random, number: int) -> list[Order]:
    """What a round plants: one of each kind, references in changing places.

    Args:
        rng: the thread's source of chance.
        number: of the round, from 1.
    """
    places: tuple[Place, ...] = ("user", "agent", "arguments", "result")
    found = [
        Order(kind, places[(number + index) % len(places)]) for index, kind in enumerate(REFERENCES)
    ]
    found.append(Order("constraint", "user"))
    if number % PIN_EVERY == 1:
        found.append(Order("pin", "user"))
    found += [Order(kind, "agent") for kind in PROSE]
    told: tuple[Place, ...] = ("user", "agent", "result")
    found += [Order(UPDATE, rng.choice(told)) for _ in range(UPDATES_PER_ROUND)]
    return found


@dataclass
class Planter:
    """Makes facts in the order in which they are said.

    Attributes:
        rng: the thread's source of chance.
        facts: those made so far.
        call: tool and argument of the newest fact in arguments.
    """

    rng: random.Random
    facts: list[Fact] = field(default_factory=list)
    call: tuple[str, str] = ("run", "command")
    _used: set[str] = field(default_factory=set)
    _current: dict[str, str] = field(default_factory=dict)
    _waiting: list[tuple[str, str]] = field(default_factory=list)

    def make(self, order: Order) -> Fact:
        """The next fact."""
        if order.kind == UPDATE:
            fact = self._update(order.place)
        elif order.kind in MAKERS:
            fact = self._reference(order)
        else:
            fact = self._said(order)
        self.facts.append(fact)
        return fact

    def _value(self, kind: str) -> str:
        while True:
            value = MAKERS[kind](self.rng) if kind in MAKERS else phrase(self.rng)
            if value not in self._used:
                self._used.add(value)
                return value

    def _reference(self, order: Order) -> Fact:
        kind, place = order.kind, order.place
        value = self._value(kind)
        if place == "arguments":
            self.call = self.rng.choice(CALLED[kind])
            sentence, note = value, f"{self.call[0]} {self.call[1]}: {value}"
        elif place == "result":
            sentence = self.rng.choice(PRINTED[kind]).replace("{v}", value)
            note = f"{kind} found: {value}"
        else:
            sentence = note = self.rng.choice(SAID[kind]).replace("{v}", value)
        return Fact(len(self.facts), kind, place, value, sentence, note)

    def _said(self, order: Order) -> Fact:
        value = self._value(order.kind)
        sentence = self.rng.choice(SAID[order.kind]).replace("{v}", value)
        exact = sentence if order.kind in USERS else value
        return Fact(len(self.facts), order.kind, order.place, exact, sentence, sentence)

    def _update(self, place: Place) -> Fact:
        if not self._waiting:
            self._waiting = self.rng.sample(SUBJECTS, len(SUBJECTS))
        series, kind = self._waiting.pop()
        old, value = self._current.get(series), self._value(kind)
        self._current[series] = value
        if place == "result":
            ways: Sequence[str] = PRINTED[UPDATE]
        else:
            ways = SAID[UPDATE] if old is None else (*SAID[UPDATE], *SAID["changed"])
        sentence = self.rng.choice(ways).replace("{s}", series).replace("{v}", value)
        sentence = sentence.replace("{o}", old or "")
        note = f"{series} is {value} now."
        return Fact(len(self.facts), UPDATE, place, value, sentence, note, series)
