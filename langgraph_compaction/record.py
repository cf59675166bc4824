"""The compaction record: which part of a transcript the digest covers, in plain JSON values.

LangGraph's serializer warns about unregistered classes and will block them, and other tools read
the state, too. So a record is a dict, and its shape is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from langchain_core.messages import BaseMessage

# pydantic refuses typing.TypedDict before Python 3.12.
from typing_extensions import TypedDict

from langgraph_compaction.errors import RecordError, RecordVersionError

RECORD_VERSION = 1
"""The version of the record's shape that this package writes, and the newest it reads."""


class DigestSegment(TypedDict):
    """One link of the digest's chain: the text that stands for one span of the transcript.

    Indexes are positions in the thread's messages, 0-based, counted over the whole life of the
    thread (messages that were pruned from the state count, too).
    """

    text: str
    """As the model reads it, with its heading, quotes and references."""
    first_index: int
    """Position of the first message covered, inclusive."""
    last_index: int
    """Position of the last message covered, inclusive."""
    last_id: str | None
    """Id of the message at ``last_index``; None where messages have no ids."""
    level: int
    """0: folded from messages; n: condensed from segments of lower levels."""
    tokens: int
    """Tokens of ``text``."""
    source_tokens: int
    """Tokens of what ``text`` replaced."""
    model: str
    """Who wrote it: the tier's name, or "extractive" for the model-free fallback."""
    absorbed_ids: NotRequired[list[str]]
    """Ids of kept messages from before ``first_index`` that this segment took in because their
    pin was gone. A restore of the segment makes them visible again."""


class Render(TypedDict, total=False):
    """What the view has to know besides the record's facts, so that it needs no settings.

    Frozen into the record by the last visit that changed it. An absent key means the default.
    """

    role: Literal["human", "system"]
    """Whether the digest is a human message (default) or part of the leading system text."""
    heading: str
    """Text that opens the digest; never changes when a segment is added."""
    end: str
    """Text that closes the digest."""
    task: str | None
    """Key (see `message_key`) of the task among the kept messages; it stands before the digest."""
    result_chars: int
    """Characters that the results of one call group may take together before the largest are
    clipped to head and tail; 0 or absent: never clipped."""
    message_chars: int
    """The same for one human message; 0 or absent: never clipped."""


class CompactionRecord(TypedDict, total=False):
    """Which part of the transcript the digest covers. ``{}`` is the valid, empty record.

    A message is hidden from the view exactly if its position is at most
    ``last_summarized_index`` and its id is not in ``kept_ids``.
    """

    version: int
    """`RECORD_VERSION` of the package that wrote the record."""
    epoch: int
    """Raised by every human or resetting change: edit, restore, forget."""
    revision: int
    """Raised by one with every change."""
    segments: list[DigestSegment]
    """The digest: older segments first."""
    last_summarized_index: int
    """Position of the last message covered, inclusive; -1 or absent: nothing yet."""
    last_summarized_id: str | None
    """Id of that message: the first anchor."""
    next_id: str | None
    """Id of the message after it: the second anchor, and the only one after a prune."""
    kept_ids: list[str]
    """Messages inside the covered range that no segment contains: leading system messages, the
    task, pins. A message without an id is named by its position, see `message_key`."""
    pruned: bool
    """Whether covered messages have been removed from the messages channel."""
    render: Render
    """How the view shows the digest."""
    boundary_hint: int
    """Index into the messages channel of the first message that is not covered, when this record
    was written. A hint that saves a search, never trusted without the id."""
    kept_hints: list[int]
    """The same for each of ``kept_ids``."""
    fingerprint: str
    """Only where messages have no ids: `fingerprint` of the message at ``last_summarized_index``,
    so that a chat that was cleared and refilled is not mistaken for the one that was folded."""
    fold_length: int
    """Messages of the thread when the last fold was made: what stands before this position was
    made under an earlier view."""
    fold_steps: int
    """AI messages of the thread when the last fold was made; 0 or absent: no fold yet."""


_FIELDS: dict[str, type | tuple[type, ...]] = {
    "version": int,
    "epoch": int,
    "revision": int,
    "segments": list,
    "last_summarized_index": int,
    "last_summarized_id": (str, type(None)),
    "next_id": (str, type(None)),
    "kept_ids": list,
    "pruned": bool,
    "render": dict,
    "boundary_hint": int,
    "kept_hints": list,
    "fingerprint": str,
    "fold_length": int,
    "fold_steps": int,
}
_RENDER_FIELDS: dict[str, type | tuple[type, ...]] = {
    "role": str,
    "heading": str,
    "end": str,
    "task": (str, type(None)),
    "result_chars": int,
    "message_chars": int,
}
_SEGMENT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "first_index": int,
    "last_index": int,
    "last_id": (str, type(None)),
    "level": int,
    "tokens": int,
    "source_tokens": int,
    "model": str,
}


def checked_record(value: object) -> CompactionRecord:
    """Return ``value`` itself if it is a record this package can read.

    Fields that are unknown are left alone; fields that are absent have defaults. O(segments).

    Raises:
        RecordError: not a dict, or a known field has a wrong type; the message names the field.
        RecordVersionError: ``version`` is newer than `RECORD_VERSION`.
    """
    if not isinstance(value, dict):
        raise RecordError(
            f"The compaction channel holds {type(value).__name__!r}, not a record. Declare it as "
            "`compaction: Annotated[CompactionRecord, merge_compaction]` and write only records "
            "into it ({} is the empty one)."
        )
    version = value.get("version", RECORD_VERSION)
    if isinstance(version, int) and version > RECORD_VERSION:
        raise RecordVersionError(version, RECORD_VERSION)
    _check_fields(value, _FIELDS, "compaction record")
    _check_items(value, "kept_ids", str)
    _check_items(value, "kept_hints", int)
    _check_fields(value.get("render", {}), _RENDER_FIELDS, "compaction record's render")
    segments = value.get("segments", ())
    for number, segment in enumerate(segments):
        if not isinstance(segment, dict):
            raise RecordError(
                f"Segment {number} of the compaction record is a {type(segment).__name__}, not a "
                "dict. Repair it, or start anew with {'epoch': <greater than before>}."
            )
        _check_fields(segment, _SEGMENT_FIELDS, f"segment {number} of the compaction record")
        if not isinstance(segment.get("text"), str):
            raise RecordError(f"Segment {number} of the compaction record has no text.")
    if value.get("last_summarized_index", -1) < 0 and segments:
        raise RecordError(
            "The compaction record has segments but no last_summarized_index. Set it to the "
            "position of the last message that the segments cover, or remove the segments."
        )
    return value  # type: ignore[return-value]  # checked field by field above


def _check_fields(
    value: Mapping[str, Any], fields: Mapping[str, type | tuple[type, ...]], where: str
) -> None:
    for name, expected in fields.items():
        if name not in value:
            continue
        found = value[name]
        if not isinstance(found, expected) or (isinstance(found, bool) and expected is int):
            names = expected if isinstance(expected, tuple) else (expected,)
            wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in names)
            raise RecordError(
                f"Field {name!r} of the {where} is {found!r}; it has to be {wanted}. "
                "Nothing was changed: correct it with graph.update_state."
            )


def _check_items(value: Mapping[str, Any], name: str, expected: type) -> None:
    if not all(type(item) is expected for item in value.get(name, ())):
        raise RecordError(
            f"Field {name!r} of the compaction record is {value[name]!r}; it has to be a list of "
            f"{expected.__name__}. Nothing was changed: correct it with graph.update_state."
        )


def segment_tokens(segment: DigestSegment) -> int:
    """Tokens of a segment's text; estimated at four characters each where they are not noted."""
    return segment.get("tokens", len(segment["text"]) // 4 + 1)


def message_key(message: BaseMessage, position: int) -> str:
    """The name of a message in ``kept_ids``: its id, or ``@position`` where it has none."""
    return message.id or f"@{position}"
