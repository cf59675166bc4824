"""How the view says to get back what it leaves out."""

from __future__ import annotations

import json

CALL_AGAIN = "Call the tool again if you need it."


def again(recall: str | None, handle: str | None) -> str:
    """What to do to see an original: a call of the recall tool, where the agent has one.

    Args:
        recall: name of that tool, None where there is none.
        handle: the id of the call or message, as the recall tool takes it.
    """
    if recall is None or not handle:
        return CALL_AGAIN
    return f"{recall}(id={json.dumps(handle, ensure_ascii=False)}) shows it."
