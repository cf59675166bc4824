"""Reading a span: who said what, what was called, and which references occur.

Long texts are sampled at head and tail, so that time is linear in the number of messages and a
result of a million characters costs no more than one of a thousand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.extractive.actions import (
    Action,
    reads_as_error,
    strings,
    todo_list,
)
from langgraph_compaction.digest.extractive.ranking import ReferenceRanking
from langgraph_compaction.digest.fences import without_code, without_examples
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.sentences import (
    Sentence,
    sampled,
    sentences,
)
from langgraph_compaction.view.blocks import is_server_call, server_result_id
from langgraph_compaction.view.marks import is_summary
from langgraph_compaction.view.pairing import calls_of

SAID_CHARS = 20_000
"""Characters read of one message of the agent; twice as many of one of the user."""
SPAN_CHARS = 1_000_000
"""Characters of a span, about 250,000 tokens, from which on less is read of each message."""
LEAST_SAID_CHARS = 600
"""Characters read of a message at least, however long the span; of the user's twice as many."""
RESULT_SENTENCE_CHARS = 160
"""Characters of one extract from a tool result."""

_OBSERVATION = re.compile(
    r"\s*(?:<(?:returncode|output|observation|std(?:out|err)|result)\b|observation:)|.*\$\s*\Z",
    re.IGNORECASE | re.DOTALL,
)


class Reading:
    """What was read of a span.

    Attributes:
        size: how many messages the span has.
        everything: all sentences, in order.
        user: sentences of the user.
        agent: sentences of the agent.
        results: sentences of tool results, with the tool's name and whether it failed.
        acting: indexes of messages in which the agent made calls.
        last_turn: index of the agent's newest message; -1: there is none.
        actions: the calls, to-do lists aside.
        todos: entries and states of the newest to-do list.
        references: paths, URLs, ids and the like.
    """

    def __init__(self, messages: Sequence[BaseMessage], limit: int, printed: int) -> None:
        """Read the span.

        Args:
            messages: the span, oldest first.
            limit: characters of a sentence.
            printed: characters read of one tool result.
        """
        self.size = len(messages)
        self.everything: list[Sentence] = []
        self.user: list[Sentence] = []
        self.agent: list[Sentence] = []
        self.results: list[tuple[Sentence, str, bool]] = []
        self.acting: set[int] = set()
        self.last_turn = -1
        self.actions: list[Action] = []
        self.todos: list[tuple[str, str]] = []
        self.references = ReferenceRanking()
        self._limit = limit
        self._waiting: dict[str, list[Action]] = defaultdict(list)
        self._command: Action | None = None
        texts = [message_text(message) for message in messages]
        self._said = SAID_CHARS
        if sum(min(len(text), SAID_CHARS) for text in texts) > SPAN_CHARS:
            self._said = max(LEAST_SAID_CHARS, min(SAID_CHARS, SPAN_CHARS // len(texts)))
        self._printed = min(printed, self._said)
        for index, (message, text) in enumerate(zip(messages, texts, strict=True)):
            self._read(index, message, text)

    def _read(self, index: int, message: BaseMessage, text: str) -> None:
        role = getattr(message, "role", "")
        if isinstance(message, SystemMessage) or role in ("system", "developer"):
            return
        if isinstance(message, ToolMessage | FunctionMessage):
            waiting = self._waiting.get(getattr(message, "tool_call_id", ""))
            wrong = getattr(message, "status", "success") == "error"
            self._read_result(index, text, waiting.pop() if waiting else None, failed=wrong)
        elif isinstance(message, AIMessage) or role in ("assistant", "ai") or is_summary(message):
            self._read_agent(index, message, text)
        elif self._command and _reads_as_output(text):
            self.actions.append(self._command)
            self._read_result(index, text, self._command, failed=False)
        else:
            self._read_user(index, text)

    def _add(self, parts: Sequence[str], index: int) -> list[Sentence]:
        added = [Sentence.of(part, index, position) for position, part in enumerate(parts)]
        self.everything += added
        return added

    def _read_user(self, index: int, text: str) -> None:
        prose, blocks = without_code(without_examples(sampled(text, 2 * self._said)))
        found = list(sentences(prose, self._limit, wrapped=True))
        # A short message is kept whole: an answer like "1. yes 2. tomorrow" means nothing cut up.
        whole = " ".join(found)
        self.user += self._add([whole] if 0 < len(whole) <= self._limit else found, index)
        self.references.add("user", index, prose)
        self.references.add("call", index, *blocks)

    def _read_agent(self, index: int, message: BaseMessage, text: str) -> None:
        self.last_turn = index
        prose, blocks = without_code(sampled(text, self._said))
        self.agent += self._add(list(sentences(prose, self._limit, wrapped=True)), index)
        self.references.add("agent", index, prose)
        self._command = None
        calls = calls_of(message)
        for call in calls:
            self._call(index, str(call.get("name") or "tool"), call.get("args"), call.get("id"))
        if isinstance(message.content, list):
            self._read_server_calls(index, message.content)
        if blocks and not calls:
            # An agent without tool calls writes its commands as code blocks; if the next message
            # reads like output, the block was one.
            self._command = Action.of("", blocks[-1], index)
            self.references.add("call", index, blocks[-1])
            self.acting.add(index)

    def _call(self, index: int, name: str, arguments: object, call_id: object) -> None:
        self.acting.add(index)
        action = Action.of(name, arguments, index)
        self._waiting[str(call_id or "")].append(action)
        todos = todo_list(arguments)
        if todos:
            self.todos, action.listed = todos, False
        else:
            self.actions.append(action)
        self.references.add("call", index, *strings(arguments, self._printed))

    def _read_server_calls(self, index: int, blocks: Sequence[object]) -> None:
        for block in blocks:
            if isinstance(block, dict) and is_server_call(block):
                arguments = block.get("input", block.get("args"))
                self._call(index, str(block.get("name") or "tool"), arguments, block.get("id"))
            elif (answered := server_result_id(block)) and self._waiting.get(answered):
                self._waiting[answered].pop().finish("", failed=False)

    def _read_result(self, index: int, text: str, action: Action | None, *, failed: bool) -> None:
        self._command = None
        if action and not action.listed:
            return
        text = sampled(text, self._printed)
        failed = failed or reads_as_error(text)
        limit = min(self._limit, RESULT_SENTENCE_CHARS)
        found = self._add(list(sentences(text, limit)), index)
        self.references.add("result", index, text)
        telling = [part for part in found if any(map(str.isalpha, part.text))]
        wrong = [part for part in telling if cues.ERROR(part)] if failed else []
        if action:
            shown = wrong[-1:] or telling[:1]
            action.finish(shown[0].text if shown else "", failed=failed)
        name = action.name if action else "result"
        self.results += [(part, name, failed) for part in (wrong[-2:] if failed else telling)]


def _reads_as_output(text: str) -> bool:
    """Whether a message after a command is the command's output rather than a person's answer."""
    if _OBSERVATION.match(text[:200] + text[-200:]):
        return True
    lines = [Sentence.of(line) for line in sentences(text[:1_000], RESULT_SENTENCE_CHARS)]
    return sum(line.is_prose() for line in lines) < len(lines) / 3
