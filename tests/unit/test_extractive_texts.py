"""References, sentences and the budget of the model-free digest."""

import re
import time

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.extractive.filling import SHORT_NOTE
from langgraph_compaction.digest.references import references
from langgraph_compaction.digest.sentences import (
    clean,
    sentences,
)
from langgraph_compaction.errors import ConfigurationError
from tests.unit.extracting import AMPLE, answered, called, section, summary, words


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
