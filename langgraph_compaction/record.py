"""The compaction record: which part of a transcript the digest covers, in plain JSON values.

LangGraph's serializer warns about unregistered classes and will block them, and other tools read
the state, too. So a record is a dict, and its shape is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from langchain_core.messages import BaseMessage

# pydantic refuses typing.TypedDict before Python 3.12.
from typing_extensions import TypedDict

from langgraph_compaction.errors import RecordError, RecordVersionError
from langgraph_compaction.shapes import REMEDY, Shape

LEAST_SEGMENT_TOKENS = 40
"""Tokens that a segment's text may have in the smallest window: below, two lines find no room."""

EDITED = "edited"
"""``model`` of a segment whose text a person wrote; it is never condensed."""

UPDATE_KEY = "compaction"
"""Key of the record in an update of the node, where its channel has no other name."""
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
    """Tokens of the messages that ``text`` stands for."""
    model: str
    """Who wrote it: the tier's name, or "extractive" for the model-free fallback."""
    quoted: NotRequired[bool]
    """Whether the text quotes the user's newest message, word for word."""
    unsourced: NotRequired[list[str]]
    """Names in the summariser's text that nothing it was made from has: when the text is condensed
    they are not listed as written."""
    absorbed_ids: NotRequired[list[str]]
    """Keys of kept messages from before ``first_index`` that this segment took in because nothing
    kept them any more. A restore of the segment makes them visible again."""
    absorbed_indexes: NotRequired[list[int]]
    """Their positions, in the same order."""


class Render(TypedDict, total=False):
    """What the view has to know besides the record's facts, so that it needs no settings.

    Frozen into the record by the last visit that changed it. An absent key means the default.
    """

    role: Literal["human", "system"]
    """Whether the digest is a human message (default) or part of the leading system text."""
    header: str
    """Text that opens the digest; never changes when a segment is added."""
    footer: str
    """Text that closes the digest."""
    task: str | None
    """Key (see `message_key`) of the task among the kept messages; it stands before the digest."""
    clip_result_bytes: int
    """UTF-8 bytes that the results of one call group may take together before the largest are
    clipped to head and tail; 0 or absent: never clipped."""
    clip_message_bytes: int
    """The same for one human message; 0 or absent: never clipped."""
    roles: Literal["any", "alternating"]
    """Whether neighbours of one role become one message; absent: they do not."""
    recall: str
    """Name of the tool that brings originals back; absent: the agent has none."""


class Failures(TypedDict):
    """Visits in a row in which no tier of the cascade wrote what was asked for."""

    count: int
    """How many there were."""
    thread_steps: int
    """AI messages of the thread at the last of them."""
    tokens: int
    """Tokens of the view then, overhead included."""
    last_id: NotRequired[str]
    """Id of the newest message then, where it had one: calls since are counted from it."""
    request_id: NotRequired[str]
    """Id of the request that was to be carried out, if there was one: it waits, too."""


class Clearing(TypedDict):
    """Which old tool results the view shows as placeholders, and which calls with short arguments.

    Frozen when it is made: what comes later changes nothing before it.
    """

    last_index: int
    """Position of the last message up to which results and arguments are cleared, inclusive; -1:
    none are."""
    last_id: str | None
    """Id of that message: where it is gone, nothing is cleared."""
    repeats_index: int
    """Position of the last message, inclusive, up to which a result is cleared that a later one up
    to there repeats, or that a newer result of the same call replaces; -1: none are."""
    repeats_id: str | None
    """Id of that message."""
    min_chars: int
    """Characters of a result below which it is not cleared."""
    argument_chars: int
    """Characters of a call's arguments, as JSON, above which they are shortened; 0: never."""
    protected_tools: list[str]
    """Names of tools whose results and arguments stay."""
    fingerprint: NotRequired[str]
    """Only where messages have no ids: a hash of those up to ``repeats_index``, so that another
    chat is not mistaken for this one."""
    pinned_ids: list[str]
    """Keys of messages up to there that stay because a rule pins them, see `message_key`."""


class Overflow(TypedDict):
    """What the last reduction after a refused call came to.

    By it a second refusal, of the reduced view, is told from a first one.
    """

    node: str
    """Name of the node whose call was refused."""
    tokens: int
    """Counted tokens of the messages in the view after the reduction."""
    last_id: NotRequired[str]
    """Id of the newest message then, where it had one."""


class CompactionRecord(TypedDict, total=False):
    """Which part of the transcript the digest covers. ``{}`` is the valid, empty record.

    A message is hidden from the view exactly if its position is at most
    ``last_summarized_index``, segments cover it, and its id is not in ``kept_ids``.
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
    archived: str
    """Key of the newest of them in the archive; absent: none was archived."""
    archived_prunes: int
    """How many prunes, one after the other, lead to ``archived``."""
    archived_also: list[str]
    """Where branches pruned side by side: the keys of what the others archived last, each after the
    number of prunes that lead to it. Sorted. See `heads`."""
    archived_before: list[str]
    """Former ones of these, which newer ones lead to. Sorted."""
    forgotten_epoch: int
    """Epoch that the last `forget` began: what other records name as archived before it is gone."""
    begun_run: str
    """The run of a subgraph that began the record: until it comes back in another one, nothing is
    pruned. Absent where an outermost graph began it, or one that has checkpoints of its own."""
    changed_run: str
    """The run of a subgraph that changed the record last; absent where none did."""
    pruned_index: int
    """Position of the last message covered when the last of them were removed, inclusive."""
    pruned_marks: list[str]
    """Marks of what the present run covered, and of what was covered before it: they tell what is
    covered in a channel that the prune did not reach. See `view.unreached`."""
    stayed_ids: list[str]
    """Keys of the messages up to there that stayed: the kept ones of that time."""
    stayed_indexes: list[int]
    """Their positions, in the same order."""
    render: Render
    """How the view shows the digest."""
    boundary_hint: int
    """Index into the messages channel of the first message that is not covered, when this record
    was written. A hint that saves a search, never trusted without the id."""
    first_id: str | None
    """Id of the first message of the channel at that time: while it is there, what stands between
    it and the boundary is what stood there."""
    landmark_ids: list[str]
    """Ids of a few messages of the covered range, the first ones among them: where the front of the
    channel was deleted, what stands behind one of them is what stood there. Not after a prune."""
    kept_hints: list[int]
    """Index into the messages channel of each of ``kept_ids`` at that time."""
    fingerprint: str
    """Only where messages have no ids: a hash of the messages up to ``last_summarized_index``, so
    that a chat that was cleared and refilled is not mistaken for the one that was folded."""
    length_at_fold: int
    """Messages of the thread when the last fold was made: what stands before this position was
    made under an earlier view."""
    id_at_fold: str | None
    """Id of the newest message then, in case the list was cut since."""
    steps_at_fold: int
    """AI messages of the thread when the last fold was made; 0 or absent: no fold yet."""
    length_at_change: int
    """Messages of the thread when something else than a fold last changed the view: a clip, an
    edit, a restore. Absent: nothing did."""
    id_at_change: str | None
    """Id of the newest message then."""
    clearing: Clearing
    """Which tool results are cleared; absent: none are."""
    failures: Failures
    """Present while the summarisers fail: how long to leave them alone."""
    request_id: str
    """Id of the last request for compaction that was carried out."""
    overflow: Overflow
    """The last reduction after the provider refused a call as too long; absent: there was none."""


_KINDS: tuple[Any, ...] = (
    CompactionRecord, DigestSegment, Render, Failures, Clearing, Overflow,
)  # fmt: skip
for _kind in _KINDS:  # a pydantic state takes out what a newer version added, if it is not told
    _kind.__pydantic_config__ = {"extra": "allow"}

_RECORD = Shape(CompactionRecord, "compaction record")
_SEGMENT = Shape(DigestSegment, "compaction record's segment")
_PARTS = {
    "render": Shape(Render, "compaction record's render"),
    "failures": Shape(Failures, "compaction record's failures"),
    "clearing": Shape(Clearing, "compaction record's clearing"),
    "overflow": Shape(Overflow, "compaction record's overflow"),
}

_TOGETHER = (
    ("kept_hints", "kept_ids"),
    ("pruned_index", "pruned"),
    ("pruned_marks", "pruned"),
    ("stayed_ids", "pruned"),
    ("archived_prunes", "archived"),
)
"""Fields that are never written without another: where the other is missing it was lost, and with
it a pin, the digest of what was pruned, or the way to its originals."""


def checked_record(value: object) -> CompactionRecord:
    """Return ``value`` itself if it is a record this package can read.

    Fields that are unknown are left alone; fields that are absent have defaults. O(segments).

    Raises:
        RecordError: not a dict, a known field has a wrong value, or two contradict each other; the
            message names them.
        RecordVersionError: ``version`` is newer than `RECORD_VERSION`.
    """
    if not isinstance(value, dict) or isinstance(value.get(UPDATE_KEY), dict):
        raise RecordError(_no_record(value))
    version = value.get("version", RECORD_VERSION)
    if isinstance(version, int) and version > RECORD_VERSION:
        raise RecordVersionError(version, RECORD_VERSION)
    _RECORD.check(value)
    for name, shape in _PARTS.items():
        if name in value:
            shape.check(value[name])
    segments = value.get("segments", ())
    for number, segment in enumerate(segments):
        if not isinstance(segment, dict):
            raise RecordError(
                f"Segment {number} of the compaction record is a {type(segment).__name__}, not a "
                f"dict. {REMEDY}"
            )
        _SEGMENT.check(segment, number)
    if segments:
        _check_chain(segments, value.get("last_summarized_index", -1))
    for name, other in _TOGETHER:
        if value.get(name) and not value.get(other):
            raise RecordError(
                f"The compaction record has {name!r} but no {other!r}, without which it would be "
                f"misread. Take both out, or neither. {REMEDY}"
            )
    return value  # type: ignore[return-value]  # checked field by field above


def _no_record(value: object) -> str:
    if isinstance(value, dict):
        return (
            "In place of the compaction record there is a state update with one in it. Outside a "
            "graph merge what a visit returns into the state: state |= compact.invoke(state). "
            f"{REMEDY}"
        )
    return (
        f"The compaction channel holds {type(value).__name__!r}, not a compaction record. "
        "Declare it as `compaction: Annotated[CompactionRecord, merge_compaction]` and write "
        f"only records into it ({{}} is the empty one). {REMEDY}"
    )


def _check_chain(segments: Sequence[DigestSegment], last: int) -> None:
    """Check that segments cover what they claim, one after the other and up to the position.

    One may cover the last message of the one before it: it took in nothing but kept ones.
    """
    end: int | None = None
    for number, segment in enumerate(segments):
        first, stop = segment["first_index"], segment["last_index"]
        if not 0 <= first <= stop or (end is not None and first not in {end, end + 1}):
            after = "" if end is None else f", after one that ends at {end}"
            raise RecordError(
                f"Segment {number} of the compaction record covers the messages from {first} to "
                f"{stop}{after}. Segments follow one another in the order of the thread, without "
                f"a gap. {REMEDY}"
            )
        end = stop
    if end != last:
        raise RecordError(
            f"The segments of the compaction record cover the messages up to {end}, but its "
            f"last_summarized_index is {last} (-1: absent). They have to be the same. {REMEDY}"
        )


def tokens_of(segments: Sequence[DigestSegment]) -> int:
    """Tokens of the texts of several segments."""
    return sum(segment["tokens"] for segment in segments)


def render_of(record: CompactionRecord, defaults: Render | None = None) -> Render:
    """How the view of a record is rendered: as it was frozen, else by the defaults.

    What is absent from a frozen rendering was absent by the settings of that time, and a newer
    setting waits for the next fold. Only alternating roles do not: without them a strict chat
    template refuses the next call.
    """
    defaults = defaults or {}
    render: Render = {**record.get("render", defaults)}
    if defaults.get("roles") == "alternating":
        render["roles"] = "alternating"
    return render


def message_key(message: BaseMessage, position: int) -> str:
    """The name of a message in ``kept_ids``: its id, or ``@position`` where it has none."""
    return message.id or f"@{position}"
