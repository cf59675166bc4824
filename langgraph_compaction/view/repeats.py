"""Tool results that a later one makes superfluous: the same text, or the same call made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction.view.blocks import block_marker, blocks_of, visible_text
from langgraph_compaction.view.json import safe_json
from langgraph_compaction.view.pairing import Group, Run, calls_of

REPEATED = "The same text stands further below."
LEAST_NEWER = 0.5
"""Characters of a newer result, as a share of the older one's, from which on it takes its place:
"unchanged since last read" does not."""
SUPERSEDED = "A newer result of the same call stands further below."


def repeated(messages: Sequence[BaseMessage], taken: Sequence[Group], stop: int) -> dict[int, str]:
    """Results of which a later one of these groups says the same, or is newer: index and reason.

    The later one has to stay itself, and to be no error. A newer one has to come from another
    message of the agent (parallel calls are all news), and to be no mere note that nothing
    changed: an older result that is right must not make room for it.

    Args:
        messages: the messages channel.
        taken: its groups to compare.
        stop: index after the last message to compare.
    """
    runs = [
        list(_results(messages, run, stop))
        for group in reversed(taken)
        for run in reversed(group.runs)
    ]
    # This runs for every view: what nothing else comes close to is neither hashed nor written out.
    lengths = Counter(one.size for run in runs for one in run)
    outlines = Counter(one.outline for run in runs for one in run)
    sizes: dict[tuple[str, str], int] = {}
    texts: set[str] = set()
    found: dict[int, str] = {}
    for run in runs:
        here: dict[tuple[str, str], int] = {}
        for one in run:
            text = _text(one.message) if lengths[one.size] > 1 else None
            key = _key(one.call) if one.call and outlines[one.outline] > 1 else None
            if text in texts:
                found[one.place] = REPEATED
            elif key in sizes and sizes[key] >= one.size * LEAST_NEWER:
                found[one.place] = SUPERSEDED
            else:
                if text is not None:
                    texts.add(text)
                if key is not None:
                    here.setdefault(key, one.size)
        for key, size in here.items():
            sizes.setdefault(key, size)
    return found


class _Result(NamedTuple):
    """A result to compare.

    Attributes:
        place: index into the messages.
        message: the result.
        size: characters of its text and of the markers of its media.
        call: what it answers, None where that is unknown.
        outline: of the call: where two differ, the calls do.
    """

    place: int
    message: ToolMessage
    size: int
    call: Mapping[str, Any] | None
    outline: Hashable


def _results(messages: Sequence[BaseMessage], run: Run, stop: int) -> Iterator[_Result]:
    """The results of a run that are no errors, newest first."""
    calls = {call.get("id"): call for call in calls_of(messages[run.start])}
    for index in range(min(run.stop, stop) - 1, run.start, -1):
        message = messages[index]
        if not isinstance(message, ToolMessage) or index in run.strays:
            continue
        if message.status != "error":
            call = calls.get(message.tool_call_id)
            yield _Result(index, message, _size(message), call, _outline(call))


def _size(message: ToolMessage) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    shown = (
        block_marker(block) if visible_text(block) is None else visible_text(block) or ""
        for block in blocks_of(message.content)
    )
    return sum(map(len, shown))


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
