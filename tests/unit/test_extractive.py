"""The model-free digest: what it keeps of what was said, where, and in how many tokens."""

import copy
import re

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction.digest.extractive.filling import NOTE
from langgraph_compaction.digest.prompts import SECTIONS
from tests.unit.extracting import answered, called, condensed, section, summary


class TestWhole:
    def test_nothing_becomes_nothing(self) -> None:
        assert summary() == ""
        assert condensed() == ""

    def test_the_first_line_says_what_it_is(self) -> None:
        text = summary(HumanMessage("Please build the parser."))
        assert text.splitlines()[0] == NOTE
        assert "without a model" in NOTE

    def test_sections_stand_in_the_order_of_the_prompt_and_empty_ones_are_left_out(self) -> None:
        text = summary(
            HumanMessage("Please build the parser."),
            AIMessage("We go with a recursive parser because grammars nest."),
            AIMessage("The grammar itself is ready for use."),
            called("write_file", path="src/parser.py", content="x\n" * 100),
            answered("written"),
        )
        found = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert found == [name for name in SECTIONS if name in found]
        assert {"Goal", "Decisions", "Done"} <= set(found)
        assert "Findings" not in found

    def test_equal_spans_give_equal_digests_and_stay_untouched(self) -> None:
        span = [
            HumanMessage([{"type": "text", "text": "Look at this picture, please."}]),
            called("read_file", path="a.py"),
            answered("line\n" * 50),
        ]
        before = copy.deepcopy(span)
        assert summary(*span) == summary(*before)
        assert span == before

    @pytest.mark.parametrize(
        "span",
        [
            [SystemMessage("You are an agent.")],
            [AIMessage("")],
            [HumanMessage("ok")],
            [ToolMessage("", tool_call_id="1")],
            [HumanMessage("!!! ???")],
            [
                HumanMessage(
                    [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
                )
            ],
        ],
    )
    def test_something_is_said_about_any_span(self, span: list[BaseMessage]) -> None:
        assert "\n- " in summary(*span)

    def test_system_messages_stay_in_the_view_and_out_of_the_digest(self) -> None:
        text = summary(
            SystemMessage("Always answer in Latin."), HumanMessage("Translate the book.")
        )
        assert "Latin" not in text

    def test_an_image_leaves_its_marker(self) -> None:
        block = {"type": "image", "mime_type": "image/png", "base64": "iVBORw0KGgo=" * 40}
        text = summary(HumanMessage([{"type": "text", "text": "Use this logo here."}, block]))
        assert "image/png" in text
        assert "iVBORw0KGgo" not in text

    def test_reasoning_is_not_extracted(self) -> None:
        hidden = {"type": "reasoning", "reasoning": "The secret plan is to use port 9999."}
        text = summary(AIMessage([hidden, {"type": "text", "text": "The server listens on 8080."}]))
        assert "8080" in text
        assert "9999" not in text


class TestUser:
    def test_the_goal_is_what_was_asked_first_and_the_newest_request_is_kept_apart(self) -> None:
        text = summary(
            HumanMessage("Build me a web shop for tea."),
            AIMessage("The shop is built and runs on port 8080."),
            HumanMessage("Now translate all product names into French."),
            AIMessage("Half of the names are translated so far."),
        )
        assert section(text, "Goal") == ["Build me a web shop for tea."]
        assert "User: Now translate all product names into French." in section(text, "State now")

    def test_a_request_without_an_answer_is_the_next_step(self) -> None:
        text = summary(
            HumanMessage("Build me a web shop for tea."),
            AIMessage("The shop is built and runs on port 8080."),
            HumanMessage("Now translate all product names into French."),
        )
        assert section(text, "Next step") == ["User: Now translate all product names into French."]

    @pytest.mark.parametrize(
        "directive",
        [
            "Never touch the production database.",
            "The budget is at most 500 dollars.",
            "Please don't change the tests.",
            "不要修改测试文件。",
            "必ずテストを先に書くこと。",
            "Bitte niemals die Tests ändern.",
            "Il ne faut jamais modifier les tests.",
            "Nunca cambies las pruebas del proyecto.",
            "Никогда не меняй тесты проекта.",
            "테스트는 절대 수정하지 마세요.",
        ],
    )
    def test_directives_outlast_small_talk_in_any_language(self, directive: str) -> None:
        chatter = [
            f"That was a lovely walk through district number {number} of the town yesterday."
            for number in range(40)
        ]
        talk = " ".join([*chatter[:20], directive, *chatter[20:]])
        text = summary(HumanMessage("Build a web shop for tea."), HumanMessage(talk), tokens=120)
        assert directive in text

    def test_a_short_answer_is_kept_whole(self) -> None:
        text = summary(
            HumanMessage("Draw a picture of a street in Shanghai."),
            AIMessage("How old is she, what weather, which format?"),
            HumanMessage("1. 20s\n2. sunny\n3. 16:9"),
        )
        assert "20s sunny 16:9" in text

    def test_an_exact_command_after_a_colon_is_kept(self) -> None:
        request = (
            "Fix the bug.\n\nWhen done, issue exactly this command:\n\n```bash\nmake ship\n```\n"
        )
        assert "this command: make ship" in summary(HumanMessage(request + "word " * 80))

    def test_examples_are_no_directives(self) -> None:
        request = (
            "Fix the bug in the parser, please. "
            + "word " * 80
            + "\n<example_response>\nYou must never do what stands here.\n</example_response>"
        )
        assert "stands here" not in summary(HumanMessage(request))

    def test_what_a_program_repeats_ranks_below_what_a_person_says(self) -> None:
        nagging = [HumanMessage(f"You must always give one action, found {n}.") for n in range(9)]
        wish = HumanMessage("Please keep the old parser around.")
        text = summary(HumanMessage("Fix the bug."), *nagging[:5], wish, *nagging[5:], tokens=60)
        assert "old parser" in text


class TestAgent:
    def test_sentences_go_where_they_belong(self) -> None:
        text = summary(
            HumanMessage("Make the importer faster."),
            AIMessage("I will send you the benchmark report tomorrow."),
            AIMessage("After that I will clean up the old scripts."),
            AIMessage("We chose SQLite because the data fits into one file."),
            AIMessage("The importer reads 1200 rows per second."),
            AIMessage("The work on the cache is finished now."),
        )
        assert section(text, "Commitments and open items") == [
            "I will send you the benchmark report tomorrow."
        ]
        assert section(text, "Next step") == ["After that I will clean up the old scripts."]
        assert section(text, "Decisions") == [
            "We chose SQLite because the data fits into one file."
        ]
        assert "The importer reads 1200 rows per second." in section(text, "Findings")
        assert section(text, "State now") == ["The work on the cache is finished now."]

    def test_what_is_announced_and_done_at_once_is_no_open_item(self) -> None:
        call = {"name": "read_file", "args": {"path": "a.py"}, "id": "1"}
        text = summary(
            AIMessage("I will read the importer first.", tool_calls=[call]),
            answered("import csv"),
            AIMessage("The importer uses the csv module."),
        )
        assert section(text, "Commitments and open items") == []
        assert section(text, "Next step") == ["I will read the importer first."]

    def test_items_after_a_lead_in_belong_to_it(self) -> None:
        text = summary(
            AIMessage("The first half works.\n\nStill to do, remaining:\n- delete the old importer")
        )
        assert section(text, "Commitments and open items") == ["delete the old importer"]

    def test_an_intention_from_before_the_newest_request_is_no_next_step(self) -> None:
        text = summary(
            AIMessage("Next I will paint the button blue."),
            HumanMessage("Forget the button and repair the login."),
            AIMessage("The login works again since this morning."),
        )
        assert section(text, "Next step") == []

    def test_a_lead_in_reaches_no_further_than_its_message(self) -> None:
        text = summary(
            AIMessage("We have some work left to do:"),
            AIMessage("The old importer was deleted yesterday."),
        )
        assert section(text, "Commitments and open items") == []

    def test_a_labelled_value_is_a_finding_and_a_bare_word_is_not(self) -> None:
        text = summary(
            AIMessage("Port: 8080\nOverview"), AIMessage("The server has been up since Monday.")
        )
        assert section(text, "Findings") == ["Port: 8080"]
        assert "Overview" not in text

    def test_what_is_said_twice_is_kept_once(self) -> None:
        text = summary(
            AIMessage("The import of the customers took a very long time again."),
            AIMessage("So the import of the customers took a very long time again."),
            AIMessage("The paperwork is done for today."),
        )
        assert len(section(text, "Findings")) == 1

    def test_courtesies_are_left_out(self) -> None:
        text = summary(
            AIMessage("The bug is fixed in main. Let me know if you need anything else!")
        )
        assert "anything else" not in text

    def test_the_newest_of_two_values_stands_last(self) -> None:
        text = summary(
            AIMessage("The staging server listens on port 8080."),
            AIMessage("The staging server listens on port 9090."),
            AIMessage("The paperwork is done for today."),
        )
        findings = section(text, "Findings")
        assert findings.index("The staging server listens on port 9090.") == len(findings) - 1
        assert "The staging server listens on port 8080." in findings
