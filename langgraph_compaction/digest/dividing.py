"""Dividing what a summariser has to read so that every call fits its window.

Nothing is dropped to make it fit. A span that is too long is divided into parts, each of which
becomes one segment. What is too long for one call even so, a single message or the records to
condense, is read in pieces, one a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from langgraph_compaction.digest.rendering import escaped

MARGIN = 0.9
"""Share of a summariser's window that is planned for: its tokenizer may count differently."""
CONTEXT_SHARE = 0.25
"""Share of a summariser's window that the digest so far may take as context."""
ANSWER_SHARE = 0.25
"""Share of a summariser's window that is kept free for its answer at most."""
LEAST_PART = 200
"""Tokens of a part at least, if the span has as many: by default its segment may have so
many, however short it is (``min_segment_tokens``). A digest of less saves nothing."""
LEAST_ROOM = 200
"""Tokens of context and transcript in a call at least, whatever the window: of less, a record would
be as long as what it is made from. A window that is smaller still is found out by its overflow."""
CONTINUED = ' continued="yes"'
"""Attribute of a message's or record's tag in every piece of it but the first."""

_ELEMENT = re.compile(r"(<(message|result|record)\b[^<>\n]*>)\n(.*?)\n(</\2>)\n?", re.DOTALL)
_CALL = re.compile(r"(<call\b[^<>\n]*>.*?</call>)", re.DOTALL)
_BLANK = re.compile(r"\s")
_STOPS = "。！？；，、"


def room(window: int | None, *, prompt: int, answer: int) -> int | None:
    """Tokens of transcript and context that one call may carry; None: no limit.

    Args:
        window: tokens of the summariser's context window.
        prompt: tokens of its instructions.
        answer: tokens kept free for its answer.
    """
    if window is None:
        return None
    return max(LEAST_ROOM, int(window * MARGIN) - prompt - min(answer, int(window * ANSWER_SHARE)))


def pack(sizes: Sequence[int], limit: int | None) -> list[slice]:
    """Divide a sequence into runs whose sizes sum up to at most ``limit``.

    A single size above the limit is a run of its own.
    """
    runs: list[slice] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if limit is not None and index > start and total + size > limit:
            runs.append(slice(start, index))
            start, total = index, 0
        total += size
    if start < len(sizes):
        runs.append(slice(start, len(sizes)))
    return runs


def without_small(runs: Sequence[slice], sizes: Sequence[int], least: int) -> list[slice]:
    """The runs, those below ``least`` joined to the one after them, or the last to the one before.

    The run that results may be over the limit: it
    is read in pieces, then.
    """
    found: list[slice] = []
    start = 0
    for run in runs:
        if sum(sizes[start : run.stop]) >= least:
            found.append(slice(start, run.stop))
            start = run.stop
    if start < len(sizes):
        first = found.pop().start if found else start
        found.append(slice(first, len(sizes)))
    return found


def pieces(
    chunks: Sequence[str], limit: int | None, count: Callable[[str], int]
) -> list[list[str]]:
    """Rendered chunks divided over as many calls as it takes, each at most ``limit`` tokens.

    A chunk that is longer is cut, at a line's end or at white space where there is any. Each piece
    of a message or an earlier record stands between its tags.
    """
    if limit is None:
        return [list(chunks)]
    small = [piece for chunk in chunks for piece in _cut(chunk, limit, count)]
    runs = pack([count(piece) for piece in small], limit)
    return [small[run] for run in runs]


def _cut(chunk: str, limit: int, count: Callable[[str], int]) -> Iterator[str]:
    """The pieces of a chunk: its messages, and those that are too long in pieces of their own."""
    if count(chunk) <= limit:
        yield chunk
        return
    end = 0
    for found in _ELEMENT.finditer(chunk):
        yield from _cut_text(chunk[end : found.start()], limit, count)
        whole = found.group().removesuffix("\n")  # between two chunks stands a newline anyway
        if count(whole) <= limit:
            yield whole
        else:
            opening, _, body, closing = found.groups()
            yield from _cut_message(opening, body, closing, limit, count)
        end = found.end()
    yield from _cut_text(chunk[end:], limit, count)


def _cut_message(
    opening: str, body: str, closing: str, limit: int, count: Callable[[str], int]
) -> Iterator[str]:
    """A message or record in pieces, each between its tags; a long call is cut likewise."""
    reopening = f"{opening[:-1]}{CONTINUED}>"
    # Tags that are larger than half a piece would leave no room for what they stand around.
    space = max(limit // 2, limit - count(f"{reopening}\n\n{closing}"), 1)
    texts: list[str] = []
    for text in _CALL.split(body):
        if not _CALL.fullmatch(text):
            texts += _cut_body(text, space, count)
            continue
        if count(text) <= space:
            texts.append(text)
            continue
        inner = text.removeprefix("<call>").removesuffix("</call>")
        narrow = max(1, space - count("<call></call>"))
        texts += (f"<call>{one}</call>" for one in _cut_body(inner, narrow, count))
    for number, run in enumerate(pack([count(text) for text in texts], space)):
        yield f"{reopening if number else opening}\n{''.join(texts[run])}\n{closing}"


def _cut_body(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Text of a message in pieces. A word cut in two must not become a tag of ours."""
    return [escaped(piece) for piece in _cut_text(text, limit, count)]


def _cut_text(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    if not text:
        return []
    if count(text) <= limit or len(text) < 2:
        return [text]
    # The middle by characters is near enough to the middle by tokens; halving ends where both fit.
    middle = _break(text)
    return [*_cut_text(text[:middle], limit, count), *_cut_text(text[middle:], limit, count)]


def _break(text: str) -> int:
    """Where to cut a text in two: near its middle, and in no word if it has several."""
    middle = len(text) // 2
    newline = text.rfind("\n", middle // 2, middle)
    if newline > 0:
        return newline + 1
    before, after = _BLANK.search(text[:middle][::-1]), _BLANK.search(text, middle, len(text) - 1)
    places = [middle - before.start()] if before else []
    places += [after.end()] if after else []
    if places:
        return min(places, key=lambda place: abs(place - middle))
    stop = max(text.rfind(mark, middle // 2, middle) for mark in _STOPS)
    return stop + 1 if stop > 0 else middle


def context(texts: Sequence[str], limit: int | None, count: Callable[[str], int]) -> str | None:
    """The newest of the digest's segments that fit ``limit`` tokens; None where none does."""
    shown: list[str] = []
    total = 0
    for text in reversed(texts):
        total += count(text)
        if limit is not None and total > limit:
            break
        shown.append(text)
    return "\n\n".join(reversed(shown)) or None
