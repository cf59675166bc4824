"""What stagewise does, shown with the preset named after it.

A test is named after the behaviour that it shows; what is done more safely here is shown beside it.
"""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from pydantic import Field

from langgraph_compaction import CompactionNode, ConfigurationError, ModelTier, presets
from langgraph_compaction.digest.prompts import SECTIONS, budget_hint
from langgraph_compaction.view.digest import DIGEST_MARK
from tests.faults.threads import Talk
from tests.integration.sources import Writer, filler, said, talk
from tests.support.doubles import ScriptedModel, transcript

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
        ToolMessage(text, tool_call_id=f"c{n}", name=name, status=status)
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
