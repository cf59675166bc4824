"""One call came out one way, whichever part of the digest tells of it."""

import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction.digest.calls_told import parsed
from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.facts.deeds import deeds_of
from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.source import render_group
from langgraph_compaction.view.pairing import groups
from tests.unit.extracting import answered, called, section, words

LINE = "The part was looked at, and it is as it was.\n"
ERROR = "ValueError: there is no such part.\n"
MARKER = {"send": "{outcome}"}


def result(lines: int, at: int) -> str:
    return LINE * at + ERROR + LINE * (lines - at - 1)


def by_marker(span: list[BaseMessage]) -> str:
    (group,) = groups(span)
    rendered = render_group(span, group, range(len(span)), 2_000, MARKER)
    return "error" if "✗" in rendered else "answered" if "answered: " in rendered else "ok"


def by_list(span: list[BaseMessage]) -> str:
    (deed,) = deeds_of((), span, str)
    return deed.outcome


def by_extract(span: list[BaseMessage], **options: Any) -> str:
    text = ExtractiveSummarizer(**options).summarize(span, max_tokens=2_000, count=words)
    (line,) = [one for one in section(text, "Done") if one.startswith("send(")]
    told = parsed(line)
    assert told is not None
    return told.outcome


@pytest.mark.parametrize("sample_chars", [200, 2_000, 50_000])
@pytest.mark.parametrize(("lines", "at"), [(15, 5), (15, 14), (500, 5), (500, 250), (500, 499)])
def test_marker_list_and_extract_agree(lines: int, at: int, sample_chars: int) -> None:
    span = [called("send", to="ann"), answered(result(lines, at))]
    found = by_marker(span), by_list(span), by_extract(span, sample_chars=sample_chars)
    assert len(set(found)) == 1
    assert found[0] == ("ok" if at == 250 else "error" if at == lines - 1 else "answered")


def test_they_agree_in_a_span_so_long_that_less_is_read_of_each_message() -> None:
    span: list[BaseMessage] = [called("send", to="ann"), answered(result(40, 15))]
    others = [m for n in range(1_100) for m in (called("read", n=n), answered(LINE * 60))]
    assert by_marker(span) == by_list(span) == by_extract([*others, *span]) == "answered"


CERTAIN = [
    ('{"status": "error", "message": "card declined"}', "card declined"),
    ('{"status":"failed"}', None),
    ('{"ok": false, "reason": "insufficient funds"}', "insufficient funds"),
    ('{"success": false}', None),
    ('{"data": null, "error": "insufficient funds"}', "insufficient funds"),
    ('{"error": {"code": 402, "message": "No funds"}}', "No funds"),
    ('{"isError": true, "message": "No funds"}', "No funds"),
    ('{"exit_code": 1, "message": "No disk"}', "No disk"),
    ('[{"type":"error","message":"declined"}]', "declined"),
    ("{'error': 'no such user'}", None),
    ("<error>declined</error>", None),
    ("Error", "Error"),
    ("Error: no funds", "Error: no funds"),
    ("Error 402: no funds", "Error 402: no funds"),
    ("Failed: 2 of 3 mails", "Failed: 2 of 3 mails"),
    ("openai.BadRequestError: too long", "openai.BadRequestError: too long"),
    ("Traceback (most recent call last):\n  x\nKeyError: 'a'", "KeyError: 'a'"),
    ("Deploying.\nValueError: no such part", "ValueError: no such part"),
    ("<returncode>1</returncode>\nno disk", None),
    ("Deploying.\nProcess exited with code 3", None),
]
NOT_SURE = [
    "{'status': 'error'}",
    '{"success": true, "error": "the cache is stale"}',
    '{"results": [{"to": "ann", "status": "failed"}]}',
    '{"status": 402}',
    "success=false",
    "HTTP 402 Payment Required",
    "HTTP/1.1 503 Service Unavailable",
    "404 Not Found",
    "Payment declined: insufficient funds.",
    "Could not pay: insufficient funds.",
    "Permission denied.",
    "Unauthorized",
    "Nothing was sent.",
    "Rate limit exceeded",
    "User already exists.",
    "You must log in first.",
    "Payment pending approval.",
    "Dry run: would send it.",
    "Zahlung abgelehnt.",
    "Paiement refusé.",
    "支付失败。",
    "Die Mail wurde nicht gesendet.",
    "邮件未发送。",
    "Failed logins of ann were reset.",
    "Error budget set to 5%.",
    "Exception list updated.",
    "Traceback retention set to 30 days.",
    "Job 7 exited with code 1 and was removed.",
]
SUCCESS = [
    "",
    "Sent.",
    "Message queued with id 77.",
    "No error.",
    "12 passed, 0 failed",
    "Fatal: 0, failed: 0, paid: 1",
    "error: none",
    '{"status": "ok", "error": null, "errors": [], "error_code": 0, "failed": 0}',
    '{"success": true, "message": "Queued as 77"}',
    "{'ok': True, 'error': None}",
    '{"id": 402, "total": 500}',
]


def told(result: str, status: str = "success") -> tuple[str, str]:
    span = [called("send", to="ann"), answered(result, status=status)]
    (deed,) = deeds_of((), span, str)
    assert by_marker(span) == by_extract(span) == deed.outcome
    return deed.outcome, deed.detail


@pytest.mark.parametrize(("result", "detail"), CERTAIN)
def test_an_error_is_claimed_where_a_result_is_plainly_one(result: str, detail: str | None) -> None:
    outcome, said = told(result)
    assert outcome == "error"
    assert detail in (None, said)


@pytest.mark.parametrize("result", NOT_SURE)
def test_where_a_result_speaks_against_success_it_is_told_and_nothing_claimed(result: str) -> None:
    outcome, said = told(result)
    assert outcome == "answered"
    if result[0] not in "{<":
        assert said == result


@pytest.mark.parametrize("result", SUCCESS)
def test_success_is_claimed_where_nothing_speaks_against_it(result: str) -> None:
    assert told(result)[0] == "ok"
    assert told(result, "error")[0] == "error"


def test_json_tells_what_it_says_in_words() -> None:
    assert told('{"success": true, "message": "Queued as 77"}') == ("ok", "Queued as 77")


def test_what_has_no_status_and_reports_no_success_is_told_without_a_claim() -> None:
    ran = AIMessage("I remove it.\n\n```bash\nrm -rf build\n```")
    for answer, outcome in (("<returncode>0</returncode>", "ok"), ("", "answered")):
        output = HumanMessage(f"{answer}<output>removed 12 files</output>")
        (deed,) = deeds_of((), [ran, output], str)
        assert (deed.outcome, "removed 12 files" in deed.detail) == (outcome, True)


def test_what_was_looked_up_may_tell_of_errors() -> None:
    def read(result: str) -> str:
        span = [called("read_log", "1"), answered(result, "1")]
        text = ExtractiveSummarizer().summarize(span, max_tokens=2_000, count=words)
        (line,) = [one for one in section(text, "Done") if one.startswith("read_log(")]
        return line.partition(" → ")[2].partition(":")[0]

    assert read("Ann was not there, and the payment failed. " * 20) == "ok"
    assert read("Permission denied.") == "answered"


def test_different_answers_to_equal_calls_are_told_each() -> None:
    results = ["Payment declined.", "Payment not found.", "Payment declined."]
    span = [m for one in results for m in (called("pay", bill=7), answered(one))]
    lines = [
        "pay(bill=7) → answered: Payment not found.",
        "pay(bill=7) → answered: Payment declined. (×2)",
    ]
    deeds = deeds_of((), span, str)
    assert [deed.line for deed in deeds] == lines
    assert [deed.line for deed in deeds_of([Parts("x", done=lines)], (), str)] == lines
    text = ExtractiveSummarizer().summarize(span, max_tokens=2_000, count=words)
    assert set(lines) <= set(section(text, "Done"))


@pytest.mark.parametrize(
    "junk", ["[" * 20_000, "fail" * 500, "error" * 9_000, '{"a":' * 4_000, "\n" * 9_000]
)
def test_hostile_results_take_no_time(junk: str) -> None:
    started = time.process_time()
    told(junk)
    assert time.process_time() - started < 1
