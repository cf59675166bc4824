"""Old tool results shown as placeholders, and long arguments shortened: tier 1, and reversible.

The record says up to where (`record.Clearing`); what is cleared there follows from the messages
alone. Nothing that comes later changes it, so the view only grows until the next change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langgraph_compaction.record import Clearing, message_key
from langgraph_compaction.view.anchors import fingerprint
from langgraph_compaction.view.arguments import shortened_calls
from langgraph_compaction.view.blocks import block_marker, blocks_of, is_reasoning, visible_text
from langgraph_compaction.view.json import safe_json
from langgraph_compaction.view.marks import is_marked
from langgraph_compaction.view.pairing import Group, Run, calls_of, groups
from langgraph_compaction.view.remedies import again

REPEATED = "The same text stands further below."
LEAST_NEWER = 0.5
"""Characters of a newer result, as a share of the older one's, from which on it takes its place:
"unchanged since last read" does not."""
SUPERSEDED = "A newer result of the same call stands further below."


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a view shows in place of some messages.

    Attributes:
        messages: by index into the messages channel; copies with the same ids.
        results: how many of them are tool results.
    """

    messages: Mapping[int, BaseMessage]
    results: int = 0

    @property
    def arguments(self) -> int:
        """How many are AI messages whose arguments were shortened."""
        return len(self.messages) - self.results


NOTHING_CLEARED = Cleared({})


def apply_clearing(
    messages: Sequence[BaseMessage],
    clearing: Clearing | None,
    *,
    start: int,
    position: int,
    recall: str | None,
) -> Cleared:
    """What stands in place of the messages that a clearing takes.

    Args:
        messages: the messages channel.
        clearing: of the record; None: nothing is cleared.
        start: index into the messages of the first one that is not covered.
        position: its position in the thread.
        recall: name of the tool that brings originals back, None where the agent has none.
    """
    if clearing is None:
        return NOTHING_CLEARED
    offset = start - position
    last = place_of(messages, clearing["last_index"] + offset, clearing["last_id"], start)
    repeats = place_of(messages, clearing["repeats_index"] + offset, clearing["repeats_id"], start)
    stop = max(last, repeats) + 1
    known = clearing.get("fingerprint")
    if stop <= start or (known is not None and known != fingerprint(messages, repeats + 1)):
        return NOTHING_CLEARED
    taken = list(_until(groups(messages, start), stop))
    repeated = _repeated(messages, [group for group in taken if group.stop > last + 1], stop)
    found: dict[int, BaseMessage] = {}
    for group in taken:
        if not _exempt(messages, group, clearing):
            for run in group.runs:
                found.update(_in_run(messages, run, last, repeated, _Rule(clearing, recall)))
    results = sum(isinstance(message, ToolMessage) for message in found.values())
    return Cleared(found, results)


class _Rule(NamedTuple):
    clearing: Clearing
    recall: str | None


def _in_run(
    messages: Sequence[BaseMessage],
    run: Run,
    last: int,
    repeated: Mapping[int, str],
    rule: _Rule,
) -> Iterator[tuple[int, BaseMessage]]:
    """What is shown in place of messages of one run, by index."""
    names = {call.get("id"): call.get("name") for call in calls_of(messages[run.start])}
    for index in range(run.start, run.stop):
        message = messages[index]
        shown: BaseMessage | None = None
        if isinstance(message, ToolMessage):
            reason = None if index <= last else repeated.get(index)
            if index not in run.strays and (index <= last or reason):
                name = message.name or str(names.get(message.tool_call_id) or "a tool")
                how = again(rule.recall, message.tool_call_id)
                if reason:  # what stands below is told first; this one may be wanted all the same
                    how = f"{reason} {how}" if rule.recall else reason
                shown = _placeholder(message, name, how, rule.clearing["min_chars"])
        elif isinstance(message, AIMessage) and index <= last and not run.unanswered:
            shown = shortened_calls(message, rule.clearing["argument_chars"], rule.recall)
        if shown is not None:
            yield index, shown


def place_of(messages: Sequence[BaseMessage], hint: int, known: str | None, start: int) -> int:
    """Index of the message at a mark; -1 where it is gone: then nothing is cleared by it.

    Removals only move it to the front. Where it stands further back it was added again, and
    proves nothing.

    Args:
        messages: the messages channel.
        hint: where it stood.
        known: its id.
        start: index of the first message that is not covered.
    """
    if start <= hint < len(messages) and messages[hint].id == known:
        return hint
    if known is None:
        return -1
    last = min(hint, len(messages)) - 1
    return next((i for i in range(last, start - 1, -1) if messages[i].id == known), -1)


def _until(found: Iterator[Group], stop: int) -> Iterator[Group]:
    for group in found:
        if group.start >= stop:
            return
        yield group


def _exempt(messages: Sequence[BaseMessage], group: Group, clearing: Clearing) -> bool:
    """Whether a group stays as it is: protected tools, and pins with their whole group."""
    members, pinned = messages[group.start : group.stop], clearing["pinned_ids"]
    if any(map(is_marked, members)):
        return True
    keys = (message_key(message, group.start + i) for i, message in enumerate(members))
    if pinned and not set(pinned).isdisjoint(keys):
        return True
    protected = clearing["protected_tools"]
    named = (str(call.get("name")) for message in members for call in calls_of(message))
    return bool(protected) and not set(protected).isdisjoint(named)


def _placeholder(message: ToolMessage, name: str, how: str, least: int) -> ToolMessage | None:
    """The result with what it was in place of its text; None where it stays."""
    if message.status == "error":
        return None
    size, media = 0, []
    for block in blocks_of(message.content):
        text = visible_text(block)
        if text is not None:
            size += len(text)
        elif not is_reasoning(block):
            media.append(block_marker(block))
    if size < least and not media:
        return None
    what = ", ".join([f"{size:,} characters", *media])
    placeholder = f"[Cleared: result of {name}, {what}, outcome ok. {how}]"
    if not media and len(placeholder) >= size:
        return None
    return message.model_copy(update={"content": placeholder})


def _repeated(messages: Sequence[BaseMessage], taken: Sequence[Group], stop: int) -> dict[int, str]:
    """Results of which a later one of these groups says the same, or is newer: index and reason.

    The later one has to stay itself, and to be no error. A newer one has to come from another
    message of the agent (parallel calls are all news), and to be no mere note that nothing
    changed: an older result that is right must not make room for it.
    """
    sizes: dict[tuple[str, str], int] = {}
    texts: set[bytes] = set()
    found: dict[int, str] = {}
    for run in (run for group in reversed(taken) for run in reversed(group.runs)):
        calls = {call.get("id"): call for call in calls_of(messages[run.start])}
        here: dict[tuple[str, str], int] = {}
        for index in range(min(run.stop, stop) - 1, run.start, -1):
            message = messages[index]
            if not isinstance(message, ToolMessage) or index in run.strays:
                continue
            if message.status == "error":
                continue
            call = calls.get(message.tool_call_id)
            key, size = _key(call) if call else None, _size(message)
            text = _digest(message)
            if text in texts:
                found[index] = REPEATED
            elif key in sizes and sizes[key] >= size * LEAST_NEWER:
                found[index] = SUPERSEDED
            else:
                texts.add(text)
                if key is not None:
                    here.setdefault(key, size)
        for key, size in here.items():
            sizes.setdefault(key, size)
    return found


def _size(message: ToolMessage) -> int:
    """Characters of a result; of one with media, those of its markers and text."""
    shown = (
        block_marker(block) if visible_text(block) is None else visible_text(block) or ""
        for block in blocks_of(message.content)
    )
    return sum(map(len, shown))


def _key(call: Mapping[str, Any]) -> tuple[str, str]:
    arguments = call.get("args")
    if isinstance(arguments, Mapping):
        arguments = dict(sorted(arguments.items(), key=lambda item: str(item[0])))
    return str(call.get("name")), safe_json(arguments)


def _digest(message: ToolMessage) -> bytes:
    content = message.content
    text = content if isinstance(content, str) else repr(content)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
