"""A thread's messages in the list that one call is made with, where others have changed that list.

Another middleware may have put messages of its own in front of the thread's, between or behind
them, have taken some out, or have written some anew. None of it is in the state, which alone the
record knows. So what is covered follows from the state's messages, wherever they stand.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import is_

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langgraph_compaction.record import Clearing, CompactionRecord, message_key
from langgraph_compaction.view.anchors import Anchor


@dataclass(frozen=True, slots=True)
class Among:
    """The messages of a call, and which of the thread's they are.

    Attributes:
        messages: those of the call; one of the thread's that came without its id has it again.
        places: of each of them the index in the thread's messages; None: it is none of them.
        unchanged: whether all of the thread's are there, in their order.
    """

    messages: Sequence[BaseMessage]
    places: Sequence[int | None]
    unchanged: bool

    @property
    def own(self) -> list[BaseMessage]:
        """The thread's messages, as the call has them and in its order."""
        return [m for m, place in zip(self.messages, self.places, strict=True) if place is not None]

    def in_own(self) -> Among:
        """The same messages, with their places in `own`."""
        count = iter(range(len(self.places)))
        places = [None if place is None else next(count) for place in self.places]
        return Among(self.messages, places, unchanged=True)

    @property
    def others(self) -> bool:
        """Whether there are messages that are not the thread's."""
        return None in self.places


def found_among(messages: Sequence[BaseMessage], thread: Sequence[BaseMessage]) -> Among:
    """Find a thread's messages in the list of a call: by id, and what lost its id by what it says.

    A message with an unknown id, or with none, is the thread's if it says the same as one that is
    missing between its neighbours. O(n).

    Args:
        messages: of the call.
        thread: the messages channel.
    """
    if len(messages) == len(thread) and all(map(is_, messages, thread)):
        return Among(messages, range(len(thread)), unchanged=True)
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for index, message in enumerate(thread):
        waiting[_name(message)].append(index)
    places: list[int | None] = []
    for message in messages:
        same = waiting.get(_name(message))
        places.append(same.popleft() if same else None)
    missing = sorted(index for left in waiting.values() for index in left)
    if missing and None in places:
        alike = dict(_alike(messages, places, thread, missing))
        places = [alike.get(index, place) for index, place in enumerate(places)]
        messages = [
            message.model_copy(update={"id": thread[alike[index]].id})
            if index in alike
            else message
            for index, message in enumerate(messages)
        ]
    there = [place for place in places if place is not None]
    return Among(messages, places, unchanged=there == list(range(len(thread))))


def placed_among(
    among: Among, anchor: Anchor, clearing: Clearing | None
) -> tuple[Anchor, Clearing | None]:
    """Where the covered range ends in the messages of a call, and what is cleared there.

    What is none of the thread's messages stays visible where it stands.

    Args:
        among: the messages of the call.
        anchor: where the covered range ends in the thread's messages.
        clearing: of the thread's record.
    """
    there = _anchor_among(among, anchor)
    return there, clearing and _clearing_among(among, clearing, anchor, there)


def record_among(among: Among, record: CompactionRecord, anchor: Anchor) -> CompactionRecord:
    """The record as it would be of those of a thread's messages that are in a call.

    Args:
        among: the messages of the call; of them those that are not the thread's do not count.
        record: of the thread.
        anchor: where the covered range ends in the thread's messages.
    """
    if among.unchanged or not anchor.digest:
        return record
    places = [place for place in among.places if place is not None]
    own = Among(among.own, places, unchanged=False)
    there = _anchor_among(own, anchor)
    boundary, messages = there.boundary, own.messages
    changed: CompactionRecord = {
        **record,
        "boundary_hint": boundary,
        "last_summarized_id": messages[boundary - 1].id if boundary else None,
        "next_id": messages[boundary].id if boundary < len(messages) else None,
        "kept_ids": [message_key(messages[index], index) for index in there.kept],
        "kept_hints": list(there.kept),
    }
    if boundary == 0:  # all that is covered is out of this list, as after a prune
        changed["pruned"] = True
    return changed


def is_written_anew(among: Among, anchor: Anchor) -> bool:
    """Whether a call has messages, but none of a thread of which some are covered."""
    return bool(anchor.hidden and among.messages) and all(p is None for p in among.places)


def _anchor_among(among: Among, anchor: Anchor) -> Anchor:
    """Where the covered range ends in the messages of a call."""
    places, hidden, boundary = among.places, set(anchor.hidden), 0
    for index, place in enumerate(places):
        if place is not None and place < anchor.boundary:
            boundary = index + 1
    following = _first(places, boundary, 0)
    if anchor.digest and following is not None:
        boundary = following  # others' messages before it are shown with what stays visible
    changes = [_first(places, boundary, i) for i in (anchor.folded_after, anchor.made_after)]
    folded_after, made_after = (len(places) if i is None else i for i in changes)
    stayed = {
        index: anchor.stayed[place]
        for index, place in enumerate(places[:boundary])
        if place is not None and place in anchor.stayed
    }
    kept = tuple(index for index in range(boundary) if places[index] not in hidden)
    return Anchor(boundary, kept, anchor.position, anchor.digest, folded_after, made_after, stayed)


def _clearing_among(among: Among, clearing: Clearing, anchor: Anchor, there: Anchor) -> Clearing:
    """A clearing with its marks where their messages stand in a call."""
    indexes = {place: index for index, place in enumerate(among.places)}

    def moved(position: int) -> int:
        index = indexes.get(anchor.index_of(position))
        return position if index is None else index - there.boundary + there.position

    return {
        **clearing,
        "last_index": moved(clearing["last_index"]),
        "repeats_index": moved(clearing["repeats_index"]),
    }


def _first(places: Sequence[int | None], start: int, least: int) -> int | None:
    """Index of the first message from ``start`` on that is at ``least`` or later in the thread."""
    for index in range(start, len(places)):
        place = places[index]
        if place is not None and place >= least:
            return index
    return None


def _name(message: BaseMessage) -> Hashable:
    """What tells a message from others: its id, or that it is this object."""
    return message.id if message.id is not None else id(message)


def _alike(
    messages: Sequence[BaseMessage],
    places: Sequence[int | None],
    thread: Sequence[BaseMessage],
    missing: Sequence[int],
) -> Iterator[tuple[int, int]]:
    """Of messages that are not found by id: index, and that of one which says the same.

    Only what is missing between the neighbours counts, in its order.
    """
    left: dict[Hashable, deque[int]] = defaultdict(deque)
    for index in missing:
        left[_said(thread[index])].append(index)
    ends = _next_places(places, len(thread))
    before = -1
    for index, place in enumerate(places):
        if place is not None:
            before = place
            continue
        same = left.get(_said(messages[index]))
        while same and same[0] <= before:
            same.popleft()
        if same and same[0] < ends[index]:
            before = same.popleft()
            yield index, before


def _next_places(places: Sequence[int | None], end: int) -> list[int]:
    """For each message the place of the next one that has one."""
    found = []
    for place in reversed(places):
        found.append(end)
        end = end if place is None else place
    return found[::-1]


def _said(message: BaseMessage) -> Hashable:
    """What a message says: results are told by their calls, and these by their ids."""
    if isinstance(message, ToolMessage):
        return message.type, message.tool_call_id
    calls: Iterable[str | None] = ()
    if isinstance(message, AIMessage):
        calls = tuple(call.get("id") for call in message.tool_calls)
    content = message.content
    return message.type, calls or (content if isinstance(content, str) else repr(content))
