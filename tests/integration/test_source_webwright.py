"""What Webwright does, shown with the preset named after it.

A test is named after the behaviour that it shows; what is done more safely here is shown beside it.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import load_settings, presets
from langgraph_compaction.view.digest import DIGEST_MARK
from tests.integration.sources import Steps, Writer, calls_in, told
from tests.support.doubles import ScriptedModel, assert_folded_once, markers, steps_done, transcript


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
