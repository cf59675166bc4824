"""One thread of a compiled graph, fed with the messages of a report, and what its agent saw.

The agent is no program that works: a report says which messages there were, and the next turn's are
given by the test. What counts is the view that the agent's model would have been called with.
"""

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState
from tests.support.payloads import PAYLOAD_KINDS, provider_violations, structural
from tests.support.validity import violations

each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke"])
each_role = pytest.mark.parametrize("role", ["human", "system"])
each_graph = pytest.mark.parametrize(
    ("way", "between"),
    [("invoke", False), ("ainvoke", True)],
    ids=["sync, before the agent", "async, behind it"],
)
"""Both ways to run a graph and both places of the node in it; the parity of all four is tested in
`tests/integration`."""

Answer = Callable[[list[BaseMessage]], BaseMessage]


def system(name: str, words: int = 10) -> SystemMessage:
    """A system message of that id; so for the other roles."""
    return SystemMessage(filled(name, words), id=name)


def human(name: str, words: int = 40) -> HumanMessage:
    return HumanMessage(filled(name, words), id=name)


def agent(name: str, *calls: str, words: int = 40) -> AIMessage:
    """What the agent said, with calls of these ids."""
    made: Any = [{"name": "look", "args": {"at": call}, "id": call} for call in calls]
    return AIMessage(filled(name, words), id=name, tool_calls=made)


def result(call: str, words: int = 40, **more: Any) -> ToolMessage:
    """The result of a call; its id is "r-" and the call's."""
    return ToolMessage(
        filled(f"r-{call}", words), tool_call_id=call, name="look", id=f"r-{call}", **more
    )


def filled(name: str, words: int) -> str:
    """A text that begins with its name and has about that many words, all its own."""
    return " ".join([f"This is {name}.", *(f"{name}-word{n}" for n in range(words // 2))])


def history() -> list[BaseMessage]:
    """Five messages that `folding.node` folds the middle of: a1 and h2 go, or h2 alone stays."""
    return [human("h1"), agent("a1", words=200), human("h2", 100), agent("a2"), human("h3")]


def noted(_: list[BaseMessage]) -> AIMessage:
    """What the agent answers where it does not matter."""
    return AIMessage("Noted.")


class Talk:
    """A graph with a checkpointer, its thread, and every view that its agent's model was given.

    Args:
        compact: the node.
        way: "invoke" or "ainvoke".
        between: the node stands behind the agent, not before it.
        state: the graph's state class.
        saver: the checkpointer; None: one in memory.
        answer: what the agent says to a view.
        thread: the thread's id.
        options: for ``compile``.
    """

    def __init__(
        self,
        compact: CompactionNode,
        *,
        way: str = "invoke",
        between: bool = False,
        state: type[Any] = CompactionState,
        saver: Any = None,
        answer: Answer = noted,
        thread: str = "t",
        **options: Any,
    ) -> None:
        self.compact, self.way, self.answer = compact, way, answer
        self.config: Any = {"configurable": {"thread_id": thread}}
        self.views: list[list[BaseMessage]] = []
        self.events: list[dict[str, Any]] = []
        first, second = ("agent", "compact") if between else ("compact", "agent")
        builder = StateGraph(state)
        builder.add_node("compact", compact)
        builder.add_node("agent", RunnableLambda(self._agent))
        builder.add_edge(START, first)
        builder.add_edge(first, second)
        builder.add_edge(second, END)
        self.graph = builder.compile(checkpointer=saver or InMemorySaver(), **options)

    def _agent(self, state: Any) -> dict[str, Any]:
        view = self.compact.view(state)
        self.views.append(deepcopy(view))
        return {self.compact.messages_key: [self.answer(view)]}

    def say(self, *messages: Any, config: Any = None) -> list[BaseMessage]:
        """One run with these messages; returns the view that the agent saw in it."""
        given: Any = {self.compact.messages_key: list(messages)}
        where, before = config or self.config, len(self.views)
        if self.way == "ainvoke":
            asyncio.run(self._astream(given, where))
        else:
            self.events += self.graph.stream(given, where, stream_mode="custom")
        assert len(self.views) == before + 1
        return self.views[-1]

    async def _astream(self, given: Any, config: Any) -> None:
        self.events += [
            part async for part in self.graph.astream(given, config, stream_mode="custom")
        ]

    @property
    def state(self) -> dict[str, Any]:
        """The thread's values, as its checkpoint holds them."""
        values: dict[str, Any] = self.graph.get_state(self.config).values
        return values

    @property
    def record(self) -> Any:
        return self.state[self.compact.compaction_key]

    @property
    def kinds(self) -> list[str]:
        """The types of all events so far, without what they have in common."""
        return [event["type"].removeprefix("compaction.") for event in self.events]

    @property
    def hidden(self) -> set[str]:
        """Ids of the messages that the view of the present state does not show."""
        state = self.state
        shown = {message.id for message in self.compact.view(state)}
        return {message.id for message in state[self.compact.messages_key]} - shown


def assert_sound(views: Sequence[Sequence[BaseMessage]]) -> None:
    """Every provider would take these lists: the common rules, and the requests built of them."""
    for number, view in enumerate(views):
        found = {"messages": violations(view)}
        for kind in PAYLOAD_KINDS:
            found[kind] = structural(provider_violations(kind, view))
        wrong = {rules: broken for rules, broken in found.items() if broken}
        assert not wrong, (number, [message.type for message in view], wrong)
