"""Sealing a text into a segment, and choosing which segments to condense."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from langgraph_compaction.digest.facts.layout import Parts, taken_apart
from langgraph_compaction.digest.spelling import MARKS, forms_of, phrase, spelled
from langgraph_compaction.record import EDITED, LEAST_SEGMENT_TOKENS, DigestSegment, tokens_of
from langgraph_compaction.view.digest import FOOTER, HEADER

ROOM_SHARE = 0.8
"""Share of the digest's budget that condensing brings it down to: with less room below the budget
every fold would condense again, with more the oldest text would lose detail at once."""
CONDENSED_SHARE = 0.5
"""Tokens of a condensed segment as a share of what it replaces, at most."""
LARGEST_SHARE, LEVEL_SHARE, LEAST_SHARE = 0.2, 0.7, 0.05
"""Shares of the digest's budget that a condensed segment may have: the first on level 1, less with
each level (times the second), down to the last. So there is room for many levels, and a text is
condensed a logarithmic number of times: 7 times over 500 folds, 10 over 2,000."""
LEAST_CONDENSED = 120
"""Tokens that a condensed segment may always have: shorter ones have no room for what binds."""

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


def rolled(segments: Sequence[DigestSegment]) -> list[DigestSegment]:
    """The newest segments up to the last that a person edited: what a rolling digest replaces."""
    edited = [number for number, one in enumerate(segments) if one["model"] == EDITED]
    return list(segments[edited[-1] + 1 if edited else 0 :])


def chain_budget(segments: Sequence[DigestSegment], budget: int) -> int:
    """Tokens that the whole chain may have.

    What a person edited is never condensed: the rest has half of the budget in any case, or a long
    correction would leave no room for anything after it.
    """
    edited = tokens_of([one for one in segments if one["model"] == EDITED])
    return max(budget, edited + budget // 2)


def condensed_cap(old: Sequence[DigestSegment], budget: int) -> int:
    """Tokens that the condensed text of some neighbours may have: half of theirs, at most.

    Args:
        old: the segments to condense.
        budget: tokens that all segments together may have.
    """
    level = max(one["level"] for one in old) + 1
    share = max(LARGEST_SHARE * LEVEL_SHARE ** (level - 1), LEAST_SHARE)
    most = max(int(budget * share), min(LEAST_CONDENSED, int(budget * LARGEST_SHARE)))
    most = max(most, LEAST_SEGMENT_TOKENS)
    return max(1, min(int(tokens_of(old) * CONDENSED_SHARE), most))


def neighbours(segments: Sequence[DigestSegment], budget: int, goal: int) -> slice | None:
    """The neighbouring segments to condense next, or None while the chain is within ``goal``.

    The oldest of the lowest level that has two neighbours, as many as are needed to come down to
    the goal, but no more than fit one segment at half their size; the newest segment is left alone
    while there are others. So levels merge as in a log-structured store. What a person edited and
    the newest quoted request are never condensed.

    Args:
        segments: the chain, oldest first.
        budget: tokens that all segments together may have.
        goal: tokens that they are to come down to.
    """
    total = tokens_of(segments)
    if total <= goal or len(segments) < 2:
        return None
    found = _lowest_run(segments)
    if found is None:
        return None
    start, stop = found
    for end in range(start + 2, stop):
        old, more = segments[start:end], segments[start : end + 1]
        cap = condensed_cap(old, budget)
        half_of_more = int(tokens_of(more) * CONDENSED_SHARE)
        if total - tokens_of(old) + cap <= goal or half_of_more > condensed_cap(more, budget):
            return slice(start, end)
    return slice(start, stop)


def _lowest_run(segments: Sequence[DigestSegment]) -> tuple[int, int] | None:
    """Start and stop of the run of one level to condense from; at least two segments long.

    What a person wrote is in no run, and neither is the newest quoted request: a correction and
    the work in hand must not fade.
    """
    quotes = [index for index, segment in enumerate(segments) if segment.get("quoted")]
    fixed = {index for index, segment in enumerate(segments) if segment["model"] == EDITED}
    fixed.update(quotes[-1:])
    runs: list[tuple[int, int, int]] = []
    pairs: list[int] = []
    start = 0
    for index in range(1, len(segments) + 1):
        level = segments[index - 1]["level"]
        if index < len(segments) and not fixed & {index - 1, index}:
            pairs.append(index - 1)
            if segments[index]["level"] == level:
                continue
        runs.append((level, start, index))
        start = index
    for _, first, stop in sorted(runs):
        older = min(stop, len(segments) - 1)
        if older - first >= 2:
            return first, older
    # No two neighbours of one level beside the newest segment: the two oldest join.
    return (pairs[0], pairs[0] + 2) if pairs else None
