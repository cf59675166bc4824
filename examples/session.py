"""One run of the demo on one thread: start or resume it, show it, and judge it at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from survey import Graph, Ledger, mistakes, opening, remembered, rereads
from terminal import Screen
from tools import Workspace

from langgraph_compaction import CompactionNode, model_view

STEPS = 2_000
"""Graph steps of one run at most."""
PAUSE = 0.25
"""Seconds after each step with --slow."""


class OtherFolderError(Exception):
    """The thread is about another folder."""


@dataclass(slots=True)
class Figures:
    """What one run did.

    Attributes:
        calls: calls of the agent's model.
        folds: finished folds.
        clearings: times that clearing old results was enough.
        summaries: texts that were asked of a summariser.
        peak: tokens of the largest view.
    """

    calls: int = 0
    folds: int = 0
    clearings: int = 0
    summaries: int = 0
    peak: int = 0


class Session:
    """A thread of the survey as this process sees it.

    Args:
        graph: the survey's graph, with a checkpointer.
        compact: its compaction node.
        workspace: the files.
        thread: name of the thread.
        header: what is shown about the run beforehand.
        strict: whether an answer that differs from the files is a failure.
        slow: whether to pause after each step.

    Raises:
        OtherFolderError: the thread is about another folder.
    """

    def __init__(
        self,
        graph: Graph,
        compact: CompactionNode,
        workspace: Workspace,
        *,
        thread: str,
        header: Mapping[str, str],
        strict: bool,
        slow: bool = False,
    ) -> None:
        self._graph, self._compact, self._workspace = graph, compact, workspace
        self._config: RunnableConfig = {
            "configurable": {"thread_id": thread},
            "recursion_limit": STEPS,
        }
        self._strict, self._slow = strict, slow
        self._figures = Figures()
        self._started = time.monotonic()
        size = compact.measure({"messages": [], "compaction": {}})
        self._window = size.window or 0
        trigger = size.trigger or self._window
        self._screen = Screen(self._window, trigger)
        snapshot = graph.get_state(self._config)
        record = snapshot.values.get("compaction", {})
        self._ledger = Ledger(record)
        self._screen.digest_tokens = sum(one["tokens"] for one in record.get("segments", ()))
        messages = self._messages()
        rows = {**header, "Window": f"{self._window:,} tokens; folds from {trigger:,} on"}
        if messages:
            folder = messages[0].additional_kwargs.get("folder")
            if folder != str(workspace.root):
                raise OtherFolderError(
                    f"The thread {thread!r} is about {folder}, not {workspace.root}. Name another "
                    "--thread, or start anew with --fresh."
                )
            checkpoint = str(snapshot.config["configurable"]["checkpoint_id"])
            rows["Resumed"] = (
                f"from checkpoint {checkpoint[-12:]}: {len(messages)} messages, folded up to "
                f"position {record.get('last_summarized_index', -1)}"
            )
        self._screen.header(rows)

    def survey(self, *, briefly: bool = False) -> bool:
        """Do what is left of the survey and show its outcome; whether it was answered.

        Args:
            briefly: leave out the answer if an earlier run showed it.
        """
        messages = self._messages()
        # Not `next`: it is empty, too, where a node is done and its checkpoint was never written.
        finished = bool(messages) and not self._graph.get_state(self._config).tasks
        if not finished:
            self._stream(None if messages else {"messages": [opening(self._workspace)]})
        state = self._state()
        end = next(at for at, message in enumerate(state["messages"]) if _is_answer(message))
        answer = state["messages"][end]
        lost = answer.response_metadata.get("lost", [])
        if not finished:
            self._show_digest(state)
        if lost:
            self._screen.say(f"\n{answer.text}", "bold red")
        elif not (finished and briefly):
            self._screen.answer(answer.text, "Answer")
        wrong = [] if lost or finished else list(mistakes(answer.text, self._workspace))
        rows = {"In this run": self._summed_up()}
        if not finished:
            share = self._figures.peak / self._window
            rows["Largest view"] = (
                f"{self._figures.peak:,} of {self._window:,} tokens ({share:.0%})"
            )
            files = remembered(state["messages"][:end], state["compaction"])
            rows["From the digest"] = f"the findings in {files} files: no message in view has them"
        if not (finished or lost):
            rows["Checked"] = "the answer agrees with the files"
        if wrong:
            rows["Checked"] = f"missing or wrong ({len(wrong)}): {'; '.join(wrong[:3])}"
        self._screen.balance(rows | self._thread(state["messages"][: end + 1]))
        return not lost and not (wrong and self._strict)

    def ask(self, question: str) -> bool:
        """Ask the finished thread a question; whether the view still held what it took."""
        self._figures, self._started = Figures(), time.monotonic()
        self._screen.say(f"\nYou ask: {question}", "bold")
        self._stream({"messages": [HumanMessage(question)]})
        answer = self._messages()[-1]
        self._screen.answer(answer.text, "Answer from the thread")
        self._screen.say(self._summed_up(), "dim")
        return not answer.response_metadata.get("lost")

    def say(self, text: str) -> None:
        """A closing remark."""
        self._screen.say(text, "dim")

    def _state(self) -> dict[str, Any]:
        return self._graph.get_state(self._config).values

    def _messages(self) -> list[AnyMessage]:
        messages: list[AnyMessage] = self._state().get("messages", [])
        return messages

    def _stream(self, given: dict[str, Any] | None) -> None:
        number = sum(isinstance(message, AIMessage) for message in self._messages())
        tokens = 0
        # "sync": what is on the screen is on the disk, whenever the process is killed.
        for mode, event in self._graph.stream(
            given, self._config, stream_mode=["updates", "custom"], durability="sync"
        ):
            if not isinstance(event, dict):
                continue
            if mode == "custom":
                tokens = event.get("tokens", tokens)
                self._take_event(event)
                continue
            for update in filter(None, event.values()):
                if "compaction" in update:
                    self._ledger.take(update["compaction"])
                for message in update.get("messages", ()):
                    if isinstance(message, AIMessage):
                        number += 1
                        self._screen.step(number, tokens, message)
                        time.sleep(PAUSE if self._slow else 0)

    def _take_event(self, event: dict[str, Any]) -> None:
        figures = self._figures
        match event["type"]:
            case "agent.view":
                figures.calls += 1
                figures.peak = max(figures.peak, event["tokens"])
            case "compaction.completed":
                figures.folds += 1
                figures.summaries += event["attempts"]
                self._screen.fold(figures.folds, event)
            case "compaction.cleared":
                figures.clearings += 1
                self._screen.clear(event)
            case "compaction.failed" | "compaction.rejected" | "compaction.tier_failed":
                self._screen.trouble(event)

    def _show_digest(self, state: dict[str, Any]) -> None:
        digests = [message.text for message in model_view(state) if message.id == "summarization"]
        if digests:
            self._screen.say("")
            self._screen.digest(digests[0])

    def _thread(self, messages: Sequence[AnyMessage]) -> dict[str, str]:
        whole = self._compact.measure({"messages": messages, "compaction": {}}).tokens
        steps = sum(isinstance(message, AIMessage) for message in messages)
        return {
            "Thread": f"{steps} steps, {len(messages)} messages, {whole:,} tokens: "
            f"{whole / self._window:.1f} windows",
            "Folded": f"{self._ledger.folded} messages; folded twice: {len(self._ledger.twice())}",
            "Repeated calls": f"{rereads(messages)} (made again for what the view had lost)",
        }

    def _summed_up(self) -> str:
        figures = self._figures
        return ", ".join(
            [
                _number(figures.calls, "model call"),
                _number(figures.folds, "fold"),
                _number(figures.clearings, "clearing"),
                _number(figures.summaries, "new summary", "new summaries"),
                f"{time.monotonic() - self._started:.1f} s",
            ]
        )


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _is_answer(message: AnyMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls
