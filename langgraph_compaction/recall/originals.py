"""The originals of a thread: those in the state, and those in its archive."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction.archive import Archived
from langgraph_compaction.archive.items import TEXT_CHARS, DamagedItemError, call_ids, storable
from langgraph_compaction.archive.texts import CALL, full_text, plain_text
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.view import build_view
from langgraph_compaction.view.anchors import locate
from langgraph_compaction.view.clipping import SHORTEST, text_size

MARK_DIGITS = 16
"""Hexadecimal digits of a mark: a text that holds its own takes 2**64 attempts to find."""
ID_CHARS = 100
"""Characters of an id that a label shows; a longer one is no help to a model."""

DAMAGED = "[This original could not be read: its item in the archive is damaged.]"
KEPT = "[What the archive keeps of it for a search:]"

_log = logging.getLogger("langgraph_compaction")


@dataclass(frozen=True, slots=True)
class Original:
    """One original.

    Attributes:
        position: in the thread; None where it is unknown.
        id: of the message.
        type: of the message.
        name: of the message.
        call_ids: of the calls that it makes or answers.
        in_view: whether it stands in the agent's view, perhaps in part.
        seen: whether the agent surely sees it in full anyway.
    """

    position: int | None
    id: str | None
    type: str
    name: str | None
    call_ids: tuple[str, ...]
    in_view: bool
    seen: bool
    _held: BaseMessage | Archived

    def message(self) -> BaseMessage | None:
        """The message itself; None where the archive cannot give it back, which is logged."""
        if not isinstance(self._held, Archived):
            return self._held
        try:
            return self._held.message()
        except DamagedItemError as error:
            _log.warning("%s", error)
            return None

    def searched(self, tool: str) -> str:
        """What a search goes through: its text, without calls of the recall tool itself."""
        if self.type == "tool" and self.name == tool:
            return ""
        if isinstance(self._held, Archived) and len(self._held.text) < TEXT_CHARS:
            text = self._held.text
        else:
            message = self.message()
            text = self._kept_text() if message is None else plain_text(message)
        return re.sub(rf"^{re.escape(CALL + tool)} .*$", "", text, flags=re.MULTILINE)

    def excerpt(self, text: str, *, named: bool = True) -> str:
        """A part of its text between tags that say what it is.

        Args:
            text: the part.
            named: whether the tag has the id and the name of the message.
        """
        message = None if isinstance(self._held, Archived) else self._held
        return self._tagged("excerpt", text, message, named=named)

    def in_full(self, call_id: str | None = None) -> str:
        """The whole of it between tags; of an AI message only the call with that id."""
        message = self.message()
        if message is not None:
            return self._tagged("original", full_text(message, call_id), message)
        kept = self._kept_text()
        return self._tagged("original", f"{DAMAGED}\n{KEPT}\n{kept}" if kept else DAMAGED, None)

    def _kept_text(self) -> str:
        return self._held.text if isinstance(self._held, Archived) else ""

    def _tagged(
        self, tag: str, text: str, message: BaseMessage | None, *, named: bool = True
    ) -> str:
        """``text`` between tags; the mark at their end is a hash of it: none can close its own."""
        mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_DIGITS]
        position = "unknown" if self.position is None else str(self.position)
        parts = [f"position={position}"]
        if named and self.id and len(self.id) <= ID_CHARS:
            parts.append(f"id={json.dumps(self.id, ensure_ascii=False)}")
        parts.append(f"type={_word(self.type)}")
        if named and self.name:
            parts.append(f"name={_word(self.name)}")
        if isinstance(message, ToolMessage) and message.status == "error":
            parts.append("outcome=error")
        if self.in_view:
            parts.append("in_view=yes")
        return f"<{tag} {' '.join(parts)} mark={mark}>\n{text}\n</{tag} {mark}>"


def _word(value: str) -> str:
    return re.sub(r"[^\w.:/@-]", "_", value)[:60]


def in_state(messages: Sequence[BaseMessage], record: CompactionRecord) -> list[Original]:
    """The messages of the channel, hidden or not."""
    anchor = locate(messages, record)
    view = build_view(messages, record)  # kept: an object's identity holds while it lives
    shown = {id(message) for message in view}
    # What the record leaves open the node's settings fill, which only the node knows.
    clips_known = "clip_result_bytes" in record.get("render", {})
    pruned = record.get("pruned_index", anchor.position - 1) if record.get("pruned") else -1
    places = [anchor.position_of(index) for index in range(len(messages))]
    return [
        Original(
            # Where a prune did not reach, others may be missing before the boundary.
            position=places[index] if index in anchor.stayed or places[index] > pruned else None,
            id=message.id,
            type=message.type,
            name=message.name,
            call_ids=call_ids(message),
            in_view=id(message) in shown,
            seen=id(message) in shown and (clips_known or _never_clipped(message)),
            _held=message,
        )
        for index, message in enumerate(messages)
    ]


def _never_clipped(message: BaseMessage) -> bool:
    """Whether no settings clip a message: results alone have a limit that no record names."""
    return not isinstance(message, ToolMessage) or text_size(message) <= SHORTEST


def with_archived(state: Sequence[Original], archived: Sequence[Archived]) -> list[Original]:
    """Both, by position; of one that is in both, that of the state.

    Where the state does not tell a message's position, the archive may. An id alone does not make
    two the same: a message may have been edited, or its id used again, since it was archived.
    """
    present = {storable(one.id): message for one in state if one.id and (message := one.message())}
    held = [one for one in archived if one.id in present and one.says(present[one.id])]
    known = {one.id: one.position for one in archived if one.id and one.position >= 0}
    twins = {one.key for one in held}
    placed = [
        replace(one, position=known.get(storable(one.id))) if one.position is None else one
        for one in state
    ]
    found = {
        (one.position, one.id, one.text): Original(
            position=one.position if one.position >= 0 else None,
            id=one.id,
            type=one.type,
            name=one.name,
            call_ids=one.call_ids,
            in_view=False,
            seen=False,
            _held=one,
        )
        for one in archived
        if one.key not in twins
    }
    return sorted([*found.values(), *placed], key=_place)


def _place(original: Original) -> int:
    return -1 if original.position is None else original.position


def with_handle(
    originals: Sequence[Original], handle: str
) -> tuple[list[Original], list[Original]]:
    """The originals with an id, and what else makes or answers a call with that id.

    Some agents number both messages and calls: then an id may be of either.
    """
    known = {handle, storable(handle)}
    named = [one for one in originals if one.id in known]
    called = [one for one in originals if not known.isdisjoint(one.call_ids)]
    return named, [one for one in called if one not in named]
