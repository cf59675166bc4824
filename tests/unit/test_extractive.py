"""The model-free digest: what it keeps of a span, where, and in how many tokens.

Counters here are as plain as can be (a token a word, or a character), so that every budget in a
test can be checked by hand.
"""

import copy
import re
import time

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.extractive.actions import Action
from langgraph_compaction.digest.extractive.filling import NOTE, SHORT_NOTE
from langgraph_compaction.digest.prompts import SECTIONS
from langgraph_compaction.digest.references import references
from langgraph_compaction.digest.sentences import clean, sentences
from langgraph_compaction.errors import ConfigurationError

AMPLE = 2_000


def words(text: str) -> int:
    return len(text.split())


def summary(*messages: BaseMessage, tokens: int = AMPLE) -> str:
    return ExtractiveSummarizer().summarize(messages, max_tokens=tokens, count=words)


def condensed(*texts: str, tokens: int = AMPLE) -> str:
    return ExtractiveSummarizer().condense(texts, max_tokens=tokens, count=words)


def section(text: str, name: str) -> list[str]:
    """The bullets under a heading, without their marks."""
    parts = text.split(f"\n## {name}\n")
    return re.findall(r"^- (.*)$", parts[1].split("\n\n")[0], re.MULTILINE) if parts[1:] else []


def called(name: str, call_id: str = "1", /, **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def answered(text: str, call_id: str = "1", status: str = "success") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, status=status)


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


class TestActions:
    def test_a_call_is_one_line_with_its_outcome(self) -> None:
        text = summary(called("send_mail", to="ada@example.org"), answered("Queued as 77."))
        assert section(text, "Done") == ["send_mail(ada@example.org) → ok: Queued as 77."]

    def test_effects_outlast_reads(self) -> None:
        reads = [
            message
            for number in range(30)
            for message in (called("read_file", path=f"src/module{number}.py"), answered("code"))
        ]
        booking = [called("book_flight", flight="HAT028"), answered("Booked.")]
        text = summary(*reads[:30], *booking, *reads[30:], tokens=60)
        assert "book_flight(HAT028) → ok" in text

    def test_effects_that_were_made_outlast_those_that_failed(self) -> None:
        failures = [
            message
            for number in range(20)
            for message in (called("book_flight", flight=f"HAT{number}"), answered("Error: full"))
        ]
        text = summary(called("send_voucher", to="ada"), answered("Sent."), *failures, tokens=60)
        assert "send_voucher(ada) → ok: Sent." in text

    @pytest.mark.parametrize(
        ("command", "effect"),
        [
            ("cd /repo && git commit -m 'fix'", True),
            ("rm -rf build", True),
            ("echo hi > notes.txt", True),
            ("grep -rn parser src | head", False),
            ("cat src/a.py", False),
        ],
    )
    def test_shell_commands_count_by_what_they_do(self, command: str, effect: bool) -> None:
        action = Action.of("bash", {"command": command}, 0)
        assert action.effect is effect
        assert action.line == f"bash({command.removeprefix('cd /repo && ')})"

    @pytest.mark.parametrize(
        ("name", "effect"),
        [("updateUser", True), ("send_mail", True), ("get_update", False), ("lookup", False)],
    )
    def test_other_tools_count_by_their_names(self, name: str, effect: bool) -> None:
        assert Action.of(name, {"id": 7}, 0).effect is effect

    def test_equal_calls_collapse_with_a_count(self) -> None:
        pair = [called("edit", path="a.py", old="x\n" * 50, new="y\n" * 50), answered("ok")]
        assert section(summary(*pair * 3), "Done") == ["edit(path=a.py, …) → ok (×3)"]

    @pytest.mark.parametrize(
        "result",
        [
            answered("it broke", status="error"),
            answered("Error: no such customer"),
            answered("<returncode>1</returncode>\n<output>make: nothing</output>"),
            answered("Traceback (most recent call last):\n  File 'a'\nKeyError: 'b'"),
        ],
    )
    def test_errors_are_told_apart(self, result: ToolMessage) -> None:
        text = summary(called("update_user", user="u_12"), result)
        assert section(text, "Done")[0].startswith("update_user(u_12) → error")

    def test_a_call_without_a_result_is_open(self) -> None:
        text = summary(called("book_flight", flight="HAT028"), HumanMessage("Wait a moment there."))
        assert section(text, "Commitments and open items") == ["book_flight(HAT028) → no result"]
        assert section(text, "Done") == []

    def test_results_pair_with_the_newest_call_of_their_id(self) -> None:
        text = summary(
            called("send_mail", "1", to="ada"), answered("sent to ada", "1"),
            called("send_mail", "1", to="bob"), answered("Error: no such user", "1"),
        )  # fmt: skip
        assert section(text, "Done") == [
            "send_mail(ada) → ok: sent to ada",
            "send_mail(bob) → error: Error: no such user",
        ]

    def test_calls_that_the_provider_runs_are_told_too(self) -> None:
        blocks: list[str | dict[str, object]] = [
            {
                "type": "server_tool_use",
                "id": "s1",
                "name": "web_search",
                "input": {"query": "tea"},
            },
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            {"type": "text", "text": "Tea is grown in 35 countries."},
        ]
        assert section(summary(AIMessage(blocks)), "Done") == ["web_search(tea) → ok"]

    def test_commands_written_as_code_blocks_count_as_calls(self) -> None:
        text = summary(
            HumanMessage("Please clean the repository."),
            AIMessage("I remove the build folder.\n\n```bash\nrm -rf build\n```"),
            HumanMessage("<returncode>0</returncode>\n<output>removed 12 files</output>"),
        )
        assert section(text, "Done") == ["command(rm -rf build) → ok: removed 12 files"]
        assert section(text, "Goal") == ["Please clean the repository."]

    def test_the_newest_to_do_list_tells_what_is_open_and_what_is_done(self) -> None:
        old = [{"content": "write the parser", "status": "pending"}]
        new = [
            {"content": "write the parser", "status": "completed"},
            {"content": "write the docs", "status": "pending"},
        ]
        text = summary(called("write_todos", "1", todos=old), called("write_todos", "2", todos=new))
        assert section(text, "Commitments and open items") == ["[pending] write the docs"]
        assert section(text, "Done") == ["[completed] write the parser"]

    def test_a_generic_message_speaks_by_its_role(self) -> None:
        text = summary(
            ChatMessage(content="You are a clerk.", role="system"),
            ChatMessage(content="Order forty chairs, please.", role="user"),
            ChatMessage(content="The order number is 4711.", role="assistant"),
        )
        assert section(text, "Goal") == ["Order forty chairs, please."]
        assert section(text, "State now") == ["The order number is 4711."]
        assert "clerk" not in text


def surveyed(first: int, last: int) -> list[BaseMessage]:
    """An agent that states a finding beside each call, and what the calls print."""
    span: list[BaseMessage] = []
    for number in range(first, last + 1):
        name, path = f"LIMIT_{number}", f"pkg/mod_{number}.py"
        call = {"name": "read_file", "args": {"path": f"pkg/mod_{number + 1}.py"}, "id": "1"}
        said = f"Finding {number}: `{path}` defines {name} = {number * 7} (1 constant)."
        printed = "This module parses the values of a form.\nIt holds 12 helpers, see docs/form.md."
        span += [AIMessage(said, tool_calls=[call]), answered(printed)]
    return span


def findings(text: str) -> int:
    return len(set(re.findall(r"Finding \d+: .* constant\)", text)))


def characters(text: str) -> int:
    return len(text) // 4


class TestStated:
    @pytest.mark.parametrize(("tokens", "least"), [(150, 5), (250, 8), (400, 8), (700, 8)])
    def test_what_the_agent_states_beside_calls_goes_before_what_they_print(
        self, tokens: int, least: int
    ) -> None:
        text = ExtractiveSummarizer().summarize(surveyed(1, 8), max_tokens=tokens, count=characters)
        assert findings(text) >= least

    def test_nothing_printed_is_quoted_while_a_statement_is_left_out(self) -> None:
        for tokens in range(40, 400, 10):
            text = ExtractiveSummarizer().summarize(
                surveyed(1, 8), max_tokens=tokens, count=characters
            )
            assert findings(text) >= 7 or ("read_file(" not in text and "read_file →" not in text)

    def test_with_room_results_are_quoted_too_and_say_so(self) -> None:
        found = section(summary(*surveyed(1, 2)), "Findings")
        assert "read_file → This module parses the values of a form." in found

    @pytest.mark.parametrize(
        "fact",
        ["LIMIT_3 = 21 in pkg/mod_3.py", "`LIMIT_3`: 21 bytes", "pkg/mod_3.py | LIMIT_3 | 21"],
    )
    def test_a_value_without_a_sentence_is_a_statement(self, fact: str) -> None:
        text = summary(AIMessage(fact), AIMessage("The survey is nearly finished now."))
        assert section(text, "Findings") == [fact]

    def test_a_reference_is_not_listed_beside_the_statement_that_holds_it(self) -> None:
        text = ExtractiveSummarizer().summarize(surveyed(1, 8), max_tokens=700, count=characters)
        listed = section(text, "Artifacts and references")
        assert "docs/form.md" in text
        assert not [name for name in listed if name.startswith(("LIMIT_", "pkg/mod_1.py"))]

    def test_a_reference_that_only_begins_like_another_is_listed(self) -> None:
        text = summary(
            AIMessage("The value is ORDER_123 today."),
            called("look", more="x", text="one\nORDER_12\ntwo"), answered("fine"),
        )  # fmt: skip
        assert "ORDER_12" in section(text, "Artifacts and references")

    def test_condensing_keeps_statements_over_newer_quotes_and_look_ups(self) -> None:
        write = ExtractiveSummarizer()
        halves = [
            write.summarize(span, max_tokens=700, count=characters)
            for span in (surveyed(1, 8), surveyed(9, 16))
        ]
        assert findings("\n".join(halves)) == 16
        text = write.condense(halves, max_tokens=700, count=characters)
        assert findings(text) >= 15
        for tokens in range(100, 500, 20):
            text = write.condense(halves, max_tokens=tokens, count=characters)
            assert findings(text) >= 15 or ("read_file(" not in text and "read_file →" not in text)

    def test_condensing_keeps_effects_over_look_ups(self) -> None:
        looks = "".join(f"\n- bash(grep -n word{n} notes) → ok: 3 lines" for n in range(20))
        old = "## Done\n- bash(rm -rf build) → ok\n- Booked the flight.\n- send_mail(ada) → ok"
        text = condensed(old, f"## Done{looks}", tokens=40)
        assert {"bash(rm -rf build) → ok", "Booked the flight.", "send_mail(ada) → ok"} <= set(
            section(text, "Done")
        )

    def test_what_a_dropped_line_refers_to_may_stay(self) -> None:
        line = "\n- bash(cat /srv/shop/main.py | grep -n one two three four five six) → ok"
        said = "".join(f"\n- The {name} part of the shop is ready." for name in "abcdefgh")
        text = condensed(f"## Done{line}\n## Findings{said}", tokens=90)
        assert "/srv/shop/main.py" in section(text, "Artifacts and references")


class TestReferences:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("see https://a.example/x?y=1(z).", ["https://a.example/x?y=1(z)"]),
            ("(/srv/app/main.py)", ["/srv/app/main.py"]),
            ("查看/path/to/文件.txt，版本1.2.3。", ["1.2.3"]),
            ("打开/data/report.csv文件", ["/data/report.csv"]),
            ("C:\\Users\\ada\\notes.txt", ["C:\\Users\\ada\\notes.txt"]),
            ("ada_byron_3817 flies HAT028, 2024-05-21", ["ada_byron_3817", "HAT028", "2024-05-21"]),
            ("fixed in a1b2c3d4 (#4422), costs $1,002 or 12%",
             ["a1b2c3d4", "#4422", "$1,002", "12%"]),
            ("ada@example.org at 10.0.0.1", ["ada@example.org", "10.0.0.1"]),
            ("either and/or neither, e.g. this one. Then so.", []),
        ],
    )  # fmt: skip
    def test_what_counts_as_one(self, text: str, found: list[str]) -> None:
        assert [item for item in references(text) if item in found or not found] == found

    def test_who_said_it_decides_what_stays(self) -> None:
        listing = "\n".join(f"/usr/share/doc/package{number}/README" for number in range(200))
        text = summary(
            called("bash", "1", command="cat /srv/app/call.toml"),
            answered(listing, "1"),
            called("bash", "2", command="find /usr/share/doc"),
            answered(listing, "2"),
            AIMessage("Done with /srv/app/agent.toml at last."),
            HumanMessage("```\n/srv/app/user.toml\n```"),
            tokens=40,
        )
        for name in ("call", "agent", "user"):
            assert f"/srv/app/{name}.toml" in text

    def test_what_an_extract_holds_already_is_not_listed_again(self) -> None:
        text = summary(HumanMessage("Please repair /srv/app/settings.toml today."))
        assert text.count("/srv/app/settings.toml") == 1


class TestText:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("One thing. Another thing! A third?", ["One thing.", "Another thing!", "A third?"]),
            ("lower case. then more.", ["lower case.", "then more."]),
            ("你好。请不要删除！真的吗？", ["你好。", "请不要删除！", "真的吗？"]),
            ("See e.g. Dr. No, cf. v1.2.3 at a.example/b.html.", None),
            ("z.B. am 1. Januar und u.a. morgen.", None),
            ("Wait... and then go.", None),
            ("# Head\n- one\n* two\n3. three\n> four", ["Head", "one", "two", "three", "four"]),
            ("**Note**: `a**b` stays", ["Note: `a**b` stays"]),
            ("a\u2028b\x85c\x0bd", ["a", "b", "c", "d"]),
            ("| left | right |", ["left | right"]),
            ("The share is 0.5. Next comes more.", ["The share is 0.5.", "Next comes more."]),
            ("It runs 3.11. So it is 42. Good.", ["It runs 3.11.", "So it is 42.", "Good."]),
            (
                "It needs v1.2.3. And Python 3. Good.",
                ["It needs v1.2.3.", "And Python 3.", "Good."],
            ),
            ("The answer is no. See no. 5. Good.", ["The answer is no.", "See no. 5.", "Good."]),
            ("Die Sitzung ist 3. Mai im 2. Stock.", None),
            ("Steps: 1. Read it 2. Write it 3. Go home", None),
            (
                "**All of it. And more.** (**Important**)",
                ["All of it.", "And more.", "(Important)"],
            ),
            ("***Big*** and __two words__ here", ["Big and two words here"]),
            ("这是**重点**，**关键**是", ["这是重点，关键是"]),
            (
                "**`src/__init__.py`** is __really `__all__`__ there",
                ["`src/__init__.py` is really `__all__` there"],
            ),
        ],
    )
    def test_sentences(self, text: str, found: list[str] | None) -> None:
        assert list(sentences(text, 300)) == ([text] if found is None else found)

    @pytest.mark.parametrize(
        "text",
        [
            "See `pkg/__init__.py` and pkg/__main__.py for it",
            "__init__.py and __main__.py both set __all__",
            "Set a__b__c and self.__x before __enter__() runs",
            "Match **/*.py, src/** and lib/**/test_*.py only",
            "Call f(*args, **kwargs) or {**a, **b} with **opts",
            "It is 2**8 or (a)**(x) + (b)**(y)",
            "It returns List<int>",
            "GET /users/<id>",
            "<root>/src/a.py is missing",
        ],
    )
    def test_names_paths_and_globs_pass_unchanged(self, text: str) -> None:
        assert list(sentences(text, 300)) == [text]

    def test_a_sentence_full_of_names_is_a_statement(self) -> None:
        fact = "See `pkg/__init__.py`, pkg/__main__.py and **/test_*.py for `__all__`."
        assert fact in section(
            summary(AIMessage(fact), AIMessage("All of it is done now.")), "Findings"
        )

    def test_a_paragraph_wrapped_by_hand_is_one_sentence(self) -> None:
        text = "When you have completed your work\nand tested it well, say so.\n- a list item here"
        assert list(sentences(text, 300, wrapped=True)) == [
            "When you have completed your work and tested it well, say so.",
            "a list item here",
        ]

    def test_long_sentences_are_cut_between_clauses_but_not_in_a_url(self) -> None:
        url = "https://example.org/a,b/c"
        text = "word " * 50 + f"first clause, {url} and more, " + "word " * 50
        parts = list(sentences(text, 120))
        assert max(map(len, parts)) <= 120
        assert any(url in part for part in parts)
        assert " ".join(parts) == text.strip()

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("\x1b[31mred\x1b[0m \x1b]0;title\x07text", "red text"),
            ("a\x00b\u200bc\u202ed\ufeff", "abcd"),
            ("```python", "python"),
            ("<tool_call>go</tool_call> <|im_end|>", "go"),
            ("<function=search>x", "x"),
            ("<output>done</output>", "done"),
            ("List<int> and a < b", "List<int> and a < b"),
            ("می\u200cخواهم", "می\u200cخواهم"),
            ("see data:image/png;base64,iVBORw0KGgo= here", "see [data] here"),
            ("A" * 100, "[100 characters of data]"),
            ("ab12" * 16, "ab12" * 16),
            ("/home/ada/projects/tea/packages/web/shop/src/pages/checkout/payment", None),
            ("test_that_a_name_of_a_test_may_be_as_long_as_its_author_wants_it_to_be", None),
        ],
    )
    def test_lines_are_made_safe(self, line: str, expected: str | None) -> None:
        assert clean(line) == (line if expected is None else expected)

    def test_only_head_and_tail_of_a_giant_result_are_read(self) -> None:
        middle = "The middle part mentions number 5555 somewhere. " * 18_000
        result = (
            f"The head says it took 1111 ms today.\n{middle}\nThe tail says it took 9999 ms today."
        )
        text = summary(called("bash", command="make"), answered(result))
        assert len(result) > 860_000
        assert "1111" in text
        assert "9999" in text

    def test_2000_messages_of_2_kilobytes_take_seconds_not_minutes(self) -> None:
        line = "The value of /srv/app/module{0}.py in step {0} is {1} milliseconds, so we go on. "
        span: list[BaseMessage] = []
        for number in range(500):
            body = "".join(line.format(number, number * 7 + shift) for shift in range(26))[:2_000]
            span += [
                HumanMessage(body), called("read_file", str(number), path=body),
                answered(body, str(number)), AIMessage(body),
            ]  # fmt: skip
        started = time.process_time()
        summary(*span, tokens=800)
        # 0.7 s on an idle core; twice the promised 2 s leaves room for a busy one.
        assert time.process_time() - started < 4


class TestBudget:
    SPAN = (
        HumanMessage("Plan a trip to Kyoto for two, never by plane. " * 3),
        AIMessage("We go by train because you asked for it. The fare is 430 euros each."),
        called("book_train", "1", number="ICE104"),
        answered("Booked under reference KY2024AB.", "1"),
        HumanMessage("也请预订酒店，预算最多五百欧元。"),
        AIMessage("I will look for a hotel in the old town next."),
    )

    @pytest.mark.parametrize("tokens", [40, 41, 47, 60, 83, 120, 200, 333, 800, 5_000])
    @pytest.mark.parametrize(
        "count",
        [
            len,
            lambda text: len(text.encode()),
            lambda text: -(-len(text) // 4),
            words,
            lambda text: 10 + len(text) // 4,
            lambda text: len(re.findall(r"\w|\W", text)) + text.count("\n") * 2,
        ],
    )
    def test_it_is_kept_by_any_counter(self, tokens: int, count: object) -> None:
        assert callable(count)
        text = ExtractiveSummarizer().summarize(self.SPAN, max_tokens=tokens, count=count)
        assert text
        assert count(text) <= tokens
        again = ExtractiveSummarizer().condense([text, text], max_tokens=tokens, count=count)
        assert again
        assert count(again) <= tokens

    def test_forty_characters_still_say_something(self) -> None:
        text = ExtractiveSummarizer().summarize(self.SPAN, max_tokens=40, count=len)
        assert text.startswith(SHORT_NOTE)
        assert section(text, "Goal")[0].startswith("Plan")

    def test_a_larger_budget_says_more(self) -> None:
        sizes = [words(summary(*self.SPAN, tokens=tokens)) for tokens in (40, 80, 200)]
        assert sizes == sorted(set(sizes))

    def test_a_budget_below_the_first_line_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ConfigurationError, match=r"max_tokens=5 .* at least 40"):
            ExtractiveSummarizer().summarize(self.SPAN, max_tokens=5, count=len)

    @pytest.mark.parametrize("setting", [{"max_sentence_chars": 39}, {"sample_chars": 199}])
    def test_settings_are_checked_when_they_are_made(self, setting: dict[str, int]) -> None:
        with pytest.raises(ConfigurationError, match=f"{next(iter(setting))}="):
            ExtractiveSummarizer(**setting)

    def test_extracts_are_no_longer_than_asked_for(self) -> None:
        text = ExtractiveSummarizer(max_sentence_chars=50).summarize(
            [HumanMessage("Never do this, " * 40)], max_tokens=AMPLE, count=words
        )
        assert max(len(line) for line in text.splitlines()[1:]) <= len("- ") + 50


class TestCondense:
    OLD = (
        "# Messages 0 to 9 (folded after step 4)\n"
        "## Goal\n- Build a shop for tea.\n"
        "## Constraints and preferences\n- Never use a cloud service.\n"
        "## Findings\n- The supplier answers on Mondays only.\n"
        "## Artifacts and references\n- /srv/shop/main.py\n"
        "## State now\n- The cart is half built.\n- User: Let us see the cart.\n"
        "## Next step\n- Finish the cart.\n"
    )
    NEW = (
        "# Messages 10 to 19 (folded after step 8)\n"
        "## Goal\n- Make the checkout faster.\n"
        "## Findings\n- The checkout takes 900 ms.\n"
        "## State now\n- The checkout is measured.\n"
        "## Next step\n- Cache the prices.\n"
    )

    def test_with_room_nothing_but_old_states_is_lost(self) -> None:
        text = condensed(self.OLD, self.NEW)
        assert section(text, "Goal") == ["Build a shop for tea.", "Make the checkout faster."]
        assert section(text, "Findings") == [
            "The supplier answers on Mondays only.",
            "The checkout takes 900 ms.",
        ]
        assert section(text, "State now") == ["The checkout is measured."]
        assert section(text, "Next step") == ["Cache the prices."]
        assert "Messages" not in text

    @pytest.mark.parametrize(
        "fact",
        [
            "The checkout takes 900 ms.",
            "The cart lives in `cart`.",
            "The owner of it is Ada.",
            'It is called "tea" here.',
        ],
    )
    def test_a_fact_outlasts_the_state_it_stood_in(self, fact: str) -> None:
        old = f"## State now\n- {fact}\n- The cart is half built."
        text = condensed(old, "## Findings\n- It is measured.\n## State now\n- All is well.")
        assert section(text, "Findings") == [fact, "It is measured."]
        assert section(text, "State now") == ["All is well."]

    def test_what_the_user_said_outlasts_the_state_it_stood_in(self) -> None:
        text = condensed(self.OLD, self.NEW)
        assert "User: Let us see the cart." in section(text, "Constraints and preferences")

    def test_the_oldest_details_go_first_and_constraints_and_references_stay(self) -> None:
        many = [
            f"## Findings\n- In round {number} of the work the quick measurement gave "
            f"{number * 13} milliseconds on average."
            for number in range(40)
        ]
        text = condensed(self.OLD, *many, tokens=150)
        assert "Build a shop for tea." in text
        assert "Never use a cloud service." in text
        assert "/srv/shop/main.py" in text
        assert "In round 39 " in text
        assert "Mondays" not in text

    def test_other_headings_and_plain_prose_count_as_findings(self) -> None:
        text = condensed("The cart has 3 bugs. They are known.\n\n### Payment\nIt uses one bank.")
        assert section(text, "Findings") == [
            "The cart has 3 bugs. They are known.",
            "It uses one bank.",
        ]

    def test_a_quote_of_the_user_stays_with_the_constraints(self) -> None:
        quoted = "## Next step\n- Go on.\nThe user's newest message here, word for word:\nUse red."
        text = condensed(quoted, self.NEW)
        assert "Use red." in section(text, "Constraints and preferences")

    def test_its_own_first_line_is_not_repeated(self) -> None:
        once = summary(HumanMessage("Please build the parser."))
        assert condensed(once, once).count(NOTE) == 1
        assert condensed(once) == once

    def test_headings_are_known_in_other_dress(self) -> None:
        text = condensed(
            "**Goal**\n- Sell tea.\nState now:\n- It sells.\n## 3. Open questions\n- Who?"
        )
        assert section(text, "Goal") == ["Sell tea."]
        assert section(text, "State now") == ["It sells."]
        assert section(text, "Commitments and open items") == ["Who?"]

    def test_what_stands_behind_a_heading_is_in_its_section(self) -> None:
        text = condensed("**Goal:** Sell tea.\n2. Decisions: Use red boxes.\nOf paper.")
        assert section(text, "Goal") == ["Sell tea."]
        assert section(text, "Decisions") == ["Use red boxes.", "Of paper."]

    def test_texts_without_content_still_give_a_digest(self) -> None:
        assert "\n- " in condensed("", "## Goal\n")


def test_a_tool_whose_name_is_no_name_is_a_tool() -> None:
    calls = [{"name": "```", "args": {}, "id": "1", "type": "tool_call"}]
    span = [
        AIMessage("", tool_calls=calls),  # type: ignore[arg-type]
        ToolMessage("The pump was opened.", tool_call_id="1"),
    ]
    text = ExtractiveSummarizer().summarize(span, max_tokens=200, count=len)
    assert "tool()" in text
    assert "-  →" not in text
