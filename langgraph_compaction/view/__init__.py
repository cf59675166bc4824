"""What the model sees: a pure function of the transcript and the record.

    [leading system messages] [the task] [digest] [kept messages of covered spans] [recent messages]

Needs no settings, no model and no counter; what it has to know is frozen in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraph_compaction.record import CompactionRecord, Render, message_key, render_of
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, read_state
from langgraph_compaction.view.among import Among, placed_among
from langgraph_compaction.view.anchors import Anchor, locate
from langgraph_compaction.view.clearing import NOTHING_CLEARED, Cleared, apply_clearing
from langgraph_compaction.view.clipping import clipped_group
from langgraph_compaction.view.digest import DIGEST_MARK, digest_text, with_digest
from langgraph_compaction.view.pairing import Group, Run, calls_of, groups, repaired
from langgraph_compaction.view.provider import detached, without_compaction
from langgraph_compaction.view.roles import alternating

__all__ = ["DIGEST_MARK", "Layout", "build_view", "lay_out", "model_view"]

GAP = "[Other messages stood here; the record above covers them.]"
"""Stands where folding would bring a call right behind another AI message, which Gemini refuses (a
function call has to follow a user turn or a function response), and behind a kept AI message that
would otherwise come last: a provider takes that for a reply to go on with."""
CONTINUED = "[The conversation goes on from the record above.]"
"""Opens the turns where the digest is system text and no human message would come first."""


def model_view(
    state: Any, *, messages_key: str = MESSAGES_KEY, compaction_key: str = COMPACTION_KEY
) -> list[BaseMessage]:
    """The messages to call the model with, from a graph state.

    Before any fold these are the messages of the state; only an abandoned call gets its missing
    answer, and a result that stands apart from its call becomes labelled text. After a fold the
    digest stands for the messages it covers.

    Args:
        state: a TypedDict (dict), dataclass or pydantic state.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the compaction record.

    Returns:
        A new list. Messages are neither changed nor given new ids; one that looks different in
        the view (clipped, say) is a copy with the same id.

    Raises:
        MissingChannelError: the state lacks one of the two channels.
        RecordError: the record cannot be read.
        RecordVersionError: a newer version of this package wrote the record.
    """
    messages, record = read_state(state, messages_key=messages_key, compaction_key=compaction_key)
    return lay_out(messages, record).sent()


def build_view(
    messages: Sequence[BaseMessage], record: CompactionRecord, *, defaults: Render | None = None
) -> list[BaseMessage]:
    """The view of a transcript under a record, message by message.

    ``defaults`` say how it is rendered where the record does not yet.
    """
    return lay_out(messages, record, defaults=defaults).view()


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a view, in the order in which the model sees them.

    Attributes:
        leading: system messages: the leading run, then those whose place was folded.
        task: the task, if its place was folded; at most one message.
        digest: text of the digest, None where there is none to show.
        kept: other messages of covered spans that stay visible, repaired and clipped.
        recent: what is not covered, repaired and clipped.
        anchor: where the covered range ends in the messages.
        render: the frozen rendering the layout was made with.
        messages: the messages channel.
        cleared: what stands in it in place of some of them.
        clipped: messages that are shown in part.
    """

    leading: list[BaseMessage]
    task: list[BaseMessage]
    digest: str | None
    kept: list[BaseMessage]
    recent: list[BaseMessage]
    anchor: Anchor
    render: Render
    messages: Sequence[BaseMessage] = ()
    cleared: Cleared = NOTHING_CLEARED
    clipped: int = 0

    def view(self) -> list[BaseMessage]:
        """The messages in a new list."""
        if self.digest is None:
            return [*self.leading, *self.task, *self.kept, *self.recent]
        if self.render.get("role", "human") == "human" or self._stands_apart():
            digest = HumanMessage(
                content=self.digest, id=DIGEST_MARK, additional_kwargs={"lc_source": DIGEST_MARK}
            )
            return [*self.leading, *self.task, digest, *self.kept, *self.recent]
        turns = [*self.task, *self.kept, *self.recent]
        opening = next((m for m in turns if not isinstance(m, SystemMessage)), None)
        if opening is None or isinstance(opening, AIMessage):
            turns.insert(0, HumanMessage(content=CONTINUED, id=f"{DIGEST_MARK}:continued"))
        return [*with_digest(self.leading, self.digest), *turns]

    @property
    def alternates(self) -> bool:
        """Whether neighbours of one role are sent as one message."""
        return self.render.get("roles") == "alternating"

    def sent(self) -> list[BaseMessage]:
        """The messages as a model is called with them.

        Sizes are counted of `view`: there every message of the transcript is one of its own.
        """
        return alternating(self.view()) if self.alternates else self.view()

    def _stands_apart(self) -> bool:
        """Whether the only system messages stand later: Anthropic refuses them in two places."""
        return not self.leading and any(isinstance(m, SystemMessage) for m in self.recent)

    def shown(self, indexes: Iterable[int]) -> list[BaseMessage]:
        """Whole groups as this view shows them, cleared and clipped, by index in the messages."""
        members = [self.cleared.messages.get(index, self.messages[index]) for index in indexes]
        return list(_clipped(members, list(groups(members)), self.render))


def lay_out(
    messages: Sequence[BaseMessage],
    record: CompactionRecord,
    *,
    defaults: Render | None = None,
    own: Sequence[BaseMessage] = (),
    among: Among | None = None,
) -> Layout:
    """Divide a transcript into the parts of its view. O(view) while the record's hints hold.

    Args:
        messages: the messages channel.
        record: the record in the state.
        defaults: how it is rendered where the record does not say it yet, see `render_of`.
        own: system messages of the agent itself, before those of the transcript.
        among: the messages to show in place of the transcript's, and which of it they are; None:
            the transcript's.
    """
    render = render_of(record, defaults)
    anchor, clearing = locate(messages, record), record.get("clearing")
    if among is not None:
        anchor, clearing = placed_among(among, anchor, clearing)
        messages = among.messages
    newest_kept = -1
    leading = list(own)
    task: list[BaseMessage] = []
    kept: list[BaseMessage] = []
    for index in anchor.kept:
        message, place = messages[index], anchor.position_of(index)
        if isinstance(message, SystemMessage):
            leading.append(message)
        elif render.get("task") == message_key(message, index):
            task.append(message)
        else:
            if kept and place - 1 != newest_kept:
                _separate(kept, message)
            kept.append(without_compaction(detached(message)))
            newest_kept = place
    cleared = apply_clearing(
        messages,
        clearing,
        start=anchor.boundary,
        position=anchor.position,
        render=render,
    )
    recent = _recent(messages, anchor, cleared)
    if anchor.digest and anchor.boundary == 0 and record.get("boundary_hint") != 0:
        # All before it is lost or unknown: what there is of a system prompt goes in front.
        while recent and isinstance(recent[0], SystemMessage):
            leading.append(recent.pop(0))
    if kept and isinstance(kept[-1], AIMessage) and newest_kept != anchor.position - 1:
        kept.append(_gap(kept[-1]))
    parts = [_shown(part, render, newest=part is recent) for part in (task, kept, recent)]
    return Layout(
        leading=leading,
        task=parts[0].messages,
        digest=digest_text(record, render) if anchor.digest else None,
        kept=parts[1].messages,
        recent=parts[2].messages,
        anchor=anchor,
        render=render,
        messages=messages,
        cleared=cleared,
        clipped=sum(part.clipped for part in parts),
    )


def _recent(messages: Sequence[BaseMessage], anchor: Anchor, cleared: Cleared) -> list[BaseMessage]:
    """What is not covered, cleared, and cut off from the earlier views it was made under."""
    recent = list(messages[anchor.boundary :])
    for index, message in cleared.messages.items():
        recent[index - anchor.boundary] = message
    for index in range(min(anchor.made_after - anchor.boundary, len(recent))):
        recent[index] = detached(recent[index])
    return recent


def _separate(kept: list[BaseMessage], following: BaseMessage) -> None:
    if isinstance(kept[-1], AIMessage) and calls_of(following):
        kept.append(_gap(kept[-1]))


def _gap(before: BaseMessage) -> HumanMessage:
    return HumanMessage(content=GAP, id=f"{before.id or DIGEST_MARK}:gap")


class _Part(NamedTuple):
    messages: list[BaseMessage]
    clipped: int


def _shown(messages: list[BaseMessage], render: Render, *, newest: bool) -> _Part:
    found = list(groups(messages))
    shown = _clipped(messages, found, render)
    clipped = sum(one is not other for one, other in zip(messages, shown, strict=True))
    return _Part(repaired(shown, found, newest=newest), clipped)


def _clipped(
    messages: Sequence[BaseMessage], found: Sequence[Group], render: Render
) -> Sequence[BaseMessage]:
    """The messages of these groups, one for one, oversized ones clipped."""
    result_bytes = render.get("clip_result_bytes", 0)
    message_bytes = render.get("clip_message_bytes", 0)
    if result_bytes <= 0 and message_bytes <= 0:
        return messages
    clip = partial(
        clipped_group,
        clip_result_bytes=result_bytes,
        clip_message_bytes=message_bytes,
        recall=render.get("recall"),
    )
    # Run by run: what came before a server-side pause was sent already, and stays as it was.
    return [
        message
        for group in found
        for run in group.runs
        for message in _clipped_run(messages, run, clip)
    ]


def _clipped_run(
    messages: Sequence[BaseMessage],
    run: Run,
    clip: Callable[[Sequence[BaseMessage]], list[BaseMessage]],
) -> list[BaseMessage]:
    """The messages of a run, one for one: results share a limit, late ones have one each.

    Another late result may still come behind one that was sent already, and stays as it was.
    """
    if not run.strays:
        return clip(messages[run.start : run.stop])
    own = [index for index in range(run.start, run.stop) if index not in run.strays]
    shown = dict(zip(own, clip([messages[index] for index in own]), strict=True))
    shown |= {index: clip([messages[index]])[0] for index in run.strays}
    return [shown[index] for index in range(run.start, run.stop)]
