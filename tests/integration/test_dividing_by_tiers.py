"""A span is divided by the window of who is asked, not by that of a tier that nobody has to ask."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, ModelTier
from tests.support.doubles import ScriptedModel
from tests.support.folding import DIGEST, Recorder, node, state_of

RESULTS = 40
_PLACE = re.compile(r'(?<= n=")\d+')
_PIECE = re.compile(r"piece \d+ of \d+", re.IGNORECASE)


def thread() -> list[BaseMessage]:
    """A task, results of some 250 tokens, and the newest answer."""
    found: list[BaseMessage] = [HumanMessage("Check the pumps.", id="task")]
    for n in range(RESULTS):
        call: Any = {"name": "check", "args": {"n": n}, "id": f"c{n}"}
        found.append(AIMessage("", id=f"a{n}", tool_calls=[call]))
        text = f"Pump {n}. " + f"It was opened, cleaned, closed and run, as no. {n} is. " * 16
        found.append(ToolMessage(text, id=f"t{n}", tool_call_id=f"c{n}"))
    return [*found, HumanMessage("Go on.", id="next"), AIMessage("I do.", id="last")]


def places(recorder: Recorder) -> set[int]:
    """Positions of the messages that it was shown."""
    return {int(n) for n in _PLACE.findall(recorder.read)}


def down(_: list[BaseMessage]) -> str:
    raise ConnectionError("down")


def refusing(_: list[BaseMessage]) -> str:
    return "I'm sorry, but I can't help with that request."


def folded(model: Any, **values: Any) -> dict[str, Any]:
    compact: CompactionNode = node(model, clear=False, **values)
    return dict(compact.invoke(state_of(thread())))


def segments(update: dict[str, Any]) -> Sequence[Any]:
    found: Sequence[Any] = update["compaction"]["segments"]
    return found


@pytest.mark.parametrize("window", [None, 100_000])
def test_the_agent_s_own_window_divides_nothing_while_another_answers(window: int | None) -> None:
    recorder = Recorder()
    own = ScriptedModel(reply=lambda _: AIMessage(DIGEST))
    update = folded(ModelTier(recorder, window=window), agent_model=own, context_window=6_000)
    assert len(recorder.prompts) == len(segments(update)) == 1
    assert own.calls == []
    assert set(range(1, 2 * RESULTS)) <= places(recorder)


def test_a_later_tier_with_a_small_window_costs_the_first_no_calls() -> None:
    first, second = Recorder(), Recorder()
    update = folded([ModelTier(first, window=100_000), ModelTier(second, window=4_000)])
    assert (len(first.prompts), len(second.prompts), len(segments(update))) == (1, 0, 1)


def test_a_first_tier_with_a_small_window_is_asked_part_by_part() -> None:
    first, second = Recorder(), Recorder()
    update = folded([ModelTier(first, window=4_000), ModelTier(second, window=100_000)])
    assert len(first.prompts) == len(segments(update)) > 3
    assert second.prompts == []


@pytest.mark.parametrize("fails", [down, refusing])
def test_what_the_first_could_not_write_is_divided_for_the_one_after_it(fails: Any) -> None:
    first, second = Recorder(fails), Recorder()
    update = folded([ModelTier(first, window=100_000), ModelTier(second, window=4_000)])
    # Each part is a segment of its own: what was finished counts if the next is not.
    assert len(first.prompts) == 1
    assert len(second.prompts) == len(segments(update)) > 3
    assert not _PIECE.search(second.read)
    assert places(second) == places(first) >= set(range(1, 2 * RESULTS))


def test_what_is_left_after_a_small_first_tier_went_down_is_read_at_once_by_a_large_one() -> None:
    calls = iter(range(100))
    first = Recorder(lambda messages: DIGEST if next(calls) < 2 else down(messages))
    second = Recorder()
    update = folded([ModelTier(first, window=4_000), ModelTier(second, window=100_000)])
    assert len(first.prompts) == 3  # one that raised is not asked again
    assert len(second.prompts) == 2  # the part that it could not write, and the rest
    assert len(segments(update)) == 4
    assert places(first) | places(second) >= set(range(1, 2 * RESULTS))


def test_parts_that_are_finished_count_where_the_last_tier_fails_later() -> None:
    calls = iter(range(100))
    second = Recorder(lambda messages: DIGEST if next(calls) < 2 else down(messages))
    update = folded([ModelTier(down, window=100_000), ModelTier(second, window=4_000)])
    assert len(segments(update)) == 2
    assert 0 < update["compaction"]["last_summarized_index"] < 2 * RESULTS


def test_a_window_that_turns_out_smaller_divides_what_is_left() -> None:
    def narrow(messages: list[BaseMessage]) -> str:
        if len(str(messages[-1].content)) > 20_000:
            raise ContextOverflowError("too long")
        return DIGEST

    recorder = Recorder(narrow)
    update = folded(ModelTier(recorder, window=None))
    assert segments(update)
    assert places(recorder) >= set(range(1, 2 * RESULTS))
