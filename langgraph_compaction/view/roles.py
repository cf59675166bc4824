"""A view for chat templates in which user and assistant take turns.

Templates of Llama 2, Mistral and Gemma refuse a second message of one role ("conversation roles
must alternate") and a system message that is not the first. A view has such neighbours as soon as
something was folded: the task, the digest and the next user message stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.view.blocks import joined
from langgraph_compaction.view.digest import DIGEST_MARK

OPENING = "[The conversation begins here.]"
"""A user's turn before an assistant's that would come first."""
NO_COMMENT = "[The results were left without an answer.]"
"""An assistant's turn between results and the user message that follows them: templates that know
tools, and Mistral's own API, want one there."""

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def alternating(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages with one system message in front, then user and assistant in turns.

    Neighbours of one role become one message, with the id of the first of them. Results of tools
    stay messages of their own, behind the message that called for them. Nothing is changed in
    place, and a message without such neighbours is the same object.
    """
    systems = [message for message in messages if isinstance(message, SystemMessage)]
    turns = _turns(message for message in messages if not isinstance(message, SystemMessage))
    return [*([_merged(systems)] if systems else []), *turns]


def _turns(messages: Iterable[BaseMessage]) -> Iterator[BaseMessage]:
    before: BaseMessage | None = None
    for role, run in groupby(messages, key=_role):
        members = list(run)
        if before is None and role != "user":
            yield HumanMessage(content=OPENING, id=f"{DIGEST_MARK}:opening")
        if role == "user" and before is not None and _role(before) == "tool":
            yield AIMessage(content=NO_COMMENT, id=f"{before.id or DIGEST_MARK}:no-comment")
        yield from [_merged(members)] if role in {"user", "assistant"} else members
        before = members[-1]


def _role(message: BaseMessage) -> str:
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    role = message.role if isinstance(message, ChatMessage) else message.type
    return _ROLES.get(role, role)


def _merged(messages: Sequence[BaseMessage]) -> BaseMessage:
    """Messages of one role as one. Of what comes with an answer, the newest counts."""
    first, last = messages[0], messages[-1]
    if len(messages) == 1:
        return first
    changed: dict[str, Any] = {"content": joined(message.content for message in messages)}
    if any(message.name != first.name for message in messages):
        changed["name"] = None
    if isinstance(first, AIMessage) and isinstance(last, AIMessage):
        answers = [message for message in messages if isinstance(message, AIMessage)]
        changed["tool_calls"] = [call for one in answers for call in one.tool_calls]
        changed["invalid_tool_calls"] = [call for one in answers for call in one.invalid_tool_calls]
        changed["additional_kwargs"] = {**first.additional_kwargs, **last.additional_kwargs}
        changed["response_metadata"] = last.response_metadata
        changed["usage_metadata"] = last.usage_metadata
    return first.model_copy(update=changed)
