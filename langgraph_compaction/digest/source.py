"""What one segment is written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.rendering import escaped, render_message
from langgraph_compaction.view.pairing import Group

NO_ANSWER = "one of its calls was never answered"


@dataclass(frozen=True, slots=True)
class Source:
    """The input of one segment.

    Attributes:
        chunks: rendered messages, or rendered segments to condense, oldest first.
        span: the original messages to fold; empty when condensing.
        texts: the segments to condense; empty when folding.
        tokens: tokens of what the segment replaces.
        max_tokens: tokens that its text may have.
        previous: texts of the chain before it, oldest first.
    """

    chunks: Sequence[str]
    span: Sequence[BaseMessage]
    texts: Sequence[str]
    tokens: int
    max_tokens: int
    previous: Sequence[str]

    @property
    def condenses(self) -> bool:
        """Whether segments are condensed rather than messages folded."""
        return bool(self.texts)


def render_group(
    messages: Sequence[BaseMessage], group: Group, positions: Sequence[int], result_chars: int
) -> str:
    """A group as the summariser reads it; an abandoned call is marked as unanswered.

    Args:
        messages: the list that ``group`` refers to.
        group: the group to render.
        positions: position in the thread of every message of the list.
        result_chars: characters of a tool result that are shown.
    """
    return "\n".join(
        render_message(
            messages[index],
            positions[index],
            result_chars=result_chars,
            note=NO_ANSWER if group.unanswered and index == group.start else "",
        )
        for index in range(group.start, group.stop)
    )


def render_segments(texts: Sequence[str]) -> list[str]:
    """Segments as the summariser reads them when it condenses them."""
    return [f"<message>\n{escaped(text)}\n</message>" for text in texts]
