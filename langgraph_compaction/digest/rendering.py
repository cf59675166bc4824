"""Messages as text: fenced, escaped, and nothing that a summariser must not see.

A span goes to the summariser as text inside one human message, never as chat messages: a model
without the agent's tools bound rejects raw tool blocks, and a transcript replayed as chat is an
instruction to go on with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction.digest.spelling import UNSEEN, forms_of, spelled
from langgraph_compaction.view.block_texts import texts_in, unknown_text
from langgraph_compaction.view.blocks import (
    block_marker,
    blocks_of,
    is_call,
    is_media,
    is_reasoning,
    is_server_call,
    visible_text,
)
from langgraph_compaction.view.json import safe_json
from langgraph_compaction.view.marks import is_summary

FENCE = "transcript"
"""Name of the tag around the rendered span."""
DIGEST_FENCE = "earlier_digest"
"""Name of the tag around the digest so far, which is context only."""
DRAFT_FENCE = "draft"
"""Name of the tag around a first answer that is to be mended."""
RECORD = "record"
"""Name of the tag around an earlier record that is to be replaced."""
FENCES = (FENCE, DIGEST_FENCE, DRAFT_FENCE, RECORD, "message", "call", "result")
"""Names of all tags in a prompt. In what stands between them they are defused (`escaped`), so that
no text can close its own; off an answer that copies them they are taken (`verifying.cleaned`)."""

RESULT_CHARS = 2_000
"""Characters of a tool result that the summariser sees before the middle is left out."""

_SLASHES = r"/\\\u2044\u2215\u29f8\ufe68\uff0f\uff3c"


def _tag_pattern() -> re.Pattern[str]:
    """The opening of a tag named like a fence, in any spelling that a model may take for it."""
    names = "|".join(map(spelled, FENCES))
    less = f"[{forms_of('<')}]"
    return re.compile(rf"{less}(?=[\s{_SLASHES}{UNSEEN}]*+(?:{names})\b)", re.IGNORECASE)


_TAG = _tag_pattern()


def message_text(message: BaseMessage) -> str:
    """The visible text of a message.

    Texts joined by newlines, wherever a block has them; images, files and audio as short markers
    such as ``[image image/png]``; reasoning never. Blocks of an unknown type are JSON in what the
    user and tools say, as far as it is no encoded data; in what a model says, where they are a
    provider's own, markers. Tool calls are not part of it.
    """
    if isinstance(message.content, str):
        return message.content
    parts = []
    for block in blocks_of(message.content):
        if is_reasoning(block):
            continue
        own = isinstance(message, AIMessage) and unknown_text(block) is not None
        texts = None if own else texts_in(block)
        if texts is None or is_media(block):
            parts.append(block_marker(block))
        parts += texts or ()
    return "\n".join(part for part in parts if part)


def spoken_text(message: BaseMessage) -> str:
    """What somebody wrote in a message: its text blocks alone, joined by newlines."""
    return "\n".join(filter(None, map(visible_text, blocks_of(message.content))))


def escaped(text: str) -> str:
    """``text`` with every tag that could open or close one of our fences defused.

    Only those tags, in any case, with white space, slashes or unseen characters in them, and in
    Unicode's other forms of their letters: the rest of a transcript (code, HTML, JSON) reaches the
    summariser unchanged. Unicode line separators become newlines, so that text cannot look like a
    line of its own.
    """
    return _TAG.sub("&lt;", text.replace("\u2028", "\n").replace("\u2029", "\n"))


def clamped(text: str, limit: int) -> str:
    """``text`` with its middle left out where it has more than ``limit`` characters.

    Two thirds of the limit show the head and one third the tail; the size of the middle stands
    between them.
    """
    if limit <= 0 or len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out:,} characters left out ...]\n{text[-tail:]}"


def compact_arguments(arguments: Any) -> str:
    """A call's arguments as JSON on one line, in full; a text that is no JSON as it is."""
    return safe_json(arguments)


class Call(NamedTuple):
    """A call in a message, as the summariser is told of it."""

    name: str
    arguments: Any
    id: str


class Marked(NamedTuple):
    """The line that stands for a call and its result, and the result's position, if it has one."""

    line: str
    answer: int | None


def render_message(
    message: BaseMessage,
    position: int,
    *,
    result_chars: int = RESULT_CHARS,
    note: str = "",
    marked: Mapping[int, Marked] | None = None,
) -> str:
    """One message as the summariser reads it.

    Args:
        message: any message of the transcript.
        position: its position in the thread, 0-based.
        result_chars: characters of a tool result shown; results that report an error are shown
            in full. 0 or less: no limit.
        note: said about the message in its opening tag, for example that a call went unanswered.
        marked: lines that stand for some of its calls, by the call's number in `calls_in`.
    """
    text = message_text(message)
    if isinstance(message, ToolMessage):
        failed = message.status == "error"
        body = escaped(text if failed else clamped(text, result_chars))
        attributes = {"of": message.name or "tool", "outcome": "error" if failed else "ok"}
        return _tagged("result", position, attributes, body)
    role = _role(message)
    parts = [escaped(text)] if text else []
    lines = marked or {}
    for number, call in enumerate(calls_in(message)):
        parts.append(_marked(lines[number]) if number in lines else _shown(call))
    attributes = {"role": role}
    if message.name:
        attributes["name"] = message.name
    if note:
        attributes["note"] = note
    return _tagged("message", position, attributes, "\n".join(parts))


def _shown(call: Call) -> str:
    # Escaped as one text: a name's end and its arguments' beginning must not make up a tag either.
    return f"<call>{escaped(f'{call.name} {compact_arguments(call.arguments)}')}</call>"


def _marked(call: Marked) -> str:
    answer = "" if call.answer is None else f' result="{call.answer}"'
    return f"<call{answer}>{escaped(call.line)}</call>"


def calls_in(message: BaseMessage) -> Iterator[Call]:
    """Every call of a message, also those that stand in the content alone."""
    if not isinstance(message, AIMessage):
        return
    known: set[object] = set()
    listed: list[Mapping[str, Any]] = [*message.tool_calls, *message.invalid_tool_calls]
    for call in listed:
        known.update((call.get("id"), call.get("name")))
        yield Call(str(call.get("name")), call.get("args"), str(call.get("id") or ""))
    for block in blocks_of(message.content):
        named = (
            block.get("call_id", block.get("id")) or block.get("name") if is_call(block) else None
        )
        if is_server_call(block) or (named is not None and named not in known):
            given = (block[key] for key in ("input", "args", "arguments") if key in block)
            named_id = str(block.get("call_id", block.get("id")) or "")
            yield Call(str(block.get("name")), next(given, {}), named_id)


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "summary" if is_summary(message) else "user"
    if isinstance(message, AIMessage):
        return "agent"
    if isinstance(message, SystemMessage):
        return "system"
    return str(getattr(message, "role", message.type))


def _tagged(tag: str, position: int, attributes: Mapping[str, str], body: str) -> str:
    shown = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    return f'<{tag} n="{position}"{shown}>\n{body}\n</{tag}>'


def _attribute(value: str) -> str:
    return re.sub(r"[^\w.:/@ -]", "_", value)[:80]


def fence(name: str, chunks: Iterable[str]) -> str:
    """Rendered text between an opening and a closing tag of its own."""
    body = "\n".join(chunks)
    return f"<{name}>\n{body}\n</{name}>"
