"""What has to hold of every thread, collected while runs go on and looked up when they are over."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from langgraph_compaction import CompactionNode, create_recall_tool
from langgraph_compaction.record import checked_record
from langgraph_compaction.view.anchors import locate
from tests.load.crew import Scribe, entries, foreign, marks, told
from tests.support.pruning import whole
from tests.support.runtimes import runtime
from tests.support.validity import violations

RECALL = create_recall_tool(max_tokens=4_000)
MOST_PAGES = 100
_ORIGINAL = re.compile(r"<original position=(\d+)")


class Watch:
    """Everything that a thread shows to a model, a user or a store, looked at for other threads'.

    Attributes:
        leaks: texts with the marks of another thread, by what they are.
        invalid: rules that a view broke.
        looked: how many texts of each kind there were.
    """

    def __init__(self) -> None:
        self.leaks: list[str] = []
        self.invalid: list[str] = []
        self.looked: Counter[str] = Counter()

    def saw(self, thread: str, kind: str, text: str) -> None:
        """Look at a text of a thread."""
        self.looked[kind] += 1
        others = foreign(thread, text)
        if others:
            self.leaks.append(f"{kind} of {thread} names {sorted(others)}: {text[:300]}")

    def prompt(self, thread: str, text: str) -> None:
        """Look at what a summariser is asked in a run of a thread."""
        self.saw(thread, "prompt", text)

    def event(self, event: dict[str, Any]) -> None:
        """Look at an event, as a hook gets it."""
        self.saw(str(event["thread_id"]), "event", str(event))

    def view(self, thread: str, view: Sequence[BaseMessage]) -> None:
        """Look at what the agent is called with."""
        self.saw(thread, "view", "\n".join(str(told([message])) for message in view))
        self.invalid += [f"{thread}: {one}" for one in violations(view)]

    def values(self, thread: str, compact: CompactionNode, state: Any) -> None:
        """Look at the record of a state, and at the view."""
        self.saw(thread, "record", str(state["compaction"]))
        self.saw(thread, "view", str(told(compact.view(state))))


class Account:
    """Which messages the digests of one thread were written from, record by record.

    Attributes:
        thread: its id.
        faults: what is wrong with it, in words.
    """

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.faults: list[str] = []
        self._end = -1
        self._taken: list[str] = []  # numbers of the digests that took messages
        self._extracts = 0

    def enter(self, record: Any) -> None:
        """Take note of the record after a step."""
        checked_record(record)
        if record.get("last_summarized_index", -1) < self._end:
            self.faults.append(f"the position moved back from {self._end}")
        for segment in record.get("segments", ()):
            if segment["level"] > 0 or segment["last_index"] <= self._end:
                continue
            if segment["first_index"] <= self._end:
                self.faults.append(f"a fold begins before {self._end} again")
            found = list(entries(segment["text"]))
            self._taken += found[:1]
            self._extracts += not found
        self._end = record.get("last_summarized_index", -1)

    @property
    def folds(self) -> int:
        """Folds that entered the digest."""
        return len(self._taken) + self._extracts

    def compare(self, state: Any, scribe: Scribe, messages: Sequence[BaseMessage]) -> list[str]:
        """The faults of the thread: what is covered twice, or hidden and in no digest.

        Args:
            state: of the thread in the end.
            scribe: who wrote the digests.
            messages: the whole thread, archived ones at their places.
        """
        read = Counter(mark for number in self._taken for mark in scribe.read[number])
        twice = sorted(mark for mark, times in read.items() if times > 1)
        if twice:
            self.faults.append(f"covered twice: {twice}")
        if len(set(self._taken)) < len(self._taken):
            self.faults.append(f"one digest taken twice: {self._taken}")
        here = {message.id for message in state["messages"]}
        anchor = locate(state["messages"], state["compaction"])
        gone = {state["messages"][index].id for index in anchor.hidden}
        gone |= {message.id for message in messages} - here
        hidden = {marks(m.text)[0] for m in messages if m.id in gone}
        if not self._extracts and hidden != set(read):
            self.faults.append(f"hidden, but read for no digest, or not: {hidden ^ set(read)}")
        return self.faults


def transcript_of(thread: str, state: Any, store: BaseStore | None) -> list[BaseMessage]:
    """A thread's messages: those in the channel, and archived ones at their places."""
    where = {"configurable": {"thread_id": thread}}
    if store is None or not state["compaction"].get("pruned"):
        return list(state["messages"])
    return whole(store, state, where)


def lost(expected: Sequence[BaseMessage], found: Sequence[BaseMessage]) -> list[str]:
    """What differs from the thread that the same graph without the node keeps."""
    wanted, had = told(expected), told(found)
    if wanted == had:
        return []
    missing = [one[1] for one in wanted if one not in had]
    return [f"{len(missing)} lost, {len(had)} for {len(wanted)} kept: {missing[:3]}"]


def recalled(
    thread: str, state: Any, store: BaseStore | None, watch: Watch, **given: Any
) -> list[int]:
    """Positions of the originals that the recall tool shows, page by page; all is looked at.

    Of a search the first page alone: each page is a search of its own.
    """
    found: list[int] = []
    running = runtime(state, {"configurable": {"thread_id": thread}}, store)
    for page in range(1, MOST_PAGES):
        text = str(RECALL.invoke({**given, "page": page, "runtime": running}))
        watch.saw(thread, "recall", text)
        found += [int(place) for place in _ORIGINAL.findall(text)]
        if f"page={page + 1}" not in text or "query" in given:
            return found
    raise AssertionError("the pages do not end")
