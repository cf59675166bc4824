"""One branch of a thread as an observer knows it, and what its state may show.

The observer is told what people and visits do, and asks no record what is covered: see
`tests.support.sources`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction import model_view, pin
from langgraph_compaction.record import CompactionRecord, checked_record
from langgraph_compaction.view.pairing import groups
from tests.support.promises import Fault, Promise
from tests.support.sources import Sources
from tests.support.validity import new_violations, violations

State = dict[str, Any]

UNCLIPPED_BYTES = 25_000
"""UTF-8 bytes that no results of one call group here have: under such a limit none is clipped."""


@dataclass
class Branch:
    """What an observer remembers of one branch of a thread.

    Attributes:
        full: all messages that the branch has had and nobody deleted, pruned ones included.
        pruned: ids of those that visits moved to the archive.
        cleared: those of them that went with their digest, as somebody cleared the chat.
        exposed: ids of messages that were covered and seen all the same: their place was lost, as
            after a deletion. They may be folded once more.
        deleted: whether covered messages were deleted since the record was written.
        inserted: whether others were put in among them. Where both was done, the new may stand
            exactly where the old stood, which nothing in the record tells.
        cut: whether any message was deleted since the last fold.
        grown: whether nothing but appending was done since the last look.
    """

    full: list[BaseMessage] = field(default_factory=list)
    pruned: set[str] = field(default_factory=set)
    cleared: set[str] = field(default_factory=set)
    exposed: set[str] = field(default_factory=set)
    deleted: bool = False
    inserted: bool = False
    cut: bool = False
    grown: bool = False
    _record: CompactionRecord = field(default_factory=CompactionRecord)
    _view: list[BaseMessage] = field(default_factory=list)

    def copy(self) -> "Branch":
        """The same, to be remembered with a checkpoint."""
        found = copy(self)
        found.full = list(self.full)
        found.pruned, found.cleared, found.exposed = (
            set(self.pruned),
            set(self.cleared),
            set(self.exposed),
        )
        return found

    @property
    def pending(self) -> list[str]:
        """Ids of the calls that have no result yet, in order."""
        answered = {m.tool_call_id for m in self.full if isinstance(m, ToolMessage)}
        calls = [c["id"] for m in self.full if isinstance(m, AIMessage) for c in m.tool_calls]
        return [str(call) for call in calls if call not in answered]

    def follow(
        self, before: Sequence[BaseMessage], after: Sequence[BaseMessage], *, grows: bool
    ) -> None:
        """Take over what somebody changed in the channel.

        Args:
            before: its messages before.
            after: its messages now.
            grows: whether the view has to go on where it was.
        """
        known = {message.id: message for message in after}
        gone = {message.id for message in before} - known.keys()
        full = [known.get(m.id, m) for m in self.full if m.id not in gone]
        present = {message.id for message in full}
        new = [message for message in after if message.id not in present]
        for index, message in enumerate(after):
            if message.id not in present:
                place = _after(full, after[index - 1].id) if index else _before(full, after)
                full.insert(place, message)
        self.full = full
        self.cut = self.cut or bool(gone)
        # A new request takes the place of the one that a thread was cut back to.
        asked = self.cut and any(isinstance(message, HumanMessage) for message in new)
        self.grown = self.grown and grows and not asked

    def faults_of_visit(self, before: State, after: State) -> Iterator[Fault]:
        """What a visit folded that has to stay."""
        messages = before["messages"]
        own, record = before.get("compaction_settings", {}), before["compaction"]
        left = {message.id for message in model_view(after)}
        shown = {message.id for message in model_view(before)}
        folded = {m.id for m in messages if m.id in shown - left and not _system(m)}
        rule = (own.get("pinned") or {}).get("contains")
        for message in messages:
            pinned = pin(message) == message or (rule and rule in str(message.content))
            if message.id in folded and pinned:
                yield Fault(Promise.STAYS, f"the pinned {message.id} is folded")
        humans = [m.id for m in messages if isinstance(m, HumanMessage)]
        if own.get("task", "first") == "first":
            task = record.get("render", {}).get("task")
            if not record.get("segments") and humans:
                task = humans[0]
            # Where one was put in before it, and the place was lost, that is the first one now.
            first = humans[: humans.index(task)] if task in humans else []
            if task in folded and after["compaction"].get("render", {}).get("task") not in first:
                yield Fault(Promise.STAYS, f"the task {task} is folded")
        if own.get("keep") == ["messages", 0]:
            return
        newest = [g for g in groups(messages) if not _system(messages[g.start])][-1:]
        stay = [m.id for group in newest for m in messages[group.start : group.stop]]
        for name in {*humans[-1:], *stay} & folded:
            yield Fault(Promise.STAYS, f"{name} is folded, of the newest request or group")

    def faults(self, state: State, sources: Sources) -> list[Fault]:
        """What is wrong with a state, and with how it came about from the one before.

        Args:
            state: messages and record.
            sources: what the segments stand for.
        """
        record: Any = state["compaction"]
        view = model_view(state)
        ids = {message.id for message in view}
        hidden = {str(m.id) for m in state["messages"] if m.id not in ids and not _system(m)}
        segments = record.get("segments", [])
        told = bool(segments) and any(segments[0]["text"] in str(m.content) for m in view)
        if not told and self.cut:
            self.cleared |= self.pruned
        away = hidden | {name for name in self.pruned - self.cleared if name not in ids}
        outdated = [name for one in segments for name in sources.outdated(one, self.full)]
        sources.note(segments)
        covers = [sources.of(segment) for segment in segments]
        covered = set().union(*covers)
        found = [
            Fault(Promise.COVERED, f"{name} is gone from the view, and no digest has it")
            for name in sorted(away if not told else away - covered)
        ]
        found += [Fault(Promise.PRESENT, f"{name} was read for a fold") for name in outdated]
        self.exposed |= {str(m.id) for m in state["messages"] if m.id in ids} & covered
        for one, other in combinations(covers, 2):
            twice = sorted((one & other) - self.exposed)
            found += [Fault(Promise.ONCE, f"{name} stands in two segments") for name in twice]
        found += self._of_record(record)
        found += self._of_view(state, view, told=told)
        found += _verbatim(state, view)
        expected = [message for message in self.full if message.id not in self.pruned]
        if list(state["messages"]) != expected:
            names = [m.id for m in state["messages"]], [m.id for m in expected]
            found.append(Fault(Promise.CHANNEL, f"{names[0]}, not {names[1]}, or one changed"))
        place = "last_summarized_index", "boundary_hint"
        if any(record.get(name) != self._record.get(name) for name in place):
            self.deleted = self.inserted = self.cut = False
        self._record, self._view, self.grown = record, [] if self.waits(state) else view, True
        return found

    def waits(self, state: State) -> bool:
        """Whether calls of the newest turn wait for results: then no agent is called."""
        messages = state["messages"]
        newest = [g for g in groups(messages) if not _system(messages[g.start])][-1:]
        return any(group.unanswered or group.awaits_server for group in newest)

    def _of_record(self, record: Any) -> Iterator[Fault]:
        if checked_record(record) is not record:
            yield Fault(Promise.RECORD, "it is another one after it was checked")
        if json.loads(json.dumps(record, allow_nan=False)) != record:
            yield Fault(Promise.RECORD, "it is no JSON")
        before: Any = self._record
        if _order(record) < _order(before):
            yield Fault(Promise.FORWARD, f"from {_order(before)} to {_order(record)}")
        if record != before and _revision(record) <= _revision(before):
            yield Fault(Promise.FORWARD, "the record changed, and its revision did not")

    def _of_view(self, state: State, view: list[BaseMessage], *, told: bool) -> Iterator[Fault]:
        messages = state["messages"]
        if messages and not view:
            yield Fault(Promise.FILLED, "the view is empty, and the thread is not")
        shown = [message.id for message in view if message.id is not None]
        if len(set(shown)) < len(shown):
            yield Fault(Promise.FILLED, "a message is shown twice")
        text = "\n".join(str(message.content) for message in view if _system(message))
        for message in messages:
            if _system(message) and str(message.content) not in text:
                yield Fault(Promise.SYSTEM, f"{message.id} is not shown")
        same = self.grown and state["compaction"] == self._record
        if same and view[: len(self._view)] != self._view:
            yield Fault(Promise.PREFIX, f"{[m.id for m in self._view]}, then {shown}")
        if self.waits(state) or not view:
            return
        ends = bool(messages) and isinstance(messages[-1], AIMessage)
        thread = self.full if told else messages
        # Calls and results are paired in every view, however they stand in the thread.
        found = violations(thread, state_ends_with_ai=ends)
        before = [one for one in found if one.rule.group != "pairs"]
        after = violations(view, state_ends_with_ai=ends)
        for one in new_violations(before, after):
            yield Fault(Promise.VALID, f"{one.rule}: {one.detail}")


def _verbatim(state: State, view: Sequence[BaseMessage]) -> Iterator[Fault]:
    """What is shown in other words, and is neither cleared nor clipped."""
    render = state["compaction"].get("render", {})
    clips = 0 < render.get("clip_result_bytes", 0) < UNCLIPPED_BYTES
    free = clips or "clearing" in state["compaction"]
    originals = {message.id: message for message in state["messages"]}
    for shown in view:
        message = originals.get(shown.id)
        if message is None or _system(message):
            continue
        if isinstance(message, ToolMessage):
            as_it_was = free or str(message.content) in str(shown.content)
        elif isinstance(message, AIMessage):
            as_it_was = isinstance(shown, AIMessage) and (
                (message.content, message.tool_calls) == (shown.content, shown.tool_calls)
            )
        else:
            as_it_was = message == shown or bool(render.get("clip_message_bytes"))
        if not as_it_was:
            yield Fault(Promise.VERBATIM, f"{message.id}: {str(shown.content)[:80]!r}")


def _order(record: Any) -> tuple[int, int]:
    return record.get("epoch", 0), record.get("last_summarized_index", -1)


def _revision(record: Any) -> tuple[int, int]:
    return record.get("epoch", 0), record.get("revision", 0)


def _system(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage)


def _after(full: Sequence[BaseMessage], name: str | None) -> int:
    return next(index for index, message in enumerate(full) if message.id == name) + 1


def _before(full: Sequence[BaseMessage], after: Iterable[BaseMessage]) -> int:
    """Index before the first message that is still in the channel."""
    present = {message.id for message in after}
    return next((i for i, message in enumerate(full) if message.id in present), len(full))
