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
    heads: Sequence[str],
    doubtful: Collection[str],
) -> Steps[str | None]:
    """Steps that append to a chain what it does not hold yet; a broken one may be done again.

    Where graphs share their state, they share the chain: it goes on where it began.

    Args:
        archive: of the graph that writes.
        messages: each with its position in the thread, by position.
        heads: keys of the newest items so far. The new items go on from the first and lead to all.
        doubtful: ids of messages that the chain may hold.

    Returns:
        Key of the newest item; None where there is none.
    """
    if heads and doubtful:
        held = {one.id for one in (yield from archive.steps_of_branch(*heads))}
        known = {name for name in doubtful if storable(name) in held}
        messages = [one for one in messages if one[1].id not in known]
    previous = heads[0] if heads else None
    if not messages:
        return previous
    return (yield from archive.steps_of_write(messages, previous, also=heads[1:]))
