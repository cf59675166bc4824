"""When to compact and how much to keep: LangChain's forms, parsed once into one internal form.

A trigger is any of several clauses, each all of several conditions:

    ("fraction", 0.8)                              one condition
    {"tokens": 4_000, "messages": 10}              all of these
    [("fraction", 0.8), {"tokens": 4_000, ...}]    any of these
    ("cost", {"input": 3.0, ...})                  when a fold pays, by these prices

None, 0 and negative values mean off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isnan
from typing import Any, Literal, NamedTuple

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.costs import Growth, Prices, parse_prices, paying

Kind = Literal["fraction", "tokens", "messages", "steps", "cost"]
MOST = 10**12
"""Greatest value that is taken for one that was meant."""
TRIGGER_KINDS: tuple[Kind, ...] = ("fraction", "tokens", "messages", "steps", "cost")
KEEP_KINDS: tuple[Kind, ...] = ("fraction", "tokens", "messages")


class Condition(NamedTuple):
    """A measure and the value at which it counts as reached.

    Of the kind "cost" the value follows from the prices and from what arrives.
    """

    kind: Kind
    value: float
    prices: Prices | None = None


Clause = tuple[Condition, ...]
"""Conditions that all have to be reached."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a trigger looks at.

    Attributes:
        tokens: tokens of the view, overhead included.
        messages: messages in the view.
        steps: AI messages since the last fold.
        growth: what a fold is about, None where no trigger asks for it.
    """

    tokens: int
    messages: int
    steps: int
    growth: Growth | None = None


def parse_trigger(value: Any, parameter: str = "trigger") -> tuple[Clause, ...]:
    """Parse a trigger. An empty result means off.

    Raises:
        ConfigurationError: the form, a kind or a value is wrong.
    """
    # YAML 1.1 reads a bare "off" as False.
    if value is None or (isinstance(value, int | float) and value <= 0):
        return ()
    if _is_pair(value):
        parsed = [_clause([value], TRIGGER_KINDS, parameter)]
    elif isinstance(value, Mapping):
        parsed = [_clause(list(value.items()), TRIGGER_KINDS, parameter)]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        clauses: list[Clause] = []
        for item in value:
            clauses += parse_trigger(item, parameter)
        return tuple(clauses)
    else:
        raise _wrong_form(value, parameter, "a dict (all of), a list (any of) or None (off)")
    return tuple(clause for clause in parsed if clause)


def parse_keep(value: Any, parameter: str = "keep") -> tuple[Condition, ...]:
    """Parse a keep rule: one pair, or a list of pairs of which the smallest counts.

    ``("messages", 0)`` is kept as it is: it asks to fold everything that may be folded. None and
    other values of 0 or less become a budget of 0 tokens: only what always stays is kept.

    Raises:
        ConfigurationError: the form, a kind or a value is wrong.
    """
    if value is None:
        return (Condition("tokens", 0),)
    pairs = [value] if _is_pair(value) else value
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not pairs:
        raise _wrong_form(value, parameter, "or a list of these (the smallest counts)", 0.2)
    conditions = []
    for pair in pairs:
        if not _is_pair(pair):
            raise _wrong_form(pair, parameter, "or a list of these (the smallest counts)", 0.2)
        kind, amount = pair
        parsed = _condition(kind, amount, KEEP_KINDS, parameter)
        if parsed is None:
            parsed = Condition("messages" if kind == "messages" else "tokens", 0)
        conditions.append(parsed)
    return tuple(conditions)


def as_written(rule: Any) -> str:
    """A trigger or a keep as one writes it in code; one of lists, as in a file, is left alone.

    The default is a tuple of tuples, since lists are no constants.
    """
    if not isinstance(rule, tuple):
        return repr(rule)
    if not _is_pair(rule):
        return f"[{', '.join(as_written(one) if _is_pair(one) else repr(one) for one in rule)}]"
    kind, amount = rule
    return f'("{kind}", {amount:_})' if type(amount) is int else f'("{kind}", {amount!r})'


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) == 2
        and isinstance(value[0], str)
    )


def _clause(pairs: Sequence[Any], kinds: Sequence[Kind], parameter: str) -> Clause:
    found = [_condition(kind, amount, kinds, parameter) for kind, amount in pairs]
    return tuple(condition for condition in found if condition is not None)


def _condition(kind: Any, amount: Any, kinds: Sequence[Kind], parameter: str) -> Condition | None:
    if kind not in kinds:
        raise ConfigurationError(
            f"{parameter}: {kind!r} is not a kind; use one of {', '.join(map(repr, kinds))}, "
            f'for example {parameter}=("{kinds[1]}", 4000).'
        )
    if amount is None:
        return None
    if kind == "cost":
        return Condition("cost", 0.0, parse_prices(amount, parameter))
    if (
        isinstance(amount, bool)
        or not isinstance(amount, int | float)
        or isnan(amount)
        or amount == inf
    ):
        raise ConfigurationError(
            f"{parameter}: the value of {kind!r} is {amount!r}; it has to be a number "
            "(None, 0 or less: off)."
        )
    if amount <= 0:
        return None
    if amount > MOST:
        raise ConfigurationError(
            f"{parameter}: the value of {kind!r} has {len(str(int(min(amount, 10**300))))} digits "
            "or more; write what was meant."
        )
    if kind == "fraction":
        if amount > 1:
            raise ConfigurationError(
                f"{parameter}: a fraction of {amount!r} is more than the whole window; write "
                f'("fraction", 0.8) for 80%, or ("tokens", {int(amount)}) if tokens were meant.'
            )
    elif amount != int(amount):
        raise ConfigurationError(
            f"{parameter}: {kind!r} counts in whole numbers, not {amount!r}; "
            f'write ("{kind}", {max(1, round(amount))}).'
        )
    return Condition(kind, amount)


def _wrong_form(value: Any, parameter: str, others: str, share: float = 0.8) -> ConfigurationError:
    pair: tuple[str, float] = ("fraction", share)
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        pair = ("fraction", value) if value <= 1 else ("tokens", int(value))
    return ConfigurationError(
        f"{parameter}: {value!r} has the wrong form; write a pair such as "
        f'{parameter}=("{pair[0]}", {pair[1]}), {others}.'
    )


def threshold(condition: Condition, window: int | None) -> float:
    """The value of a condition in its own unit; fractions in tokens of the window."""
    if condition.kind == "fraction":
        return condition.value * (window or 0)
    return condition.value


def fired(clauses: Sequence[Clause], usage: Usage, window: int | None) -> Clause | None:
    """The first clause all of whose conditions are reached, or None."""
    for clause in clauses:
        if all(measured_value(usage, c) >= needed(usage, c, window) for c in clause):
            return clause
    return None


def needed(usage: Usage, condition: Condition, window: int | None) -> float:
    """The value from which on a condition is reached, in its own unit; fractions in tokens."""
    if condition.prices is not None and usage.growth is not None:
        return paying(condition.prices, usage.growth)
    return threshold(condition, window)


def measured_value(usage: Usage, condition: Condition) -> int:
    """What a condition looks at, in its own unit; fractions and costs in tokens."""
    if condition.kind == "cost":
        return usage.growth.foldable if usage.growth is not None else 0
    if condition.kind in {"fraction", "tokens"}:
        return usage.tokens
    return usage.messages if condition.kind == "messages" else usage.steps


def token_threshold(clauses: Sequence[Clause], window: int | None) -> int | None:
    """The fewest tokens at which a clause can fire; None if no clause looks at tokens."""
    found = [
        max(threshold(c, window) for c in clause if c.kind in {"fraction", "tokens"})
        for clause in clauses
        if any(c.kind in {"fraction", "tokens"} for c in clause)
    ]
    return max(1, ceil(min(found))) if found else None


def count_threshold(clauses: Sequence[Clause], kind: Kind) -> int | None:
    """The smallest value of ``kind`` among the clauses that have no other condition."""
    found = [clause[0].value for clause in clauses if len(clause) == 1 and clause[0].kind == kind]
    return int(min(found)) if found else None
