"""What four known ways of compacting do, shown with the presets named after them.

Webwright, the context-compaction pattern, stagewise and Manning's listing 6.6. A test is named
after the behaviour that it shows; what is done more safely here is shown beside it.
"""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    ModelTier,
    create_recall_tool,
    load_settings,
    pin,
    presets,
)
from langgraph_compaction.digest.prompts import SECTIONS, budget_hint
from langgraph_compaction.view.digest import DIGEST_MARK
from tests.faults.threads import Talk
from tests.support.doubles import (
    ScriptedModel,
    assert_folded_once,
    assert_valid,
    loop,
    markers,
    request,
    steps_done,
    transcript,
)
from tests.support.runtimes import runtime

SYSTEM = SystemMessage("You are an agent that works step by step.", id="system")
_DONE = re.compile(r"result-(\d{4})")


def told(prompt: Sequence[BaseMessage]) -> str:
    """A digest that verification accepts, with how far the work is."""
    done = max(_DONE.findall(prompt[-1].text), default="0000")
    return (
        f"## Goal\nCarry out the steps.\n## State now\nThe steps up to result-{done} are made.\n"
        "## Next step\nThe step after it."
    )


def calls_in(prompt: Sequence[BaseMessage]) -> list[str]:
    """The markers of the agent's calls that a summary prompt holds, in order."""
    return [name for name in markers(prompt) if name.startswith("call")]


class Writer:
    """A summariser that keeps its prompts."""

    def __init__(self, answer: Callable[[Sequence[BaseMessage]], Any] = told) -> None:
        self.prompts: list[list[BaseMessage]] = []
        self.answer = answer

    def __call__(self, messages: list[BaseMessage]) -> Any:
        self.prompts.append(messages)
        answer = self.answer(messages)
        if isinstance(answer, Exception):
            raise answer
        return answer


def stepper(last: int) -> ScriptedModel:
    """An agent that does steps up to the last, and reads from its view alone how far it is."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        done = max((int(n) for m in messages for n in _DONE.findall(m.text)), default=0)
        if done >= last:
            return AIMessage(f"Finished up to step {done}.")
        call = {"name": "work", "args": {"n": done + 1}, "id": f"c{done + 1}"}
        return AIMessage(f"call-{done + 1:04}", tool_calls=[call])

    return ScriptedModel(reply=reply)


class Steps:
    """An agent at work in a real graph with a checkpointer and a store."""

    def __init__(self, preset: Any, last: int, *, model: Any = None, **values: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.writer = Writer()
        self.agent = stepper(last)
        self.node = CompactionNode(
            model or self.writer, hook=self.events.append, **{**preset, **values}
        )
        self.graph = loop(
            self.node, self.agent, checkpointer=InMemorySaver(), store=InMemoryStore()
        )
        self.config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}
        task = request(1, last)
        task.id = "task"
        self.graph.invoke({"messages": [SYSTEM, task]}, self.config)
        assert_valid(self.agent.calls)
        done = self.state["messages"][-1].text
        assert done == f"Finished up to step {last}."

    @property
    def state(self) -> dict[str, Any]:
        """The thread's values."""
        values: dict[str, Any] = self.graph.get_state(self.config).values
        return values

    @property
    def history(self) -> list[dict[str, Any]]:
        """The values of all its checkpoints, oldest first."""
        return [one.values for one in self.graph.get_state_history(self.config)][::-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == f"compaction.{kind}"]


# ---- Webwright


def test_webwright_compacts_every_n_agent_calls() -> None:
    steps = Steps(presets.WEBWRIGHT, 45)
    assert presets.WEBWRIGHT["trigger"] == ("steps", 20)
    assert [calls_in(prompt) for prompt in steps.writer.prompts] == [
        [f"call-{n:04}" for n in range(1, 21)],
        [f"call-{n:04}" for n in range(21, 41)],
    ]
    assert steps_done(steps.state["messages"]) == [41, 42, 43, 44, 45]


def test_webwright_takes_n_as_a_parameter() -> None:
    steps = Steps(presets.WEBWRIGHT, 13, trigger=("steps", 6))
    assert len(steps.of("completed")) == 2


@pytest.mark.parametrize("n", [0, -1])
def test_webwright_is_off_at_zero_or_less(n: int) -> None:
    steps = Steps(presets.WEBWRIGHT, 45, trigger=("steps", n))
    assert steps.events == []
    assert steps_done(steps.state["messages"]) == [*range(1, 46)]


def test_webwright_folds_everything_but_the_system_message_and_the_task() -> None:
    steps = Steps(presets.WEBWRIGHT, 25)
    after = next(call for call in steps.agent.calls if DIGEST_MARK in (one.id for one in call))
    assert [one.id for one in after] == ["system", "task", DIGEST_MARK]
    assert len(markers(steps.writer.prompts[0])) == 40


def test_webwright_says_after_which_step_and_marks_the_end() -> None:
    steps = Steps(presets.WEBWRIGHT, 25)
    digest = steps.node.view(steps.state)[2]
    rows = digest.text.splitlines()
    assert rows[0] == presets.WEBWRIGHT["digest_header"]
    assert rows[2] == "# Messages 0 to 41 (folded after step 20)"
    assert rows[-1] == presets.WEBWRIGHT["digest_footer"]
    own = Steps(presets.WEBWRIGHT, 25, digest_header="## Notes", digest_footer="## End")
    rows = own.node.view(own.state)[2].text.splitlines()
    assert (rows[0], rows[-1]) == ("## Notes", "## End")


def test_webwright_marks_the_digest_in_its_metadata() -> None:
    steps = Steps(presets.WEBWRIGHT, 25)
    digest = steps.node.view(steps.state)[2]
    assert isinstance(digest, HumanMessage)
    assert digest.additional_kwargs["lc_source"] == "summarization"


def test_webwright_asks_for_its_sections_and_forbids_code_and_done_signals() -> None:
    asked = Steps(presets.WEBWRIGHT, 25).writer.prompts[0][0].text
    headings = re.findall(r"^  ## ([^:\n]+)", asked, re.MULTILINE)
    assert headings == [
        "Goal",
        "Constraints and preferences",
        "Workspace",
        "Findings",
        "State now",
        "Next step",
    ]
    assert "No code blocks, no tool calls" in asked
    assert "no signal that the task is finished" in asked


def test_webwright_asks_once_and_requires_none_of_its_sections() -> None:
    writer = Writer(lambda prompt: f"You made the steps up to {markers(prompt)[-1]}. Go on.")
    steps = Steps(presets.WEBWRIGHT, 25, model=writer)
    assert len(writer.prompts) == len(steps.of("completed")) == 1
    built_in = Writer(writer.answer)
    steps = Steps(presets.WEBWRIGHT, 25, model=built_in, sections=None)
    assert steps.of("rejected")[0]["reason"] == "none of the sections that were asked for"


def test_webwright_takes_any_prose_as_its_prompt() -> None:
    prose = 'Two paragraphs for {whoever} comes next, {"done": false} or not.'
    writer = Writer(lambda prompt: f"You made the steps up to {markers(prompt)[-1]}. Go on.")
    steps = Steps(presets.WEBWRIGHT, 25, model=writer, prompt=prose)
    assert writer.prompts[0][0].text == prose
    assert [event["model"] for event in steps.of("completed")] == ["Writer"]
    assert steps.of("rejected") == []


@pytest.mark.parametrize(
    "answer",
    [
        ConnectionError("refused"),
        TimeoutError("none"),
        "Error: 500 Internal Server Error",
        "I'm sorry, I cannot help with that.",
        "",
    ],
    ids=["raised", "timeout", "error text", "refusal", "empty"],
)
def test_webwright_changes_nothing_where_the_answer_failed(answer: Any) -> None:
    steps = Steps(presets.WEBWRIGHT, 25, model=Writer(lambda _: answer))
    assert steps.of("completed") == []
    assert "segments" not in steps.state["compaction"]
    assert steps_done(steps.state["messages"]) == [*range(1, 26)]
    assert steps.node.view(steps.state) == steps.state["messages"]
    assert "the digest is as it was" in steps.of("failed")[0]["reason"]


@pytest.mark.parametrize("where", ["content", "response_metadata", "additional_kwargs"])
def test_webwright_takes_the_text_from_content_or_the_final_response(where: str) -> None:
    def answered(messages: list[BaseMessage]) -> AIMessage:
        if where == "content":
            return AIMessage(told(messages), response_metadata={"final_response": "Another one."})
        return AIMessage("", **{where: {"final_response": told(messages)}})

    steps = Steps(presets.WEBWRIGHT, 25, model=ScriptedModel(reply=answered))
    assert "The steps up to result-0020 are made." in steps.node.view(steps.state)[2].text
    assert len(steps.of("completed")) == 1


def test_webwright_never_erases_history_for_an_empty_answer() -> None:
    empty = ScriptedModel(reply=lambda _: AIMessage("", response_metadata={"final_response": " "}))
    writer = Writer()
    steps = Steps(presets.WEBWRIGHT, 25, model=[empty, writer])
    assert [event["reason"] for event in steps.of("rejected")] == ["empty"]
    assert [event["model"] for event in steps.of("completed")] == ["Writer"]
    assert len(markers(writer.prompts[0])) == 40


def test_webwright_persists_the_compacted_transcript_at_once() -> None:
    steps = Steps(presets.WEBWRIGHT, 25)
    checkpoint = next(one for one in steps.history if one["compaction"].get("segments"))
    assert [one.id for one in checkpoint["messages"]] == ["system", "task"]
    view = steps.node.view(steps.state)
    shown = [one for one in view if one.id != DIGEST_MARK]
    assert shown == steps.state["messages"]
    assert steps.of("completed")[0]["pruned"] == 40


def test_webwright_gives_one_digest_for_all_that_went_before() -> None:
    steps = Steps(presets.WEBWRIGHT, 45)
    (segment,) = steps.state["compaction"]["segments"]
    assert (segment["first_index"], segment["last_index"]) == (0, 81)
    second = transcript(steps.writer.prompts[1])
    assert second.startswith("<record>\n")
    assert "The steps up to result-0020 are made." in second
    assert "The steps up to result-0040 are made." in segment["text"]
    assert_folded_once([name for prompt in steps.writer.prompts for name in calls_in(prompt)])


def test_webwright_merges_settings_files_recursively(tmp_path: Path) -> None:
    base, more = tmp_path / "base.yaml", tmp_path / "more.yaml"
    base.write_text("preset: webwright\ntrigger: {steps: 30}\nmin_keep: 2\n", "utf-8")
    more.write_text("trigger: {tokens: 900}\nsections: {Findings: what works}\n", "utf-8")
    found = load_settings(base, more)
    assert found["trigger"] == {"steps": 30, "tokens": 900}
    assert found["sections"] == {**presets.WEBWRIGHT["sections"], "Findings": "what works"}
    assert (found["min_keep"], found["history"]) == (2, "prune")
    steps = Steps({"settings": found}, 35)
    assert len(steps.of("completed")) == 1
    assert "  ## Findings: what works\n" in steps.writer.prompts[0][0].text


# ---- the context-compaction pattern

WINDOW = 4_000
"""Tokens of the pattern's window: 80% of it are some twenty steps."""
PATTERN = {**presets.PATTERN, "context_window": WINDOW, "token_counter": "estimate"}


def test_pattern_tracks_the_utilisation_at_every_step() -> None:
    steps = Steps(PATTERN, 40, clear=False)
    measured = [steps.node.measure(values) for values in steps.history if values.get("messages")]
    assert all(one.window == WINDOW for one in measured)
    shares = [one.utilisation for one in measured]
    assert None not in shares
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


def talk(preset: Any, writer: Any, *, way: str = "invoke", **values: Any) -> Talk:
    """A thread that a test feeds message by message."""
    return Talk(CompactionNode(writer, **{**preset, **values}), way=way)


def said(name: str, text: str, words: int = 100) -> AIMessage:
    """Something that the agent said, with as many words more."""
    return AIMessage(f"{text} " + " ".join(f"{name}{n}" for n in range(words)), id=name)


def filler(first: int, last: int, words: int = 100) -> list[BaseMessage]:
    return [said(f"a{n}", f"Part {n} was looked at.", words) for n in range(first, last)]


GENERAL = "## Goal\nGo on.\n## State now\nUnder way.\n## Next step\nThe next part."


def test_pattern_keeps_task_and_hard_constraints_outside_the_compactable_region() -> None:
    writer = Writer(lambda _: GENERAL)
    thread = talk(PATTERN, writer)
    rule = pin(HumanMessage("Never touch the table invoices_2019.", id="rule"))
    task = HumanMessage("Move the tables to the new server.", id="task")
    thread.say(task, said("a", "Understood."), rule)
    for first in range(0, 60, 10):
        view = thread.say(*filler(first, first + 10))
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


# ---- stagewise

STAGEWISE = {**presets.STAGEWISE, "context_window": 20_000, "background": False}
"""In a window of 20,000 tokens it folds at 13,000, and keeps 4,000; not in the background, so that
a test knows when."""
WAIT = 10.0
"""Seconds after which a test that waits in vain gives up."""


def prose(prompt: Sequence[BaseMessage]) -> str:
    """A briefing of nearly the length that is asked for, with a heading for its topic."""
    asked = re.search(r"in at most (\d+) tokens", prompt[-1].text)
    assert asked
    words = (f"fact{n}" for n in range(1_000, 1_000 + int(asked[1]) * 4 // 9 - 5))
    return "## The pumps\nYou looked at the parts. " + " ".join(words)


@pytest.mark.parametrize(
    ("preset", "window", "trigger"),
    [
        (presets.STAGEWISE, 100_000, 65_000),
        (presets.STAGEWISE, 1_000_000, 200_000),
        (presets.STAGEWISE_CHAT, 100_000, 50_000),
        (presets.STAGEWISE_CHAT, 1_000_000, 200_000),
    ],
)
def test_stagewise_folds_above_the_smaller_of_a_share_and_200k(
    preset: Any, window: int, trigger: int
) -> None:
    node = CompactionNode(Writer(), **preset, context_window=window)
    assert node.measure({"messages": [], "compaction": {}}).trigger == trigger


def test_stagewise_folds_after_the_step_that_passes_the_trigger() -> None:
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 50))
    assert thread.compact.measure(thread.state).tokens < 13_000
    assert writer.prompts == []
    thread.say(*filler(50, 65))
    assert thread.kinds == ["started", "completed"]
    assert thread.events[-1]["tokens_before"] > 13_000 > thread.events[-1]["tokens_after"]


class Gate(Writer):
    """A summariser that answers when it is let."""

    def __init__(self) -> None:
        super().__init__(prose)
        self.open = threading.Event()

    def __call__(self, messages: list[BaseMessage]) -> Any:
        self.prompts.append(messages)
        assert self.open.wait(WAIT)
        return self.answer(messages)

    def let(self, thread: Talk) -> None:
        """Answer, and wait until the answer is there."""
        self.open.set()
        until = time.monotonic() + WAIT
        while thread.compact.explain(thread.state, thread.config).action == "none":
            assert time.monotonic() < until
            time.sleep(0.005)


def beside(gate: Gate) -> Talk:
    """A thread whose fold is under way."""
    thread = talk({**STAGEWISE, "background": presets.STAGEWISE["background"]}, gate)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 62))
    until = time.monotonic() + WAIT
    while not gate.prompts:
        assert time.monotonic() < until
        time.sleep(0.005)
    return thread


def test_stagewise_does_not_block_the_agent_and_never_folds_twice_at_once() -> None:
    gate = Gate()
    thread = beside(gate)
    assert DIGEST_MARK not in [one.id for one in thread.views[-1]]
    thread.say(*filler(62, 64))
    thread.say(*filler(64, 66))
    assert len(gate.prompts) == 1
    gate.let(thread)
    view = thread.say(*filler(66, 67))
    assert len(gate.prompts) == 1
    assert DIGEST_MARK in [one.id for one in view]
    assert thread.kinds.count("completed") == 1


def test_stagewise_keeps_ten_messages_where_they_fit() -> None:
    thread = talk(STAGEWISE, Writer(prose))
    view = thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert [one.id for one in view[2:]] == [f"a{n}" for n in range(60, 70)]
    more = talk(STAGEWISE, Writer(prose), keep=[("fraction", 0.2), ("messages", 12)])
    view = more.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert [one.id for one in view[2:]] == [f"a{n}" for n in range(58, 70)]


def test_stagewise_keeps_fewer_where_ten_do_not_fit_its_budget() -> None:
    thread = talk(STAGEWISE, Writer(prose))
    view = thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 25, words=600))
    counter = thread.compact._visits.counter
    assert 2 <= len(view[2:]) < 10
    assert counter.messages(view[2:]) <= 4_000
    one_more = thread.state["messages"][-len(view[2:]) - 2 :]
    assert counter.messages(one_more) > 4_000


def test_stagewise_keeps_a_single_message_over_budget_alone_and_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "langgraph_compaction")
    thread = talk(STAGEWISE, Writer(prose))
    giant = HumanMessage("Read this: " + "page " * 10_800, id="giant")
    view = thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 15), giant)
    assert [one.id for one in view] == ["task", DIGEST_MARK, "giant"]
    assert view[-1].text == giant.text
    thread.say()
    assert thread.kinds[-1] == "skipped"
    assert "The trigger fired, but" in caplog.records[-1].getMessage()


def test_stagewise_skips_where_nothing_stands_before_the_boundary() -> None:
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    view = thread.say(HumanMessage("Read this: " + "page " * 10_800, id="giant"))
    assert [one.id for one in view] == ["giant"]
    assert thread.kinds == ["skipped"]
    assert writer.prompts == []


def test_stagewise_keeps_less_than_the_trigger_or_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^keep: .* Keep less than the trigger"):
        CompactionNode(Writer(), **{**STAGEWISE, "keep": ("fraction", 0.65)})


def test_stagewise_counts_a_quarter_of_the_characters_and_400_a_message() -> None:
    node = CompactionNode(Writer(), **STAGEWISE)
    messages = [HumanMessage("x" * n) for n in (0, 1, 399, 4_000)]
    measured = node.measure({"messages": messages, "compaction": {}})
    assert measured.counter == "chars/4+400"
    assert measured.tokens == 100 + 101 + 200 + 1_100


def test_stagewise_rewrites_one_briefing_below_its_target_with_a_hint_of_how_full_it_is() -> None:
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    thread.say(HumanMessage("Check the parts.", id="task"))
    for first in range(0, 160, 8):
        view = thread.say(*filler(first, first + 8, words=300))
        assert len(thread.record.get("segments", [])) <= 1
        assert sum(len(one.text) for one in view if one.id == DIGEST_MARK) < 30_000 + 1_000
    asked = [prompt[-1].text for prompt in writer.prompts]
    assert len(asked) > 5
    hints = [next((n for n in (0.5, 0.7, 0.9) if budget_hint(n) in one), None) for one in asked]
    assert hints[0] is None  # there is nothing yet that could be tightened
    assert list(dict.fromkeys(hints[1:])) == [0.5, 0.7, 0.9]  # fuller and fuller


def test_stagewise_gives_the_previous_briefing_as_such_and_older_messages_never_again() -> None:
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    thread.say(*filler(70, 130))
    first, second = (transcript(prompt) for prompt in writer.prompts)
    assert "<record>" not in first
    assert second.startswith("<record>\n## The pumps\n")
    parts = [re.findall(r"^Part (\d+) was", one, re.MULTILINE) for one in (first, second)]
    assert set(parts[0]).isdisjoint(parts[1])
    assert sorted(map(int, parts[0] + parts[1])) == [*range(120)]


def test_stagewise_shows_calls_as_one_line_each_with_attachments_and_mentions() -> None:
    made: list[tuple[str, Any, str, str]] = [
        ("read", {"path": "src/pump.py"}, "x = 1\n" * 50, "success"),
        ("executeShellCommand", {"command": "pytest -q"}, "4 passed", "success"),
        ("executeShellCommand", {"command": "make"}, "make: no rule", "error"),
        ("delete", {"path": "src/old.py"}, "denied", "error"),
        ("futureTool", {"of": "later"}, "{}", "success"),
        ("askUserQuestions", {"title": "Which pump?"}, "The second one.", "success"),
    ]
    calls = [{"name": one[0], "args": one[1], "id": f"c{n}"} for n, one in enumerate(made)]
    request_made = HumanMessage(
        [
            {"type": "text", "text": "Mend it, as in the picture."},
            {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"},
            {"type": "file", "file": {"filename": "plan.pdf", "file_data": "JVBERi0="}},
            {"type": "mention", "path": "src/button.tsx"},
        ],
        id="m",
    )
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    thread.say(HumanMessage("Look after the pumps.", id="task"), said("a", "Yes."), request_made)
    results = [
        ToolMessage(text, tool_call_id=f"c{n}", name=name, status=status)  # type: ignore[arg-type]
        for n, (name, _, text, status) in enumerate(made)
    ]
    thread.say(AIMessage("On it.", tool_calls=calls, id="b"), *results)
    thread.say(HumanMessage("Go on.", id="next"), *filler(0, 70))
    text = transcript(writer.prompts[0])
    lines = re.findall(r"<call[^>]*>(\[.*\])</call>", text)
    assert lines == [
        "[read: src/pump.py → ok]",
        "[shell: pytest -q → ok]",
        "[shell: make → ✗ make: no rule]",
        "[deleted: src/old.py → ✗ denied]",
        "[tool-futureTool → ok]",
    ]
    assert "x = 1" not in text
    assert "The second one." in text  # the user's own answer is no mere outcome
    assert "[image image/png" in text
    assert "[file plan.pdf" in text
    assert "src/button.tsx" in text
    assert '<message n="2" role="user">' in text


def test_stagewise_asks_for_headings_by_topic_in_flowing_prose() -> None:
    writer = Writer(prose)
    thread = talk(STAGEWISE, writer)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    asked = writer.prompts[0][0].text
    assert "Give each topic a heading of its own (## ...), and write flowing prose" in asked
    assert 'Address the agent as "you"; call the user "the user".' in asked
    assert not [name for name in SECTIONS if f"## {name}" in asked]
    assert thread.kinds == ["started", "completed"]  # no section was missing
    assert len(writer.prompts) == 1


class Asked(ScriptedModel):
    """A chat model that takes temperature and length, and keeps what it was called with."""

    temperature: float | None = None
    max_tokens: int | None = None
    options: list[dict[str, Any]] = Field(default_factory=list)

    def _generate(self, messages: Any, *rest: Any, **more: Any) -> Any:
        self.options.append(more)
        return super()._generate(messages, *rest)


def test_stagewise_asks_one_model_after_the_other_and_the_agents_own_last() -> None:
    order: list[str] = []

    def model(name: str, answer: Any) -> Any:
        def asked(messages: list[BaseMessage]) -> Any:
            order.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer or prose(messages)

        return asked

    own = ScriptedModel(reply=lambda messages: AIMessage(model("own", "")(messages)))
    cascade = [model("first", TimeoutError("none")), model("second", "Too short.")]
    thread = talk(STAGEWISE, cascade, agent_model=own)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert order == ["first", "second", "own"]
    assert [e["reason"] for e in thread.events if e["type"].endswith("rejected")] == [
        "only 10 characters"
    ]
    assert thread.kinds[-1] == "completed"
    order.clear()
    failing = ScriptedModel(reply=model("own", ConnectionError("refused")))
    thread = talk(STAGEWISE, [failing, model("second", "")], agent_model=failing)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert order == ["own", "second"]  # it was tried already


def test_stagewise_gives_each_30_seconds_a_low_temperature_and_20_000_tokens_at_most() -> None:
    model = Asked(reply=lambda messages: AIMessage(prose(messages)))
    tier = ModelTier(model, max_output=20_000)
    assert (tier.timeout, tier.temperature) == (30.0, 0.1)
    thread = talk(STAGEWISE, tier)
    thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    (options,) = model.options
    assert options["temperature"] == 0.1
    assert options["max_tokens"] <= 20_000


def test_stagewise_gives_up_on_a_model_in_time_and_asks_the_next() -> None:
    async def hangs(_: list[BaseMessage]) -> str:
        await asyncio.sleep(WAIT)
        return "never"

    writer = Writer(prose)
    thread = talk(STAGEWISE, [ModelTier(hangs, timeout=0.05), writer], way="ainvoke")
    view = thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert thread.kinds == ["started", "tier_failed", "completed"]
    assert len(writer.prompts) == 1
    assert DIGEST_MARK in [one.id for one in view]


def test_stagewise_fails_silently_for_the_agent_and_tells_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = talk(STAGEWISE, Writer(lambda _: ConnectionError("refused")))
    view = thread.say(HumanMessage("Check the parts.", id="task"), *filler(0, 70))
    assert view == thread.state["messages"][:-1]
    assert thread.kinds == ["started", "tier_failed", "failed"]
    assert any(
        record.levelno >= logging.WARNING and "compaction.failed" in record.getMessage()
        for record in caplog.records
    )


def test_stagewise_finds_the_boundary_again_by_id_after_the_call() -> None:
    gate = Gate()
    thread = beside(gate)
    thread.say(*filler(62, 64))
    thread.graph.update_state(thread.config, {"messages": [RemoveMessage("a60")]})
    gate.let(thread)
    view = thread.say(*filler(64, 65))
    assert thread.kinds.count("completed") == 1
    assert thread.record["last_summarized_id"] == "a51"
    shown = [one.id for one in view]
    assert shown[:2] == ["task", DIGEST_MARK]
    kept = [f"a{n}" for n in range(52, 65) if n != 60]
    assert [name for name in shown if name in {f"a{n}" for n in range(70)}] == kept


def test_stagewise_drops_the_answer_with_a_warning_where_the_boundary_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    thread = beside(gate)
    thread.graph.update_state(thread.config, {"messages": [RemoveMessage("a51")]})
    gate.let(thread)
    view = thread.say(*filler(62, 63))
    assert thread.kinds.count("dropped") == 1
    assert thread.kinds.count("completed") == 0
    assert DIGEST_MARK not in [one.id for one in view]
    (told_once,) = [one for one in caplog.records if "compaction.dropped" in one.getMessage()]
    assert told_once.levelno == logging.WARNING


# ---- Manning, listing 6.6

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
