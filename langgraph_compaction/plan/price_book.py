"""Published prices of some models, each with its date: for `trigger=("cost", name)`.

US dollars for a million tokens, of the standard tier and of prompts of at most 200,000 tokens.
Prices change; whoever needs today's writes them as a dict. Cache writes are those of the shortest
lifetime, 5 minutes with Anthropic; OpenAI and Google charge nothing extra for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Listed(NamedTuple):
    """Prices as a provider has listed them.

    Attributes:
        prices: US dollars for a million tokens.
        seen: the day, or month, of which they are.
    """

    prices: Mapping[str, float]
    seen: str


def _listed(seen: str, plain: float, read: float, write: float, output: float) -> Listed:
    prices = {"input": plain, "cache_read": read, "cache_write": write, "output": output}
    return Listed(MappingProxyType(prices), seen)


PRICE_BOOK: Mapping[str, Listed] = MappingProxyType(
    {
        # Anthropic, "Pricing": reads at 0.1, writes for 5 minutes at 1.25 of the input.
        "claude-opus-4.6": _listed("2026-04", 5.0, 0.5, 6.25, 25.0),
        "claude-sonnet-4.6": _listed("2026-04", 3.0, 0.3, 3.75, 15.0),
        "claude-haiku-4.5": _listed("2026-04", 1.0, 0.1, 1.25, 5.0),
        # OpenAI, "Pricing": cached input at 0.1 of the input.
        "gpt-5.2": _listed("2026-01", 1.75, 0.175, 1.75, 14.0),
        "gpt-5-mini": _listed("2026-01", 0.25, 0.025, 0.25, 2.0),
        # Google, "Gemini Developer API pricing": implicit caching at 0.1 of the input.
        "gemini-2.5-pro": _listed("2026-03", 1.25, 0.125, 1.25, 10.0),
        "gemini-2.5-flash": _listed("2026-03", 0.3, 0.03, 0.3, 2.5),
    }
)
