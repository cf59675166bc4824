"""Oversized messages, cut to head and tail in the view.

What is clipped depends on a group's content and the record's frozen limits alone: the same
message looks the same in every view, and a giant result is clipped even where no visit of the
compaction node lies between the tool and the agent.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.view.blocks import block_type, blocks_of, visible_text
from langgraph_compaction.view.remedies import again, shared_call_ids

RESULT_REMEDY = "Call the tool again for a smaller part if you need it."
MESSAGE_REMEDY = "The full message is longer than the context window allows."
SHORTEST = 200
"""UTF-8 bytes that a clipped text keeps at least: below, head and tail say nothing any more."""
BYTES_PER_TOKEN = 3
"""UTF-8 bytes that are taken for a token where no tokenizer may be asked: prose has some 4.5 of
them, code and JSON about 3, Chinese 3 to 4, Cyrillic 4 to 5; hashes and base64 have 1.5 to 2
(`tests/benchmarks/counting_error.py` lists the kinds)."""


def clip_text(text: str, limit: int, remedy: str) -> str:
    """``text`` cut to about ``limit`` UTF-8 bytes: two thirds head, one third tail.

    Between them stands how much is missing and what to do about it. Cuts between code points, and
    at a line's end where one is near (within a fifth of the part).
    """
    limit = max(limit, SHORTEST)
    if _byte_length(text) <= limit:
        return text
    head, tail = _ends(text, limit * 2 // 3, limit // 3)
    head = _whole_lines(head)
    newline = tail.find("\n", 0, len(tail) // 5)
    tail = tail[newline + 1 :]
    missing = len(text) - len(head) - len(tail)
    mark = f"[... {missing:,} of {len(text):,} characters left out. {remedy} ...]"
    clipped = f"{head}\n{mark}\n{tail}"
    return clipped if len(clipped) < len(text) else text


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _ends(text: str, first: int, last: int) -> tuple[str, str]:
    """As many whole code points from the start and from the end as have so many bytes."""
    if text.isascii():
        return text[:first], text[len(text) - last :]
    data = text.encode("utf-8", "surrogatepass")
    start, end = first, len(data) - last
    while _continues(data[start]):
        start -= 1
    while end < len(data) and _continues(data[end]):
        end += 1
    head, tail = data[:start], data[end:]
    return head.decode("utf-8", "surrogatepass"), tail.decode("utf-8", "surrogatepass")


def _continues(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first of its code point."""
    return byte & 0xC0 == 0x80


def _whole_lines(head: str) -> str:
    newline = head.rfind("\n", len(head) * 4 // 5)
    return head if newline < 0 else head[:newline]


def clipped_group(
    messages: Sequence[BaseMessage],
    *,
    clip_result_bytes: int,
    clip_message_bytes: int,
    recall: str | None = None,
) -> list[BaseMessage]:
    """The messages of one group with oversized texts clipped.

    Args:
        messages: a call group or a single message.
        clip_result_bytes: UTF-8 bytes that the results of the group may take together; the
            largest are cut to an equal share. 0: no limit.
        clip_message_bytes: UTF-8 bytes that a human message may take. 0: no limit.
        recall: name of the tool that brings originals back, None where the agent has none.

    Returns:
        The same objects where nothing is clipped, changed copies (same ids) elsewhere.
    """
    members = list(messages)
    if clip_result_bytes > 0:
        sizes = [text_size(m) if isinstance(m, ToolMessage) else 0 for m in members]
        if sum(sizes) > clip_result_bytes:
            share, shared = _equal_share(sizes, clip_result_bytes), shared_call_ids(members)
            members = [
                _clipped(message, share, _remedy(message, recall, shared))
                if size > share
                else message
                for message, size in zip(members, sizes, strict=True)
            ]
    if clip_message_bytes > 0:
        members = [
            _clipped(message, clip_message_bytes, _remedy(message, recall))
            if isinstance(message, HumanMessage) and text_size(message) > clip_message_bytes
            else message
            for message in members
        ]
    return members


def _remedy(message: BaseMessage, recall: str | None, shared: Container[str] = ()) -> str:
    """What to do about a message that is shown in part; ``shared``: see `again`."""
    if isinstance(message, ToolMessage):
        if not recall or message.name == recall:  # a copy of a copy helps nobody
            return RESULT_REMEDY
        return again(recall, message.tool_call_id, message.id, shared=shared)
    return again(recall, None, message.id) if recall and message.id else MESSAGE_REMEDY


def _equal_share(sizes: Sequence[int], budget: int) -> int:
    """The greatest size s such that the sizes, each cut to s, sum up to at most ``budget``."""
    remaining = budget
    ordered = sorted(size for size in sizes if size)
    for number, size in enumerate(ordered):
        share = remaining // (len(ordered) - number)
        if size > share:
            return max(share, SHORTEST)
        remaining -= size
    return ordered[-1]


def text_size(message: BaseMessage) -> int:
    """UTF-8 bytes of the message's text blocks."""
    if isinstance(message.content, str):
        return _byte_length(message.content)
    return sum(_byte_length(visible_text(block) or "") for block in blocks_of(message.content))


def _clipped(message: BaseMessage, limit: int, remedy: str) -> BaseMessage:
    if isinstance(message.content, str):
        return message.model_copy(update={"content": clip_text(message.content, limit, remedy)})
    sizes = [_byte_length(visible_text(block) or "") for block in message.content]
    share = _equal_share(sizes, limit)
    blocks = [
        _clipped_block(block, share, remedy) if size > share else block
        for block, size in zip(message.content, sizes, strict=True)
    ]
    return message.model_copy(update={"content": blocks})


def _clipped_block(block: Any, limit: int, remedy: str) -> Any:
    text = clip_text(visible_text(block) or "", limit, remedy)
    if isinstance(block, str):
        return text
    return {**block, "refusal" if block_type(block) == "refusal" else "text": text}
