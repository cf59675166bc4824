"""What verification is given, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens of one call, of its prompt and of its answer; what a model reasons is part of that."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from a summariser.

    Attributes:
        text: its text blocks, joined; reasoning is not part of it.
        finish_reason: why the model stopped, as the provider names it; None: not said.
        called_tools: whether the answer calls tools.
        verbatim: whether the text consists of extracts by design, so that an echo of the source,
            or of its repetitions, is no fault.
        usage: tokens that the provider reports for the call; None: it reports none.
    """

    text: str
    finish_reason: str | None = None
    called_tools: bool = False
    verbatim: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one reply.

    Attributes:
        text: the cleaned text, whether accepted or not.
        problem: why it is rejected, one short phrase; None: accepted.
        missing: expected sections that it lacks, asked for once before it is accepted as it is.
        repair: what to ask the model to mend, one phrase each; empty: nothing, or nothing that
            asking again would mend. A text with a problem may be worth a repair, too.
        tokens: tokens of the text; None: too long to be counted.
        max_tokens: tokens that it may have; None: not said.
    """

    text: str
    problem: str | None = None
    missing: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    tokens: int | None = None
    max_tokens: int | None = None
