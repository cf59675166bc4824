"""Oversized messages, cut to head and tail in the view.

What is clipped depends on a group's content and the record's frozen limits alone: the same
message looks the same in every view, and a giant result is clipped even where no visit of the
compaction node lies between the tool and the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.view.block_texts import (
    DEEPEST,
    byte_length,
    content_bytes,
    place_in,
    text_bytes,
    texts_in,
    written,
)
from langgraph_compaction.view.blocks import block_kind, block_type, size_of
from langgraph_compaction.view.effects import has_effect
from langgraph_compaction.view.pairing import answered
from langgraph_compaction.view.remedies import MADE, again

RESULT_REMEDY = "Call the tool again for a smaller part if you need it."
ALONE_REMEDY = "Ask for it again in a step of its own to see more of it."
MESSAGE_REMEDY = "The full message is longer than the context window allows."
SHORTEST = 200
"""UTF-8 bytes that a clipped text keeps at least: below, head and tail say nothing any more."""
LEAST_SHARE = 50
"""UTF-8 bytes of a result's share of its group's limit below which nothing but a mark stands for
it: hundreds of results with `SHORTEST` each would be a multiple of the limit."""
BYTES_PER_TOKEN = 3
"""UTF-8 bytes that are taken for a token where no tokenizer may be asked: prose has some 4.5 of
them, code and JSON about 3, Chinese 3 to 4, Cyrillic 4 to 5; hashes and base64 have 1.5 to 2
(`tests/benchmarks/counting_error.py` lists the kinds)."""
RECALLED_BYTES_PER_TOKEN = 5
"""The same for an answer of the recall tool, whose tokens that tool has counted: as many bytes as
prose has, so that a page within the limit is never clipped."""


def clip_text(text: str, limit: int, remedy: str) -> str:
    """``text`` cut to about ``limit`` UTF-8 bytes: two thirds head, one third tail.

    Between them stands how much is missing and what to do about it. Cuts between code points, and
    at a line's end where one is near (within a fifth of the part).
    """
    limit = max(limit, SHORTEST)
    if byte_length(text) <= limit:
        return text
    head, tail = _ends(text, limit * 2 // 3, limit // 3)
    head = _whole_lines(head)
    newline = tail.find("\n", 0, len(tail) // 5)
    tail = tail[newline + 1 :]
    missing = len(text) - len(head) - len(tail)
    mark = f"[... {missing:,} of {len(text):,} characters left out. {remedy} ...]"
    return _shorter(f"{head}\n{mark}\n{tail}", text)


def _shorter(clipped: str, text: str) -> str:
    shorter = len(clipped) < len(text) and byte_length(clipped) < byte_length(text)
    return clipped if shorter else text


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
            largest are cut to an equal share, answers of the recall tool last. 0: no limit.
        clip_message_bytes: UTF-8 bytes that a human message may take. 0: no limit.
        recall: name of the tool that brings originals back, None where the agent has none.

    Returns:
        The same objects where nothing is clipped, changed copies (same ids) elsewhere.
    """
    limits = clip_limits(messages, clip_result_bytes, recall)
    clipped = any(one is not None for one in limits)
    recalled = _recalled(messages, recall) if clipped else set()
    calls = answered(messages) if clipped else {}
    members = []
    for index, (message, limit) in enumerate(zip(messages, limits, strict=True)):
        if limit is not None:
            remedy = _remedy(message, recall)
            if remedy == RESULT_REMEDY and _changed(message, calls.get(index, {})):
                remedy = MADE
            if index in recalled:  # a copy of a copy helps nobody
                alone = sum(isinstance(one, ToolMessage) for one in messages) == 1
                remedy = RESULT_REMEDY if alone else ALONE_REMEDY
            members.append(_clipped(message, limit, remedy))
        elif isinstance(message, HumanMessage) and 0 < clip_message_bytes < text_size(message):
            longest = max(clip_message_bytes, SHORTEST)
            members.append(_clipped(message, longest, _remedy(message, recall)))
        else:
            members.append(message)
    return members


def clip_limits(
    members: Sequence[BaseMessage], clip_result_bytes: int, recall: str | None = None
) -> list[int | None]:
    """UTF-8 bytes to which each message of a group is cut; None: it stays whole.

    The arguments are those of `clipped_group`.
    """
    limits: list[int | None] = [None] * len(members)
    if clip_result_bytes <= 0:
        return limits
    sizes = {i: text_size(m) for i, m in enumerate(members) if isinstance(m, ToolMessage)}
    if sum(sizes.values()) <= clip_result_bytes:
        return limits
    recalled = _recalled(members, recall)
    for index in recalled:
        sizes[index] = sizes[index] * BYTES_PER_TOKEN // RECALLED_BYTES_PER_TOKEN
    others = [size for index, size in sizes.items() if index not in recalled]
    wanted = sum(sizes[index] for index in recalled)
    # Even beside a large answer of the recall tool the others keep a readable rest.
    least = min(sum(others), len(others) * SHORTEST, clip_result_bytes // 2)
    budget = max(clip_result_bytes - wanted, least)
    share = _equal_share(others, budget)
    rest = clip_result_bytes - min(budget, sum(others))
    share_recalled = _equal_share([sizes[index] for index in recalled], rest)
    for index, size in sizes.items():
        if index in recalled and size > share_recalled:
            limits[index] = share_recalled * RECALLED_BYTES_PER_TOKEN // BYTES_PER_TOKEN
        elif index not in recalled and size > share:
            limits[index] = share
    return limits


def _recalled(members: Sequence[BaseMessage], recall: str | None) -> set[int]:
    """Indexes of the answers of the recall tool."""
    if not recall:
        return set()
    calls = answered(members)
    return {
        index
        for index, message in enumerate(members)
        if isinstance(message, ToolMessage)
        and (message.name or calls.get(index, {}).get("name")) == recall
    }


def _remedy(message: BaseMessage, recall: str | None) -> str:
    """What to do about a message that is shown in part."""
    call_id = message.tool_call_id if isinstance(message, ToolMessage) else None
    if recall and (message.id or call_id):
        # By its own id first: calls before and after may have the same one, and this has to stay.
        return again(recall, message.id, call_id)
    return RESULT_REMEDY if isinstance(message, ToolMessage) else MESSAGE_REMEDY


def _changed(message: BaseMessage, call: Mapping[str, Any]) -> bool:
    """Whether a result is that of a call that changed something."""
    return has_effect(message.name or str(call.get("name") or ""), call.get("args"))


def _equal_share(sizes: Iterable[int], budget: int) -> int:
    """The greatest size s such that the sizes, each cut to s, sum up to at most ``budget``.

    At least `SHORTEST`; 0 where a share is so small that many of these would be far more.
    """
    share = _even(sorted(size for size in sizes if size), budget)
    if share >= SHORTEST:
        return share
    return SHORTEST if share >= LEAST_SHARE else 0


def _even(ordered: Sequence[int], budget: int) -> int:
    for number, size in enumerate(ordered):
        share = max(budget, 0) // (len(ordered) - number)
        if size > share:
            return share
        budget -= size
    return max([*ordered[-1:], SHORTEST])


def text_size(message: BaseMessage) -> int:
    """UTF-8 bytes of the texts in the message's content."""
    return content_bytes(message.content)


def _clipped(message: BaseMessage, limit: int, remedy: str) -> BaseMessage:
    content: Any = message.content
    if isinstance(content, str):
        shown: Any = clip_text(content, limit, remedy) if limit else _mark_alone(content, remedy)
    else:
        shown = _clipped_blocks(content, limit, remedy, 0)
    return message if shown is content else message.model_copy(update={"content": shown})


def _mark_alone(text: str, remedy: str) -> str:
    return _shorter(f"[... {len(text):,} characters left out. {remedy} ...]", text)


def _clipped_blocks(blocks: list[Any], limit: int, remedy: str, depth: int) -> list[Any]:
    """The blocks with their texts cut to an equal share; of very many, the middle ones left out."""
    sizes = [text_bytes(block) for block in blocks]
    texts = [size for size in sizes if size]
    if sum(texts) <= limit:
        return blocks
    share = _even(sorted(texts), limit)
    if share < SHORTEST:
        shown = _without_middle(blocks, sizes, limit, remedy, depth)
    else:
        shown = [
            _clipped_block(block, share, remedy, depth) if (size or 0) > share else block
            for block, size in zip(blocks, sizes, strict=True)
        ]
    return shown if content_bytes(shown) < sum(texts) else blocks


def _without_middle(
    blocks: list[Any], sizes: Sequence[int | None], limit: int, remedy: str, depth: int
) -> list[Any]:
    """Blocks of the head and of the tail, and a mark in place of those with text between them."""
    places = [index for index, size in enumerate(sizes) if size is not None]
    kept: dict[int, Any] = {}

    def keep(order: Iterable[int], room: int) -> None:
        for index in order:
            size = sizes[index] or 0
            if index in kept or (size > room and room < SHORTEST):
                return
            kept[index] = (
                blocks[index]
                if size <= room
                else _clipped_block(blocks[index], room, remedy, depth)
            )
            room -= size
            if room < 0:
                return

    keep(places, limit * 2 // 3)
    keep(reversed(places), limit // 3)
    left_out = [index for index in places if index not in kept]
    if left_out:
        size = sum(len(text) for index in left_out for text in texts_in(blocks[index]) or ())
        kept[left_out[0]] = _with_text(
            blocks[left_out[0]],
            f"[... {len(left_out):,} of {len(places):,} blocks left out, {size:,} characters. "
            f"{remedy} ...]",
        )
    return [
        kept.get(index, block)
        for index, block in enumerate(blocks)
        if sizes[index] is None or index in kept
    ]


_PLAIN = {"text", "refusal"}


def _with_text(block: Any, text: str) -> Any:
    """A text block of the same kind, as far as the block is one."""
    place = place_in(block)
    if place is not None and (not place.path or place.path[-1] in _PLAIN):
        return written(block, place.path, text)
    return {"type": "text", "text": text} if block_type(block) else {"text": text}


def _clipped_block(block: Any, limit: int, remedy: str, depth: int) -> Any:
    place = place_in(block)
    if place is not None and isinstance(place.held, str):
        return written(block, place.path, clip_text(place.held, limit, remedy))
    if place is not None and isinstance(place.held, list) and depth < DEEPEST:
        return written(block, place.path, _clipped_blocks(place.held, limit, remedy, depth + 1))
    text = "".join(texts_in(block, depth) or ())
    shown = f"[{block_kind(block)} block of {size_of(byte_length(text))}]\n"
    shown += clip_text(text, limit, remedy)
    return _with_text(block, shown) if byte_length(shown) < byte_length(text) else block
