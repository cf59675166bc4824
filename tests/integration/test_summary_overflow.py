"""A summariser whose window is too small for the span, in the words of every provider.

Nothing is known of the window beforehand: the server's error is all that tells it. The span then
has to be read in smaller pieces, each of its messages once, and one digest made of them.
"""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from tests.support.openai_server import LOOKALIKES, OVERFLOWS, Case, Exchange, OpenAIServer, text
from tests.support.openai_server.clients import HALF, wire_model
from tests.support.openai_server.runs import (
    BAD,
    DIGEST,
    GOOD,
    Run,
    assert_digest,
    assert_extracts,
    assert_run_is_well,
    assert_unchanged,
    bad_but_good,
    markers_of,
    prompt_of,
    run,
    transcript,
)

WINDOW = 3_000
"""Characters of a prompt that the server takes; that of the whole span has twice as many."""

LATE = {"openai midway", "openai failed", "openrouter 200", "lm studio midway"}
"""Shapes that are not the same in every form of an answer: the error comes after a good start."""

each_wire = pytest.mark.parametrize(("wire", "way"), HALF)


def small_window(overflow: Case) -> Case:
    """An overflow for every prompt that is longer than `WINDOW`, else a digest."""
    good = text(DIGEST)

    def fitting(exchange: Exchange) -> None:
        (overflow if len(prompt_of(exchange.body)) > WINDOW else good)(exchange)

    return fitting


def read(server: OpenAIServer) -> list[str]:
    """The markers in all requests that the server took, in order."""
    prompts = [request for request in server.requests if len(prompt_of(request)) <= WINDOW]
    return [marker for request in prompts for marker in markers_of(request)]


def tiers_that_failed(found: Run) -> list[tuple[str, str]]:
    return [(kind, tier) for kind, tier, _ in found.problems]


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [
        (shape, *combination)
        for n, shape in enumerate(OVERFLOWS)
        for m, combination in enumerate(HALF)
        if m % 2 == n % 2 or shape in LATE
    ],
)
def test_the_span_is_read_in_smaller_pieces(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    need = "soft" if way == "invoke" else "hard"
    server.answer(small_window(OVERFLOWS[shape]))
    found = run(way, wire_model(server, wire, BAD), need=need)
    assert_digest(found, BAD)
    assert found.kinds == ["started", "tier_failed", "completed"]
    assert found.events[0]["need"] == need
    assert len(found.hidden) > 15
    assert read(server) == found.hidden
    assert len(found.writers) == 1
    assert found.events[-1]["attempts"] == len(server.requests) - unsaid_retries(server)


def unsaid_retries(server: OpenAIServer) -> int:
    """Requests made again without an option: an overflow may name the cap of the answer."""
    sizes = [len(prompt_of(request)) for request in server.requests]
    return len(sizes) - len(set(sizes))


@pytest.mark.parametrize("shape", OVERFLOWS)
def test_a_window_that_nothing_fits(server: OpenAIServer, shape: str) -> None:
    wire, way = HALF[list(OVERFLOWS).index(shape) % len(HALF)]
    server.answer(bad_but_good(OVERFLOWS[shape]))
    bad, good = wire_model(server, wire, BAD), wire_model(server, wire, GOOD)
    found = run(way, bad)
    assert_unchanged(found)
    # Each piece is less than half as long as the one before, down to a few hundred tokens.
    failed = len(found.problems)
    assert 2 <= failed <= 4
    assert tiers_that_failed(found) == [("tier_failed", BAD)] * failed
    assert len(server.requests) == failed + unsaid_retries(server)
    lengths = [len(prompt_of(request)) for request in server.requests]
    assert lengths == sorted(lengths, reverse=True)
    found = run(way, [bad, good])
    assert_digest(found, GOOD)
    assert tiers_that_failed(found) == [("tier_failed", BAD)] * failed


@each_wire
def test_a_long_message_is_read_in_pieces(server: OpenAIServer, wire: str, way: str) -> None:
    lines = [f"line-{n:04} is one of the many lines of this log" for n in range(300)]
    calls = [tool_call(name="read_log", args={}, id="log")]
    messages = [
        HumanMessage("Measure every part.", id="task"),
        AIMessage("call-0000", tool_calls=calls, id="a0"),
        ToolMessage("\n".join(lines), tool_call_id="log", id="t0"),
        *transcript(3)[1:],
    ]
    server.answer(small_window(OVERFLOWS["openai"]))
    found = run(way, wire_model(server, wire, BAD), messages=messages, result_chars=0, clear=False)
    assert_digest(found, BAD)
    assert [marker for marker in read(server) if marker.startswith("line")] == [
        line[:9] for line in lines
    ]


@each_wire
@pytest.mark.parametrize("shape", LOOKALIKES)
def test_a_lookalike_is_a_plain_failure(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    server.answer(bad_but_good(LOOKALIKES[shape]))
    bad, good = wire_model(server, wire, BAD), wire_model(server, wire, GOOD)
    assert_unchanged(found := run(way, bad))
    assert tiers_that_failed(found) == [("tier_failed", BAD)]
    assert len({prompt_of(request) for request in server.requests}) == 1
    assert len(server.requests) == (2 if shape == "output limit" else 1)
    assert_extracts(run(way, bad, need="hard"))
    assert_digest(run(way, [bad, good]), GOOD)


@each_wire
def test_an_overflow_is_not_raised(server: OpenAIServer, wire: str, way: str) -> None:
    server.answer(small_window(OVERFLOWS["openai"]))
    found = run(way, wire_model(server, wire, BAD), on_error="raise")
    assert_run_is_well(found)
    assert read(server) == found.hidden
