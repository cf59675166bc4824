"""What the recall tool finds of a reference that the agent does not see any more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.prebuilt import ToolRuntime

from langgraph_compaction import create_recall_tool
from tests.benchmarks.survival.matching import holds

TOOL = "recall"
PAGES = 3
"""Pages of a search that an agent reads, at most."""

_NAMED = re.compile(rf'\b{TOOL}\(id=("(?:[^"\\]|\\.)*")\)')
_RANGE = re.compile(r"^# Messages (\d+) to (\d+) \(", re.MULTILINE)
_PAGE = re.compile(r"\[Page \d+ of (\d+)[.,]")


@dataclass(frozen=True, slots=True)
class Handles:
    """What a view names of originals.

    Attributes:
        ids: that its placeholders give for the recall tool.
        ranges: first and last position of each of its digest's segments, inclusive.
        calls: ids of calls that it shows, beside any text.
    """

    ids: frozenset[str]
    ranges: tuple[tuple[int, int], ...]
    calls: frozenset[str]

    @classmethod
    def of(cls, view: Sequence[BaseMessage]) -> Handles:
        """Those that stand in the view."""
        text = "\n".join(message.text for message in view)
        calls = [
            call for message in view if isinstance(message, AIMessage) for call in _ids(message)
        ]
        return cls(
            ids=frozenset(str(json.loads(found)) for found in _NAMED.findall(text)),
            ranges=tuple((int(first), int(last)) for first, last in _RANGE.findall(text)),
            calls=frozenset(calls),
        )

    def to(self, message: BaseMessage, position: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Calls of the tool that lead to a message, each with where its handle stands."""
        own = _ids(message)
        for name in [*own, *([message.id] if message.id else [])]:
            if name in self.ids:
                yield "placeholder", {"id": name}
        if any(first <= position <= last for first, last in self.ranges):
            yield "heading", {"first": position, "last": position}
        for name in own:
            if name in self.calls:
                yield "call", {"id": name}


@dataclass
class Found:
    """How many of the references that were hidden when they were used came back.

    Attributes:
        hidden: all of them.
        first_page: on the first page of a search for the reference.
        pages: on one of the first `PAGES`.
        placeholder: by an id that a placeholder names.
        heading: not so, but by a position within the range that a segment's heading names.
        call: neither way, but by the id of a call that the view shows.
    """

    hidden: int = 0
    first_page: int = 0
    pages: int = 0
    placeholder: int = 0
    heading: int = 0
    call: int = 0

    def add(self, other: Found) -> None:
        """Add those of another thread, or of another moment."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Desk:
    """Looks references up for the agent of one thread.

    Attributes:
        messages: the transcript.
    """

    messages: Sequence[BaseMessage]
    _tool: Any = field(default_factory=lambda: create_recall_tool(name=TOOL))
    _known: dict[tuple[Any, ...], Found] = field(default_factory=dict)

    def look_up(
        self,
        name: str,
        holders: Sequence[int],
        state: Mapping[str, Any],
        view: Sequence[BaseMessage],
    ) -> Found:
        """Look for a reference in every way.

        Args:
            name: the reference.
            holders: indexes of the messages that it stands in.
            state: the graph's state.
            view: what the agent sees of it.
        """
        record = state["compaction"]
        key = (name, record.get("epoch"), record.get("revision"), len(holders))
        if key not in self._known:
            self._known[key] = self._looked_up(name, holders, state, Handles.of(view))
        return self._known[key]

    def _looked_up(
        self, name: str, holders: Sequence[int], state: Mapping[str, Any], handles: Handles
    ) -> Found:
        found = Found(hidden=1)
        for page, text in enumerate(islice(self._answer(state, query=name), PAGES), 1):
            if holds(text, name):
                found.first_page, found.pages = int(page == 1), 1
                break
        ways = {
            how: given
            for index in holders
            for how, given in handles.to(self.messages[index], index)
        }
        for how in ("placeholder", "heading", "call"):
            if how in ways and any(holds(text, name) for text in self._answer(state, **ways[how])):
                setattr(found, how, 1)
                break
        return found

    def _answer(self, state: Mapping[str, Any], **given: Any) -> Iterator[str]:
        """The pages of an answer, white space collapsed, as they are asked for."""
        page, total = 1, 1
        while page <= total:
            text = str(self._call(state, {**given, "page": page}))
            if found := _PAGE.findall(text):  # the last: an original may have such a line, too
                total = int(found[-1])
            # An answer of several pages repeats the query: that is not finding it.
            yield " ".join(text.replace(_echo(given), "").split())
            page += 1

    def _call(self, state: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        runtime: Any = ToolRuntime(
            state=state,
            config={},
            store=None,
            context=None,
            stream_writer=lambda _: None,
            tool_call_id="recall-call",
        )
        return self._tool.invoke({**given, "runtime": runtime})


def _echo(given: Mapping[str, Any]) -> str:
    return f"query={json.dumps(given.get('query'), ensure_ascii=False)}"


def _ids(message: BaseMessage) -> list[str]:
    """The ids of the calls that a message makes or answers."""
    if isinstance(message, ToolMessage):
        return [message.tool_call_id] if message.tool_call_id else []
    if isinstance(message, AIMessage):
        return [str(call["id"]) for call in message.tool_calls if call.get("id")]
    return []
