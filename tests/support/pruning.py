"""A thread that is pruned beside the same thread that is not, with every promise checked.

The oracle is the transcript itself: what the record hides has to be in the archive, once, at its
place; everything else in the channel; and the view has to be that of the thread which kept all.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, merge_compaction
from langgraph_compaction.archive import Archive, archive_of, namespace_of, perform
from langgraph_compaction.state import merge_messages

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Unreliable(InMemoryStore):
    """A store whose writes fail while ``down``."""

    down = False

    def batch(self, ops: Any) -> Any:
        if self.down:
            raise ConnectionError("The store is down.")
        return super().batch(ops)


class Twins:
    """Two threads of one transcript: ``full`` keeps its messages, ``pruned`` does not.

    Args:
        make: makes a node of settings by name.
    """

    def __init__(self, make: Callable[..., CompactionNode]) -> None:
        self.store = Unreliable()
        self.archive = Archive(self.store, namespace_of("t"))
        self.nodes = {"full": make(), "pruned": make(history="prune", archive=self.store)}
        self.states: dict[str, dict[str, Any]] = {
            name: {"messages": [], "compaction": {}} for name in self.nodes
        }
        self.transcript: list[BaseMessage] = []
        self.faults: list[str] = []
        self.behind = False  # a write failed, and no visit has done anything since

    def append(self, message: BaseMessage) -> None:
        """Add a message to both."""
        self.transcript.append(message)
        for state in self.states.values():
            state["messages"] = [*state["messages"], message]

    def visit(self) -> None:
        """Let each node visit its thread, and compare."""
        for name, node in self.nodes.items():
            state = self.states[name]
            before = deepcopy(state)
            update = node.invoke(state, CONFIG)
            self._expect(state == before, f"the visit changed its input ({name})")
            self.states[name] = applied(state, update)
            if name == "pruned" and update:
                self.behind = self.store.down
            again = node.invoke(self.states[name], CONFIG)
            self._expect(again == {}, f"a second visit changed the thread ({name})")
        full, pruned = self.states["full"], self.states["pruned"]
        views = [self.nodes[name].view(self.states[name]) for name in self.nodes]
        self._expect(views[0] == views[1], "the views differ")
        for field in ("segments", "last_summarized_index", "kept_ids", "steps_at_fold"):
            same = full["compaction"].get(field) == pruned["compaction"].get(field)
            self._expect(same, f"the records differ in {field}")
        self._nothing_is_lost()

    def _nothing_is_lost(self) -> None:
        down, self.store.down = self.store.down, False
        record, channel = self.states["pruned"]["compaction"], self.states["pruned"]["messages"]
        head = record.get("archived")
        archived = perform(self.archive.store, self.archive.steps_of_branch(head)) if head else []
        places = [one.position for one in archived]
        self._expect(len(set(places)) == len(places), "a message is archived twice")
        self._expect(places == sorted(places), "the chain is not in order")
        for one in archived:
            same = one.message() == self.transcript[one.position]
            self._expect(same, f"what is archived as {one.position} is another message")
        kept = set(record.get("kept_ids", ()))
        hidden = {
            index
            for index, message in enumerate(self.transcript)
            if index <= record.get("last_summarized_index", -1) and message.id not in kept
        }
        gone = set(places)
        self._expect(gone <= hidden, "a message is archived that the record shows")
        self._expect(hidden == gone or self.behind, "a hidden one stayed")
        left = [message for n, message in enumerate(self.transcript) if n not in gone]
        self._expect(channel == left, "the channel is not what the archive lacks")
        self.store.down = down

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(f"after {len(self.transcript)} messages: {fault}")


def applied(state: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """The state after the reducers took an update."""
    if not update:
        return state
    messages = merge_messages(state["messages"], update.get("messages", []))
    return {
        "messages": messages,
        "compaction": merge_compaction(state["compaction"], update["compaction"]),
    }


def fed(twins: Twins, history: Sequence[BaseMessage], down: Callable[[], bool]) -> Twins:
    """Feed a history; both nodes visit wherever the agent would be called.

    Args:
        twins: both threads.
        history: a transcript whose messages have ids of their own.
        down: asked before each visit whether the store fails.
    """
    for message in history:
        if isinstance(message, AIMessage) and twins.transcript:
            twins.store.down = down()
            twins.visit()
        twins.append(message)
    twins.store.down = False
    twins.visit()
    return twins


def archived(store: BaseStore, record: Any, where: Any = CONFIG) -> dict[int, BaseMessage]:
    """The archived messages of the branch of a record, by position."""
    head = record.get("archived")
    archive = archive_of(store, where, in_node=False)
    found = perform(store, archive.steps_of_branch(head)) if head else []
    assert len({one.position for one in found}) == len(found)
    return {one.position: one.message() for one in found}


def whole(store: BaseStore, state: Any, where: Any = CONFIG) -> list[BaseMessage]:
    """The whole thread: what is archived at its places, between what is in the state."""
    record, messages = state["compaction"], list(state["messages"])
    found = archived(store, record, where)
    stayed = dict(zip(record.get("stayed_indexes", ()), messages, strict=False))
    assert not found.keys() & stayed.keys()
    covered = found | stayed
    assert sorted(covered) == list(range(len(covered)))
    return [*(covered[n] for n in range(len(covered))), *messages[len(stayed) :]]
