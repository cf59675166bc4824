"""Reading the calls of a span: what was called, and which message answers which call."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, ToolMessage

from langgraph_compaction.digest.actions import Action, todo_list
from langgraph_compaction.digest.outcomes import Answer
from langgraph_compaction.digest.sentences import Sentence, sentences
from langgraph_compaction.view.blocks import is_server_call, server_result_id
from langgraph_compaction.view.marks import is_summary
from langgraph_compaction.view.pairing import calls_of

RESULT_SENTENCE_CHARS = 160
"""Characters of one extract from a tool result."""

_OBSERVATION = re.compile(
    r"\s*(?:<(?:returncode|output|observation|std(?:out|err)|result)\b|observation:)|.*\$\s*\Z",
    re.IGNORECASE | re.DOTALL,
)


class Calls:
    """The calls of a span, read message by message, and their results.

    Attributes:
        actions: what the calls did, in order; to-do lists aside.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.actions: list[Action] = []
        self._waiting: dict[str, deque[Action]] = {}
        self._command: Action | None = None

    def made(
        self, index: int, message: BaseMessage, blocks: Sequence[str]
    ) -> Iterator[tuple[Action, Any]]:
        """Take in a message of the agent: the calls that it makes, with their arguments.

        Args:
            index: of the message.
            message: of the agent.
            blocks: the code in its text. An agent without tool calls writes its commands so; if
                the next message reads like output, the last block was one.
        """
        self._command = None
        calls = calls_of(message)
        for call in calls:
            yield self._add(index, call.get("name"), call.get("args"), call.get("id"))
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, dict) and is_server_call(block):
                arguments = block.get("input", block.get("args"))
                yield self._add(index, block.get("name"), arguments, block.get("id"))
            elif (answered := server_result_id(block)) and (action := self._next(answered)):
                action.finish((), Answer("ok"))
        if blocks and not calls:
            self._command = Action.of("", blocks[-1], index)
            yield self._command, blocks[-1]

    def _add(self, index: int, name: Any, arguments: Any, call_id: Any) -> tuple[Action, Any]:
        action = Action.of(str(name or "tool"), arguments, index)
        same = self._waiting.setdefault(str(call_id or ""), deque())
        if same and same[-1].message != index:
            same.clear()  # the id is used again: what waits for a result is the newer call
        same.append(action)
        if todo_list(arguments):
            action.listed = False
        else:
            self.actions.append(action)
        return action, arguments

    def _next(self, call_id: str) -> Action | None:
        waiting = self._waiting.get(call_id)
        return waiting.popleft() if waiting else None

    def answered(self, message: BaseMessage, text: str) -> Action | None:
        """The call that a message is the result of; None where it is that of none.

        Args:
            message: one that the agent did not write.
            text: what it says.
        """
        if is_result(message):
            self._command = None
            return self._next(getattr(message, "tool_call_id", ""))
        command = self._command
        if command is None or not _reads_as_output(text):
            return None
        self._command = None
        self.actions.append(command)
        return command


def is_agent(message: BaseMessage) -> bool:
    """Whether the agent wrote the message; a summary of earlier messages counts as its own."""
    role = getattr(message, "role", "")
    return isinstance(message, AIMessage) or role in ("assistant", "ai") or is_summary(message)


def is_result(message: BaseMessage) -> bool:
    """Whether the message is a tool's."""
    return isinstance(message, ToolMessage | FunctionMessage)


def _reads_as_output(text: str) -> bool:
    """Whether a message after a command is the command's output rather than a person's answer."""
    if _OBSERVATION.match(text[:200] + text[-200:]):
        return True
    lines = [Sentence.of(line) for line in sentences(text[:1_000], RESULT_SENTENCE_CHARS)]
    return sum(line.is_prose() for line in lines) < len(lines) / 3
