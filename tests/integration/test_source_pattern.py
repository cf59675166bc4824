"""What the context-compaction pattern does, shown with the preset named after it.

A test is named after the behaviour that it shows; what is done more safely here is shown beside it.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    create_recall_tool,
    pin,
    presets,
)
from langgraph_compaction.view.digest import DIGEST_MARK
from tests.integration.sources import GENERAL, WINDOW, Steps, Writer, filler, said, talk
from tests.support.doubles import ScriptedModel, transcript
from tests.support.runtimes import runtime

PATTERN = {**presets.PATTERN, "context_window": WINDOW, "token_counter": "estimate"}


def test_pattern_tracks_the_utilisation_at_every_step() -> None:
    steps = Steps(PATTERN, 40, clear=False)
    measured = [steps.node.measure(values) for values in steps.history if values.get("messages")]
    assert all(one.window == WINDOW for one in measured)
    shares = [share for one in measured if (share := one.utilisation) is not None]
    assert len(shares) == len(measured)
    assert max(shares) < 0.9
    drops = [n for n in range(1, len(shares)) if shares[n] < shares[n - 1]]
    assert len(drops) == len(steps.of("completed")) >= 1


def test_pattern_folds_at_80_percent() -> None:
    steps = Steps(PATTERN, 40, clear=False)
    for event in steps.of("completed"):
        assert 0.8 * WINDOW <= event["tokens_before"] < 0.9 * WINDOW
        assert event["tokens_after"] < 0.6 * 0.8 * WINDOW + 1
    idle = Steps(PATTERN, 17, clear=False)
    assert idle.events == []
    assert idle.node.measure(idle.state).tokens < 0.8 * WINDOW


def test_pattern_replaces_the_older_span_by_a_digest_of_goals_and_commitments() -> None:
    steps = Steps(PATTERN, 40, clear=False)
    asked = steps.writer.prompts[0][0].text
    for section in ("Goal", "Decisions", "Commitments and open items", "Constraints"):
        assert f"  ## {section}" in asked
    view = steps.node.view(steps.state)
    assert "The steps up to result-" in view[2].text
    folded = steps.of("completed")[-1]["last_index"]
    assert steps.state["messages"][folded] not in view
    assert len(steps.state["messages"]) == 2 + 2 * 40 + 1  # the log itself is whole


def test_pattern_keeps_recent_turns_word_for_word() -> None:
    steps = Steps(PATTERN, 40, clear=False)
    before, after = next(
        (steps.agent.calls[n - 1], call)
        for n, call in enumerate(steps.agent.calls)
        if DIGEST_MARK in (one.id for one in call)
    )
    recent = after[3:]
    assert len(recent) >= presets.PATTERN["min_keep"]
    assert [one.text for one in recent[:-2]] == [one.text for one in before[-len(recent) + 2 :]]
    kept = steps.node._visits.counter.messages(recent)
    assert kept <= 0.2 * WINDOW or len(recent) == presets.PATTERN["min_keep"]


def test_pattern_keeps_task_and_hard_constraints_outside_the_compactable_region() -> None:
    writer = Writer(lambda _: GENERAL)
    thread = talk(PATTERN, writer)
    rule = pin(HumanMessage("Never touch the table invoices_2019.", id="rule"))
    task = HumanMessage("Move the tables to the new server.", id="task")
    thread.say(task, said("a", "Understood."), rule)
    for first in range(0, 60, 10):
        thread.say(*filler(first, first + 10))
    view = thread.views[-1]
    assert thread.kinds.count("completed") >= 2
    assert [one.id for one in view[:3]] == ["task", DIGEST_MARK, "rule"]
    assert [view[0].text, view[2].text] == [task.text, rule.text]
    for prompt in writer.prompts:
        assert "invoices_2019" not in transcript(prompt)


def test_pattern_lost_detail_is_referenced_and_can_be_recalled() -> None:
    thread = talk(PATTERN, Writer(lambda _: GENERAL), recall_tool="recall")
    detail = "The dump is /srv/dumps/a-7731.sql, made with pg_dump 16.2."
    thread.say(HumanMessage("Move the tables.", id="task"), said("d", detail))
    view = thread.say(*filler(0, 30))
    assert "d" in thread.hidden
    digest = next(one.text for one in view if one.id == DIGEST_MARK)
    assert "/srv/dumps/a-7731.sql" in digest
    recall: Any = create_recall_tool(name="recall")
    found = recall.func(query="pg_dump", runtime=runtime(thread.state, thread.config))
    assert detail in str(found)


def test_pattern_a_rewritten_commitment_stands_beside_the_users_own_words() -> None:
    rewritten = GENERAL.replace("Go on.", "The user wants it done quickly, at some point.")
    thread = talk(PATTERN, Writer(lambda _: rewritten))
    words = "You must never deploy on a Friday, and always ask Ada before a migration."
    thread.say(HumanMessage("Move the tables.", id="task"), said("a", "Yes."))
    thread.say(HumanMessage(words, id="rule"), *filler(0, 4))
    view = thread.say(HumanMessage("Go on now.", id="next"), *filler(4, 34))
    assert "rule" in thread.hidden
    assert words in next(one.text for one in view if one.id == DIGEST_MARK)


def test_pattern_an_answer_that_is_no_record_is_rejected() -> None:
    answers = iter(["Sure! I will move the next table now and tell you when it is done.", GENERAL])
    thread = talk(PATTERN, [Writer(lambda _: next(answers)), Writer(lambda _: next(answers))])
    thread.say(HumanMessage("Move the tables.", id="task"), *filler(0, 34))
    assert thread.kinds.count("rejected") == 1
    assert thread.kinds.count("completed") == 1


def test_pattern_spares_the_extra_call_where_clearing_is_enough() -> None:
    steps = Steps(PATTERN, 20, clear_min_chars=100)
    assert steps.writer.prompts == []
    assert len(steps.of("cleared")) >= 1
    assert "segments" not in steps.state["compaction"]


def test_pattern_lets_a_cheaper_model_write_and_the_agents_own_only_last() -> None:
    cheap, dear = Writer(), ScriptedModel(reply=lambda _: AIMessage(GENERAL))
    steps = Steps(PATTERN, 25, clear=False, model=cheap, agent_model=dear)
    assert [event["model"] for event in steps.of("completed")] == ["Writer"]
    assert dear.calls == []
    broken = Writer(lambda _: ConnectionError("refused"))
    steps = Steps(PATTERN, 25, clear=False, model=broken, agent_model=dear)
    assert len(broken.prompts) == len(steps.of("completed")) == 1
    assert len(dear.calls) >= 1


def test_pattern_keeps_no_tail_that_is_too_small() -> None:
    steps = Steps(PATTERN, 40, clear=False, keep=("tokens", 1))
    for call in steps.agent.calls:
        if DIGEST_MARK in (one.id for one in call):
            assert len(call) >= 3 + presets.PATTERN["min_keep"]
    with pytest.raises(ConfigurationError, match=r"^keep: .* Keep less than the trigger"):
        CompactionNode(Writer(), **{**PATTERN, "keep": ("fraction", 0.8)})
