"""A thread of many branches, and what each of its checkpoints has to show.

A branch is what its checkpoints say, one after the other. So for each of them it is known which
messages there ever were, and a digest that tells of others has come over from another branch.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionState
from langgraph_compaction.archive import archive_of, perform
from langgraph_compaction.delta import DeltaCompactionState
from tests.support.background import settle
from tests.support.doubles import THREAD
from tests.support.folding import node
from tests.support.ledger import Ledger, mark
from tests.support.savers import opened
from tests.support.validity import new_violations, violations

FOLDS_AT = 8
"""Messages in a view at which a fold is due; of these four stay."""

MODES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "full": (CompactionState, {}),
    "prune": (CompactionState, {"history": "prune"}),
    "delta": (DeltaCompactionState, {}),
    "delta-prune": (DeltaCompactionState, {"history": "prune"}),
    "background": (CompactionState, {"background": True}),
}
SETUPS = [
    *(("memory", mode) for mode in MODES),
    ("sqlite", "full"),
    ("sqlite", "delta-prune"),
    ("postgres", "prune"),
    ("postgres", "delta"),
]
"""Kinds of checkpointers, see `opened`, each with a mode of `MODES`."""


class Line:
    """A thread whose agent answers each request with one text.

    Args:
        saver: the checkpointer.
        mode: one of `MODES`.
        agent: called before each answer with the state; what it raises ends the run.
        options: for ``compile``.
        retry: of the agent's node.
        settles: whether a fold beside the agent is waited for after each run.
        settings: of the compaction node, and its hook.
    """

    def __init__(
        self,
        saver: Any,
        mode: str = "full",
        *,
        agent: Callable[[Any], Any] = lambda _: None,
        options: dict[str, Any] | None = None,
        retry: Any = None,
        settles: bool = True,
        **settings: Any,
    ) -> None:
        state, own = MODES[mode]
        self.ledger = Ledger()
        self.told: list[str] = []
        self.compact = node(
            self.ledger,
            trigger=("messages", FOLDS_AT),
            **{"keep": ("messages", 4), "hook": self._hear, **own, **settings},
        )
        self.store = InMemoryStore()
        self.pruning = own.get("history") == "prune"
        self.seen: dict[str, BaseMessage] = {}
        self._before = agent
        self._settles = settles
        self._numbers = count(1)
        self._snapshots: dict[str, Any] = {}
        builder: Any = StateGraph(state)
        builder.add_node("compact", self.compact)
        builder.add_node("agent", self._answer, retry_policy=retry)
        builder.add_edge(START, "compact")
        builder.add_edge("compact", "agent")
        builder.add_edge("agent", END)
        self.graph = builder.compile(checkpointer=saver, store=self.store, **(options or {}))

    def _hear(self, event: dict[str, Any]) -> None:
        if event["type"] == "compaction.failed":
            self.told.append(event["reason"])

    def _answer(self, state: Any) -> Any:
        view = self.compact.view(state)
        # People may delete what a provider needs; the view makes nothing worse.
        assert new_violations(violations(state["messages"]), violations(view)) == []
        self._before(state)
        number = next(self._numbers)
        return {"messages": [AIMessage(f"answer-{number:04}. " + "So it is. " * 20)]}

    def run(self, entry: Any, config: Any = THREAD) -> Any:
        """Run the graph from a checkpoint on; where the thread stands then."""
        self.graph.invoke(entry, config, durability="sync")
        if self._settles:
            settle(self.compact)
        return self._noted()

    def ask(self, *requests: str, config: Any = THREAD) -> Any:
        """One turn a request; where the thread stands then."""
        for text in requests:
            config = self.run({"messages": [HumanMessage(f"{text}: go on.")]}, config)
        return config

    def update(self, messages: Any, config: Any = THREAD) -> Any:
        """What a person writes into the state; where the thread stands then."""
        config = self.graph.update_state(config, {"messages": messages})
        self._noted(config)
        return config

    def _noted(self, config: Any = THREAD) -> Any:
        snapshot = self.snapshot(config)
        self.seen |= {message.id: message for message in snapshot.values["messages"]}
        return snapshot.config

    def snapshot(self, config: Any = THREAD) -> Any:
        """A checkpoint; each is read once."""
        name = config["configurable"].get("checkpoint_id")
        if name not in self._snapshots:
            found = self.graph.get_state(config)
            name = found.config["configurable"]["checkpoint_id"]
            self._snapshots[name] = found
        return self._snapshots[name]

    def values(self, config: Any = THREAD) -> Any:
        """The state of a checkpoint, as it is read anew."""
        return self.graph.get_state(config).values

    def checkpoints(self) -> list[Any]:
        """All checkpoints of the thread, the oldest first."""
        return list(self.graph.get_state_history(THREAD))[::-1]

    def _states(self, config: Any) -> list[list[BaseMessage]]:
        """The messages of each checkpoint of a branch, the oldest first."""
        found = []
        while config is not None:
            snapshot = self.snapshot(config)
            found.append(snapshot.values.get("messages", []))
            config = snapshot.parent_config
        return found[::-1]

    def branch(self, config: Any = THREAD) -> list[BaseMessage]:
        """Every message that there ever was in a branch, as it was last, in order."""
        found = {m.id: m for messages in self._states(config) for m in messages}
        return list(found.values())

    def faults(self, config: Any = THREAD) -> list[str]:
        """What a checkpoint loses, makes up, or has from another branch."""
        values = self.values(config)
        view = self.compact.view(values)
        found = self.ledger.faults(values["messages"], view)
        covered = self.ledger.covers(view)
        own = {mark(message) for messages in self._states(config) for message in messages}
        strange = {mark(message) for message in self.seen.values()} - own
        found += [f"{one!r} is of another branch" for one in strange if one in covered]
        return found + (self._unarchived(values, self.branch(config)) if self.pruning else [])

    def _unarchived(self, values: Any, ever: list[BaseMessage]) -> list[str]:
        """Messages of a branch that are neither in the state nor, as they were, in the archive."""
        head = values["compaction"].get("archived")
        archive = archive_of(self.store, THREAD, in_node=False)
        found = perform(archive.store, archive.steps_of_branch(head)) if head else []
        held = {one.id: one.message() for one in found}
        held |= {message.id: message for message in values["messages"]}
        return [f"{m.id} is not archived as it was" for m in ever if held.get(m.id) != m]


@pytest.fixture(params=SETUPS, ids="-".join)
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    """A thread on each kind of checkpointer."""
    kind, mode = request.param
    with opened(kind, tmp_path, lambda: request.getfixturevalue("postgres")) as saver:
        yield Line(saver, mode)


def numbered(first: int, last: int, name: str = "request") -> list[str]:
    return [f"{name}-{number:03}" for number in range(first, last + 1)]
