"""Names in a text that stand in nothing that it was made from: a model invents some.

They may stay where the model wrote them, but no list of the digest may say of them that this is
exactly what was written.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.facts.matching import stands
from langgraph_compaction.digest.facts.mentions import mentions
from langgraph_compaction.digest.rendering import render_message

MOST_UNSOURCED = 50
"""Names that are written down for one segment at most: the record must stay small."""


def unsourced(
    text: str,
    messages: Sequence[BaseMessage],
    earlier: Iterable[Parts],
    mentioned: Container[str],
) -> list[str]:
    """The names and values of a text that neither messages nor earlier segments have.

    Args:
        text: what a summariser wrote.
        messages: those it was made from.
        earlier: the parts of the segments that it replaces, and of those before it.
        mentioned: names that are known to stand in the messages.
    """
    names = {one.name for one in mentions(text, said=True) if one.name not in mentioned}
    doubted: set[str] = set()
    for parts in earlier:
        standing = parts.text()
        doubted.update(parts.unsourced)
        names = {name for name in names if not stands(standing, name)}
    found = names | {name for name in doubted if stands(text, name)}
    for message in messages:
        if not found:
            break
        said = render_message(message, 0, result_chars=0)
        found = {name for name in found if not stands(said, name)}
    return sorted(found)[:MOST_UNSOURCED]
