"""How the view says to get back what it leaves out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable

from langchain_core.messages import BaseMessage, ToolMessage

_quoted = json.JSONEncoder(ensure_ascii=False).encode
CALL_AGAIN = "Call the tool again if you need it."


def again(
    recall: str | None,
    call_id: str | None,
    message_id: str | None = None,
    position: int | None = None,
    *,
    shared: Container[str] = (),
) -> str:
    """What to do to see an original: a call of the recall tool, where the agent has one.

    Args:
        recall: name of that tool, None where there is none.
        call_id: id of the call that the original makes or answers.
        message_id: id of the original; named where that of the call does not tell it apart.
        position: of the original in the thread, 0-based; named where it has no id either.
        shared: call ids that name several originals, see `shared_call_ids`.
    """
    if not recall:
        return CALL_AGAIN
    handle = message_id if not call_id or call_id in shared else call_id
    if not handle and position is not None:
        return f"{recall}(first={position}) shows it."
    handle = handle or call_id
    if not handle:
        return CALL_AGAIN
    return f"{recall}(id={_quoted(handle)}) shows it."


def shared_call_ids(messages: Iterable[BaseMessage]) -> frozenset[str]:
    """The call ids that more than one of these tool results have.

    Some providers count a step's calls from 0 again, so that an id tells no results apart.
    """
    counts = Counter(
        message.tool_call_id for message in messages if isinstance(message, ToolMessage)
    )
    return frozenset(call_id for call_id, count in counts.items() if count > 1)
