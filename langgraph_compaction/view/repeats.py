"""Tool results that a later one makes superfluous: the same text, or the same call made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction.record import Render
from langgraph_compaction.view.block_texts import texts_in
from langgraph_compaction.view.blocks import block_marker, blocks_of
from langgraph_compaction.view.clipping import clip_limits
from langgraph_compaction.view.json import safe_json
from langgraph_compaction.view.pairing import Group, Run, answered

REPEATED = "The same text stands further below."
LEAST_NEWER = 0.5
"""Characters of a newer result, as a share of the older one's, from which on it takes its place:
"unchanged since last read" does not."""
SUPERSEDED = "A newer result of the same call stands further below."


def repeated(
    messages: Sequence[BaseMessage], taken: Sequence[Group], stop: int, render: Render
) -> dict[int, str]:
    """Results of which a later one of these groups says the same, or is newer: index and reason.

    The later one has to stay itself, to be no error, and to be shown to at least the same length:
    it may be clipped. A newer one has to come from another message of the agent (parallel calls are
    all news), and to be no mere note that nothing changed: an older result that is right must not
    make room for it.

    Args:
        messages: the messages channel.
        taken: its groups to compare.
        stop: index after the last message to compare.
        render: how the view is rendered: what is clipped, in the view without a clearing.
    """
    runs = [
        list(_results(messages, run, stop, render))
        for group in reversed(taken)
        for run in reversed(group.runs)
    ]
    # This runs for every view: what nothing else comes close to is neither hashed nor written out.
    lengths = Counter(one.size for run in runs for one in run)
    outlines = Counter(one.outline for run in runs for one in run)
    newest: dict[tuple[str, str], _Result] = {}
    texts: dict[str, float] = {}
    found: dict[int, str] = {}
    for run in runs:
        here: dict[tuple[str, str], _Result] = {}
        for one in run:
            text = _text(one.message) if lengths[one.size] > 1 else None
            key = _key(one.call) if one.call and outlines[one.outline] > 1 else None
            if text is not None and texts.get(text, -1) >= one.limit:
                found[one.place] = REPEATED
            elif key in newest and newest[key].replaces(one):
                found[one.place] = SUPERSEDED
            else:
                if text is not None:
                    texts[text] = one.limit
                if key is not None:
                    here.setdefault(key, one)
        for key, one in here.items():
            newest.setdefault(key, one)
    return found


class _Result(NamedTuple):
    """A result to compare.

    Attributes:
        place: index into the messages.
        message: the result.
        size: characters of its text and of the markers of its media.
        limit: UTF-8 bytes that the view shows of it at most.
        call: what it answers, None where that or its arguments are unknown.
        outline: of the call: where two differ, the calls do.
    """

    place: int
    message: ToolMessage
    size: int
    limit: float
    call: Mapping[str, Any] | None
    outline: Hashable

    def replaces(self, older: _Result) -> bool:
        """Whether this result of a call takes the place of an older one of the same call."""
        return self.limit >= older.limit and self.size >= older.size * LEAST_NEWER


def _results(
    messages: Sequence[BaseMessage], run: Run, stop: int, render: Render
) -> Iterator[_Result]:
    """The results of a run that are no errors, newest first."""
    own = [index for index in range(run.start, min(run.stop, stop)) if index not in run.strays]
    members = [messages[index] for index in own]
    calls = answered(members)
    limits = clip_limits(members, render.get("clip_result_bytes", 0), render.get("recall"))
    for number, message in reversed(list(enumerate(members))):
        if isinstance(message, ToolMessage) and message.status != "error":
            call, limit = calls.get(number), limits[number]
            if call is not None and call.get("args") is None:
                call = None
            shown = inf if limit is None else limit
            yield _Result(own[number], message, _size(message), shown, call, _outline(call))


def _size(message: ToolMessage) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    size = 0
    for block in blocks_of(message.content):
        texts = texts_in(block)
        size += len(block_marker(block)) if texts is None else sum(map(len, texts))
    return size


def _text(message: ToolMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else repr(content)


def _outline(call: Mapping[str, Any] | None) -> Hashable:
    """The name and the texts among the arguments: cheap, and most calls differ in them."""
    if call is None:
        return None
    arguments = call.get("args")
    values = arguments.values() if isinstance(arguments, Mapping) else (arguments,)
    return str(call.get("name")), frozenset(one for one in values if isinstance(one, str))


def _key(call: Mapping[str, Any]) -> tuple[str, str]:
    arguments = call.get("args")
    if isinstance(arguments, Mapping):
        arguments = dict(sorted(arguments.items(), key=lambda item: str(item[0])))
    return str(call.get("name")), safe_json(arguments)
