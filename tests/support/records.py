"""Real records of every kind, and what may become of them: by a hand, another program, a version.

A mutation changes one place of a record. It is made from the record itself, so that a field which a
later version adds is mutated as well.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, edit_digest, merge_compaction, pin
from langgraph_compaction.record import (
    Clearing,
    CompactionRecord,
    DigestSegment,
    Failures,
    Render,
)
from tests.support import folding
from tests.support.folding import failing
from tests.support.pruning import applied
from tests.support.replay import good_summary

CONFIG: Any = {"configurable": {"thread_id": "t"}}

State = dict[str, Any]
Path = tuple[str | int, ...]

SMALL: dict[str, Any] = {"clear": False, "trigger": ("tokens", 300)}
"""Settings under which the messages of `work` are soon folded."""

REMOVED: Any = object()
"""In place of a value: the field is not there."""


@dataclass
class Real:
    """A thread with a record as visits wrote it.

    Attributes:
        state: messages and record.
        thread: the whole thread, messages that were pruned included; its indexes are positions.
        store: with what was pruned.
        values: of the node that visits it.
    """

    state: State
    thread: list[BaseMessage]
    store: InMemoryStore = field(default_factory=InMemoryStore)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> Any:
        return self.state["compaction"]

    def node(self, model: Any = good_summary) -> CompactionNode:
        """A node that goes on with it."""
        return folding.node(model, **{"archive": self.store, **self.values})

    def take(self, update: State) -> None:
        """What a reducer makes of an update; messages without ids stay without."""
        if all(message.id for message in self.state["messages"]):
            self.state = applied(self.state, update)
        elif update:
            merged = merge_compaction(self.record, update["compaction"])
            self.state = {**self.state, "compaction": merged}

    def visit(self, model: Any = good_summary) -> None:
        self.take(self.node(model).invoke(self.state, CONFIG))

    def say(self, *messages: BaseMessage) -> None:
        self.thread += messages
        self.state = {**self.state, "messages": [*self.state["messages"], *messages]}


def work(count: int, *, start: int = 0, named: bool = True) -> list[BaseMessage]:
    """Turns of a user, an agent that calls a tool, and the tool; every message has its words."""
    found: list[BaseMessage] = []
    for n in range(start, start + count):
        text = f"word{n} " * 15
        marks = iter(f"<{4 * n + k}>" for k in range(4))
        call = {"name": "read", "args": {"path": f"/srv/{n}.yaml"}, "id": f"c{n}"}
        made = [
            HumanMessage(f"{next(marks)} Look at part {n}. {text}"),
            AIMessage(f"{next(marks)} Reading {n}. {text}", tool_calls=[call]),
            ToolMessage(
                f"{next(marks)} Part {n} is {n * 7} mm. {text * 4}",
                tool_call_id=f"c{n}",
                name="read",
            ),
            AIMessage(f"{next(marks)} Part {n} is read. {text}"),
        ]
        found += made
    if named:
        for number, message in enumerate(found, 4 * start):
            message.id = f"m{number}"
    return found


def _thread(*, named: bool = True, **values: Any) -> Real:
    system = SystemMessage("<s> Be brief.", id="s" if named else None)
    pinned = pin(HumanMessage("<p> Never stop the pumps.", id="p" if named else None))
    opening: list[BaseMessage] = [system, *work(1, named=named), pinned]
    real = Real({"messages": [], "compaction": {}}, [], values={**SMALL, **values})
    real.say(*opening)
    return real


def _folded(*, named: bool = True, rounds: int = 3, **values: Any) -> Real:
    real = _thread(named=named, **values)
    for n in range(rounds):
        real.say(*work(2, start=1 + 2 * n, named=named))
        real.visit()
    return real


def _absorbed() -> Real:
    """A segment that took in a message which had been pinned."""
    real = _folded(rounds=1)
    real.state["messages"] = [pin(m, pinned=False) for m in real.state["messages"]]
    real.thread = list(real.state["messages"])
    real.say(*work(2, start=3))
    real.visit()
    return real


def _branched() -> Real:
    """Two branches that pruned side by side, merged."""
    real = _folded(history="prune", rounds=1)
    real.say(*work(4, start=3))
    longer = real.node().invoke(real.state, CONFIG)
    real.values |= {"keep": ("messages", 8), "target": None}
    shorter = real.node().invoke(real.state, CONFIG)
    real.take(shorter)
    real.take(longer)
    return real


def _cleared(*, named: bool = True) -> Real:
    real = _folded(named=named, rounds=1)
    real.values |= {"clear": True, "clear_min_chars": 100, "trigger": ("tokens", 1_300)}
    real.say(*work(7, start=3, named=named))
    real.visit(failing)
    return real


def _edited() -> Real:
    real = _folded()
    real.take(edit_digest(real.state, "Part 1 is 8 mm.", segment=1))
    return real


def _failed() -> Real:
    real = _folded()
    real.say(*work(2, start=9))
    real.visit(failing)
    return real


KINDS: dict[str, Callable[[], Real]] = {
    "folded": _folded,
    "unnamed": lambda: _folded(named=False),
    "rolling": lambda: _folded(digest="rolling"),
    "condensed": lambda: _folded(rounds=8, max_digest_tokens=400, min_segment_tokens=60),
    "absorbed": _absorbed,
    "pruned": lambda: _folded(history="prune"),
    "branched": _branched,
    "cleared": _cleared,
    "unnamed cleared": lambda: _cleared(named=False),
    "edited": _edited,
    "failed": _failed,
}
"""How a record of each kind comes about."""

_MADE: dict[str, Real] = {}


def real(kind: str) -> Real:
    """A thread with a record of that kind; a copy of its own."""
    if kind not in _MADE:
        _MADE[kind] = KINDS[kind]()
    return deepcopy(_MADE[kind])


# ---- mutations


NUMBERS: tuple[Any, ...] = (0, 1, -1, -7, 3, 17, 10**9, 2**53, 10**30, 1.5, float("nan"))
OTHERS: tuple[Any, ...] = (None, True, "", "x", "\ud800", [], ["x"], ["x", "x"], [None], [7], {})
ODD = (*NUMBERS, *OTHERS, {"x": 1}, [[]], [{}])
"""Values that a hand, another program or a later version may write into any place."""


@dataclass(frozen=True)
class Mutation:
    """One place of a record with another value.

    Attributes:
        path: keys and indexes that lead to it.
        value: what stands there, `REMOVED` for nothing.
    """

    path: Path
    value: Any

    def __str__(self) -> str:
        shown = "removed" if self.value is REMOVED else f"{self.value!r:.40}"
        return f"{'.'.join(map(str, self.path))} = {shown}"

    def of(self, record: Any) -> Any:
        """The record so changed; a copy."""
        found = deepcopy(record)
        place = _held(found, self.path[:-1])
        if self.value is not REMOVED:
            place[self.path[-1]] = deepcopy(self.value)
        elif isinstance(place, dict):
            place.pop(self.path[-1], None)
        else:
            del place[self.path[-1]]
        return found


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place within a record; of a list the first and the last."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, held in value.items():
            yield from places(held, (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from places(value[index], (*path, index))


def _held(value: Any, path: Path) -> Any:
    """What stands at a place."""
    for step in path:
        value = value[step]
    return value


def fields_of(kind: type) -> list[str]:
    """The names of a TypedDict's fields."""
    return list(kind.__annotations__)


LEVELS: tuple[tuple[Path, type], ...] = (
    ((), CompactionRecord),
    (("segments", 0), DigestSegment),
    (("render",), Render),
    (("clearing",), Clearing),
    (("failures",), Failures),
)


def all_places(record: Any) -> list[Path]:
    """The places of a record, and the fields that it lacks at every level that it has."""
    found = list(places(record))
    there = {path for path in ((), *found) if isinstance(_held(record, path), dict)}
    lacking = [(*path, name) for path, kind in LEVELS if path in there for name in fields_of(kind)]
    return list(dict.fromkeys([*found, *lacking]))


def mutations(record: Any) -> Iterator[Mutation]:
    """Every place of a record with every odd value, and without any."""
    for path in all_places(record):
        for value in (REMOVED, *ODD):
            yield Mutation(path, value)
