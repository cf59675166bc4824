"""Lines that tell of a call are read as they were written, whatever stands in them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langgraph_compaction.digest.actions import Action, tells_a_look_up
from langgraph_compaction.digest.calls_told import Told, arguments_in, parsed, tool_in
from langgraph_compaction.digest.facts.deeds import Deed

OUTCOMES = ["ok", "error", "answered", "no result"]
PIECES = ["send(to=ann)", *(f" → {one}" for one in OUTCOMES), ": ", "→", " (×3)", "(×9)", "a", " "]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map(
    lambda parts: " ".join("".join(parts).split())
)
outcomes = st.sampled_from(OUTCOMES)


@given(texts, outcomes, texts, st.integers(1, 10**9 - 1))
def test_what_is_written_is_read_again(call: str, outcome: str, detail: str, times: int) -> None:
    told = Told(call, outcome, detail, times)  # type: ignore[arg-type]
    again = parsed(told.line)
    assert again is not None
    assert again._replace(detail=detail) == told
    assert again.detail.replace("->", "→") == detail.replace("->", "→")
    assert again.line == told.line


@given(texts)
@example("send(to=ann) → ok: → ok:")
def test_a_deed_of_any_line_is_that_line(line: str) -> None:
    deed = Deed.of(line)
    assert Deed.of(deed.line) == deed


@pytest.mark.parametrize("line", ["", "send(to=ann)", "send → okay", "send → ok, at last", "→ ok"])
def test_any_other_line_tells_nothing(line: str) -> None:
    assert parsed(line) is None


def test_the_call_gives_its_tool_and_arguments_back() -> None:
    assert tool_in("send(to=ann, cc=bob, …)") == "send"
    assert arguments_in("send(to=ann, cc=bob, …)") == [("to", "ann"), ("cc", "bob, …")]
    assert arguments_in("send(ann)") == [("", "ann")]


@pytest.mark.parametrize("outcome", ["ok", "error", "answered", ""])
def test_what_an_action_tells_is_known_as_a_look_up_or_not(outcome: str) -> None:
    for name, arguments, looks_up in (
        ("read_file", {"path": "a.py"}, True),
        ("mcp__orders__delete", {"id": 7}, False),
        ("bash", {"command": "ls) → ok: x"}, True),
    ):
        action = Action.of(name, arguments, 0)
        action.outcome = outcome  # type: ignore[assignment]
        action.detail = "it went → ok"
        assert tells_a_look_up(action.told()) is looks_up
