"""langchain-openai for real, over HTTP, as the summariser of a graph: what every fault leads to.

The contract is that of `test_failure_contract`. Here the errors are the client's own and the
answers have come over the wire, from both of OpenAI's APIs, in one body and as a stream.
"""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import BaseMessage

from langgraph_compaction import CascadeExhaustedError, ModelTier
from langgraph_compaction.run.attempts import GRACE
from tests.support.openai_server import (
    Case,
    OpenAIServer,
    rate_limited,
    refusal,
    refused_url,
    server_error,
    silent,
    stalled_stream,
    text,
    trickle,
)
from tests.support.openai_server.clients import HALF, OTHER_HALF, WIRES, wait_until, wire_model
from tests.support.openai_server.faults import FAULTS
from tests.support.openai_server.runs import (
    BAD,
    DIGEST,
    GOOD,
    Run,
    arun,
    assert_digest,
    assert_extracts,
    assert_unchanged,
    bad_but_good,
    markers_of,
    run,
)

WAYS = ("invoke", "ainvoke")
ATTEMPT = 0.8  # seconds; a stalled answer is waited for that long, and a busy machine needs some

each_wire = pytest.mark.parametrize("wire", WIRES)
each_way = pytest.mark.parametrize("way", WAYS)
each_need = pytest.mark.parametrize("need", ["soft", "hard"])
every_second = pytest.mark.parametrize(("wire", "way"), HALF)
the_others = pytest.mark.parametrize(("wire", "way"), OTHER_HALF)
each_api = pytest.mark.parametrize(("wire", "way"), [HALF[0], OTHER_HALF[3]])


def asked(server: OpenAIServer) -> list[str]:
    """The models that were asked, in order."""
    return [str(request["model"]) for request in server.requests]


# Success


@each_need
@each_way
@each_wire
def test_a_digest_takes_one_call(server: OpenAIServer, wire: str, way: str, need: str) -> None:
    server.answer(text(DIGEST, prompt_tokens=1_700, completion_tokens=40))
    usage = UsageMetadataCallbackHandler()
    summariser = wire_model(server, wire, GOOD, stream_usage=True)
    found = run(way, summariser, need=need, config={"callbacks": [usage]})
    assert_digest(found, GOOD)
    assert found.kinds == ["started", "completed"]
    assert found.events[-1]["attempts"] == 1
    assert found.events[0]["need"] == need
    assert asked(server) == [GOOD]
    assert server.requests[0].get("stream", False) is wire.endswith("streamed")
    assert markers_of(server.requests[0]) == found.hidden
    # As a user's own callbacks count it.
    ((counted),) = usage.usage_metadata.values()
    assert (counted["input_tokens"], counted["output_tokens"]) == (1_700, 40)


# Faults that are found out at once


@every_second
@pytest.mark.parametrize("name", FAULTS)
def test_with_room_a_fault_changes_nothing(
    server: OpenAIServer, name: str, wire: str, way: str
) -> None:
    fault = FAULTS[name]
    server.answer(fault.case)
    found = run(way, wire_model(server, wire, BAD))
    assert_unchanged(found)
    ((kind, tier, reason),) = found.problems
    assert (kind, tier) == (fault.event, BAD)
    assert re.search(fault.reason, reason)
    assert found.events[-1]["failures"] == [f"{BAD}: {reason}"]
    assert asked(server) == [BAD]


@the_others
@pytest.mark.parametrize("name", FAULTS)
def test_the_next_tier_is_asked(server: OpenAIServer, name: str, wire: str, way: str) -> None:
    need = "soft" if wire.endswith("whole") else "hard"
    server.answer(bad_but_good(FAULTS[name].case))
    found = run(way, [wire_model(server, wire, BAD), wire_model(server, wire, GOOD)], need=need)
    assert_digest(found, GOOD)
    assert found.events[0]["need"] == need
    assert [(kind, tier) for kind, tier, _ in found.problems] == [(FAULTS[name].event, BAD)]
    assert asked(server) == [BAD, GOOD]


@each_api
@pytest.mark.parametrize("name", FAULTS)
def test_without_room_extracts_stand_in(
    server: OpenAIServer, name: str, wire: str, way: str
) -> None:
    server.answer(FAULTS[name].case)
    found = run(way, wire_model(server, wire, BAD), need="hard")
    assert_extracts(found)
    assert [kind for kind, _, _ in found.problems] == [FAULTS[name].event]
    assert asked(server) == [BAD]


@each_way
@each_wire
def test_a_refusal_is_none_of_the_texts_that_an_own_prompt_may_bring(
    server: OpenAIServer, wire: str, way: str
) -> None:
    # With a prompt of the user's no sections are expected: the field alone tells it.
    server.answer(refusal("This conversation is about a matter that the usage policy excludes."))
    found = run(way, wire_model(server, wire, BAD), prompt="Summarise the transcript.")
    assert_unchanged(found)
    assert found.kinds == ["started", "rejected", "failed"]


@each_way
@each_wire
def test_a_refused_connection(wire: str, way: str) -> None:
    unreachable = wire_model(refused_url(), wire, BAD)
    assert_unchanged(found := run(way, unreachable))
    ((_, _, reason),) = found.problems
    assert "ConnectionError" in reason
    assert_extracts(run(way, unreachable, need="hard"))


# Where the user wants to hear of it

REFUSED = {
    "401": openai.AuthenticationError,
    "403": openai.PermissionDeniedError,
    "404": openai.NotFoundError,
}
NOT_RAISED = ["429", "500", "503", "web page", "dropped", "dropped midway", "empty", "cut off"]


@each_need
@every_second
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_caller_is_raised_if_asked_for(
    server: OpenAIServer, name: str, wire: str, way: str, need: str
) -> None:
    server.answer(bad_but_good(FAULTS[name].case))
    tiers = [wire_model(server, wire, BAD), wire_model(server, wire, GOOD)]
    with pytest.raises(REFUSED[name]):
        run(way, tiers, need=need, on_error="raise")
    assert asked(server) == [BAD]


@each_api
@pytest.mark.parametrize("name", NOT_RAISED)
def test_what_may_pass_is_not_raised(server: OpenAIServer, name: str, wire: str, way: str) -> None:
    server.answer(bad_but_good(FAULTS[name].case))
    bad, good = wire_model(server, wire, BAD), wire_model(server, wire, GOOD)
    assert_digest(run(way, [bad, good], on_error="raise"), GOOD)
    assert_extracts(run(way, bad, need="hard", on_error="raise"))
    with pytest.raises(CascadeExhaustedError) as caught:
        run(way, bad, on_error="raise")
    (failure,) = caught.value.failures
    assert re.search(FAULTS[name].reason, failure.removeprefix(f"{BAD}: "))


# A client that retries


@each_way
@each_wire
def test_retries_of_the_client_are_within_the_attempt(
    server: OpenAIServer, wire: str, way: str
) -> None:
    retrying = ModelTier(wire_model(server, wire, GOOD, max_retries=2), timeout=20)
    server.answer(rate_limited(0.01), rate_limited(0.01), text(DIGEST))
    found = run(way, retrying)
    assert_digest(found, GOOD)
    assert found.events[-1]["attempts"] == 1
    assert asked(server) == [GOOD] * 3


@each_api
@pytest.mark.parametrize("case", [rate_limited(0.01), server_error()], ids=["429", "500"])
def test_a_client_whose_retries_fail(server: OpenAIServer, case: Case, wire: str, way: str) -> None:
    server.answer(case)
    found = run(way, ModelTier(wire_model(server, wire, BAD, max_retries=2), timeout=20))
    assert_unchanged(found)
    assert len(found.problems) == 1
    assert asked(server) == [BAD] * 3


@each_way
def test_the_attempt_bounds_what_a_rate_limit_asks_for(way: str) -> None:
    # A server of its own: the abandoned client asks again when nobody waits any more.
    with OpenAIServer() as server:
        server.answer(bad_but_good(rate_limited(30)))
        retrying = ModelTier(wire_model(server, "chat-whole", BAD, max_retries=2), timeout=ATTEMPT)
        found = run(way, [retrying, wire_model(server, "chat-whole", GOOD)])
        assert ATTEMPT <= found.seconds < ATTEMPT + GRACE + 1
        ((_, _, reason),) = found.problems
        assert reason == f"AttemptTimeoutError: no answer within {ATTEMPT} seconds"
        if way == "ainvoke":
            assert_digest(found, GOOD)
            assert asked(server) == [BAD, GOOD]
        else:  # such a call cannot be stopped, and another one might fare the same
            assert_unchanged(found)
            assert asked(server) == [BAD]


# Time


def at_the_same_time(
    server: OpenAIServer, way: str, case: Case, attempt: float = ATTEMPT, **options: Any
) -> Sequence[Run]:
    """One run for each form on the wire: a case, and then a model that answers."""
    server.answer(bad_but_good(case))
    cascades = [
        [ModelTier(wire_model(server, wire, BAD), timeout=attempt), wire_model(server, wire, GOOD)]
        for wire in WIRES
    ]
    if way == "invoke":
        with ThreadPoolExecutor(len(WIRES)) as pool:
            return list(pool.map(lambda tiers: run(way, tiers, **options), cascades))

    async def together() -> Sequence[Run]:
        try:
            return await asyncio.gather(*[arun(tiers, **options) for tiers in cascades])
        finally:
            server.release()  # a call that survived its cancellation would keep the loop open

    return asyncio.run(together())


@each_need
@each_way
@pytest.mark.parametrize("case", [silent(), stalled_stream(DIGEST)], ids=["silent", "stalled"])
def test_silence_ends_with_the_attempt(
    server: OpenAIServer, case: Case, way: str, need: str
) -> None:
    # The client's own patience is that of the attempt, so that no thread is left behind.
    for found in at_the_same_time(server, way, case, need=need):
        assert_digest(found, GOOD)
        ((kind, tier, reason),) = found.problems
        assert (kind, tier) == ("tier_failed", BAD)
        assert "Timeout" in reason
        assert ATTEMPT <= found.seconds < ATTEMPT + GRACE
    wait_until(lambda: not server.held)


@each_need
def test_a_trickle_is_abandoned(server: OpenAIServer, need: str) -> None:
    # Longer than any word takes on a busy machine: the client's own patience must not end it.
    attempt = 1.2
    for found in at_the_same_time(server, "invoke", trickle(0.05), attempt, need=need):
        (assert_unchanged if need == "soft" else assert_extracts)(found)
        assert found.problems == [
            ("tier_failed", BAD, f"AttemptTimeoutError: no answer within {attempt} seconds")
        ]
        assert attempt + GRACE <= found.seconds < attempt + GRACE + 1.5
    assert asked(server) == [BAD] * len(WIRES)
    assert len(server.held) == len(WIRES)


@each_need
@pytest.mark.parametrize("seconds", [0.2, 0.002])
def test_a_trickle_is_cancelled(server: OpenAIServer, seconds: float, need: str) -> None:
    # A word may come at the very moment of the cancellation. On Python 3.11 langchain-openai then
    # goes on reading: `asyncio.wait_for` returns the word and forgets the cancellation.
    for found in at_the_same_time(server, "ainvoke", trickle(seconds), need=need):
        assert_digest(found, GOOD)
        assert found.problems == [
            ("tier_failed", BAD, f"AttemptTimeoutError: no answer within {ATTEMPT} seconds")
        ]
        assert ATTEMPT <= found.seconds < ATTEMPT + GRACE
    assert asked(server).count(GOOD) == len(WIRES)
    assert 0 < asked(server).count(BAD) <= len(WIRES)  # the others were cancelled on their way


def test_a_cancellation_may_be_lost(server: OpenAIServer) -> None:
    # What happens now and then in the test above, every time.
    chat = wire_model(server, "chat-whole", BAD)

    async def forgetful(messages: Sequence[BaseMessage]) -> BaseMessage:
        call = asyncio.ensure_future(chat.ainvoke(messages))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            return await call

    server.answer(bad_but_good(silent()))
    good = wire_model(server, "chat-whole", GOOD)
    found = run("ainvoke", [ModelTier(forgetful, timeout=ATTEMPT), good])
    assert_digest(found, GOOD)
    assert ATTEMPT <= found.seconds < ATTEMPT + GRACE


@each_way
def test_a_timeout_is_not_raised(server: OpenAIServer, way: str) -> None:
    for found in at_the_same_time(server, way, silent(), on_error="raise"):
        assert_digest(found, GOOD)
