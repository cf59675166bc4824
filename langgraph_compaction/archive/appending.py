"""Adding to the chain that a record names what it does not hold yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.messages import BaseMessage

from langgraph_compaction.archive.chain import Archive
from langgraph_compaction.archive.items import storable
from langgraph_compaction.archive.performing import Steps


def steps_of_append(
    archive: Archive,
    messages: Sequence[tuple[int, BaseMessage]],
    previous: str | None,
    doubtful: Collection[str],
) -> Steps[str | None]:
    """Steps that append to a chain what it does not hold yet; a broken one may be done again.

    Where graphs share their state, they share the chain: it goes on where it began.

    Args:
        archive: of the graph that writes.
        messages: each with its position in the thread, by position.
        previous: key of the newest item so far, None where there is none.
        doubtful: ids of messages that the chain may hold.

    Returns:
        Key of the newest item; None where there is none.
    """
    if previous is not None and doubtful:
        held = {one.id for one in (yield from archive.steps_of_branch(previous))}
        known = {name for name in doubtful if storable(name) in held}
        messages = [one for one in messages if one[1].id not in known]
    return (yield from archive.steps_of_write(messages, previous)) if messages else previous
