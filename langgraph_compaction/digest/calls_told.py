"""A call told on one line, written and read: ``send_email(to=ann) → ok: Queued as 77. (×2)``.

The last arrow before an outcome is the line's own: an argument may have another, and a detail that
has one is written with "->".
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

ARROW = " → "
"""Between a call and its outcome, and between a tool's name and what its result is quoted with."""

Outcome = Literal["ok", "error", "answered", "no result"]

_OUTCOMES = "ok|error|answered|no result"
_TIMES = r" \(×(?P<times>\d{1,9})\)"
_LINE = re.compile(
    rf"(?P<call>.*){ARROW}(?P<outcome>{_OUTCOMES})(?:: (?P<detail>.*?))??(?:{_TIMES})?"
)
_LIKE_AN_OUTCOME = re.compile(rf"{ARROW}(?=(?:{_OUTCOMES})(?::|(?:{_TIMES})?\Z))")
_LIKE_A_NUMBER = re.compile(rf"{_TIMES}\Z")
_NAME = re.compile(r"(?:\A|, )([^\s,=()][^,=()]{0,59})=")


class Told(NamedTuple):
    """What such a line tells.

    Attributes:
        call: the call on one line, such as "send_email(to=ann)".
        outcome: how it came out; "answered" where that is left to the reader of the detail.
        detail: the start of its result, or of what in it speaks of an error; or "".
        times: how often it happened so.
    """

    call: str
    outcome: Outcome
    detail: str = ""
    times: int = 1

    @property
    def line(self) -> str:
        """The line; of what it tells all can be read again, but for an arrow in the detail."""
        detail = f": {_written(self.detail)}" if self.detail else ""
        shown = f"{self.call}{ARROW}{self.outcome}{detail}"
        # A detail that ends like a number of times would be taken for it.
        counted = self.times > 1 or _LIKE_A_NUMBER.search(shown)
        return f"{shown} (×{self.times})" if counted else shown


def parsed(line: str) -> Told | None:
    """What a line tells; None for a line of any other form."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    outcome: Outcome = found["outcome"]  # type: ignore[assignment]
    detail = _written(found["detail"] or "")
    return Told(found["call"], outcome, detail, int(found["times"] or 1))


def tool_in(call: str) -> str:
    """The name of the tool in a call on one line."""
    return call.partition("(")[0]


def arguments_in(call: str) -> list[tuple[str, str]]:
    """Names and values of the arguments in a call on one line, as far as it shows them.

    A name of "" where the line does not have it.
    """
    given = call.partition("(")[2].removesuffix(")")
    first, *named = _NAME.split(given)
    return [*([("", first)] if first else []), *zip(named[::2], named[1::2], strict=True)]


def _written(detail: str) -> str:
    """A detail as it is written: of others a line may have been made by hand."""
    return _LIKE_AN_OUTCOME.sub(" -> ", f" {detail}")[1:]
