"""A table of answers that must not become the digest, and of answers that must.

What is stored replaces everything the agent knew of a span. A refusal, an error page, an echo or
half a sentence there is worse than no compaction; a good digest that is refused costs the next
tier's call, and with every tier refused the thread is never compacted.
"""

import re
import time
from importlib import import_module
from pathlib import Path

import pytest

from langgraph_compaction.digest.prompts import EXPECTED_SECTIONS
from langgraph_compaction.digest.verifying import Verdict, cleaned
from tests.support.bad_answers import BAD, ECHO, GOOD, PROSE, SAID, SOURCE, Bad, verdict, written_in

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "verdicts.md"
EACH = [pytest.param(bad, id=f"{kind} {n}") for kind in BAD for n, bad in enumerate(BAD[kind], 1)]


# ---- bad answers


@pytest.mark.parametrize("bad", EACH)
def test_a_bad_answer_is_rejected_for_its_reason(bad: Bad) -> None:
    found = verdict(bad.text, sections=True, **bad.reply, **bad.given)
    assert bad.problem in str(found.problem)
    assert any(bad.repair in ask for ask in found.repair) if bad.repair else found.repair == ()
    # A prompt of one's own may ask for any prose, so no missing section gives it away.
    own = verdict(bad.text, **bad.reply, **bad.given)
    assert own.problem is None if bad.sections else bad.problem in str(own.problem)


def test_the_reference_lists_every_kind_with_its_number_of_tests() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| .* \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(kind, str(len(answers))) for kind, answers in BAD.items()]
    assert f"{len(EACH)} bad answers" in PAGE.read_text("utf-8")


def test_the_reference_states_the_constants_of_the_source() -> None:
    stated = re.findall(r"`([a-z_.]*verifying[a-z_.]*)\.([A-Z_]+)` = ([\d_.]+)", PAGE.read_text())
    assert len(stated) > 8
    for module, name, value in stated:
        found = getattr(import_module(f"langgraph_compaction.{module}"), name)
        assert f"{found:_}" == value, name


def test_sizes_are_stated_with_the_verdict() -> None:
    size = len(GOOD) // 4
    at_cap = verdict(GOOD, source_tokens=size + 1, max_tokens=size)
    assert (at_cap.problem, at_cap.tokens, at_cap.max_tokens) == (None, size, size)
    refused = verdict("I'm sorry, but I can't assist with that request.", max_tokens=9)
    assert (refused.tokens, refused.max_tokens) == (12, 9)


# ---- good answers


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "completed", "eos"])
def test_a_good_answer_is_accepted_as_it_is(reason: str | None) -> None:
    found = verdict(GOOD, sections=True, finish_reason=reason, conversation=SAID["English"])
    assert found == Verdict(GOOD, tokens=len(GOOD) // 4, max_tokens=99_999)


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
        "Error handling in src/lexer.py was rewritten; rate limits are kept.",
        "503 files were converted, and none of them has to be looked at again.",
        "Error: rate limit exceeded was what the API said; the user wants a retry after a minute.",
        "# Parser build\nFixed in src/lexer.py.\n# Open\nThe pull request.",
        "Unknown so far: who broke the fixture. None of the tests was skipped.",
    ],
)
def test_any_prose_may_answer_a_prompt_of_ones_own(text: str) -> None:
    assert verdict(text).problem is None


_CODE = "src/lexer.py src/lexer/utf8_reader.py tests/fixtures/utf8.txt PARSER_MAX_DEPTH=64 9f86d08"


@pytest.mark.parametrize(
    "text",
    [
        # Content in another language than the headings, full of English names.
        *(written_in(language) for language in SAID),
        f"{written_in('Chinese')}\n## Artifacts and references\n{_CODE}\nbranch release candidate",
        # Headings in other forms.
        "**Goal**\nFix the build.\n**State now**\nFixed, not pushed.\n**Next step**\nPush it.",
        "1. Goal: fix the build.\n2. State now: fixed, not pushed.\n3. Next step: push it.",
        "Goal: fix it.\nState now: it is fixed.\nNext step: none.",
        # Sections that say nothing, beside others that do.
        "## Goal\nFix the build.\n## Decisions\nNone\n## State now\nN/A\n## Next step\nTBD",
        "## Goal\nFix.\n## Decisions\n- None.\n## Done\n...\n## State now\nRed.\n## Next step\n-",
        # A very short conversation.
        "## Goal\nSay hello.\n## State now\nSaid.\n## Next step\nWait for the user.",
        # What may be part of a digest, though not all of it.
        f'{GOOD}\n## Findings\nError: rate limit exceeded\n"I\'m sorry, I can\'t do that"',
        f"{GOOD}\n## Done\n[shell: pytest → failed]\n[shell: pytest → ok]\n<Messages/> is gone.",
        f"{GOOD}\nThe page says <html><h1>502 Bad Gateway</h1></html>.",
        f"{GOOD}\nThe script prints TASK COMPLETE at its end, and the stream ends in [DONE], too.",
        f"{GOOD}\nThe template's placeholder [insert goal here] has to be filled by the user.",
        ("## Findings\nError: rate limit exceeded, by the API of a shop.\n## Goal\nBuy a part.\n"
        "## State now\nWaiting.\n## Next step\nAsk again."),
        "## Goal\nPlease provide the report by Friday.\n## State now\nOpen.\n## Next step\nBegin.",
        "## Findings\n" + "\n".join(f"[shell: make {n} → ok]" for n in range(4)) + f"\n{GOOD}",
        "## Goal\nWhat the user wants: a faster parser.\n## State now\nSlow.\n## Next step\nTune.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [True, False])
def test_a_good_digest_is_accepted(text: str, known: bool) -> None:
    spoken = next((said for said in SAID.values() if said[0] in text), ())
    found = verdict(text, sections=True, conversation=spoken if known else ())
    assert found.problem is None
    assert found.text == text
    assert found.repair == () or found.missing


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


def test_extracts_are_no_echo_and_in_any_language() -> None:
    assert verdict(ECHO, verbatim=True).problem is None
    text = written_in("English")
    assert verdict(text, sections=True, verbatim=True, conversation=SAID["German"]).problem is None


# ---- what the model is asked to mend


def test_what_is_missing_is_asked_for_and_no_more() -> None:
    partial = "## Goal\nThe user wants the build green.\n## Done\nNothing yet."
    found = verdict(partial, sections=True)
    assert (found.problem, found.missing) == (None, ("State now", "Next step"))
    (ask,) = found.repair
    assert "## State now, ## Next step" in ask
    assert "Goal" not in ask
    extracts = verdict(partial, sections=True, verbatim=True)
    assert (extracts.missing, extracts.repair) == ((), ())


def test_all_that_can_be_mended_is_asked_for_at_once() -> None:
    text = "## Goal\n" + " ".join(SAID["English"])
    found = verdict(text, sections=True, conversation=SAID["German"], max_tokens=40)
    assert str(found.problem).startswith("over its cap")
    lacks, language, size = found.repair
    assert "lacks" in lacks
    assert "in English" in language
    assert "in German" in language
    assert f"has {found.tokens} tokens, and at most 40 are allowed" in size


def test_a_long_text_without_headings_is_asked_for_both() -> None:
    size = len(PROSE) // 4
    found = verdict(PROSE, sections=True, max_tokens=size - 1)
    assert (found.problem, found.missing) == (
        f"over its cap ({size} of {size - 1} tokens)",
        EXPECTED_SECTIONS,
    )
    lacks, shorter = found.repair
    assert "## Goal, ## State now, ## Next step" in lacks
    assert f"at most {size - 1} are allowed" in shorter
    # A text of the right length is no record, one of many times it no overshoot.
    assert verdict(PROSE, sections=True, max_tokens=size).repair == ()
    assert verdict(PROSE, sections=True, max_tokens=size // 3 - 1).repair == ()
    extracts = verdict(PROSE, sections=True, max_tokens=size - 1, verbatim=True)
    assert (extracts.problem, extracts.repair) == (found.problem, ())


def test_what_no_second_answer_would_mend_is_not_asked_for() -> None:
    for bad in (answer for answers in BAD.values() for answer in answers if not answer.repair):
        assert verdict(bad.text, sections=True, **bad.reply, **bad.given).repair == ()
    extracts = verdict(GOOD, verbatim=True, max_tokens=50)
    assert "over its cap" in str(extracts.problem)
    assert extracts.repair == ()


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
        f"{GOOD}<|endoftext|>",
        f"{GOOD}\n<|im_end|>",
        f"{GOOD}</s></s>\n",
        f"{GOOD}\n\nTASK COMPLETE",
        f"{GOOD}\n**TASK_COMPLETED.**<|eot_id|>",
        f"```\n{GOOD}\n```\n[DONE]",
        f"{GOOD}\nTERMINATE",
    ],
)
def test_our_own_tags_a_code_fence_around_it_and_end_marks_are_taken_off(wrapped: str) -> None:
    assert cleaned(wrapped) == GOOD
    found = verdict(wrapped, sections=True)
    assert (found.text, found.problem) == (GOOD, None)


@pytest.mark.parametrize(
    "text",
    [
        "Use <b>bold</b>, <Messages/> and\n```py\nprint(1)\n```\nin the page.",
        "The loop ends when the model says TASK COMPLETE",
        "</s> and [DONE] are what the stream ends with.",
    ],
)
def test_other_markup_is_left_alone(text: str) -> None:
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
        "x" * 190_000,
        '"' * 100_000,
        "`" * 100_001,
        "a.b " * 40_000,
        "error " * 30_000,
        "</s>" * 40_000,
        "„" * 100_000,
        "[x" * 60_000,
    ],
)
def test_verification_takes_bounded_time_and_never_raises(text: str) -> None:
    conversation = [text, *SAID["Chinese"]] * 50
    started = time.process_time()
    verdict(text, sections=True, conversation=conversation)
    assert time.process_time() - started < 1


def test_a_fence_behind_a_line_that_announces_it_is_taken_off() -> None:
    record = "## Goal\nGo on.\n## State now\nUnder way.\n## Next step\nThe next part."
    for opening in ("Here is the record:", "Sure! The digest:\n", "**Record:**"):
        assert cleaned(f"{opening}\n```markdown\n{record}\n```\nTASK COMPLETE") == record
    kept = f"The command is:\n```sh\nmake\n```\n{record}"
    assert cleaned(kept) == kept
