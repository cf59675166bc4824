"""What goes wrong with summaries: the fault, and what a compaction node has to say of it."""

from typing import NamedTuple

from tests.support.openai_server.cases import (
    content_filter,
    cut_off,
    dropped,
    dropped_midway,
    empty,
    forbidden,
    not_found,
    not_json,
    rate_limited,
    reasoning_only,
    refusal,
    server_error,
    silent,
    stalled_stream,
    status,
    text,
    tool_call,
    trickle,
    unauthorized,
    unavailable,
)
from tests.support.openai_server.runs import DIGEST, prompt_of
from tests.support.openai_server.server import Case, Exchange


class Fault(NamedTuple):
    """A case, and the one event about it.

    Attributes:
        case: what the server does.
        event: the event's type: "tier_failed" or "rejected".
        reason: a pattern of the event's reason.
    """

    case: Case
    event: str
    reason: str


def _echo(exchange: Exchange) -> None:
    """The first lines of the transcript, below a heading: within the cap, and nothing new."""
    inside = prompt_of(exchange.body).partition("<transcript>\n")[2]
    text("## Goal\n" + "\n".join(inside.splitlines()[:12]))(exchange)


_LONG = DIGEST + "".join(f"\nPart {n}: {7_919**n % 10**60:060}" for n in range(20, 90))
_WEB_PAGE = "<html><body><h1>502 Bad Gateway</h1><p>The server is busy.</p></body></html>"
_PROTOCOL = '<tool_call>\n{"name": "measure", "arguments": {"part": 1}}\n</tool_call>'

FAULTS: dict[str, Fault] = {
    "401": Fault(unauthorized(), "tier_failed", "AuthenticationError.*401"),
    "403": Fault(forbidden(), "tier_failed", "PermissionDeniedError.*403"),
    "404": Fault(not_found(), "tier_failed", "NotFoundError.*404"),
    "409": Fault(status(409), "tier_failed", "409"),
    "429": Fault(rate_limited(7), "tier_failed", "RateLimitError.*429"),
    "500": Fault(server_error(), "tier_failed", "500"),
    "503": Fault(unavailable(), "tier_failed", "503"),
    "web page": Fault(not_json(), "tier_failed", "."),
    "dropped": Fault(dropped(), "tier_failed", "ConnectionError"),
    "dropped midway": Fault(dropped_midway(), "tier_failed", "ConnectionError"),
    "empty": Fault(empty(), "rejected", "^empty$"),
    "no text": Fault(empty(None), "rejected", "^empty$"),
    "refusal field": Fault(refusal(), "rejected", "refus|^empty$"),
    "refusal in words": Fault(
        text("I'm sorry, but I can't help with the request that was made."), "rejected", "a refusal"
    ),
    "question back": Fault(
        text("Could you please provide the conversation to be summarised?"), "rejected", "question"
    ),
    "reasoning only": Fault(reasoning_only(DIGEST), "rejected", "^empty$"),
    "cut off": Fault(cut_off(DIGEST), "rejected", "^cut off"),
    "filtered": Fault(content_filter(DIGEST), "rejected", "^stopped by a filter"),
    "tool call": Fault(tool_call("measure", {"part": 1}), "rejected", "^calls tools"),
    "invalid tool call": Fault(tool_call("measure", "part 1"), "rejected", "^calls tools"),
    "over its cap": Fault(text(_LONG), "rejected", "^(over its cap|larger than)"),
    "echo": Fault(_echo, "rejected", "^an echo"),
    "web page as text": Fault(text(_WEB_PAGE), "rejected", "^an error page"),
    "tool protocol": Fault(text(f"{DIGEST}\n{_PROTOCOL}"), "rejected", "tool-protocol"),
}
"""Faults that are found out at once."""

SLOW_FAULTS: dict[str, Fault] = {
    "silent": Fault(silent(), "tier_failed", "Timeout"),
    "stalled": Fault(stalled_stream(DIGEST), "tier_failed", "Timeout"),
    "trickle": Fault(trickle(0.02), "tier_failed", "AttemptTimeoutError"),
}
"""Faults that only the time of the attempt ends."""
