"""One archived message: the value that is stored, and the message that comes back from it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, messages_from_dict
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph_compaction.archive.jsonable import jsonable
from langgraph_compaction.archive.texts import plain_text
from langgraph_compaction.digest.rendering import clamped
from langgraph_compaction.errors import CompactionError
from langgraph_compaction.view.blocks import blocks_of, server_result_id
from langgraph_compaction.view.pairing import calls_of

ITEM_VERSION = 1
"""The version of the values that this package writes, and the newest it reads."""
TEXT_CHARS = 20_000
"""Characters of a message's plain text that its item holds for a search, head and tail."""

POSITION_DIGITS = 10
"""Digits of the position at the start of a key: so keys are in the order of the thread."""
LOST = "lost"
"""Key of the item before a damaged one that does not say which that is; no item has it."""

_SERIALIZER = JsonPlusSerializer()
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


class DamagedItemError(CompactionError):
    """The value of an item holds no message any more. Not public: an answer says it in words."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One original in the archive.

    Attributes:
        key: of its item in the store.
        position: in the thread, 0-based; -1 where the item is damaged and does not say.
        id: of the message; None where it has none.
        type: of the message: "human", "ai", "tool" and so on.
        name: of the message: for a tool result the tool's.
        call_ids: ids of the calls that it makes or answers.
        text: as plain text, at most `TEXT_CHARS` characters of it.
        previous: key of the item before it; None for the first.
        also: keys of items at which other chains ended that lead on to this one.
    """

    key: str
    position: int
    id: str | None
    type: str
    name: str | None
    call_ids: tuple[str, ...]
    text: str
    previous: str | None
    also: tuple[str, ...]
    _value: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, key: str, value: Mapping[str, Any]) -> Archived:
        """The original that an item of the store holds.

        Whatever the value is: one that was damaged is not to take the others with it.
        """
        position = value.get("position")
        previous = value.get("previous", LOST)
        return cls(
            key=key,
            position=position if isinstance(position, int) else _position_in(key),
            id=_text_or_none(value.get("id")),
            type=_text_or_none(value.get("type")) or "unknown",
            name=_text_or_none(value.get("name")),
            call_ids=_texts(value.get("call_ids")),
            text=_text_or_none(value.get("text")) or "",
            previous=previous if previous is None or isinstance(previous, str) else LOST,
            also=_texts(value.get("also")),
            _value=value,
        )

    def says(self, message: BaseMessage) -> bool:
        """Whether a message says the same: its text, its calls and its media."""
        if self.type != message.type:
            return False
        try:
            own = self.message()
        except CompactionError:  # of a newer version, or damaged: its text is all there is
            return self.text == _text(message)
        # Not by the text in the item: other versions may leave out something else.
        return own.content == message.content and plain_text(own) == plain_text(message)

    def message(self) -> BaseMessage:
        """The message itself, equal to the one that was archived.

        Where it holds what JSON does not, it is as a checkpointer gives it back (a tuple in an
        artifact is a list); what that cannot hold either is replaced by the name of its type.

        Raises:
            DamagedItemError: it cannot be read.
            CompactionError: a newer version of this package wrote the item.
        """
        version = self._value.get("v")
        if isinstance(version, int) and version > ITEM_VERSION:
            raise CompactionError(
                f"The archived message {self.key!r} was written by a newer version of "
                f"langgraph_compaction (format {version}, this one reads up to "
                f"{ITEM_VERSION}). Upgrade langgraph_compaction wherever this thread runs."
            )
        try:
            restored = _restored(self._value)
            if isinstance(restored, BaseMessage):
                return restored
            # What LangGraph's strict mode makes of a class that it does not know: the fields.
            return messages_from_dict([{"type": self.type, "data": dict(restored)}])[0]
        except Exception as error:
            raise DamagedItemError(
                f"The archived message {self.key!r} cannot be read ({type(error).__name__}): its "
                "item in the store was changed or is damaged. Put it back from a backup of the "
                "store."
            ) from error


def item_of(
    message: BaseMessage, position: int, previous: str | None, also: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """Key and value of the item that holds a message.

    The key follows from everything the item says: the same message after the same history has the
    same key, and anything else has another one.
    """
    value = {
        "v": ITEM_VERSION,
        "position": position,
        "id": storable(message.id),
        "type": message.type,
        "name": storable(message.name),
        "call_ids": [storable(call_id) for call_id in call_ids(message)],
        "text": _text(message),
        "previous": previous,
        **({"also": list(also)} if also else {}),
        **_body(message),
    }
    body = value.get("message"), value.get("serialised")
    identity = [previous, position, message.id, message.type, *body, *also]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]
    key = f"{position:0{POSITION_DIGITS}d}-{digest}"
    return key, {**value, "key": key}


def _position_in(key: str) -> int:
    """The position that the key of an item begins with."""
    digits = key.partition("-")[0]
    return int(digits) if digits.isdecimal() and len(digits) == POSITION_DIGITS else -1


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(one for one in found if isinstance(one, str))


def _text(message: BaseMessage) -> str:
    return str(storable(clamped(plain_text(message), TEXT_CHARS)))


def call_ids(message: BaseMessage) -> tuple[str, ...]:
    """The ids of the calls that a message makes or answers, each once."""
    found = [call.get("id") for call in calls_of(message)]
    if isinstance(message, ToolMessage):
        found.append(message.tool_call_id)
    for block in blocks_of(message.content):
        if isinstance(block, Mapping):
            found += [server_result_id(block)]
            found += [block.get("id")] if "tool" in str(block.get("type")) else []
    return tuple(dict.fromkeys(one for one in found if isinstance(one, str) and one))


def storable(text: str | None) -> Any:
    """``text`` without what some store refuses: NUL (PostgreSQL) and lone surrogates (SQLite)."""
    return None if text is None else _NOT_STORABLE.sub("\ufffd", text)


def _body(message: BaseMessage) -> dict[str, Any]:
    """The whole message: as a text of JSON, or what LangGraph's serializer makes of it.

    JSON as a text, since a store may change what it is given as an object: PostgreSQL refuses NUL,
    sorts keys and rewrites numbers; others lose NaN or fail at large integers.
    """
    data: Mapping[str, Any] = dict(message)  # as the fields are
    with suppress(Exception):  # a value may contain itself, or have a serializer that fails
        data = message.model_dump(warnings=False)
        body = {"message": _dumped({"type": message.type, "data": data})}
        back = _restored(body)
        if type(back) is type(message) and back == message:
            return body
    with suppress(Exception):  # whatever the serializer cannot hold is left out below
        kind, packed = _SERIALIZER.dumps_typed(message)
        serialised = {"serialised": [kind, base64.b64encode(packed).decode("ascii")]}
        if type(_restored(serialised)) is type(message):
            return serialised
    return {"message": _dumped({"type": message.type, "data": jsonable(data)})}


def _dumped(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    # Control characters are escaped either way; lone surrogates only so.
    return json.dumps(data) if _NOT_STORABLE.search(text) else text


def _restored(body: Mapping[str, Any]) -> Any:
    if "message" in body:
        return messages_from_dict([json.loads(body["message"])])[0]
    kind, packed = body["serialised"]
    return _SERIALIZER.loads_typed((kind, base64.b64decode(packed)))
