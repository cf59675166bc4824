"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tests.benchmarks.clearing.looking_up import PAGES, Found
from tests.benchmarks.clearing.replaying import Thread
from tests.benchmarks.survival.tables import table


class Pair(NamedTuple):
    """One transcript in one window, with clearing and without."""

    on: Thread
    off: Thread

    @property
    def differs(self) -> bool:
        """Whether it makes any difference to the costs."""
        on, off = self.on.bill, self.off.bill
        return (on.agent, on.summariser) != (off.agent, off.summariser)


Pairs = Mapping[int, Sequence[Pair]]
"""By window, in tokens."""


def costs(pairs: Pairs) -> str:
    """Totals over the transcripts in which clearing makes a difference."""
    header = (
        "window|clearing|transcripts|clearings|folds|summary calls|tokens of the views|from the "
        "cache, %|agent's input, price|summariser, tokens in|out|price|together"
    )
    return table(header.split("|"), [_costs(window, on, pairs) for window, on in _modes(pairs)])


def _modes(pairs: Pairs) -> list[tuple[int, bool]]:
    return [(window, on) for window in pairs for on in (True, False)]


def _costs(window: int, on: bool, pairs: Pairs) -> list[str]:
    chosen = [pair.on if on else pair.off for pair in pairs[window] if pair.differs]
    bills = [thread.bill for thread in chosen]
    shown, cached = sum(bill.shown for bill in bills), sum(bill.cached for bill in bills)
    agent, summariser = sum(bill.agent for bill in bills), sum(bill.summariser for bill in bills)
    return [
        f"{window:,}",
        "on" if on else "off",
        f"{len(chosen)} of {len(pairs[window])}",
        f"{sum(thread.done['cleared'] for thread in chosen):,}",
        f"{sum(thread.done['completed'] for thread in chosen):,}",
        f"{sum(bill.summaries for bill in bills):,}",
        f"{shown:,}",
        f"{100 * cached / shown:.1f}" if shown else "–",
        f"{agent:,.0f}",
        f"{sum(bill.read for bill in bills):,}",
        f"{sum(bill.written for bill in bills):,}",
        f"{summariser:,.0f}",
        f"{agent + summariser:,.0f}",
    ]


def ratios(pairs: Pairs) -> str:
    """On over off: of the totals, and the transcripts' least, median and greatest."""
    kinds: dict[str, Callable[[Thread], float]] = {
        "summary calls": lambda thread: thread.bill.summaries,
        "agent's input": lambda thread: thread.bill.agent,
        "agent and summariser": lambda thread: thread.bill.agent + thread.bill.summariser,
    }
    rows = []
    for window, all_pairs in pairs.items():
        chosen = [pair for pair in all_pairs if pair.differs]
        cells = [_ratio(chosen, of) for of in kinds.values()]
        rows.append([f"{window:,}", *cells])
    header = [f"{kind}: total (least / median / greatest)" for kind in kinds]
    return table(["on over off, window", *header], rows)


def _ratio(pairs: Sequence[Pair], of: Callable[[Thread], float]) -> str:
    each = sorted(of(pair.on) / of(pair.off) for pair in pairs if of(pair.off))
    if not each:
        return "–"
    total = sum(of(pair.on) for pair in pairs) / sum(of(pair.off) for pair in pairs)
    return f"{total:.2f} ({each[0]:.2f} / {median(each):.2f} / {each[-1]:.2f})"


def recalled(pairs: Pairs) -> str:
    """What the recall tool finds of references that are used and out of sight; all transcripts."""
    header = (
        "window|clearing|uses|in the view, %|out of sight|found by words, first page|found by "
        f"words, {PAGES} pages|found by handle|a placeholder's|a position|the call's own id"
    )
    rows = []
    for window, on in _modes(pairs):
        threads = [pair.on if on else pair.off for pair in pairs[window]]
        found = Found()
        for thread in threads:
            found.add(thread.found)
        uses, seen = sum(one.uses for one in threads), sum(one.seen for one in threads)
        numbers = (found.placeholder, found.heading, found.call)
        rows.append(
            [
                f"{window:,}",
                "on" if on else "off",
                f"{uses:,}",
                f"{100 * seen / uses:.1f}" if uses else "–",
                f"{found.hidden:,}",
                _share(found.first_page, found.hidden),
                _share(found.pages, found.hidden),
                _share(sum(numbers), found.hidden),
                *(f"{number:,}" for number in numbers),
            ]
        )
    return table(header.split("|"), rows)


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.1f}%)" if of else "–"
