"""The parts of a span: what a summariser reads at once, and what becomes one segment each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.dividing import LEAST_PART, pack, without_small
from langgraph_compaction.digest.redaction import redacted_messages
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.source import render_group
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.plan.boundaries import Span
from langgraph_compaction.plan.decision import Decision
from langgraph_compaction.view.anchors import Anchor
from langgraph_compaction.view.pairing import Group, groups


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a span.

    Attributes:
        folded: indexes of its messages, ascending.
        members: the messages.
        chunks: its groups as the summariser reads them.
        stop: index after the last message that is covered once it is folded.
        absorbed: those of them that were kept at an earlier fold, and what stands between them and
            the covered range's end, each with whether it is one of them.
        quoted: the user's newest message if it is among them, in full; else "".
        tokens: of its messages in the view.
    """

    folded: Sequence[int]
    members: Sequence[BaseMessage]
    chunks: Sequence[str]
    stop: int
    absorbed: Sequence[tuple[BaseMessage, bool]]
    quoted: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Divided:
    """A span in groups, from which parts are taken.

    Attributes:
        visit: what is looked at.
        decision: what is to be done.
        span: what is to be folded.
        members: its messages without secrets.
        found: its groups, by their places in ``members``.
        rendered: the groups as a summariser reads them.
        sizes: tokens of ``rendered``.
    """

    visit: Visit
    decision: Decision
    span: Span
    members: Sequence[BaseMessage]
    found: Sequence[Group]
    rendered: Sequence[str]
    sizes: Sequence[int]

    @classmethod
    def of(cls, visit: Visit, decision: Decision, span: Span) -> Divided:
        """The span of a decision, redacted and rendered."""
        members = redacted_messages([visit.messages[index] for index in span.folded], visit.redact)
        positions = [decision.layout.anchor.position_of(index) for index in span.folded]
        found = list(groups(members))
        policy = visit.policy
        rendered = [
            render_group(members, group, positions, policy.clamp_chars, policy.tool_markers)
            for group in found
        ]
        sizes = [visit.counter.text(text) for text in rendered]
        return cls(visit, decision, span, members, found, rendered, sizes)

    @property
    def all(self) -> slice:
        """All groups."""
        return slice(0, len(self.found))

    def divided(self, run: slice, limit: int | None) -> tuple[slice, slice | None]:
        """The first groups of a run that fit ``limit`` tokens, and those after them if there are.

        A single group above the limit comes alone: it is read in pieces, then.
        """
        sizes = self.sizes[run]
        length = without_small(pack(sizes, limit), sizes, LEAST_PART)[0].stop
        stop = run.start + length
        return slice(run.start, stop), slice(stop, run.stop) if stop < run.stop else None

    def part(self, run: slice) -> Part:
        """The part that some of the groups make."""
        visit, span, anchor = self.visit, self.span, self.decision.layout.anchor
        first, last = self.found[run][0].start, self.found[run][-1].stop
        following = span.folded[last] if last < len(span.folded) else span.stop
        folded, inside = span.folded[first:last], self.members[first:last]
        quoted = next(
            (one for at, one in zip(folded, inside, strict=True) if at == span.quoted), None
        )
        return Part(
            folded=folded,
            members=inside,
            chunks=self.rendered[run],
            stop=max(anchor.boundary, following),
            absorbed=_absorbed(visit, anchor, folded),
            quoted=visit.redacted(message_text(quoted)) if quoted else "",
            tokens=visit.counter.messages(self.decision.layout.shown(folded)),
        )


def _absorbed(
    visit: Visit, anchor: Anchor, folded: Sequence[int]
) -> list[tuple[BaseMessage, bool]]:
    """What a part takes in from before the boundary, with what came after it there."""
    taken = {index for index in folded if index < anchor.boundary}
    if not taken:
        return []
    indexes = range(min(taken), anchor.boundary)
    found = redacted_messages((visit.messages[index] for index in indexes), visit.redact)
    return [(message, index in taken) for index, message in zip(indexes, found, strict=True)]
