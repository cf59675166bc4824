"""What the model-free digest says of calls, of their results and of what is stated beside them."""

import re

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage

from langgraph_compaction.digest.actions import Action
from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from tests.unit.extracting import answered, called, condensed, section, summary


class TestActions:
    def test_a_call_is_one_line_with_its_outcome(self) -> None:
        text = summary(called("send_mail", to="ada@example.org"), answered("Queued as 77."))
        assert section(text, "Done") == ["send_mail(to=ada@example.org) → ok: Queued as 77."]

    def test_effects_outlast_reads(self) -> None:
        reads = [
            message
            for number in range(30)
            for message in (called("read_file", path=f"src/module{number}.py"), answered("code"))
        ]
        booking = [called("book_flight", flight="HAT028"), answered("Booked.")]
        text = summary(*reads[:30], *booking, *reads[30:], tokens=60)
        assert "book_flight(flight=HAT028) → ok" in text

    def test_effects_that_were_made_outlast_those_that_failed(self) -> None:
        failures = [
            message
            for number in range(20)
            for message in (called("book_flight", flight=f"HAT{number}"), answered("Error: full"))
        ]
        text = summary(called("send_voucher", to="ada"), answered("Sent."), *failures, tokens=60)
        assert "send_voucher(to=ada) → ok: Sent." in text

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
        assert section(text, "Done")[0].startswith("update_user(user=u_12) → error")

    def test_a_call_without_a_result_is_open(self) -> None:
        text = summary(called("book_flight", flight="HAT028"), HumanMessage("Wait a moment there."))
        open_items = section(text, "Commitments and open items")
        assert open_items == ["book_flight(flight=HAT028) → no result"]
        assert section(text, "Done") == []

    def test_results_pair_with_the_newest_call_of_their_id(self) -> None:
        text = summary(
            called("send_mail", "1", to="ada"), answered("sent to ada", "1"),
            called("send_mail", "1", to="bob"), answered("Error: no such user", "1"),
        )  # fmt: skip
        assert section(text, "Done") == [
            "send_mail(to=ada) → ok: sent to ada",
            "send_mail(to=bob) → error: Error: no such user",
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


def test_a_tool_whose_name_is_no_name_is_a_tool() -> None:
    calls = [{"name": "```", "args": {}, "id": "1", "type": "tool_call"}]
    span = [
        AIMessage("", tool_calls=calls),  # type: ignore[arg-type]
        ToolMessage("The pump was opened.", tool_call_id="1"),
    ]
    text = ExtractiveSummarizer().summarize(span, max_tokens=200, count=len)
    assert "tool()" in text
    assert "-  →" not in text


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
