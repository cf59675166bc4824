"""One call came out one way, whichever part of the digest tells of it."""

from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.facts.deeds import deeds_of
from langgraph_compaction.digest.source import render_group
from langgraph_compaction.view.pairing import groups
from tests.unit.extracting import answered, called, section, words

LINE = "The part was looked at, and it is as it was.\n"
ERROR = "ValueError: there is no such part.\n"
MARKER = {"send": "{outcome}"}


def result(lines: int, at: int) -> str:
    return LINE * at + ERROR + LINE * (lines - at)


def by_marker(span: list[BaseMessage]) -> str:
    (group,) = groups(span)
    rendered = render_group(span, group, range(len(span)), 2_000, MARKER)
    return "error" if "✗" in rendered else "ok"


def by_list(span: list[BaseMessage]) -> str:
    (deed,) = deeds_of((), span, str)
    return deed.outcome


def by_extract(span: list[BaseMessage], **options: Any) -> str:
    text = ExtractiveSummarizer(**options).summarize(span, max_tokens=2_000, count=words)
    (line,) = [one for one in section(text, "Done") if one.startswith("send(")]
    return "error" if "→ error" in line else "ok"


@pytest.mark.parametrize("sample_chars", [200, 2_000, 50_000])
@pytest.mark.parametrize(("lines", "at"), [(15, 5), (15, 14), (500, 5), (500, 250), (500, 490)])
def test_marker_list_and_extract_agree(lines: int, at: int, sample_chars: int) -> None:
    span = [called("send", to="ann"), answered(result(lines, at))]
    found = by_marker(span), by_list(span), by_extract(span, sample_chars=sample_chars)
    assert found in [("error",) * 3, ("ok",) * 3]
    assert found[0] == ("ok" if at == 250 else "error")


def test_they_agree_in_a_span_so_long_that_less_is_read_of_each_message() -> None:
    span: list[BaseMessage] = [called("send", to="ann"), answered(result(40, 15))]
    others = [m for n in range(1_100) for m in (called("read", n=n), answered(LINE * 60))]
    assert by_marker(span) == by_list(span) == by_extract([*others, *span]) == "error"
