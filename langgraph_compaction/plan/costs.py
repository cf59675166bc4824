"""When a fold pays: the prices of tokens, and how much has to be foldable for it.

Where the provider caches the prefix of its prompts, each token that stays in the view is read from
the cache at every call, and a fold costs once: what stands behind the digest is written to the
cache anew, and a summariser reads. With ``growth`` tokens arriving a step, and a fold after every
``cycle`` tokens of them, a step costs

    cache_read * cycle / 2  +  fold * growth / cycle  +  what does not depend on the cycle

The first part grows with the cycle, the second one shrinks; the sum is least at

    cycle = sqrt(2 * growth * fold / cache_read)

What a fold costs in proportion to its span (its tokens are read by the summariser, and a new
segment is written) is the same for each token whenever it is folded, so it is not in ``fold``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.price_book import PRICE_BOOK

PROMPT_TOKENS = 1_500
"""Tokens that the summary calls of a fold read beside the span and the digest so far: an allowance.
The built-in instructions have some 400; folds that condense make calls of their own."""


class Prices(NamedTuple):
    """What a token costs, in any unit: only their ratios count.

    Attributes:
        input: one that is neither read from nor written to the cache.
        output: one that the model writes.
        cache_read: one of a prefix that is cached.
        cache_write: one that is sent and cached for the first time.
        summary_input: one that a summariser reads.
        summary_output: one that it writes.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    summary_input: float
    summary_output: float


class Growth(NamedTuple):
    """What of a view a fold is about, in tokens.

    Attributes:
        per_step: that arrive with each step (an AI message and what follows it); 0.0 before any.
        foldable: that a fold would take.
        tail: of the recent messages that it would leave.
        digest: of the segments so far.
        rolling: whether a fold rewrites them.
    """

    per_step: float
    foldable: int
    tail: int
    digest: int
    rolling: bool


def parse_prices(value: Any, parameter: str) -> Prices:
    """Prices from a dict, or by the name of a model in the price book.

    Raises:
        ConfigurationError: the name is not known, a price is missing or no number above 0, or
            there is an unknown key.
    """
    if isinstance(value, str):
        if value not in PRICE_BOOK:
            raise ConfigurationError(
                f"{parameter}: no prices of {value!r} are known here, only of "
                f"{', '.join(PRICE_BOOK)}. Write them as a dict: "
                f'{parameter}=("cost", {{"input": 3.0, "cache_read": 0.3, "cache_write": 3.75, '
                '"output": 15.0}).'
            )
        value = PRICE_BOOK[value].prices
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"{parameter}: the prices are {value!r}; write a dict with the price of a million "
            'tokens: {"input": 3.0, "cache_read": 0.3, "cache_write": 3.75, "output": 15.0}.'
        )
    unknown = [key for key in value if key not in Prices._fields]
    if unknown:
        raise ConfigurationError(
            f"{parameter}: {unknown[0]!r} is no price; write {', '.join(Prices._fields)}."
        )
    found = {key: _price(key, value[key], parameter) for key in value}
    for key in ("input", "output"):
        if key not in found:
            raise ConfigurationError(
                f"{parameter}: the prices lack {key!r}. Give at least input and output; "
                "without cache_read nothing counts as cached."
            )
    plain, output = found["input"], found["output"]
    return Prices(
        input=plain,
        output=output,
        cache_read=found.get("cache_read", plain),
        cache_write=found.get("cache_write", plain),
        summary_input=found.get("summary_input", plain),
        summary_output=found.get("summary_output", output),
    )


def _price(key: str, value: Any, parameter: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or value <= 0:
        raise ConfigurationError(
            f"{parameter}: the price {key!r} is {value!r}; it has to be a number above 0."
        )
    return float(value)


def fold_price(prices: Prices, growth: Growth) -> float:
    """What a fold costs however large its span is, in the prices' unit."""
    rewritten = growth.tail + (growth.digest if growth.rolling else 0)
    written = growth.digest if growth.rolling else 0
    return (
        max(0.0, prices.cache_write - prices.cache_read) * rewritten
        + prices.summary_input * (PROMPT_TOKENS + growth.digest)
        + prices.summary_output * written
    )


def paying(prices: Prices, growth: Growth) -> float:
    """Foldable tokens from which on a fold pays; infinite before anything has arrived."""
    if growth.per_step <= 0:
        return inf
    return sqrt(2 * growth.per_step * fold_price(prices, growth) / prices.cache_read)


def sums(prices: Prices, growth: Growth) -> str:
    """The arithmetic in one sentence, in units of an uncached input token."""
    fold = fold_price(prices, growth) / prices.input
    return (
        f"{growth.per_step:,.0f} tokens arrive a step, {growth.tail:,} would stay; a fold costs as "
        f"much as {fold:,.0f} input tokens and a token that stays "
        f"{prices.cache_read / prices.input:g} of one at each call; it pays from "
        f"{paying(prices, growth):,.0f} foldable tokens on"
    )
