"""An original as plain text: what a search goes through, and what an agent is shown of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langgraph_compaction.digest.rendering import compact_arguments, message_text
from langgraph_compaction.view.blocks import blocks_of, is_server_call

DATA = "[data]"
"""Stands for encoded data."""
CALL = "[call] "
"""Opens the line that shows a call: name and arguments follow."""

LONGEST_WORD = 64
"""Characters of a word, at most: what is longer without a sign in it is data."""

_RUN = re.compile(r"[A-Za-z0-9+/_-]{400,}={0,2}")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")
_MOST_CHANGES = 0.33
"""Of the letters and digits of names. Measured: 0.4 to 0.5 in base64 and hexadecimal digits, 0.2
and less in paths and in names of several words, however they are joined, 0.3 in "k77/k78"."""
_SAMPLE = 4_000
"""Characters of a run by which it is judged."""
_NAMES = re.compile(r"(?:(?:[A-Z]?[a-z]+|[A-Z]+)?[0-9]*[+/_-]+)*")
"""What may stand before data: the path of an address, say."""


def full_text(message: BaseMessage, call_id: str | None = None) -> str:
    """The text of a message and a line for each call it makes, word for word.

    Images, files and audio are markers; a model's reasoning is left out.

    Args:
        message: any message.
        call_id: of a call that the message makes; then nothing but this call.
    """
    calls = list(calls_in(message))
    if call_id is not None:
        chosen = [call for call in calls if call.get("id") == call_id]
        if chosen:
            return "\n".join(map(_line, chosen))
    text = message_text(message)
    return "\n".join([*([text] if text else []), *map(_line, calls)])


def plain_text(message: BaseMessage) -> str:
    """The same for a search: with its name, and without long runs of encoded data."""
    parts = [message.name or "", full_text(message)]
    return _RUN.sub(_without_data, "\n".join(filter(None, parts)))


def _without_data(match: re.Match[str]) -> str:
    """A long run without what is data in it: paths, addresses and names stay."""
    run = match.group()
    sample = run[:_SAMPLE]
    if len(_CHANGE.findall(sample)) > _MOST_CHANGES * sum(map(len, _PIECE.findall(sample))):
        start = names.end() if (names := _NAMES.match(run)) else 0
        rest = run[start:]
        return run[:start] + (DATA if len(rest) > LONGEST_WORD else rest)
    return _PIECE.sub(lambda piece: DATA if len(piece[0]) > LONGEST_WORD else piece[0], run)


def calls_in(message: BaseMessage) -> Iterator[Mapping[str, Any]]:
    """The calls of a message with their arguments, the provider's own included."""
    if not isinstance(message, AIMessage):
        return
    yield from message.tool_calls
    yield from message.invalid_tool_calls
    for block in blocks_of(message.content):
        if is_server_call(block):
            given = (block[key] for key in ("input", "args", "arguments") if key in block)
            yield {"id": block.get("id"), "name": block.get("name"), "args": next(given, {})}


def _line(call: Mapping[str, Any]) -> str:
    return f"{CALL}{call.get('name')} {compact_arguments(call.get('args'))}"
