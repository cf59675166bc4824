"""An agent, its tool and its summariser for many threads at once, each with marks of its own.

Every message has a mark that names its thread, its kind and its number: `t017-c0004` is the call
of step 4 in the thread `t017`. A text of one thread that reaches another shows by its mark, and so
does a message that is missing or there twice. The agent reads from its view alone how far it is.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langgraph_compaction import CompactionNode, CompactionState

_MARK = re.compile(r"\bt\d{3}-[hcrd]\d{4}\b")
_THREAD = re.compile(r"\bt\d{3}\b")
_ASKED = re.compile(r"(t\d{3})-h\d{4} Do the steps (\d+) to (\d+)\.")
_RESULT = re.compile(r"\bt\d{3}-r(\d{4})\b")
_ENTRY = re.compile(r"Logbook entry (\S+): all well")
MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "background": {"background": True},
    "prune": {"history": "prune"},
    "background, prune": {"background": True, "history": "prune"},
}
"""Settings of the node, by what they are called here."""
PARALLEL_EVERY = 4
"""Every so many calls the agent calls the tool twice in one message."""


def mark(thread: str, kind: str, number: int) -> str:
    """The mark of a message; ``kind`` is h, c, r or d: request, call, result, or the end."""
    return f"{thread}-{kind}{number:04}"


def marks(text: str) -> list[str]:
    """The marks in a text, in order."""
    return _MARK.findall(text)


def foreign(thread: str, text: str) -> set[str]:
    """The threads other than ``thread`` that a text names."""
    return set(_THREAD.findall(text)) - {thread}


def request(thread: str, first: int, last: int) -> HumanMessage:
    """Ask a thread's agent for some steps."""
    return HumanMessage(f"{mark(thread, 'h', first)} Do the steps {first} to {last}.")


@tool
def work(thread: str, n: int) -> str:
    """Do step n."""
    return (
        f"{mark(thread, 'r', n)} " + f"Step {n} of {thread} went as planned, without a fault. " * 8
    )


def answer(view: Sequence[BaseMessage]) -> AIMessage:
    """What the agent says to a view: the next call, or that it is done."""
    thread, first, last = next(
        found.groups()
        for message in reversed(view)
        if isinstance(message, HumanMessage) and (found := _ASKED.search(message.text))
    )
    done = int(first) - 1
    if isinstance(view[-1], ToolMessage):
        done = max(int(n) for n in _RESULT.findall(view[-1].text))
    if done >= int(last):
        return AIMessage(f"{mark(thread, 'd', done)} Done up to step {done}.")
    numbers = [done + 1]
    if (done + 1) % PARALLEL_EVERY == 0 and done + 2 <= int(last):
        numbers.append(done + 2)
    calls: Any = [
        {"name": "work", "args": {"thread": thread, "n": n}, "id": mark(thread, "k", n)}
        for n in numbers
    ]
    return AIMessage(f"{mark(thread, 'c', numbers[0])} Now step {numbers[0]}.", tool_calls=calls)


def graph_of(
    agent: Any,
    compact: CompactionNode | None = None,
    *,
    tools: Sequence[Any] = (work,),
    **options: Any,
) -> Any:
    """A compiled graph: tools → compact → agent; without a node, tools → agent.

    Args:
        agent: the agent's node.
        compact: the node, None: as LangGraph has it without.
        tools: the agent's tools.
        options: for ``compile``.
    """
    builder = StateGraph(CompactionState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    entry = "agent"
    if compact is not None:
        entry = str(compact.name)
        builder.add_node(entry, compact)
        builder.add_edge(entry, "agent")
    builder.add_edge(START, entry)
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", entry)
    return builder.compile(**options)


def told(messages: Iterable[BaseMessage]) -> list[tuple[Any, ...]]:
    """What messages say, without the ids that a run gives them."""
    return [
        (m.type, m.content, getattr(m, "tool_calls", None), getattr(m, "tool_call_id", None))
        for m in messages
    ]


class Scribe:
    """A summariser that takes its time and fails at random, and keeps what it was asked.

    Each of its digests bears a number; ``read`` has the marks in the transcript that it was written
    from, those in quotes of older digests included. Safe to be called from many threads and tasks.

    Args:
        seed: of what goes wrong; the same for each call of a thread, whatever others do.
        seconds: that a call takes, from least to most.
        fails: share of the calls that fail in some way.
        watch: called with the thread of the run and each prompt.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        seconds: tuple[float, float] = (0.0, 0.02),
        fails: float = 0.3,
        watch: Callable[[str, str], None] = lambda thread, prompt: None,
    ) -> None:
        self.read: dict[str, list[str]] = {}
        self._parts: dict[str, list[str]] = {}
        self.calls: Counter[str] = Counter()
        self.failed = 0
        self.fails = fails
        self._numbers = count(1)
        self.seed, self._seconds, self._watch = seed, seconds, watch

    @property
    def model(self) -> RunnableLambda[Any, Any]:
        """What to give to a node."""
        return RunnableLambda(self._write, afunc=self._awrite, name="scribe")

    def number(self) -> str:
        """The number of the next digest."""
        return str(next(self._numbers))

    def covered(self, text: str) -> set[str]:
        """The marks that were read for the digests in a text, directly or by condensing others."""
        pending, seen, found = list(entries(text)), set[str](), set[str]()
        while pending:
            number = pending.pop()
            if number not in seen:
                seen.add(number)
                found.update(self.read[number])
                pending += self._parts[number]
        return found

    def _write(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        chance, reply = self._asked(messages, config)
        time.sleep(chance.uniform(*self._seconds))
        return self._said(chance, reply)

    async def _awrite(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        chance, reply = self._asked(messages, config)
        await asyncio.sleep(chance.uniform(*self._seconds))
        return self._said(chance, reply)

    def _asked(
        self, messages: list[BaseMessage], config: RunnableConfig
    ) -> tuple[random.Random, str]:
        thread = str(config.get("configurable", {}).get("thread_id"))
        prompt = "\n".join(message.text for message in messages)
        self._watch(thread, prompt)
        self.calls[thread] += 1
        number = self.number()
        self.read[number] = marks(transcript(prompt))
        self._parts[number] = list(entries(transcript(prompt)))
        named = ", ".join(sorted(set(_THREAD.findall(prompt))))
        return random.Random(f"{self.seed} {thread} {self.calls[thread]}"), digest(number, named)

    def _said(self, chance: random.Random, reply: str) -> Any:
        if chance.random() >= self.fails:
            return reply
        self.failed += 1
        kind = chance.choice(("raise", "empty", "refusal", "cut", "long"))
        if kind == "raise":
            raise chance.choice(
                (RuntimeError("503"), TimeoutError("late"), ConnectionError("gone"))
            )
        if kind == "cut":
            return AIMessage(reply, response_metadata={"finish_reason": "length"})
        return {"empty": "", "refusal": "I'm sorry, but I can't.", "long": reply * 300}[kind]


def digest(number: str, thread: str) -> str:
    """A digest that verification accepts."""
    return (
        f"## Goal\nCarry out the steps of {thread}.\n## State now\nLogbook entry {number}: all "
        f"well with {thread}.\n## Next step\nGo on with the step after."
    )


def transcript(prompt: str) -> str:
    """The part of a summary prompt that holds the messages to fold."""
    return prompt.partition("<transcript>\n")[2].rpartition("\n</transcript>")[0]


def entries(text: str) -> Iterator[str]:
    """The numbers of the digests in a text."""
    yield from _ENTRY.findall(text)
