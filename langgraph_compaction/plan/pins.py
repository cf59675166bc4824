"""Messages that no fold takes: pinned by mark or rule, the task, the current request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.view.blocks import blocks_of, visible_text
from langgraph_compaction.view.marks import is_by_user, is_marked
from langgraph_compaction.view.pairing import calls_of, groups

PinRule = Callable[[BaseMessage], bool]

_log = logging.getLogger("langgraph_compaction")

_RULE_KEYS = ("type", "name", "contains", "id")
_TYPES: dict[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "tool": ToolMessage,
    "system": SystemMessage,
}

_OTHERWISE = {"user": "human", "assistant": "ai", "developer": "system", "function": "tool"}
"""Roles as providers name them, and what LangChain's messages call these types."""


def pin_rule(rules: Any) -> PinRule:
    """One predicate from the ``pinned=`` setting; marked messages are always pinned.

    Args:
        rules: None, a callable from message to bool, or a rule or list of rules. A rule is a dict
            with one or more of ``type`` ("human", "ai", "tool", "system"), ``name`` (of the
            message or its tool), ``id`` and ``contains`` (a piece of its text); all of them have
            to match.

    Raises:
        ConfigurationError: a rule is not a dict of these keys with text values.
    """
    if rules is None:
        return is_marked
    if callable(rules):
        return _Pinned(rules)
    listed = [rules] if isinstance(rules, Mapping) else rules
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise _wrong_rule(rules)
    for rule in listed:
        if not isinstance(rule, Mapping) or not rule:
            raise _wrong_rule(rule)
        for key, value in rule.items():
            if key not in _RULE_KEYS or not isinstance(value, str) or not value:
                raise _wrong_rule(rule)
            if key == "type" and value not in _TYPES:
                raise _wrong_rule(rule)
    return _Pinned(tuple(dict(rule) for rule in listed))


def pinned_tools(rules: Any) -> list[str]:
    """Names of the tools whose results the rules of ``pinned=`` name; see `pin_rule`."""
    if rules is None or callable(rules):
        return []
    given = [rules] if isinstance(rules, Mapping) else rules
    return [rule["name"] for rule in given if rule.get("type") == "tool" and "name" in rule]


@dataclass(frozen=True)
class _Pinned:
    """A predicate that can be pickled, unlike a lambda.

    A callable of anybody's ends no run: a message at which it raises stays, and the log says so
    once.
    """

    rules: Callable[[BaseMessage], Any] | tuple[Mapping[str, str], ...]
    _told: set[str] = field(default_factory=set, compare=False, repr=False)

    def __call__(self, message: BaseMessage) -> bool:
        if is_marked(message):
            return True
        if callable(self.rules):
            try:
                return bool(self.rules(message))
            except Exception as error:  # noqa: BLE001  # see above
                self._tell(message, error)
                return True
        return any(_matches(message, rule) for rule in self.rules)

    def _tell(self, message: BaseMessage, error: Exception) -> None:
        if not self._told:
            self._told.add("once")
            _log.warning(
                "pinned: the function raised %r for the message %r; what it raises for stays. Let "
                "it return True or False for every message, also where the content is a list.",
                error,
                message.id,
            )


def _wrong_rule(rule: Any) -> ConfigurationError:
    return ConfigurationError(
        f"pinned: {rule!r} is not a rule; write a dict with one or more of "
        f"{', '.join(map(repr, _RULE_KEYS))} and text values, such as "
        '{"type": "tool", "name": "load_skill"}, a list of these, or (in code) a callable. '
        f"Types are {', '.join(map(repr, _TYPES))}.{_hint(rule)}"
    )


def _hint(rule: Any) -> str:
    """What was likely meant by a rule in the words of providers."""
    if not isinstance(rule, Mapping):
        return ""
    given = rule.get("type", rule.get("role"))
    meant = _OTHERWISE.get(given, given) if isinstance(given, str) else None
    if meant not in _TYPES or rule.get("type") == meant:
        return ""
    return f' Did you mean {{"type": "{meant}"}}?'


def _matches(message: BaseMessage, rule: Mapping[str, str]) -> bool:
    if "type" in rule and not isinstance(message, _TYPES[rule["type"]]):
        return False
    if "name" in rule and message.name != rule["name"]:
        return False
    if "id" in rule and message.id != rule["id"]:
        return False
    return "contains" not in rule or rule["contains"] in _text(message)


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(visible_text(block) or "" for block in blocks_of(message.content))


def protected(
    messages: Sequence[BaseMessage], indexes: Sequence[int], is_pinned: PinRule, also: set[int]
) -> set[int]:
    """Which of the messages at ``indexes`` (ascending) no fold takes.

    System messages, pinned ones with their whole call group, and those in ``also``.
    """
    members = [messages[index] for index in indexes]
    found: set[int] = set()
    for group in groups(members):
        places = indexes[group.start : group.stop]
        if len(places) > 1 and any(map(is_pinned, _named(members[group.start : group.stop]))):
            found.update(places)
            continue
        found.update(
            index
            for index in places
            if index in also
            or isinstance(messages[index], SystemMessage)
            or is_pinned(messages[index])
        )
    return found


def _named(group: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """The messages of a group, results with the name of their tool: some carry the id alone."""
    names = {call.get("id"): call.get("name") for message in group for call in calls_of(message)}
    for message in group:
        if isinstance(message, ToolMessage) and message.name is None:
            yield message.model_copy(update={"name": names.get(message.tool_call_id)})
        else:
            yield message


def newest_human(messages: Sequence[BaseMessage], start: int, kept: Sequence[int]) -> int | None:
    """Index of the newest message of a user from ``start`` on, else among ``kept``; None: none."""
    for index in range(len(messages) - 1, start - 1, -1):
        if is_by_user(messages[index]):
            return index
    return next((i for i in reversed(kept) if is_by_user(messages[i])), None)


def first_human(messages: Sequence[BaseMessage], start: int) -> int | None:
    """Index of the first message of a user from ``start`` on; None: none."""
    for index in range(start, len(messages)):
        if is_by_user(messages[index]):
            return index
    return None
