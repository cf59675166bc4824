"""Reading a span: who said what, what was called, and which references occur.

Long texts are sampled at head and tail, so that time is linear in the number of messages and a
result of a million characters costs no more than one of a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, SystemMessage

from langgraph_compaction.digest.actions import Action, strings, todo_list
from langgraph_compaction.digest.calls import (
    RESULT_SENTENCE_CHARS,
    Calls,
    is_agent,
    is_result,
)
from langgraph_compaction.digest.extractive.ranking import ReferenceRanking
from langgraph_compaction.digest.fences import without_code, without_examples
from langgraph_compaction.digest.outcomes import Answer, answer_of, telling
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.sentences import (
    Sentence,
    sampled,
    sentences,
)

SAID_CHARS = 20_000
"""Characters read of one message of the agent; twice as many of one of the user."""
SPAN_CHARS = 1_000_000
"""Characters of a span, about 250,000 tokens, from which on less is read of each message."""
LEAST_SAID_CHARS = 600
"""Characters read of a message at least, however long the span; of the user's twice as many."""


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
        self._calls = Calls()
        self.actions = self._calls.actions
        self.todos: list[tuple[str, str]] = []
        self.references = ReferenceRanking()
        self._limit = limit
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
        if is_agent(message):
            self._read_agent(index, message, text)
            return
        action = self._calls.answered(message, text)
        if action or is_result(message):
            effect = action is not None and action.effect
            self._read_result(index, text, action, answer_of(message, text, effect=effect))
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
        for _, arguments in self._calls.made(index, message, blocks):
            self.acting.add(index)
            self.todos = todo_list(arguments) or self.todos
            self.references.add("call", index, *strings(arguments, self._printed))

    def _read_result(self, index: int, text: str, action: Action | None, answer: Answer) -> None:
        if action and not action.listed:
            return
        text = sampled(text, self._printed)
        limit = min(self._limit, RESULT_SENTENCE_CHARS)
        found = self._add(list(sentences(text, limit)), index)
        self.references.add("result", index, text)
        if action:
            action.finish(found, answer)
        name = action.name if action else "result"
        wrong = answer.outcome == "error"
        self.results += [(part, name, wrong) for part in telling(found, failed=wrong)]
