"""How long summarisers that failed are left alone.

A summariser that is down is not asked again at every visit: each time costs money and up to the
whole summary timeout. The record counts the failures, so that a restart forgets none of them.
"""

from __future__ import annotations

from typing import NamedTuple

from langgraph_compaction.plan.requests import Request
from langgraph_compaction.record import CompactionRecord, Failures

WAIT_CALLS = 3
"""Calls of the agent's model to wait after a failed visit."""
WAIT_GROWTH = 1.1
"""Times the tokens at the failure from which waiting ends sooner."""
BREAKER_FAILURES = 3
"""Failures in a row after which the breaker is open."""
BREAKER_CALLS = 10
"""Calls of the agent's model to wait then; growth does not shorten it."""


class Cooling(NamedTuple):
    """The summarisers are left alone for now.

    Attributes:
        breaker: whether they failed so often that they are not even asked at the hard limit.
        reason: one sentence that says why and until when.
    """

    breaker: bool
    reason: str


def cooling(
    record: CompactionRecord, *, steps: int, tokens: int, request: Request | None = None
) -> Cooling | None:
    """Whether the summarisers are to be left alone, None where they may be asked.

    Args:
        record: the record in the state.
        steps: AI messages of the thread so far.
        tokens: tokens of the view now, overhead included.
        request: the request that is to be carried out: one made after the failure is tried.
    """
    failures = record.get("failures")
    if failures is None or (request is not None and request.id != failures.get("request")):
        return None
    made = steps - failures["steps"]
    breaker = failures["count"] >= BREAKER_FAILURES
    wait = BREAKER_CALLS if breaker else WAIT_CALLS
    # Less than none: messages were deleted, so that nothing can be said of what came since.
    if not 0 <= made < wait:
        return None
    grown = int(failures["tokens"] * WAIT_GROWTH)
    if not breaker and tokens >= grown:
        return None
    sooner = "" if breaker else f", or until the view has {grown} tokens"
    return Cooling(
        breaker,
        f"The summarisers failed {failures['count']} time(s) in a row and are left alone for "
        f"{wait - made} more call(s) of the agent's model{sooner}.",
    )


def failed_again(
    record: CompactionRecord, *, steps: int, tokens: int, request: Request | None = None
) -> Failures:
    """The failures after one more; arguments as for `cooling`."""
    before = record.get("failures")
    count = (before["count"] if before else 0) + 1
    failures: Failures = {"count": count, "steps": steps, "tokens": tokens}
    if request is not None:
        failures["request"] = request.id
    return failures
