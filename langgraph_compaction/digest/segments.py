"""Sealing a text into a segment, and choosing which segments to condense."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from langgraph_compaction.digest.facts.layout import Parts, taken_apart
from langgraph_compaction.digest.spelling import MARKS, forms_of, phrase, spelled
from langgraph_compaction.record import DigestSegment
from langgraph_compaction.view.digest import FOOTER, HEADER

WORDS_ANYWHERE = 8
"""Words from which on a line of the frame is recognised within a line of text, too: fewer may be
ordinary prose ("Summary")."""

_ANY_SPELLING = re.MULTILINE | re.IGNORECASE
_HEADING = re.compile(rf"^{MARKS}(?={spelled('Messages')}{MARKS}\d)", _ANY_SPELLING)
# In words of the user's own only with its mark: ``"messages": 20`` opens no segment.
_MARKED_HEADING = re.compile(
    rf"^[^\w\n{forms_of('#')}]*+[{forms_of('#')}]{MARKS}(?={spelled('Messages')}{MARKS}\d)",
    _ANY_SPELLING,
)
_OWN_HEADING = re.compile(r"\A# Messages \d[^\n]*(?:\n|\Z)")


def parts_of(segment: DigestSegment, redact: Callable[[str], str] | None = None) -> Parts:
    """The parts of a segment, without its heading.

    Args:
        segment: any segment.
        redact: takes secrets out of each part; the segment may be older than the hook.
    """
    parts = taken_apart(_OWN_HEADING.sub("", segment["text"]))
    parts = replace(parts, unsourced=segment.get("unsourced", ()))
    return parts if redact is None else parts.changed(redact)


def text_of(segment: DigestSegment, redact: Callable[[str], str] | None = None) -> str:
    """The text of a segment, redacted part by part, so that its labels stay what they are."""
    if redact is None:
        return segment["text"]
    heading = _OWN_HEADING.match(segment["text"])
    return (heading.group() if heading else "") + parts_of(segment, redact).text()


def defused(text: str, frame: Sequence[str] = (HEADER, FOOTER)) -> str:
    """``text`` without what could pass for the digest's own lines: its frame, its headings.

    What a summariser copies from a hostile span must not end the digest and go on as the user,
    whatever the spelling.
    """
    for mark in frame:
        text = _frame_pattern(mark).sub("[...]", text)
    return _HEADING.sub("- ", text)


def _defused_parts(text: str, frame: Sequence[str]) -> str:
    """A segment's text defused part by part, so that its own labels and marks of lists stay.

    Of the user's newest message, which is quoted word for word, only what spells the frame goes,
    and the marks of headings like a segment's.
    """
    parts = taken_apart(text)

    def unframed(quoted: str) -> str:
        for mark in frame:
            quoted = _frame_pattern(mark).sub("[...]", quoted)
        return _MARKED_HEADING.sub("- ", quoted)

    safe = parts.changed(lambda part: defused(part, frame))
    return replace(safe, newest=unframed(parts.newest)).text()


@lru_cache(maxsize=32)
def _frame_pattern(mark: str) -> re.Pattern[str]:
    """A line of the frame in any spelling, anywhere; a short one only as a line of its own."""
    words = phrase(mark)
    found = rf"{MARKS}{words}{MARKS}" if words else re.escape(mark)
    if len(mark.split()) < WORDS_ANYWHERE:
        return re.compile(rf"^{found}$", _ANY_SPELLING)
    return re.compile(rf"(?:^{MARKS}|\[?){words}(?:{MARKS}$|[.\]]{{0,2}})", _ANY_SPELLING)


def seal(
    text: str,
    *,
    first_index: int,
    last_index: int,
    last_id: str | None,
    step: int,
    source_tokens: int,
    model: str,
    count: Callable[[str], int],
    quoted: bool = False,
    unsourced: Sequence[str] = (),
    absorbed: Sequence[tuple[str, int]] = (),
    frame: Sequence[str] = (HEADER, FOOTER),
    old: Sequence[DigestSegment] = (),
) -> DigestSegment:
    """A segment of level 0.

    Args:
        text: what the summariser wrote, with the computed facts.
        first_index: position of the first message covered, inclusive.
        last_index: position of the last message covered, inclusive.
        last_id: its id.
        step: AI messages of the thread when the fold was made.
        source_tokens: tokens of what the segment replaces.
        model: who wrote the text.
        count: tokens of a text.
        quoted: whether the text quotes the user's newest message in full.
        unsourced: names in the text that nothing it was made from has.
        absorbed: keys and positions of earlier kept messages that the segment took in.
        frame: the lines that open and close the digest; no text may contain them.
        old: the neighbouring segments before it that it replaces, too.
    """
    first_index = min([first_index, *(one["first_index"] for one in old)])
    heading = f"# Messages {first_index} to {last_index} (folded after step {step})"
    sealed = f"{heading}\n{_defused_parts(text, frame)}"
    segment = DigestSegment(
        text=sealed,
        first_index=first_index,
        last_index=last_index,
        last_id=last_id,
        level=0,
        tokens=count(sealed),
        source_tokens=source_tokens + sum(one["source_tokens"] for one in old),
        model=model,
    )
    if quoted:
        segment["quoted"] = True
    if unsourced:
        segment["unsourced"] = list(unsourced)
    _note_absorbed(segment, [*_absorbed(old), *absorbed])
    return segment


def joined(
    old: Sequence[DigestSegment],
    text: str,
    *,
    model: str,
    count: Callable[[str], int],
    unsourced: Sequence[str] = (),
    frame: Sequence[str] = (HEADER, FOOTER),
) -> DigestSegment:
    """The segment that replaces neighbouring ones, one level above the highest of them."""
    first, last = old[0], old[-1]
    heading = f"# Messages {first['first_index']} to {last['last_index']} (condensed)"
    sealed = f"{heading}\n{_defused_parts(text, frame)}"
    segment = DigestSegment(
        text=sealed,
        first_index=first["first_index"],
        last_index=last["last_index"],
        last_id=last["last_id"],
        level=max(one["level"] for one in old) + 1,
        tokens=count(sealed),
        source_tokens=sum(one["source_tokens"] for one in old),
        model=model,
    )
    if unsourced:
        segment["unsourced"] = list(unsourced)
    _note_absorbed(segment, _absorbed(old))
    return segment


def _absorbed(old: Sequence[DigestSegment]) -> list[tuple[str, int]]:
    """Keys and positions of what some segments took in."""
    return [
        pair
        for one in old
        for pair in zip(one.get("absorbed_ids", ()), one.get("absorbed_indexes", ()), strict=False)
    ]


def _note_absorbed(segment: DigestSegment, absorbed: Sequence[tuple[str, int]]) -> None:
    # What lies within the segment's range comes back with it; only what lies before is named.
    outside = [(name, index) for name, index in absorbed if index < segment["first_index"]]
    if outside:
        segment["absorbed_ids"] = [name for name, _ in outside]
        segment["absorbed_indexes"] = [index for _, index in outside]
