"""What is a heading, which section it opens, and which ones are left with nothing below them."""

import time

import pytest

from langgraph_compaction.digest.headings import Heading, headings, sections_in, without_empty
from langgraph_compaction.digest.prompts import SECTIONS


def opened(text: str) -> list[str | None]:
    """What each line opens: a section, the title of another heading, or nothing."""
    return [found and (found.section or found.title) for found in headings(text)]


@pytest.mark.parametrize(
    ("row", "level"),
    [
        ("## Decisions", 2), ("# Decisions", 1), ("### Decisions:", 3), ("## **Decisions**", 2),
        ("##Decisions", 2), ("  ## Decisions ##", 2), ("## 3. Decisions", 2), ("**Decisions**", 7),
        ("**Decisions:**", 7), ("**Decisions**:", 7), ("__Decisions__", 7), ("Decisions:", 7),
        ("3. Decisions:", 7), ("- **Decisions**", 7), ("- Decisions:", 7), ("Decisions", 8),
        ("DECISIONS", 8), ("3. Decisions", 8),
    ],
)  # fmt: skip
def test_a_section_is_known_however_its_heading_is_set(row: str, level: int) -> None:
    assert headings(row) == [Heading("Decisions", "Decisions", "", level)]


@pytest.mark.parametrize(
    ("row", "rest"),
    [
        ("Decisions: Keep it.", "Keep it."),
        ("**Decisions:** Keep it.", "Keep it."),
        ("**Decisions**: Keep it.", "Keep it."),
        ("## Decisions: Port: 80", "Port: 80"),
        ("2. Decisions: Keep it.", "Keep it."),
    ],
)
def test_what_stands_behind_a_heading_is_told_apart(row: str, rest: str) -> None:
    (found,) = headings(row)
    assert found is not None
    assert (found.section, found.rest) == ("Decisions", rest)


@pytest.mark.parametrize(
    "row", ["# Notes", "###  Notes ##", "**Notes**", "**Notes:**", "__Notes__"]
)
def test_a_heading_of_another_name_opens_no_section(row: str) -> None:
    (found,) = headings(row)
    assert found is not None
    assert (found.section, found.title) == (None, "Notes")


@pytest.mark.parametrize(
    "row",
    [
        "",
        "Done.",
        "- Done",
        "- Done: the report.",
        "The decisions that were made:",
        "We decided.",
        "#123 is fixed",
        "**Never delete the table.**",
        "**Never** delete the **table**",
        "# " + "What was said in the meeting of last Tuesday, and by whom, and to whom",
        "- **Notes**",
    ],
)
def test_a_line_that_says_something_is_no_heading(row: str) -> None:
    assert opened(f"## Goal\n{row}") == (["Goal", None] if row else ["Goal"])


def test_items_of_a_list_are_headings_only_where_there_are_no_others() -> None:
    text = "- Goal: fix it\n- **State now**: it is open\n- Next step\n- Ask."
    assert opened(text) == ["Goal", "State now", "Next step", None]
    assert opened(f"{text}\n## Findings") == [None, None, None, None, "Findings"]
    assert opened("# Notes\n- Goal: fix it") == ["Notes", "Goal"]


def test_the_sections_of_a_text_are_known() -> None:
    text = "\n".join(f"## {name}\n- Something." for name in SECTIONS)
    assert sections_in(text) == set(SECTIONS)
    assert sections_in("prose\n# Notes\nmore prose") == set()


# ---- headings with nothing below them


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("## Goal\n## Findings\n- x", "## Findings\n- x"),
        ("## Findings\n- x\n## Goal", "## Findings\n- x"),
        ("## Goal\n\n## Findings\n- x\n", "## Findings\n- x"),
        ("## Findings\n- x\n\n**Goal**\n \nDecisions:\n", "## Findings\n- x\n"),
        ("## Goal\n## Notes\n- x", "## Notes\n- x"),
        ("## Goal\n# Notes\n- x", "# Notes\n- x"),
        ("## Goal\n### Decisions\n## Done\n- x", "## Done\n- x"),
        ("## Goal\n## Next step: ask", "## Next step: ask"),
        ("## Goal\n## Decisions", ""),
    ],
)
def test_a_heading_with_nothing_below_it_is_dropped(text: str, left: str) -> None:
    assert without_empty(text) == left
    assert without_empty(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Prose.\n",
        "## Goal\n- x\r\n",
        "## Goal\n\n\n- x",
        "## Findings\n### Payment\n- x",
        "## Findings\n**Payment**\n- x",
        "## Findings\n```\n# no heading\n```",
        "Goal: fix it\nFindings: none",
        "# Notes",
        "## State now\nDone",
        "## State now\nDone.",
        "## Commitments and open items\n- Done",
        "Goal\nDecisions",
    ],
)
def test_whatever_says_something_stays_as_it_is(text: str) -> None:
    assert without_empty(text) == text


@pytest.mark.parametrize(
    "text",
    ["## Goal\n" * 20_000, "#" * 200_000, "**" * 100_000, "Goal" + ":" * 200_000, "# \t" * 70_000,
     "- " * 100_000, "\n" * 100_000, "# " + " #" * 30 + "\n"],
)  # fmt: skip
def test_bounded_time(text: str) -> None:
    started = time.process_time()
    without_empty(text)
    assert time.process_time() - started < 1
