"""Lines of earlier records that a newer record has lost, and how they come back."""

import pytest

from langgraph_compaction.digest.facts.carrying import (
    lost_lines,
    with_lines,
)

OLD = """\
## Goal
- Move the shop to the new host.
## Constraints and preferences
- Never delete the customer table.
## Decisions
- Use PostgreSQL 16, because the host offers nothing newer.
- Keep sessions in Redis.
## Commitments and open items
- You promised to send the report on Friday.
## Findings
- The old host runs Debian.
## State now
- The schema is copied."""


def lost(text: str, *old: str) -> list[str]:
    return [line for _, line in lost_lines(old or (OLD,), text)]


def test_of_an_empty_record_every_carried_line_is_lost_and_no_other() -> None:
    assert lost_lines([OLD], "") == [
        ("Commitments and open items", "You promised to send the report on Friday."),
        ("Decisions", "Keep sessions in Redis."),
        ("Decisions", "Use PostgreSQL 16, because the host offers nothing newer."),
        ("Constraints and preferences", "Never delete the customer table."),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- You promised to send the report on Friday.",
        "You promised to send the report on Friday.",
        "* **You promised** to send the *report* on Friday",
        "- The report: you promised to send it by Friday.",
        "- Still open: send the report on Friday, as promised by you in the call.",
    ],
)
def test_what_is_still_said_in_much_the_same_words_is_not_lost(line: str) -> None:
    assert "You promised to send the report on Friday." not in lost(f"## Done\n{line}")


@pytest.mark.parametrize(
    "line",
    ["- The report is fine.", "- You sent a letter on Monday.", "- Friday", "## Report on Friday"],
)
def test_what_only_shares_a_word_is_lost(line: str) -> None:
    assert "You promised to send the report on Friday." in lost(line)


def test_words_spread_over_several_lines_do_not_say_it() -> None:
    assert "Keep sessions in Redis." in lost("- Keep going.\n- The sessions end.\n- Redis runs.")


def test_a_changed_number_is_a_changed_line() -> None:
    old = "## Decisions\n- Port 8080"
    assert lost("## Decisions\n- Port 9090", old) == ["Port 8080"]


@pytest.mark.parametrize(
    "old",
    [
        "## Decisions\n- 我们决定采用蓝绿部署。",
        "## Decisions\n- デプロイは金曜日に行う。",
        "## Decisions\n- 배포는 금요일에 한다.",
        "## Decisions\n- Мы выбрали ночной запуск.",
        "## Decisions\n- Go on.",
    ],
)
def test_any_language_and_any_length_counts(old: str) -> None:
    line = old.partition("- ")[2]
    assert lost("## Goal\n- something else", old) == [line]
    assert lost(f"## Goal\n- {line}", old) == []


@pytest.mark.parametrize(
    "heading",
    ["## Decisions", "# Decisions", "### Decisions:", "## **Decisions**", "**Decisions**",
     "**Decisions:**", "Decisions:", "Decisions", "3. Decisions", "## 3. Decisions", "DECISIONS",
     "  ## Decisions ##", "__Decisions__"],
)  # fmt: skip
def test_headings_are_known_however_they_are_set(heading: str) -> None:
    old = f"{heading}\n- Keep sessions in Redis.\n\n**State now**\n- All is well at the host."
    assert lost_lines([old], "") == [("Decisions", "Keep sessions in Redis.")]
    text = with_lines(f"{heading}\n- Newer line.", [("Decisions", "Older line.")])
    assert text == f"{heading}\n- Older line.\n- Newer line."


def test_a_line_may_stand_behind_its_heading() -> None:
    old = "**Decisions:** Keep sessions in Redis.\nFindings: the host runs Debian."
    assert lost_lines([old], "") == [("Decisions", "Keep sessions in Redis.")]


def test_a_heading_of_another_name_ends_a_section() -> None:
    old = "## Decisions\n- Keep sessions in Redis.\n## My own notes\n- The host runs Debian."
    assert lost("", old) == ["Keep sessions in Redis."]


def test_a_line_in_bold_is_no_heading() -> None:
    old = "## Constraints and preferences\n**Never delete the table.**\n- Ask first."
    assert lost("", old) == ["Ask first.", "**Never delete the table.**"]


@pytest.mark.parametrize(
    "old",
    [
        "",
        "We decided to keep sessions in Redis, and you promised a report.",
        "# Notes\n- Never delete the table.",
        "The decisions that were made:\n- Keep sessions in Redis.",
    ],
)
def test_prose_of_a_prompt_of_ones_own_has_no_such_lines(old: str) -> None:
    assert lost_lines([old], "") == []


def test_of_several_records_the_newest_line_comes_first_and_each_once() -> None:
    first = "## Decisions\n- Alpha is chosen here.\n- Beta is chosen here."
    second = "## Decisions\n- Gamma was taken instead.\n"
    second += "## Commitments and open items\n- Alpha is chosen here."
    assert lost_lines([first, second], "") == [
        ("Commitments and open items", "Alpha is chosen here."),
        ("Decisions", "Gamma was taken instead."),
        ("Decisions", "Beta is chosen here."),
    ]


def test_lines_come_back_at_the_head_of_their_section_oldest_first() -> None:
    lines = lost_lines([OLD], "")
    text = with_lines("## Decisions\n- Newest.\n## State now\n- Done.", lines)
    assert text.splitlines() == [
        "## Decisions",
        "- Use PostgreSQL 16, because the host offers nothing newer.",
        "- Keep sessions in Redis.",
        "- Newest.",
        "## State now",
        "- Done.",
        "## Commitments and open items",
        "- You promised to send the report on Friday.",
        "## Constraints and preferences",
        "- Never delete the customer table.",
    ]
    assert lost_lines([OLD], text) == []


def test_nothing_to_carry_changes_nothing() -> None:
    assert with_lines(OLD, []) == OLD
    assert with_lines("", [("Decisions", "x")]) == "## Decisions\n- x"
