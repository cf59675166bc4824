"""How long summarisers that failed are left alone.

A summariser that is down is not asked again at every visit: each time costs money and up to the
whole summary timeout. The record counts the failures, so that a restart forgets none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

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
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    *,
    steps: int,
    tokens: int,
    request: Request | None = None,
) -> Cooling | None:
    """Whether the summarisers are to be left alone, None where they may be asked.

    Args:
        record: the record in the state.
        messages: the messages channel.
        steps: AI messages of the thread so far.
        tokens: tokens of the view now, overhead included.
        request: the request that is to be carried out: one made after the failure is tried.
    """
    failures = record.get("failures")
    if failures is None or (request is not None and request.id != failures.get("request_id")):
        return None
    made = _made_since(failures, messages, steps)
    breaker = failures["count"] >= BREAKER_FAILURES
    wait = BREAKER_CALLS if breaker else WAIT_CALLS
    # Less than none: messages were deleted, so that nothing can be said of what came since.
    if made is None or not 0 <= made < wait:
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


def _made_since(failures: Failures, messages: Sequence[BaseMessage], steps: int) -> int | None:
    """Calls of the agent's model since the last failure; None where nothing tells.

    By the message that was the newest then. A list that is kept at one length never has more
    messages, so their number tells nothing there.
    """
    newest = failures.get("last_id")
    if newest is None:
        return steps - failures["thread_steps"]
    made = 0
    for message in reversed(messages):
        if message.id == newest:
            return made
        made += isinstance(message, AIMessage)
    return None


def failures_in_a_row(record: CompactionRecord) -> int:
    """Visits in a row at which the summarisers failed."""
    failures = record.get("failures")
    return 0 if failures is None else failures["count"]


def failed_again(
    record: CompactionRecord,
    messages: Sequence[BaseMessage],
    *,
    steps: int,
    tokens: int,
    request: Request | None = None,
) -> Failures:
    """The failures after one more; arguments as for `cooling`."""
    count = failures_in_a_row(record) + 1
    failures: Failures = {"count": count, "thread_steps": steps, "tokens": tokens}
    if messages and messages[-1].id is not None:
        failures["last_id"] = messages[-1].id
    if request is not None:
        failures["request_id"] = request.id
    return failures
