"""One transcript through one node: what it costs, what is done, what goes out of sight."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction import BudgetError, CompactionNode, merge_compaction
from langgraph_compaction.plan.counting import token_counter
from tests.benchmarks.clearing.looking_up import TOOL, Desk, Found
from tests.benchmarks.clearing.pricing import Bill
from tests.benchmarks.clearing.summariser import Summariser
from tests.benchmarks.survival.counting import joined
from tests.benchmarks.survival.matching import holds
from tests.benchmarks.survival.reuse import references

TRIGGER_SHARE = 0.8
"""The default trigger, as a share of the window."""

_ID = re.compile(
    r"(?<![\w-])(?=[\w-]*[A-Za-z])(?=(?:[\w-]*\d){2})[A-Za-z0-9][\w-]{4,62}\w(?![\w-])"
)
"""An identifier: letters and at least two digits."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript, and where its references stand.

    Attributes:
        messages: all of it.
        used: the references of each message.
    """

    messages: Sequence[BaseMessage]
    used: Sequence[Sequence[str]]

    @classmethod
    def of(cls, messages: Sequence[BaseMessage]) -> Transcript:
        """The references of messages."""
        used = []
        for message in messages:
            text = joined([message])
            used.append([name for name in references(text, _ID) if holds(text, name)])
        return cls(messages, used)


@dataclass
class Thread:
    """What was measured of one thread.

    Attributes:
        bill: what its calls cost.
        done: folds, clearings, and what else the node reported, by the event's type.
        uses: references of the agent's messages that stood in an earlier message.
        seen: of these, those in the view for which the message was written.
        found: what the recall tool finds of the others.
        refused: visits at which what must stay did not fit the window.
    """

    bill: Bill = field(default_factory=lambda: Bill(token_counter("estimate")))
    done: Counter[str] = field(default_factory=Counter)
    uses: int = 0
    seen: int = 0
    found: Found = field(default_factory=Found)
    refused: int = 0

    def event(self, event: dict[str, Any]) -> None:
        """What a node reports."""
        kind = str(event["type"]).removeprefix("compaction.")
        if kind != "completed" or event["first_index"] is not None:
            self.done[kind] += 1


def replay(transcript: Transcript, window: int, *, look_up: bool, **settings: Any) -> Thread:
    """Visit a node before every message of the agent, and call the agent with its view.

    Args:
        transcript: what happens in the thread.
        window: tokens of the agent's model.
        look_up: whether references that went out of sight are looked up.
        settings: of the node; ``target_share`` is its target as a share of the trigger.
    """
    thread = Thread()
    share = settings.pop("target_share", None)
    if share is not None:
        settings["target"] = int(window * TRIGGER_SHARE * share)
    node = CompactionNode(
        Summariser(thread.bill),
        context_window=window,
        token_counter=thread.bill.counter,
        recall_tool=TOOL,
        hook=thread.event,
        **settings,
    )
    desk = Desk(transcript.messages) if look_up else None
    state: dict[str, Any] = {"messages": [], "compaction": {}}
    holders: dict[str, list[int]] = {}
    for index, message in enumerate(transcript.messages):
        if isinstance(message, AIMessage) and index:
            view = _visited(node, state, thread)
            thread.bill.call(view)
            if desk is not None:
                _use(transcript.used[index], holders, state, view, thread=thread, desk=desk)
        for name in transcript.used[index]:
            holders.setdefault(name, []).append(index)
        state["messages"].append(message)
    return thread


def _visited(node: CompactionNode, state: dict[str, Any], thread: Thread) -> list[BaseMessage]:
    try:
        update = node.invoke(state)
    except BudgetError:
        thread.refused += 1
        update = {}
    if update:
        state["compaction"] = merge_compaction(state["compaction"], update["compaction"])
    return node.view(state)


def _use(
    names: Sequence[str],
    holders: dict[str, list[int]],
    state: dict[str, Any],
    view: Sequence[BaseMessage],
    *,
    thread: Thread,
    desk: Desk,
) -> None:
    """The agent writes a message with these references."""
    text = joined(view)
    for name in names:
        if name in holders:
            thread.uses += 1
            if holds(text, name):
                thread.seen += 1
            else:
                thread.found.add(desk.look_up(name, holders[name], state, view))
