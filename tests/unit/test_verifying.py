"""A table of answers that must not become the digest, and of answers that must.

What is stored replaces everything the agent knew of a span. A refusal, an error page, an echo or
half a sentence there is worse than no compaction; a good digest that is refused costs the next
tier's call, and with every tier refused the thread is never compacted.
"""

import time
from typing import Any

import pytest

from langgraph_compaction.digest.verifying import (
    MIN_CHARACTERS,
    Reply,
    Verdict,
    cleaned,
    headings,
    verify,
)

GOOD = """\
## Goal
The user wants the build of parser 2.4 fixed before Friday.
## Findings
tests/test_lexer.py::test_utf8 fails since commit 9f86d08: the fixture is read as latin-1.
## State now
The fix is written in src/lexer.py, line 42, and not yet committed.
## Next step
Run the tests again, then open the pull request."""
PROSE = (
    "The user wants the build of parser 2.4 fixed before Friday. You found that the fixture is "
    "read as latin-1 and changed src/lexer.py; the tests have not been run since."
)
SOURCE = [
    """<message n="0" role="user">
Please fix the build of parser 2.4, it has to be green before the release on Friday.
</message>""",
    """<result n="1" of="shell" outcome="error">
E   UnicodeDecodeError: latin-1 codec cannot decode byte 0xe2 in tests/fixtures/utf8.txt
E   the run took 42 seconds and was stopped after the first failure of the lexer
</result>""",
]
ECHO = "\n".join(line for chunk in SOURCE for line in chunk.splitlines() if line[0] != "<")


def verdict(
    text: str, *, sections: bool = False, source_tokens: int = 99_999, max_tokens: int = 99_999,
    previous: tuple[str, ...] = (), **reply: Any,
) -> Verdict:  # fmt: skip
    return verify(
        Reply(text, **reply),
        source=SOURCE,
        previous=previous,
        source_tokens=source_tokens,
        max_tokens=max_tokens,
        count=lambda text: len(text) // 4,
        sections=sections,
    )


# ---- bad answers

BAD = [
    # nothing
    ("", "empty"),
    (" \n\t", "empty"),
    ("<transcript></transcript>", "empty"),
    ("```\n```", "empty"),
    ("Summary unavailable.", f"{len('Summary unavailable.')} characters"),
    ("x" * (MIN_CHARACTERS - 1), "characters"),
    # tools
    ('<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>', "protocol"),
    (f'{GOOD}\n<tool_call>{{"name": "shell"}}</tool_call>', "protocol"),
    ('<function_calls>\n<invoke name="shell">\n</invoke>\n</function_calls>', "protocol"),
    ("<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>", "protocol"),
    ('[TOOL_CALLS] [{"name": "shell", "arguments": {"command": "ls"}}]', "protocol"),
    ('<|python_tag|>{"name": "shell", "parameters": {"command": "ls"}}', "protocol"),
    (f"{GOOD}\n<|im_start|>assistant\nI go on with it.", "protocol"),
    ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell", "protocol"),
    # data
    ('{"type": "error", "error": {"type": "overloaded_error"}}', "JSON"),
    ('[{"type": "reasoning", "signature": "x"}, {"type": "text", "text": "y"}]', "JSON"),
    ('```json\n{"goal": "fix the build", "state": "not committed yet"}\n```', "JSON"),
    # refusals and questions back
    ("I'm sorry, but I can't assist with that request.", "refusal"),
    ("I’m sorry, but I can’t assist with that request.", "refusal"),
    ("I can’t help with summarizing this conversation.", "refusal"),
    ("I cannot provide a summary of this conversation.", "refusal"),
    ("I am unable to summarise the conversation as it is.", "refusal"),
    ("**Sorry, but I don't have any conversation to work on.**", "refusal"),
    ("As an AI language model I do not keep any records.", "refusal"),
    ("Please provide the conversation that I should record.", "refusal"),
    ("Could you please share the transcript you mean?", "refusal"),
    ("Sure! Please provide the conversation you would like me to summarize.", "refusal"),
    ("It looks like you haven't provided a conversation yet.", "refusal"),
    ("How can I help you today? I am ready to go on.", "refusal"),
    ("Es tut mir leid, aber dabei kann ich leider nicht helfen.", "refusal"),
    ("Lo siento, pero no puedo ayudar con esa solicitud ahora.", "refusal"),
    ("抱歉,我無法協助處理這個要求。請提供其他的對話內容,我會盡力為您整理。", "refusal"),
    # loops
    ("The user wants the build fixed.\n" * 20, "repeats"),
    ("the build is red and the user wants it green " * 20, "repeats"),
    # echoes
    (ECHO, "echo"),
    (f"## Goal\n{ECHO}", "echo"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), BAD)
def test_a_bad_answer_is_rejected_for_its_reason(text: str, problem: str) -> None:
    # A prompt of one's own may ask for any prose, so no missing section gives it away.
    assert problem in str(verdict(text, sections=False).problem)
    assert verdict(text, sections=True).problem is not None


@pytest.mark.parametrize(
    "reason",
    [
        "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete",
        "model_context_window_exceeded",
    ],
)  # fmt: skip
def test_an_answer_that_was_cut_off_is_rejected_however_good(reason: str) -> None:
    problem = verdict(GOOD, sections=True, finish_reason=reason).problem
    assert problem is not None
    assert "cut off" in problem


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "SAFETY"])
def test_an_answer_that_a_filter_ended_is_rejected(reason: str) -> None:
    assert verdict(GOOD, sections=True, finish_reason=reason).problem is not None


def test_an_answer_that_calls_tools_is_rejected() -> None:
    assert "calls tools" in str(verdict(GOOD, sections=True, called_tools=True).problem)


def test_an_echo_of_the_digest_so_far_is_rejected() -> None:
    earlier = "# Messages 0 to 9\n" + PROSE
    assert "echo" in str(verdict(PROSE, previous=(earlier,)).problem)


def test_an_answer_that_saves_nothing_is_rejected() -> None:
    size = len(GOOD) // 4
    assert "larger than what it replaces" in str(verdict(GOOD, source_tokens=size).problem)
    assert "over its cap" in str(verdict(GOOD, max_tokens=size - 1).problem)
    assert verdict(GOOD, source_tokens=size + 1, max_tokens=size).problem is None


def test_without_any_section_that_was_asked_for_prose_is_rejected() -> None:
    assert "sections" in str(verdict(PROSE, sections=True).problem)
    assert verdict(PROSE, sections=False).problem is None


# ---- good answers


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "completed", "eos"])
def test_a_good_answer_is_accepted_as_it_is(reason: str | None) -> None:
    found = verdict(GOOD, sections=True, finish_reason=reason)
    assert found == Verdict(GOOD, None, ())


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        f'{PROSE} The agent said: "I\'m sorry, I cannot push to main."',
        f"{PROSE} The user wrote: please provide the conversation as JSON.",
        f"{PROSE} The server answers `<tool_call>` tags as plain text.",
        f"{PROSE}\n{SOURCE[1].splitlines()[1]}",
        f"{PROSE}\n- a.py: done\n- b.py: done\n- c.py: done\n- d.py: open",
        "[Record] The user wants the build green; see {src/lexer.py}.",
        "Der Nutzer möchte, dass der Build von parser 2.4 bis Freitag wieder läuft.",
        "使用者要求週五前修好 parser 2.4 的建置;測試資料以 latin-1 讀取,已改 src/lexer.py。",
        "User asked for a Spanish greeting; the agent suggested “Lo siento, llego tarde”.",
    ],
)
def test_any_prose_may_answer_a_prompt_of_ones_own(text: str) -> None:
    assert verdict(text).problem is None


@pytest.mark.parametrize(
    "heading",
    [
        "## {}", "# {}", "### {}", "##{}", "## {}:", "**{}**", "**{}:**", "**{}**:", "{}:", "{}",
        "## **{}**", "## 1. {}", "1. {}", "## {} ##", "  ## {}",
    ],
)  # fmt: skip
def test_sections_are_known_however_a_model_sets_a_heading(heading: str) -> None:
    names = ("Goal", "State now", "Next step")
    text = "\n".join(
        f"{heading.replace('{}', name)}\nAbout the {name}, in words." for name in names
    )
    found = verdict(text, sections=True)
    assert (found.problem, found.missing) == (None, ())
    assert verdict(text.lower(), sections=True).problem is None


def test_what_is_missing_is_asked_for_and_no_more() -> None:
    partial = "## Goal\nThe user wants the build green.\n## Done\nNothing yet."
    assert verdict(partial, sections=True) == Verdict(partial, None, ("State now", "Next step"))
    assert verdict(partial, sections=True, verbatim=True).missing == ()


def test_extracts_are_no_echo() -> None:
    assert verdict(ECHO, verbatim=True).problem is None


# ---- cleaning


@pytest.mark.parametrize(
    "wrapped",
    [
        f"\n {GOOD} \n",
        f"<transcript>\n{GOOD}\n</transcript>",
        f'<message n="3" role="agent">\n{GOOD}\n</message>',
        f"```markdown\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"<transcript>\n```\n{GOOD}\n```\n</transcript>",
        f"```\n<transcript>\n{GOOD}\n</transcript>\n```",
        f"</TRANSCRIPT>{GOOD}",
        f"<tran<transcript>script>{GOOD}",
    ],
)
def test_our_own_tags_and_a_code_fence_around_it_are_taken_off(wrapped: str) -> None:
    assert cleaned(wrapped) == GOOD
    assert verdict(wrapped, sections=True) == Verdict(GOOD, None, ())


def test_other_markup_is_left_alone() -> None:
    text = "Use <b>bold</b>, <Messages/> and\n```py\nprint(1)\n```\nin the page."
    assert cleaned(text) == text


# ---- hostile sizes


@pytest.mark.parametrize(
    "text",
    [
        # Bad models end in such runs; a few tokens each to a tokenizer.
        GOOD + "\na" + " " * 200 + "#",
        GOOD + "\n" * 12_000 + "end",
        "[" * 100_000,
        '{"a":' * 100_000,
        "<transcript" * 20_000,
        "x" * 1_000_000,
    ],
)
def test_verification_takes_bounded_time_and_never_raises(text: str) -> None:
    started = time.process_time()
    verdict(text, sections=True)
    headings(text)
    assert time.process_time() - started < 1
