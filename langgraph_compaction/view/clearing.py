"""Old tool results shown as placeholders, and long arguments shortened: tier 1, and reversible.

The record says up to where (`record.Clearing`); what is cleared there follows from the messages
alone. Nothing that comes later changes it, so the view only grows until the next change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langgraph_compaction.record import Clearing, Render, message_key
from langgraph_compaction.view.arguments import shortened_calls
from langgraph_compaction.view.block_texts import texts_in
from langgraph_compaction.view.blocks import (
    block_marker,
    blocks_of,
    is_media,
    is_reasoning,
    visible_text,
)
from langgraph_compaction.view.effects import has_effect
from langgraph_compaction.view.fingerprints import fingerprint
from langgraph_compaction.view.marks import is_marked
from langgraph_compaction.view.pairing import Group, Run, answered, calls_of, groups
from langgraph_compaction.view.remedies import CALL_AGAIN, again, shared_call_ids
from langgraph_compaction.view.repeats import repeated


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a view shows in place of some messages.

    Attributes:
        messages: by index into the messages channel; copies with the same ids.
        results: how many of them are tool results.
    """

    messages: Mapping[int, BaseMessage]
    results: int = 0

    @property
    def arguments(self) -> int:
        """How many are AI messages whose arguments were shortened."""
        return len(self.messages) - self.results


NOTHING_CLEARED = Cleared({})


def apply_clearing(
    messages: Sequence[BaseMessage],
    clearing: Clearing | None,
    *,
    start: int,
    position: int,
    render: Render,
) -> Cleared:
    """What stands in place of the messages that a clearing takes.

    Args:
        messages: the messages channel.
        clearing: of the record; None: nothing is cleared.
        start: index into the messages of the first one that is not covered.
        position: its position in the thread.
        render: how the view is rendered: whether originals can be recalled, and what is clipped.
    """
    if clearing is None:
        return NOTHING_CLEARED
    recall = render.get("recall")
    offset = start - position
    last = place_of(messages, clearing["last_index"] + offset, clearing["last_id"], start)
    repeats = place_of(messages, clearing["repeats_index"] + offset, clearing["repeats_id"], start)
    stop = max(last, repeats) + 1
    known = clearing.get("fingerprint")
    if stop <= start or (known is not None and known != fingerprint(messages, repeats + 1)):
        return NOTHING_CLEARED
    taken = list(_until(groups(messages, start), stop))
    later = [group for group in taken if group.stop > last + 1]
    reasons = repeated(messages, later, stop, render)
    # Of what stands up to the end alone: a later result must not change what an older one says.
    shared = shared_call_ids(messages[start:stop]) if recall else frozenset[str]()
    rule = _Rule(
        clearing["min_chars"],
        clearing["argument_chars"],
        frozenset(clearing["pinned_ids"]),
        frozenset(clearing["protected_tools"]),
        recall,
        shared,
        offset,
    )
    found: dict[int, BaseMessage] = {}
    for group in taken:
        members = range(group.start, min(group.stop, stop))
        if group.start > last and reasons.keys().isdisjoint(members):
            continue
        if not _exempt(messages, members, rule):
            for run in group.runs:
                found.update(_in_run(messages, run, last, reasons, rule))
    results = sum(isinstance(message, ToolMessage) for message in found.values())
    return Cleared(found, results)


class _Rule(NamedTuple):
    """What is cleared, and how what is shown of it names it.

    Attributes:
        min_chars: see `Clearing`.
        argument_chars: see `Clearing`.
        pinned: keys of messages that stay, with their groups.
        protected: names of tools whose groups stay.
        recall: name of the tool that brings originals back, None where the agent has none.
        shared: call ids that tell no results apart.
        offset: index of a message less its position in the thread.
    """

    min_chars: int
    argument_chars: int
    pinned: frozenset[str]
    protected: frozenset[str]
    recall: str | None
    shared: frozenset[str]
    offset: int

    def called(self, message: BaseMessage, index: int, call_id: str | None) -> str:
        """What to do to see what the message at an index calls with that id."""
        own = None if call_id in self.shared else call_id
        return again(self.recall, own, message.id, position=index - self.offset)

    def result(self, message: ToolMessage, index: int, *, effect: bool) -> str:
        """What to do to see the result at an index: others may have the id of its call."""
        call_id = message.tool_call_id
        own = None if call_id in self.shared else call_id
        place = index - self.offset
        return again(self.recall, message.id, own, position=place, effect=effect)

    def remedy(self, message: ToolMessage, index: int, called: _Called, reason: str | None) -> str:
        """What to do without a result of a call, and why it is superfluous."""
        # The arguments of a recall bring back more than a copy of a copy.
        recalled = called.name == self.recall
        how = CALL_AGAIN if recalled else self.result(message, index, effect=called.effect)
        if reason is None:
            return how
        # What stands below is told first; where the original is at hand, it may be wanted too.
        return f"{reason} {how}" if self.recall and not recalled else reason


class _Called(NamedTuple):
    """What a result answers: the tool's name, and whether the call changed something."""

    name: str
    effect: bool

    @classmethod
    def by(cls, message: ToolMessage, call: Mapping[str, Any], recall: str | None) -> _Called:
        """What ``message`` answers; an empty ``call`` where nobody knows the call."""
        name = message.name or str(call.get("name") or "a tool")
        return cls(name, name != recall and has_effect(name, call.get("args")))


def _in_run(
    messages: Sequence[BaseMessage],
    run: Run,
    last: int,
    reasons: Mapping[int, str],
    rule: _Rule,
) -> Iterator[tuple[int, BaseMessage]]:
    """What is shown in place of messages of one run, by index."""
    calls = answered(messages[run.start : run.stop])
    for index in range(run.start, run.stop):
        message = messages[index]
        shown: BaseMessage | None = None
        if isinstance(message, ToolMessage):
            reason = None if index <= last else reasons.get(index)
            if index not in run.strays and (index <= last or reason):
                called = _Called.by(message, calls.get(index - run.start, {}), rule.recall)
                how = rule.remedy(message, index, called, reason)
                shown = _placeholder(message, called, how, rule.min_chars)
        elif isinstance(message, AIMessage) and index <= last and not run.unanswered:
            how_of = partial(rule.called, message, index) if rule.recall else None
            shown = shortened_calls(message, rule.argument_chars, how_of)
        if shown is not None:
            yield index, shown


def place_of(messages: Sequence[BaseMessage], hint: int, known: str | None, start: int) -> int:
    """Index of the message at a mark; -1 where it is gone: then nothing is cleared by it.

    Removals only move it to the front. Where it stands further back it was added again, and
    proves nothing.

    Args:
        messages: the messages channel.
        hint: where it stood.
        known: its id.
        start: index of the first message that is not covered.
    """
    if start <= hint < len(messages) and messages[hint].id == known:
        return hint
    if known is None:
        return -1
    for index in range(min(hint, len(messages)) - 1, start - 1, -1):
        if messages[index].id == known:
            return index
    return -1


def _until(found: Iterator[Group], stop: int) -> Iterator[Group]:
    for group in found:
        if group.start >= stop:
            return
        yield group


def _exempt(messages: Sequence[BaseMessage], members: range, rule: _Rule) -> bool:
    """Whether a group stays as it is: protected tools, and pins with their whole group.

    Only its ``members`` up to the clearing's end count: a late result may join it afterwards.
    """
    if any(is_marked(messages[index]) for index in members):
        return True
    keys = (message_key(messages[index], index) for index in members)
    if rule.pinned and not rule.pinned.isdisjoint(keys):
        return True
    named = (str(call.get("name")) for index in members for call in calls_of(messages[index]))
    return bool(rule.protected) and not rule.protected.isdisjoint(named)


def _placeholder(message: ToolMessage, called: _Called, how: str, least: int) -> ToolMessage | None:
    """The result with what it was in place of its text; None where it stays."""
    if message.status == "error":
        return None
    size, others, media = 0, [], False
    for block in blocks_of(message.content):
        texts = texts_in(block)
        if is_reasoning(block):
            continue
        if visible_text(block) is None:
            others.append(block_marker(block))
        size += sum(map(len, texts or ()))
        media = media or (texts is None and is_media(block))
    what = ", ".join([f"{size:,} characters", *filter(None, others)])
    # Whoever takes a refusal for a success does not act on it, and the text is not read here.
    outcome = "" if called.effect else ", outcome ok"
    placeholder = f"[Cleared: result of {called.name}, {what}{outcome}. {how}]"
    # An image or a file takes as many tokens as hundreds of characters, whatever its block says.
    if not media and (size < least or len(placeholder) >= size):
        return None
    return message.model_copy(update={"content": placeholder})
