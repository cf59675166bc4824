"""When a fold pays: prices are checked, and the sum that is least is the one that is taken."""

from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_compaction import CompactionSettings, ConfigurationError
from langgraph_compaction.plan.costs import Growth, Prices, fold_price, parse_prices, paying, sums
from langgraph_compaction.plan.price_book import PRICE_BOOK
from langgraph_compaction.plan.triggers import Usage, fired, parse_trigger

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose-a-trigger.md"
CLAUDE = {"input": 3.0, "cache_read": 0.3, "cache_write": 3.75, "output": 15.0}


def growth(**values: Any) -> Growth:
    usual: dict[str, Any] = {
        "per_step": 1_500.0, "foldable": 20_000, "tail": 15_000, "digest": 0, "rolling": False,
    }  # fmt: skip
    return Growth(**(usual | values))


def test_prices_are_ratios() -> None:
    scaled = {key: 1_000 * price for key, price in CLAUDE.items()}
    assert paying(parse_prices(CLAUDE, "p"), growth()) == pytest.approx(
        paying(parse_prices(scaled, "p"), growth())
    )


def test_what_is_left_out_follows_from_the_rest() -> None:
    plain = parse_prices({"input": 2, "output": 8}, "p")
    assert plain == Prices(2.0, 8.0, 2.0, 2.0, 2.0, 8.0)  # nothing is cached
    assert parse_prices({**CLAUDE, "summary_input": 0.25}, "p").summary_input == 0.25


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no-such-model", "claude-sonnet-4.6"),
        (7, "write a dict"),
        ({}, "'input'"),
        ({"input": 3.0}, "'output'"),
        ({**CLAUDE, "cached": 0.3}, "'cached'"),
        ({**CLAUDE, "input": 0}, "above 0"),
        ({**CLAUDE, "input": -1}, "above 0"),
        ({**CLAUDE, "output": "15"}, "'15'"),
        ({**CLAUDE, "output": True}, "True"),
        ({**CLAUDE, "cache_read": inf}, "inf"),
    ],
    ids=str,
)
def test_wrong_prices_are_named(value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match="trigger: ") as caught:
        CompactionSettings(trigger=("cost", value))
    assert said in str(caught.value)


@pytest.mark.parametrize("name", PRICE_BOOK)
def test_the_book_has_whole_prices(name: str) -> None:
    assert name in PAGE.read_text("utf-8")
    found = parse_prices(name, "p")
    assert found.cache_read < found.input <= found.cache_write < found.output
    year, month = PRICE_BOOK[name].seen.split("-")
    assert int(year) >= 2026
    assert 1 <= int(month) <= 12


prices = st.builds(
    lambda plain, read, write, output: Prices(plain, output, read, write, plain, output),
    st.floats(0.1, 20), st.floats(0.01, 2), st.floats(0.1, 30), st.floats(0.5, 100),
)  # fmt: skip
growths = st.builds(
    Growth,
    st.floats(10, 20_000), st.integers(0, 10**6), st.integers(0, 60_000), st.integers(0, 20_000),
    st.booleans(),
)  # fmt: skip


@given(prices, growths)
def test_no_other_cycle_costs_less(given_prices: Prices, found: Growth) -> None:
    """Of a step: half the cycle is read from the cache, and its share of a fold is paid."""

    def cost(cycle: float) -> float:
        folded = fold_price(given_prices, found) * found.per_step / cycle
        return given_prices.cache_read * cycle / 2 + folded

    best = paying(given_prices, found)
    assert (
        cost(best) <= min(cost(best * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2)) + 1e-9
    )


def test_the_figures_of_the_design() -> None:
    """1,500 tokens a step and 15,000 that stay: 23,000, but for what the summariser reads."""
    found = parse_prices({**CLAUDE, "summary_input": 1e-9}, "p")
    assert paying(found, growth()) == pytest.approx(22_750, rel=0.01)


def test_a_longer_tail_a_digest_and_dear_writes_make_folds_rarer() -> None:
    claude = parse_prices(CLAUDE, "p")
    usual = paying(claude, growth())
    assert paying(claude, growth(tail=30_000)) > usual
    assert paying(claude, growth(digest=5_000)) > usual
    assert paying(claude, growth(digest=5_000, rolling=True)) > paying(claude, growth(digest=5_000))
    assert paying(claude._replace(cache_write=6.0), growth()) > usual
    assert paying(claude._replace(cache_read=0.6), growth()) < usual
    # Without a cache a fold breaks nothing: only what the summariser reads is in its way.
    assert paying(parse_prices({"input": 3.0, "output": 15.0}, "p"), growth()) < usual / 3


def test_before_anything_has_arrived_nothing_is_folded() -> None:
    claude = parse_prices(CLAUDE, "p")
    assert paying(claude, growth(per_step=0.0)) == inf
    clauses = parse_trigger(("cost", CLAUDE))
    assert fired(clauses, Usage(10**6, 99, 9, growth(per_step=0.0)), 128_000) is None


def test_the_trigger_fires_where_a_fold_pays_and_may_be_one_of_several_conditions() -> None:
    least = round(paying(parse_prices(CLAUDE, "p"), growth()))
    usage = Usage(60_000, 40, 20, growth(foldable=least + 1))
    early = Usage(60_000, 40, 20, growth(foldable=least - 1))
    for trigger in (("cost", CLAUDE), {"cost": CLAUDE}, [("steps", 99), ("cost", CLAUDE)]):
        assert fired(parse_trigger(trigger), usage, 128_000) is not None
        assert fired(parse_trigger(trigger), early, 128_000) is None
    assert fired(parse_trigger({"cost": CLAUDE, "tokens": 60_001}), usage, 128_000) is None
    assert fired(parse_trigger({"cost": CLAUDE, "tokens": 60_000}), usage, 128_000) is not None


def test_none_switches_it_off() -> None:
    assert parse_trigger(("cost", None)) == ()


def test_the_sums_are_told() -> None:
    text = sums(parse_prices("claude-sonnet-4.6", "p"), growth())
    assert "1,500 tokens arrive a step, 15,000 would stay" in text
    assert "0.1 of one at each call" in text
