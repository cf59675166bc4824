"""How the view says to get back what it leaves out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

_quoted = json.JSONEncoder(ensure_ascii=False).encode
CALL_AGAIN = "Call the tool again if you need it."
MADE = "The call was made: do not repeat it for its result."
"""Of a call that changed something: a mail is not to be sent again to see that it was sent."""


def again(
    recall: str | None, *handles: str | None, position: int | None = None, effect: bool = False
) -> str:
    """What to do to see an original: a call of the recall tool, where the agent has one.

    Args:
        recall: name of that tool, None where there is none.
        handles: ids of the original, or of the call that it makes or answers, as far as it has
            them; the first is named.
        position: of the original in the thread, 0-based; named where it has no such id.
        effect: whether the original is the result of a call that changed something.
    """
    handle = next(filter(None, handles), None)
    if not recall or (not handle and position is None):
        return MADE if effect else CALL_AGAIN
    place = f"id={_quoted(handle)}" if handle else f"first={position}"
    shown = f"{recall}({place}) shows it."
    return f"{MADE} {shown}" if effect else shown


def shared_call_ids(messages: Sequence[BaseMessage]) -> frozenset[str]:
    """The call ids that name more than one of these tool results, or a message, too.

    Some providers count a step's calls from 0 again, so that an id tells no results apart.
    """
    counts = Counter(
        message.tool_call_id for message in messages if isinstance(message, ToolMessage)
    )
    named = {message.id for message in messages}
    return frozenset(found for found, count in counts.items() if count > 1 or found in named)
