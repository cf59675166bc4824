"""A thread that is fed message by message, with every promise checked at every step.

The oracle knows from the outside what a fold may do: it compares transcript, record and view with
each other and never asks the package what it meant.
"""

from collections.abc import Callable, Container, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import BudgetError, CompactionNode, merge_compaction, model_view
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.record import message_key
from langgraph_compaction.view.pairing import groups


def good_summary(prompt: Sequence[BaseMessage]) -> str:
    """What a fair summariser returns: short, with the sections that were asked for."""
    asked = str(prompt[-1].content)
    return (
        f"## Goal\nGo on with the task ({len(asked)} characters were read).\n"
        "## State now\nThe work is under way.\n## Next step\nContinue."
    )


@dataclass
class Thread:
    """One thread and what an observer remembers of it.

    Attributes:
        node: the node that visits the thread.
        messages: the transcript so far.
        record: the record in its state.
        folded: position of every message that a segment took, in order of folding.
        faults: promises that were broken, in words.
        folds: accepted folds.
        peak: tokens of the largest view.
        visits: visits of the node.
        budget_errors: visits that ended with a `BudgetError`.
    """

    node: CompactionNode
    messages: list[BaseMessage] = field(default_factory=list)
    record: Any = field(default_factory=dict)
    folded: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    folds: int = 0
    peak: int = 0
    visits: int = 0
    budget_errors: int = 0
    _last_view: list[BaseMessage] = field(default_factory=list)
    _last_record: Any = None

    @property
    def state(self) -> dict[str, Any]:
        return {"messages": list(self.messages), "compaction": self.record}

    def append(self, message: BaseMessage) -> None:
        """Add a message as the reducer would: with an id, at the end."""
        self.messages.append(message)

    def visit(self) -> list[BaseMessage] | None:
        """Let the node visit the thread and check its work; None where it refused."""
        self.visits += 1
        state = self.state
        copy = deepcopy(state)
        try:
            update = self.node.invoke(state)
        except BudgetError:
            self.budget_errors += 1
            self._last_record = None
            self._expect(state == copy, "a failed visit changed its input")
            return None
        self._expect(state == copy, "the visit changed its input")
        before = self.record
        if update:
            self.record = merge_compaction(before, update["compaction"])
            self._expect(self.record is update["compaction"], "the update lost against the state")
            self._account(before)
        again = self.node.invoke(self.state)
        self._expect(again == {}, "a second visit to an unchanged thread changed it")
        view = self.node.view(self.state)
        self._check_view(view)
        return view

    def hidden(self) -> set[int]:
        """Indexes that the record hides, by the rule as the design states it."""
        last = self.record.get("last_summarized_index", -1)
        kept = set(self.record.get("kept_ids", ()))
        return {
            index
            for index, message in enumerate(self.messages[: last + 1])
            if message_key(message, index) not in kept
        }

    def _account(self, before: Any) -> None:
        old = before.get("last_summarized_index", -1)
        new = self.record.get("last_summarized_index", -1)
        self._expect(new >= old, f"the position moved back from {old} to {new}")
        if new == old and before.get("kept_ids") == self.record.get("kept_ids"):
            return
        self.folds += 1
        kept = set(self.record.get("kept_ids", ()))
        was_kept = set(before.get("kept_ids", ()))
        for index, message in enumerate(self.messages[: new + 1]):
            key = message_key(message, index)
            if key not in kept and (index > old or key in was_kept):
                self._expect(index not in self.folded, f"message {index} was folded twice")
                self.folded.append(index)
        self._expect(set(self.folded) == self.hidden(), "hidden messages and folded ones differ")
        expected = 0
        for segment in self.record["segments"]:
            self._expect(
                segment["first_index"] in {expected, segment["last_index"]},
                f"segments leave a gap at {expected}",
            )
            expected = segment["last_index"] + 1
        self._expect(expected == new + 1, "the chain does not end at the position")
        last = self.messages[new]
        self._expect(self.record.get("last_summarized_id") == last.id, "wrong last id")

    def _check_view(self, view: list[BaseMessage]) -> None:
        measured = self.node.measure(self.state)
        self.peak = max(self.peak, measured.tokens)
        if measured.window is not None:
            self._expect(measured.tokens <= measured.window, "the view exceeds the window")
        hidden = self.hidden()
        ids = {message.id for message in view}
        for index in absent(self.messages, view, hidden):
            self._expect(condition=False, fault=f"{self.messages[index].id} is not shown")
        for index in hidden:
            gone = self.messages[index].id
            self._expect(gone is None or gone not in ids, f"hidden message {gone} is shown")
        self._expect(bool(view) or not self.messages, "an empty view of a thread that is not empty")
        self._check_kept(hidden, view)
        if self.record == self._last_record and not self._moved_the_digest(view):
            self._expect(
                view[: len(self._last_view)] == self._last_view,
                "the view does not extend the one before it",
            )
        # An agent is not called while calls wait for results; if it were, a system message behind
        # them would make room for the answers once the calls turn out to be abandoned.
        self._last_view, self._last_record = view, None if self.waits() else self.record

    def _moved_the_digest(self, view: Sequence[BaseMessage]) -> bool:
        """Whether a late system message made the digest a human message.

        As the only system text of a view it would stand apart from the late one.
        """
        roles = [
            [m.type for m in shown if "[Record of" in str(m.content)]
            for shown in (self._last_view, view)
        ]
        return roles == [["system"], ["human"]]

    def waits(self) -> bool:
        """Whether calls of the newest turn wait for results."""
        found = list(groups(self.messages))
        newest = [g for g in found if not isinstance(self.messages[g.start], SystemMessage)][-1:]
        return any(group.unanswered or group.awaits_server for group in newest)

    def _check_kept(self, hidden: set[int], view: Sequence[BaseMessage]) -> None:
        humans = [i for i, m in enumerate(self.messages) if isinstance(m, HumanMessage)]
        if humans:
            self._expect(humans[0] not in hidden, "the task is hidden")
            self._expect(humans[-1] not in hidden, "the newest request is hidden")
        for index, message in enumerate(self.messages):
            if isinstance(message, SystemMessage):
                texts = [message_text(m) for m in view if isinstance(m, SystemMessage)]
                shown = any(message_text(message) in text for text in texts)
                self._expect(shown, f"system message {index} is not shown as it is")
        pure = model_view(self.state)
        if self.record.get("render"):
            self._expect(pure == view, "view() and model_view() differ")

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(f"after {len(self.messages)} messages: {fault}")


def absent(
    messages: Sequence[BaseMessage], view: Sequence[BaseMessage], covered: Container[int]
) -> list[int]:
    """Indexes of messages that have to be in a view and are not: those that nothing covers.

    System messages may be merged into one, so they are looked for by their text elsewhere.
    """
    ids = {message.id for message in view}
    return [
        index
        for index, message in enumerate(messages)
        if index not in covered
        and message.id is not None
        and message.id not in ids
        and not isinstance(message, SystemMessage)
    ]


def replay(
    node: CompactionNode,
    history: Sequence[BaseMessage],
    at_call: Callable[[Thread, list[BaseMessage]], None] | None = None,
) -> Thread:
    """Feed a history to a thread; the node visits it wherever the agent would be called.

    Args:
        node: the node under test.
        history: a transcript.
        at_call: called with the thread and its view before every AI message of the history.
    """
    thread = Thread(node)
    for message in history:
        if isinstance(message, AIMessage) and thread.messages:
            view = thread.visit()
            if view is not None and at_call is not None:
                at_call(thread, view)
        thread.append(message)
    view = thread.visit()
    if view is not None and at_call is not None:
        at_call(thread, view)
    return thread


def group_starts(messages: Sequence[BaseMessage]) -> set[int]:
    """Indexes at which a cut splits no call from a result that follows it contiguously."""
    starts = set()
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if not (isinstance(message, ToolMessage) and message.tool_call_id in waiting):
            starts.add(index)
        if isinstance(message, AIMessage):
            waiting = {
                str(call["id"]) for call in [*message.tool_calls, *message.invalid_tool_calls]
            }
        elif not isinstance(message, ToolMessage):
            waiting = set()
    return {*starts, len(messages)}
