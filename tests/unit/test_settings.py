"""Settings: every wrong value is refused where it is written, with its name and the remedy.

A value that cannot work shows itself hours later, as a loop on "hi", a bill, or a refused request.
So what can be known at construction is an error at construction.
"""

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from langgraph_compaction import CompactionError, CompactionSettings, ConfigurationError, resolving
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.setting_names import ELSEWHERE, ONLY_IN_CODE
from langgraph_compaction.settings import NAMES
from tests.support.migrating import PACKAGES, PAGE, names_in, table


def direct(values: dict[str, Any]) -> CompactionSettings:
    return CompactionSettings(**values)


def resolved(window: int | None = None, max_output: int | None = None, **values: Any) -> Policy:
    return resolving.resolved(
        CompactionSettings.of(values), resolving.AgentLimits(window, max_output)
    )


# ---- single values

WHOLE = (
    "min_keep target context_window reserve_tokens overhead_tokens max_digest_tokens "
    "min_segment_tokens max_segment_tokens min_fold_tokens result_chars "
    "clear_keep clear_min_chars clear_argument_chars max_result_tokens live_state_tokens"
).split()
ZERO_IS_FINE = set(
    "min_keep reserve_tokens overhead_tokens min_fold_tokens result_chars "
    "clear_min_chars clear_argument_chars".split()
)
AUTO = {
    "min_keep",
    "target",
    "reserve_tokens",
    "max_digest_tokens",
    "max_result_tokens",
    "min_fold_tokens",
}
NONE = {"target", "context_window", "max_result_tokens"}
TEXTS = ("prompt", "instructions", "digest_header", "digest_footer", "recall_tool")


def wrong_values() -> list[tuple[str, Any, str]]:
    """Parameter, value, and what the remedy mentions."""
    cases: list[tuple[str, Any, str]] = []
    for name in WHOLE:
        wrong: list[Any] = [-1, 1.5, 1e3, "7", True, [], float("nan")]
        wrong += [] if name in ZERO_IS_FINE else [0]
        wrong += [] if name in AUTO else ["auto"]
        wrong += [] if name in NONE else [None]
        cases += [(name, value, "whole number of at least") for value in wrong]
    for name in ("segment_share", "min_fold_share", "clear_min_share"):
        cases += [(name, value, "share") for value in (-0.1, 1, 1.5, 20, "0.2", None, True)]
        cases.append((name, float("nan"), "share"))
    for name in TEXTS:
        cases += [(name, value, "non-empty string") for value in ("", " \n", 7, ["x"], b"x")]
    others: list[tuple[str, str, list[Any]]] = [
        ("task", "'first', 'latest', None", ["frist", 0, True, ""]),
        ("digest", "'chain', 'rolling'", ["chained", None, True]),
        ("digest_role", "'human', 'system'", ["user", None, "Human"]),
        ("roles", "'any', 'alternating'", ["strict", None, True]),
        ("history", "'full', 'prune'", ["pruned", None, True]),
        ("on_error", "'continue', 'raise'", ["ignore", None, True]),
        ("clear", "True, False, 'auto'", ["off", None, 0, 1, []]),
        ("protected_tools", "list of names", ["shell", None, 7, [1], [""], {"shell": 1}]),
        ("sections", "Write names of sections", ["Goal", 7, [], {}, {"Goal": 7}, {"": "x"}]),
        ("tool_markers", "{label}", ["[{name}]", 7, [], {1: "x"}, {"sh": 7}, {"sh": "{lable}"}]),
        ("enabled", "True, False", ["off", None, 0, 1, []]),
        ("background", "True, False", ["on", None, 0, 1, {}]),
        ("calibrate", "True, False, 'auto'", ["on", None, 0, {}]),
        ("summary_timeout", "seconds above 0", [0, -1, "90", True, float("nan"), float("inf"), []]),
        ("pinned", "write a dict", ["human", 7, {}, {"kind": "x"}]),
        ("trigger", "trigger=(", ["auto", 0.8, {"percent": 80}]),
        ("keep", "keep=(", ["atuo", 20_000, [], {"tokens": 5}]),
    ]
    return cases + [(name, value, remedy) for name, remedy, wrong in others for value in wrong]


@pytest.mark.parametrize(("name", "value", "remedy"), wrong_values())
def test_a_wrong_value_is_named_with_the_remedy(name: str, value: Any, remedy: str) -> None:
    given: dict[str, Any] = {name: value}
    for make in (CompactionSettings.of, CompactionSettings().changed, direct):
        with pytest.raises(ConfigurationError, match=f"^{name}: ") as caught:
            make(given)
        message = str(caught.value)
        shown = next(iter(value)) if isinstance(value, dict) and value else value
        assert repr(shown) in message
        assert remedy in message


def test_every_setting_is_checked() -> None:
    checked = {name for name, _, _ in wrong_values()}
    assert checked == {field.name for field in fields(CompactionSettings)}


@pytest.mark.parametrize(
    ("values", "nearest"),
    [({"triger": None}, "'trigger'"), ({"min_kep": 1}, "'min_keep'"), ({"xyz": 1}, "known: ")],
)
def test_an_unknown_setting_names_the_nearest(values: dict[str, Any], nearest: str) -> None:
    for make in (CompactionSettings.of, CompactionSettings().changed):
        with pytest.raises(ConfigurationError, match="is not a setting") as caught:
            make(values)
        assert nearest in str(caught.value)


def test_settings_are_values() -> None:
    plain = CompactionSettings.of({"keep": ("tokens", 100)})
    changed = plain.changed({"task": "latest"})
    assert (plain.task, changed.task, changed.keep) == ("first", "latest", ("tokens", 100))
    assert plain == CompactionSettings(keep=("tokens", 100))
    assert issubclass(ConfigurationError, (CompactionError, ValueError))
    with pytest.raises(AttributeError):
        plain.task = "latest"  # type: ignore[misc]


# ---- what needs a window


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "trigger"),
        ({"trigger": ("fraction", 0.5)}, "trigger"),
        ({"trigger": [("tokens", 100), {"fraction": 0.5, "messages": 3}]}, "trigger"),
        ({"trigger": ("tokens", 9_000), "keep": ("fraction", 0.05)}, "keep"),
        ({"trigger": ("tokens", 9_000), "reserve_tokens": 100}, "reserve_tokens"),
    ],
)
def test_a_part_of_an_unknown_window_is_an_error_that_names_the_ways_out(
    values: dict[str, Any], name: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: ") as caught:
        resolved(**values)
    assert "agent_model=" in str(caught.value)
    assert "context_window=" in str(caught.value)
    assert resolved(window=100_000, **values).window == 100_000
    assert resolved(**values, context_window=50_000).window == 50_000


@pytest.mark.parametrize("trigger", [None, ("steps", 20), ("messages", 50), ("tokens", 9_000)])
def test_without_a_window_whatever_needs_none_works(trigger: Any) -> None:
    found = resolved(trigger=trigger)
    assert (found.window, found.hard) == (None, None)
    assert "clip_result_bytes" not in found.render


def test_the_settings_window_wins_over_the_models() -> None:
    assert resolved(window=128_000, context_window=32_000).window == 32_000


# ---- values that contradict each other


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"trigger": ("fraction", 0.95)}, "trigger"),
        ({"trigger": ("fraction", 1)}, "trigger"),
        ({"trigger": ("tokens", 9_000)}, "trigger"),
        ({"trigger": [("tokens", 9_500), ("fraction", 0.99)]}, "trigger"),
        ({"reserve_tokens": 10_000}, "reserve_tokens"),
        ({"overhead_tokens": 9_999}, "reserve_tokens"),
        ({"keep": ("fraction", 0.8)}, "keep"),
        ({"keep": ("tokens", 8_000)}, "keep"),
        ({"trigger": ("messages", 10), "keep": ("messages", 10)}, "keep"),
        ({"target": 8_000}, "target"),
    ],
)
def test_a_contradiction_is_named_with_the_remedy(values: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: "):
        resolved(window=10_000, **values)


@pytest.mark.parametrize("window", [0, 1, 9])
def test_a_window_that_holds_nothing_is_an_error(window: int) -> None:
    with pytest.raises(ConfigurationError, match="window"):
        resolved(window=window, trigger=("fraction", 0.8), reserve_tokens=9)


# ---- what the defaults become


def test_the_defaults_of_a_large_window() -> None:
    found = resolved(window=128_000, max_output=16_384)
    assert (found.soft, found.hard) == (102_400, 128_000 - 12_800)
    assert found.keep_tokens == 25_600
    assert (found.keep_messages, found.fold_all, found.min_keep) == (
        None,
        False,
        resolving.MIN_KEEP,
    )
    assert found.target == 61_440
    assert (found.max_digest, found.min_fold_tokens) == (12_800, 500)
    assert found.render == {"role": "human", "clip_result_bytes": found.hard // 2 * 3}


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({"max_result_tokens": 20_000}, 60_000),
        ({"max_result_tokens": 20_000, "trigger": None}, 60_000),
        ({"max_result_tokens": 20_000, "enabled": False}, None),
        ({"max_result_tokens": None}, None),
        ({"trigger": None}, None),
    ],
)
def test_results_are_clipped_as_the_settings_say(values: dict[str, Any], limit: int | None) -> None:
    assert resolved(window=128_000, **values).render.get("clip_result_bytes") == limit


def test_results_may_be_limited_where_no_window_is_known() -> None:
    found = resolved(trigger=("steps", 20), max_result_tokens=20_000)
    assert found.render["clip_result_bytes"] == 60_000


@pytest.mark.parametrize(
    ("window", "max_output", "reserve"),
    [
        (1_000_000, None, 20_000),
        (1_000_000, 8_000, 8_000),
        (100_000, None, 10_000),
        (100_000, 64_000, 10_000),
    ],
)
def test_the_reserve_is_the_smallest_of_three(
    window: int, max_output: int | None, reserve: int
) -> None:
    assert resolved(window=window, max_output=max_output).hard == window - reserve


def test_a_very_large_window_is_not_filled() -> None:
    found = resolved(window=1_000_000)
    assert (found.soft, found.keep_tokens, found.max_digest) == (200_000, 40_000, 16_000)


@pytest.mark.parametrize(("trigger", "messages"), [(("messages", 40), 10), (("steps", 20), 10)])
def test_auto_keep_follows_a_trigger_that_counts(trigger: Any, messages: int) -> None:
    assert resolved(trigger=trigger).keep_messages == messages


def test_keep_zero_messages_folds_everything() -> None:
    assert resolved(trigger=("steps", 20), keep=("messages", 0)).fold_all
    assert not resolved(trigger=("steps", 20), keep=("messages", 1)).fold_all
    assert not resolved(trigger=("steps", 20), keep=None).fold_all
    assert resolved(trigger=("steps", 20), keep=("messages", 5)).min_keep == 0


def test_a_target_is_never_below_what_keep_asks_for() -> None:
    found = resolved(trigger=("tokens", 10_000), keep=("tokens", 9_000))
    assert found.target == 9_000
    assert resolved(trigger=("tokens", 10_000), target=None).target is None


def test_header_and_footer_are_frozen_into_the_rendering() -> None:
    found = resolved(trigger=None, digest_header="[Work]", digest_footer="[/Work]")
    assert found.render == {"role": "human", "header": "[Work]", "footer": "[/Work]"}


@given(st.integers(2_000, 2_000_000), st.integers(1, 300_000) | st.none())
def test_with_any_window_the_defaults_are_in_order(window: int, max_output: int | None) -> None:
    found = resolved(window=window, max_output=max_output)
    assert found.soft is not None
    assert found.hard is not None
    assert found.keep_tokens is not None
    assert found.target is not None
    assert 0 < found.keep_tokens < found.soft < found.hard < window
    assert found.keep_tokens <= found.target < found.soft
    assert 0 < found.max_digest < found.target


@given(st.integers(1, 200_000), st.integers(200, 20_000))
def test_a_segment_is_smaller_than_its_source_and_leaves_room(source: int, digest: int) -> None:
    rules = resolved(trigger=None, max_digest_tokens=digest)
    cap = rules.segment_cap(source)
    assert 1 <= cap <= max(1, min(4_000, max(40, int(digest * 0.3)), source - 1))


def test_a_callable_may_pin() -> None:
    def mine(message: BaseMessage) -> bool:
        return message.id == "mine"

    rules: Sequence[Any] = (mine, {"type": "human"}, [{"type": "human"}], None)
    assert all(callable(resolved(trigger=None, pinned=rule).pinned) for rule in rules)


@pytest.mark.parametrize("key", sorted(ELSEWHERE))
def test_a_name_of_another_package_is_told_as_it_is_called_here(key: str) -> None:
    """`max_tokens` is near `max_result_tokens` by its letters, and something else."""
    with pytest.raises(ConfigurationError, match=rf"'{key}' is not a setting; here it is "):
        CompactionSettings.of({key: 1})
    told = ELSEWHERE[key]
    named = re.findall(r"\b(?:[a-z]+_[a-z_]+|trigger|keep|prompt|archive)\b", told)
    known = {*NAMES, *ONLY_IN_CODE}
    assert any(name in known for name in named) or told.startswith(("not needed", "the first"))


def test_what_other_packages_call_it_is_on_the_page_about_coming_from_them() -> None:
    """And what is renamed there, is told to who keeps to the old name."""
    rows = {name: row for package in PACKAGES for name, row in table(package).items()}
    on_the_page = set(names_in(PAGE.read_text("utf-8")))
    assert ELSEWHERE.keys() - on_the_page == set()
    for name in ELSEWHERE.keys() & rows.keys():
        here = set(names_in(rows[name][0])) & {*NAMES, *ONLY_IN_CODE}
        assert not here or here & set(re.findall(r"\w+", ELSEWHERE[name])), name
    # No argument of the node or the middleware that one would pass: channels, tools, and the rest.
    others = {"edits", "context", "RunningSummary", "running_summary", "messages", "todos"}
    others |= {"compact_conversation", "summarization"}
    assert rows.keys() - ELSEWHERE.keys() - {*NAMES, *ONLY_IN_CODE} == others
