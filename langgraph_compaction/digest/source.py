"""What one segment is written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.markers import Markers, lines_of
from langgraph_compaction.digest.prompts import Task
from langgraph_compaction.digest.rendering import RECORD, escaped, fence, render_message
from langgraph_compaction.view.pairing import Group

NO_ANSWER = "one of its calls was never answered"


@dataclass(frozen=True, slots=True)
class Source:
    """The input of one segment.

    Attributes:
        chunks: rendered messages, or rendered segments to condense, oldest first.
        span: the original messages to fold; empty where only segments are condensed.
        texts: the segments to condense; empty where only messages are folded.
        tokens: tokens of what the segment replaces.
        max_tokens: tokens that its text may have.
        extract_tokens: tokens that extracts may have, which need no list of names beside them.
        previous: texts of the chain before it, oldest first.
        fullness: share of the room for the text that ``texts`` would fill as they are.
    """

    chunks: Sequence[str]
    span: Sequence[BaseMessage]
    texts: Sequence[str]
    tokens: int
    max_tokens: int
    extract_tokens: int
    previous: Sequence[str]
    fullness: float = 0.0

    @property
    def task(self) -> Task:
        """What is asked of the summariser."""
        if not self.texts:
            return "fold"
        return "roll" if self.span else "condense"

    def fresh(self) -> list[str]:
        """The chunks without what stands in earlier records: a new one may keep their lines."""
        if not self.texts:
            return list(self.chunks)
        if not self.span:
            return []
        known = {row.strip() for text in self.texts for row in escaped(text).splitlines()}
        return [
            "\n".join(row for row in chunk.splitlines() if row.strip() not in known)
            for chunk in self.chunks
        ]


def render_group(
    messages: Sequence[BaseMessage],
    group: Group,
    positions: Sequence[int],
    result_chars: int,
    markers: Markers | None = None,
) -> str:
    """A group as the summariser reads it; an abandoned call is marked as unanswered.

    Args:
        messages: the list that ``group`` refers to.
        group: the group to render.
        positions: position in the thread of every message of the list.
        result_chars: characters of a tool result that are shown.
        markers: templates of the lines that stand for calls and their results, by the tool's name.
    """
    lines = lines_of(messages, group, positions, markers or {})
    return "\n".join(
        render_message(
            messages[index],
            positions[index],
            result_chars=result_chars,
            note=NO_ANSWER if group.unanswered and index == group.start else "",
            marked=lines.calls.get(index),
        )
        for index in range(group.start, group.stop)
        if index not in lines.results
    )


def render_segments(texts: Sequence[str]) -> list[str]:
    """Segments as the summariser reads them where its text replaces them."""
    return [fence(RECORD, [escaped(text)]) for text in texts]
