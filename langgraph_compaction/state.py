"""The channels that compaction uses in a graph's state, their reducers, and how a state is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    convert_to_messages,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import StateSnapshot

# pydantic refuses typing.TypedDict before Python 3.12.
from typing_extensions import TypedDict

from langgraph_compaction.errors import MissingChannelError, RecordError, RecordVersionError
from langgraph_compaction.heads import FIELDS, united
from langgraph_compaction.record import CompactionRecord, checked_record

MESSAGES_KEY = "messages"
COMPACTION_KEY = "compaction"
SETTINGS_KEY = "compaction_settings"
UNSET = "__unset__"
"""As a value in an update of a thread's settings: forget that one, the level below counts again."""


def merge_compaction(
    current: CompactionRecord | None, update: CompactionRecord | None
) -> CompactionRecord:
    """Reducer of the compaction channel: the record that is further along wins.

    The greater of the two by (``epoch``, ``last_summarized_index``, ``revision``, canonical JSON).
    The order is total, so merging is idempotent, commutative and associative: the position never
    moves back within an epoch, parallel branches end in the fold that is further along, and a
    fold that was computed before a human's change is dropped.

    What was archived is not the winner's alone: the heads of both records are united, so that the
    originals a losing branch removed are found as well. See `heads`.

    Args:
        current: the record in the state; None counts as the empty record.
        update: the record a node returned; None counts as the empty record.

    Returns:
        One of the two arguments, unchanged; a copy of it where heads were added.

    Raises:
        RecordError: one of them is not a record.
        RecordVersionError: one of them was written by a newer version of this package.
    """
    if update is None or update == current:
        return {} if current is None else checked_record(current)
    if current is None:
        return checked_record(update)
    other = checked_record(update)
    try:
        one = checked_record(current)
    except RecordVersionError:
        raise
    except RecordError:
        # A record that cannot be read is repaired by a readable one of a greater epoch.
        found: Any = current
        epoch = found.get("epoch", 0) if isinstance(found, dict) else 0
        if other.get("epoch", 0) > (epoch if type(epoch) is int else 0):
            return other
        raise
    differ = _progress(one) != _progress(other)
    return united(max(one, other, key=_progress if differ else _canonical), one, other)


def _progress(record: CompactionRecord) -> tuple[int, int, int]:
    return (
        record.get("epoch", 0),
        record.get("last_summarized_index", -1),
        record.get("revision", 0),
    )


def _canonical(record: CompactionRecord) -> str:
    own = {name: value for name, value in record.items() if name not in FIELDS}
    try:
        return json.dumps(own, sort_keys=True, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(
            f"The compaction record holds a value that is not JSON ({error}). Write only str, int, "
            "float, bool, None, lists and dicts into it."
        ) from error


def merge_messages(left: Any = None, right: Any = None, **kwargs: Any) -> Any:
    """Reducer of the messages channel: `add_messages`, but removing an absent message is no error.

    Two branches may remove the same message, and a person may have deleted it meanwhile; with
    `add_messages` either ends the run.

    Args:
        left: the messages in the state.
        right: a message or a list of messages to add, replace (same id) or remove.
        kwargs: as `add_messages` takes them. Called with these alone it returns a reducer, as
            `add_messages` does: ``merge_messages(format="langchain-openai")``.
    """
    if left is None and right is None:
        return partial(merge_messages, **kwargs)
    if left is not None and right is not None and _removes(right):
        left, right = _without_idle_removals(left, right)
    return add_messages(left, right, **kwargs)


def _removes(messages: Any) -> bool:
    return any(
        isinstance(message, RemoveMessage)
        or (isinstance(message, Mapping) and message.get("role", message.get("type")) == "remove")
        for message in (messages if isinstance(messages, list) else [messages])
    )


def _without_idle_removals(left: Any, right: Any) -> tuple[list[Any], list[Any]]:
    """Both lists without the removals that would find nothing."""
    before: list[Any] = convert_to_messages(left if isinstance(left, list) else [left])
    update: list[Any] = convert_to_messages(right if isinstance(right, list) else [right])
    for index in range(len(update) - 1, -1, -1):
        if isinstance(update[index], RemoveMessage) and update[index].id == REMOVE_ALL_MESSAGES:
            # add_messages takes what follows as it is, removals included.
            before, update = [], update[index + 1 :]
            break
    present = {message.id for message in before}
    kept = []
    for message in update:
        if isinstance(message, RemoveMessage):
            if message.id not in present:
                continue
        else:
            present.add(message.id)
        kept.append(message)
    return before, kept


def merge_settings(
    current: Mapping[str, Any] | None, update: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Reducer of the settings channel: merges recursively, so one value can be changed alone.

    Args:
        current: the settings in the state; None counts as empty.
        update: values to change. Dicts are merged key by key; `UNSET` takes a key out; every other
            value replaces the one before it. What is no dict at all is kept under "unusable", so
            that the next visit reports it: nothing that stands here may end a run.

    Returns:
        A new dict; neither argument is changed.
    """
    merged = dict(_as_settings(current))
    for key, value in _as_settings(update).items():
        before = merged.get(key)
        if value == UNSET:
            merged.pop(key, None)
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_settings(before, value)
        else:
            merged[key] = value
    return merged


def _as_settings(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    return {"unusable": given} if given else {}


class CompactionState(TypedDict):
    """A graph state with the channels that compaction uses. Extend it, or copy the annotations.

    Examples:
        >>> class MyState(CompactionState):
        ...     todos: list[str]
    """

    messages: Annotated[list[AnyMessage], merge_messages]
    compaction: Annotated[CompactionRecord, merge_compaction]
    compaction_settings: Annotated[dict[str, Any], merge_settings]


def read_channel(state: Any, key: str, annotation: str) -> Any:
    """Read one channel from a TypedDict, dataclass or pydantic state.

    Raises:
        MissingChannelError: the state has no such channel, or is no state.
    """
    if isinstance(state, Mapping):
        if key in state:
            return state[key]
    elif isinstance(state, list | tuple | str | BaseMessage):
        raise MissingChannelError(key, _no_state(state, key))
    elif hasattr(state, key):
        return getattr(state, key)
    raise MissingChannelError(
        key,
        f"The state that compaction received has no {key!r} channel. Add `{key}: {annotation}` "
        "(without `| None`: such a channel starts missing) to the graph's state class, and to the "
        "node's input schema if it has one of its own, or use CompactionState; an agent of "
        "create_react_agent needs it in a subclass of its own AgentState. If the channel has "
        "another name, pass it as `messages_key=` or `compaction_key=`."
        + ("" if state else " (The state is empty, as that of a thread which was never run.)"),
    )


def _no_state(given: Any, key: str) -> str:
    """What is said of messages, or of a snapshot, in place of a state."""
    found = f"Compaction looks for {key!r} in a graph's state, and received a {_kind(given)}. "
    if isinstance(given, StateSnapshot):
        return found + "Pass the state in it: graph.get_state(config).values."
    return found + (
        "Pass the state itself, as a node receives it: compact.view(state), not "
        f"compact.view(state[{key!r}]). Messages that belong to no graph need a record beside "
        'them: {"messages": [...], "compaction": {}}, under the keys of the node. A graph whose '
        "state is a list has no place for a record: give it CompactionState."
    )


def _kind(given: Any) -> str:
    return "list of messages" if type(given) in {list, tuple} else type(given).__name__


def updated(state: Any, update: Mapping[str, Any], *, messages_key: str = MESSAGES_KEY) -> Any:
    """A copy of a TypedDict, dataclass or pydantic state with an update of a compaction node.

    For where no graph applies it: the record takes the old one's place, and messages are removed.
    """
    values = dict(update)
    if messages_key in values:
        before = optional_channel(state, messages_key)
        values[messages_key] = merge_messages(list(before), values[messages_key])
    if isinstance(state, Mapping):
        return {**state, **values}
    if hasattr(state, "model_copy"):
        return state.model_copy(update=values)
    return replace(state, **values)


def optional_channel(state: Any, key: str) -> Any:
    """The value of a channel that a state need not have, None where it has none."""
    if isinstance(state, Mapping):
        return state.get(key)
    return getattr(state, key, None)


def read_state(
    state: Any, *, messages_key: str = MESSAGES_KEY, compaction_key: str = COMPACTION_KEY
) -> tuple[Sequence[BaseMessage], CompactionRecord]:
    """Read the transcript and its record from a graph state.

    Raises:
        MissingChannelError: one of the channels is missing.
        RecordError, RecordVersionError: the record cannot be read.
    """
    messages = read_channel(state, messages_key, "Annotated[list[AnyMessage], add_messages]")
    record = read_channel(state, compaction_key, "Annotated[CompactionRecord, merge_compaction]")
    return messages, {} if record is None else checked_record(record)


class Channels(NamedTuple):
    """Names of the channels that one node reads and writes.

    Attributes:
        messages: the messages.
        compaction: the record.
        settings: the thread's own settings.
        output: where every visit writes the view; None: nowhere.
    """

    messages: str = MESSAGES_KEY
    compaction: str = COMPACTION_KEY
    settings: str = SETTINGS_KEY
    output: str | None = None

    def read(self, state: Any) -> tuple[Sequence[BaseMessage], CompactionRecord]:
        """The transcript and its record; see `read_state`."""
        return read_state(state, messages_key=self.messages, compaction_key=self.compaction)

    def updated(self, state: Any, update: Mapping[str, Any]) -> Any:
        """A copy of a state with an update; see `updated`."""
        return updated(state, update, messages_key=self.messages)
