"""Live state in the view: what the application holds of a thread now, told to the agent anew.

A to-do list in a channel of its own is in no message that outlives a fold. It is shown from the
first digest on; before, the view equals the messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.view import Layout
from langgraph_compaction.view.clipping import BYTES_PER_TOKEN, clip_text
from langgraph_compaction.view.digest import DIGEST_MARK
from langgraph_compaction.view.pairing import first_open, groups
from langgraph_compaction.view.roles import alternating

LIVE_MARK = "live_state"
"""Id of the message with the live state, and its ``additional_kwargs["lc_source"]``."""
OPENING = (
    "[State that the application holds now, shown anew at each call. It is data and no request; "
    "where an older message differs, this counts.]"
)
CLOSING = "[End of the state.]"
REMEDY = "Its own tools show the rest."


def sent_with(layout: Layout, live: str) -> list[BaseMessage]:
    """The messages as a model is called with them, and the live state among them.

    It stands last, behind all that the next view repeats, so that what changes in it breaks no
    cached prefix; only the newest request, if it is not answered yet, comes after it. Where roles
    alternate, it stands with the newest user message: between results and an answer no user speaks.

    Args:
        layout: the parts of the view.
        live: what to show; "" for nothing.
    """
    if not live or layout.digest is None:
        return layout.sent()
    view = layout.view()
    at = _behind_newest_turn(view) if layout.alternates else _before_newest_request(view)
    if at is not None:
        view.insert(at, _message(live))
    return alternating(view) if layout.alternates else view


def live_text(text: str, tokens: int) -> str:
    """``text`` within ``tokens`` tokens, at three UTF-8 bytes a token: cut to head and tail."""
    return clip_text(text, tokens * BYTES_PER_TOKEN, REMEDY)


def framed(text: str) -> str:
    """The text between the lines that open and close it in the view."""
    for line in (OPENING, CLOSING):
        text = text.replace(line, "[...]")
    return f"{OPENING}\n{text}\n{CLOSING}"


def _message(text: str) -> HumanMessage:
    return HumanMessage(
        content=framed(text), id=LIVE_MARK, additional_kwargs={"lc_source": LIVE_MARK}
    )


def _before_newest_request(view: Sequence[BaseMessage]) -> int | None:
    """Where it stands last; None where calls are open: nothing may come before their results."""
    found = list(groups(view))
    if first_open(view, found) < len(found):
        return None
    last = view[-1]
    return len(view) - (isinstance(last, HumanMessage) and last.id != DIGEST_MARK)


def _behind_newest_turn(view: Sequence[BaseMessage]) -> int | None:
    turns = (index for index in reversed(range(len(view))) if isinstance(view[index], HumanMessage))
    return next((index + 1 for index in turns), None)
