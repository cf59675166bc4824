"""An agent with its compaction as a graph, and graphs around it."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, CompactionState
from tests.support.doubles import (
    THREAD,
    WINDOW,
    ScriptedModel,
    assert_valid,
    loop,
    request,
    worker,
)
from tests.support.ledger import Ledger


class Agent:
    """An agent with its compaction, as a graph, and all that it saw and said."""

    def __init__(self, ledger: Ledger | None = None, **options: Any) -> None:
        compiled = {
            key: options.pop(key) for key in ("state", "checkpointer", "tools") if key in options
        }
        self.ledger = ledger or Ledger()
        self.model: ScriptedModel = options.pop("model", None) or worker()
        self.events: list[dict[str, Any]] = []
        settings = {"context_window": WINDOW, "token_counter": "estimate"}
        self.compact = CompactionNode(self.ledger, hook=self.events.append, **(settings | options))
        self.graph = loop(self.compact, self.model, **compiled)

    @property
    def told(self) -> list[str]:
        """Reasons of the failures that it reported."""
        return [one["reason"] for one in self.events if one["type"] == "compaction.failed"]

    def check(self, values: Any) -> None:
        """Nothing of a state is lost, and a provider would have accepted every call."""
        view = self.compact.view(values)
        assert self.ledger.faults(values[self.compact.messages_key], view) == []
        assert_valid(self.model.calls)


def around(*nodes: Any, state: type[Any] = CompactionState) -> Any:
    """A graph with a thread whose nodes run one after the other."""
    builder: Any = StateGraph(state)
    before = START
    for number, node in enumerate(nodes):
        builder.add_node(f"n{number}", node)
        builder.add_edge(before, f"n{number}")
        before = f"n{number}"
    return builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


def run(graph: Any, *spans: tuple[int, int]) -> tuple[Any, list[BaseMessage]]:
    """Runs of a thread, one for each span of steps.

    Returns:
        The values of the state in the end, and every message that there ever was.
    """
    seen: dict[str, BaseMessage] = {}
    for first, last in spans:
        asked = {"messages": [request(first, last)]}
        for _, values in graph.stream(asked, THREAD, stream_mode="values", subgraphs=True):
            seen |= {message.id: message for message in values["messages"]}
    return graph.get_state(THREAD).values, list(seen.values())


def asked(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    words = messages[-1].text.removesuffix(".").split()
    return int(words[2]), int(words[4])
