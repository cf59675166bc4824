"""What a model is asked with where other middlewares changed the messages before the view is made.

The record is of the state's messages. A note of another middleware among them is not in the state:
no digest covers it, it moves nothing, and it is shown where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from langgraph_compaction.state import Channels
from langgraph_compaction.view.among import Among, found_among, is_written_anew, record_among
from langgraph_compaction.view.anchors import locate

WRITTEN_ANEW = (
    "A middleware before this one gives the model other messages than those of the state, with new "
    "ids or none: what the digest covers cannot be told among them, so all are shown, and the "
    "digest is not. Let it keep the ids, for example by message.model_copy(update=...), or put it "
    "behind this one in create_agent's list."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call's messages, and the state whose view it is made with.

    Attributes:
        messages: those of the call.
        state: the agent's state with those of its messages that are in the call, as they are there.
        among: where they stand among all of the call; None: there are no others.
        commits: whether they are all of the state's, so that a record of them is one of the state.
        warning: what to say of a call that cannot be understood, None: nothing.
    """

    messages: Sequence[BaseMessage]
    state: dict[str, Any]
    among: Among | None = None
    commits: bool = True
    warning: str | None = None


def asked_with(given: Sequence[Any], state: Mapping[str, Any], channels: Channels) -> Asked:
    """What a call is about that is to be made with the messages ``given``.

    Args:
        given: what the middlewares before left of the messages, in any form that a model takes.
        state: the agent's state.
        channels: of that state.
    """
    thread, record = channels.read(state)
    among = found_among(as_messages(given), thread)
    messages = among.messages
    if not among.others and among.unchanged:
        return Asked(messages, {**state, channels.messages: messages})
    anchor = locate(thread, record)
    if is_written_anew(among, anchor):
        whole = {**state, channels.messages: messages}
        return Asked(messages, whole, commits=False, warning=WRITTEN_ANEW)
    own = {channels.messages: among.own, channels.compaction: record_among(among, record, anchor)}
    others = among.in_own() if among.others else None
    return Asked(messages, {**state, **own}, others, commits=among.unchanged)


def as_messages(given: Sequence[Any]) -> Sequence[BaseMessage]:
    """Messages in any form that a chat model takes, as messages; the same list where they are."""
    if all(isinstance(one, BaseMessage) for one in given):
        return given
    return convert_to_messages(given)
