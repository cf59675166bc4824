"""What Manning's listing 6.6 does, shown with the preset named after it.

A test is named after the behaviour that it shows; what is done more safely here is shown beside it.
"""

import re

from langchain_core.messages import HumanMessage, SystemMessage

from langgraph_compaction import presets
from tests.integration.sources import GENERAL, WINDOW, Steps, Writer, filler, talk
from tests.support.doubles import transcript

MANNING = {**presets.MANNING, "context_window": WINDOW, "token_counter": "estimate"}


def test_manning_measures_before_anything_else() -> None:
    steps = Steps(MANNING, 10)
    assert steps.node.measure(steps.state).tokens < 0.8 * WINDOW
    assert steps.events == []
    assert steps.writer.prompts == []


def test_manning_clears_first_and_does_not_summarise_where_that_is_enough() -> None:
    steps = Steps(MANNING, 20, clear_min_chars=100)
    assert steps.writer.prompts == []
    assert len(steps.of("cleared")) >= 1
    assert len(steps.of("completed")) == 0
    assert steps.node.measure(steps.state).tokens < 0.8 * WINDOW


def test_manning_summarises_where_it_is_still_too_long_after_clearing() -> None:
    steps = Steps(MANNING, 40, clear_min_chars=100)
    assert len(steps.of("cleared")) >= 1
    assert len(steps.of("completed")) >= 1
    plain = Steps(MANNING, 40, clear=False)
    assert len(steps.writer.prompts) < len(plain.writer.prompts)


def test_manning_keeps_the_original_question_and_the_last_five_messages() -> None:
    thread = talk(MANNING, Writer(lambda _: GENERAL))
    task = HumanMessage("Which pump leaks?", id="task")
    view = thread.say(task, *filler(0, 30))
    assert [one.id for one in view[1:]] == ["task", *(f"a{n}" for n in range(25, 30))]
    assert view[1].text == task.text


def test_manning_summarises_between_the_last_position_and_the_tail_and_nothing_twice() -> None:
    writer = Writer(lambda _: GENERAL)
    thread = talk(MANNING, writer)
    thread.say(HumanMessage("Which pump leaks?", id="task"))
    positions = [-1]
    for first in range(0, 100, 10):
        thread.say(*filler(first, first + 10))
        positions.append(thread.record.get("last_summarized_index", -1))
    assert positions == sorted(positions)  # the index of the listing itself never advances
    assert len(set(positions)) > 2
    parts = [
        int(n)
        for prompt in writer.prompts
        for n in re.findall(r"^Part (\d+) was", transcript(prompt), re.MULTILINE)
    ]
    assert parts == [*range(len(parts))]
    last = thread.state["messages"][positions[-1]].id
    assert thread.record["last_summarized_id"] == last == f"a{parts[-1]}"


def test_manning_makes_no_call_where_there_is_nothing_to_do() -> None:
    writer = Writer(lambda _: GENERAL)
    thread = talk(MANNING, writer)
    thread.say(HumanMessage("Which pump leaks?", id="task"), *filler(0, 30))
    made, record = len(writer.prompts), thread.record
    for _ in range(3):
        assert thread.compact.invoke(thread.state, thread.config) == {}
    assert len(writer.prompts) == made
    assert thread.record == record


def test_manning_appends_the_digest_to_the_instructions_under_its_heading() -> None:
    thread = talk(MANNING, Writer(lambda _: GENERAL))
    thread.say(HumanMessage("Which pump leaks?", id="task"), *filler(0, 30))
    first, second, *rest = thread.compact.view(thread.state, system="You mend pumps.")
    assert isinstance(first, SystemMessage)
    assert first.text.startswith("You mend pumps.\n\n[Previous work summary]\n")
    assert "Under way." in first.text
    assert second.id == "task"
    assert not [one for one in rest if isinstance(one, SystemMessage)]
