"""The folds that a node made lately, to notice where one of them did not reach the state.

A state that loses the record shows no error: the next visit folds the same messages anew, and they
are paid for at every run. Nothing is decided by what is kept here, it only tells. It is small, of
this process alone, and read for the very thread and graph that wrote it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.run.reporting import Report

MOST_PLACES = 1_000
"""Threads, and graphs in them, whose newest fold is remembered; the oldest give way."""
MOST_VISITS = 10_000
"""Visits of all threads that are remembered, about 4 MB; the oldest give way."""

LOST = (
    "A fold was lost: the messages of this thread up to position {last} were folded, and the "
    "record of that is not in the state. They are shown again, and will be folded, and paid for, "
    "again. In a subgraph, the graph around it has to have the record's channel, too, and a tool "
    "that hands over with Command.PARENT has to bring the record with the messages. In any graph, "
    "merge_compaction has to be the channel's reducer. If the thread was rewound to before the "
    "fold, or another run of it began before the fold was there, nothing is wrong."
)

Place = tuple[str, ...]


class _Made(NamedTuple):
    """A fold: the epoch and the end of its record, and the newest message that there was."""

    epoch: int
    last: int
    newest: str

    @property
    def lost(self) -> str:
        """What to say where it is not in the state."""
        return LOST.format(last=self.last)


class MadeFolds:
    """The newest fold of each place. Safe to use from any thread."""

    def __init__(self) -> None:
        self._made: OrderedDict[Place, _Made] = OrderedDict()
        self._doubted: OrderedDict[Place, None] = OrderedDict()
        self._visits: OrderedDict[tuple[Place, str], None] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as in another process, begins with none."""
        return type(self), ()

    def note(self, place: Place | None, record: CompactionRecord) -> None:
        """Remember the fold that is to be written.

        Args:
            place: thread and graph, see `place_of`; None: it is not remembered.
            record: the record as it is to be written.
        """
        newest, last = record.get("id_at_fold"), record.get("last_summarized_index", -1)
        if place is None or newest is None or last < 0:
            return
        with self._lock:
            made = _Made(record.get("epoch", 0), last, newest)
            _newest_of(self._made, place, made, most=MOST_PLACES)

    def visited(self, place: Place | None, newest: str | None) -> bool:
        """Note a visit of the node; whether it is the first to a list that ends there.

        Another one belongs to a run from an earlier checkpoint. It may fold where the first did
        not, or the other way round: its fold is not to be remembered, since the thread may go on
        from where the first one was; and that of the first is forgotten here.

        Args:
            place: as for `note`.
            newest: id of the newest message; None: nothing is known of the visit.
        """
        if place is None or newest is None:
            return True
        with self._lock:
            first = (place, newest) not in self._visits
            _newest_of(self._visits, (place, newest), None, most=MOST_VISITS)
            made = self._made.get(place)
            if not first and made is not None and made.newest == newest:
                del self._made[place]
        return first

    def lost(
        self, place: Place | None, record: CompactionRecord, messages: Sequence[BaseMessage]
    ) -> str | None:
        """What to say of a fold that is not in the state, until it was `told`; None: there is none.

        Only where the thread has gone on since: a visit that is made again, or a rewind, finds the
        list as it was or shorter. Where a request comes right after the newest message of the fold,
        the visit may belong to a run that began beside it, from the checkpoint before: then nothing
        is said of the first fold, and of the next one only if no visit between them found it.

        Args:
            place: as for `note`.
            record: the record in the state.
            messages: the messages channel.
        """
        with self._lock:
            made = None if place is None else self._made.get(place)
            if place is None or made is None or record.get("epoch", 0) != made.epoch:
                return None
            if record.get("last_summarized_index", -1) >= made.last:
                self._doubted.pop(place, None)
                return None
            index = _index_of(made.newest, messages)
            if index is None or index + 1 == len(messages):
                return None
            if isinstance(messages[index + 1], HumanMessage) and place not in self._doubted:
                del self._made[place]
                _newest_of(self._doubted, place, None, most=MOST_PLACES)
                return None
        return made.lost

    def told(self, place: Place | None, lost: str) -> None:
        """Forget a fold, now that it was told that it is lost.

        Args:
            place: as for `note`.
            lost: what was said of it, as `lost` has it.
        """
        with self._lock:
            made = None if place is None else self._made.get(place)
            if place is not None and made is not None and made.lost == lost:
                del self._made[place]

    def telling(self, report: Report, place: Place | None, lost: str) -> Report:
        """A report that forgets a lost fold once its event went out.

        Args:
            report: takes every event of a visit.
            place: as for `note`.
            lost: what there is to say, see `lost`.
        """

        def reporting(event: dict[str, Any]) -> bool:
            vetoed = report(event)
            if event["reason"] == lost:
                self.told(place, lost)
            return vetoed

        return reporting


def _index_of(name: str, messages: Sequence[BaseMessage]) -> int | None:
    """Where the newest message of that id stands, None: nowhere."""
    last = range(len(messages) - 1, -1, -1)
    return next((index for index in last if messages[index].id == name), None)


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _newest_of(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value, *, most: int) -> None:
    """Keep a value as the newest; the oldest give way."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
