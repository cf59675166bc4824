"""A scripted summariser: lines of what it reads, about as many as it is asked for."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from tests.benchmarks.clearing.pricing import Bill

LENGTH_SHARE = 0.8
"""Tokens of an answer as a share of what the prompt asks for, at most."""
LEAST_WORDS = 5
"""Words of a line that is worth a note; of scripts without spaces, `LEAST_CHARS` do."""
LEAST_CHARS = 20
NOTE_CHARS = 90
"""Characters of a note."""
FRAME = (
    "## Goal\n- Go on with the task.\n## Findings\n{lines}"
    "## State now\n- Under way.\n## Next step\n- The next part."
)

_ASKED = re.compile(r"\bat most ([\d,]+) tokens")
_MARKUP = re.compile(r"<[^<>\n]*>|[^\w\s.,:;!?()/'%-]")
_CONTEXT = re.compile(r"^<earlier_digest>\n.*?^</earlier_digest>", re.DOTALL | re.MULTILINE)


class Summariser:
    """Notes lines from all over what it reads, and puts each call on the bill.

    Args:
        bill: of the thread that it writes for.
    """

    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def __call__(self, prompt: Sequence[BaseMessage]) -> str:
        asked = str(prompt[-1].content)
        count = self._bill.counter.text
        left = LENGTH_SHARE * int(_ASKED.findall(asked)[-1].replace(",", "")) - count(FRAME)
        notes = _notes(_CONTEXT.sub("", asked))
        step = max(1, int(sum(map(count, notes)) / max(left, 1)))
        lines = ""
        for note in notes[::step]:
            size = count(note)
            if size <= left:
                lines, left = lines + note, left - size
        answer = FRAME.format(lines=lines)
        self._bill.summary(prompt, answer)
        return answer


def _notes(asked: str) -> list[str]:
    """The lines of a prompt that say something, without markup, each once."""
    found = []
    for line in _MARKUP.sub(" ", html.unescape(asked)).splitlines():
        words = line.split()
        dense = not line.isascii() and len(line) >= LEAST_CHARS
        if dense or len(words) >= LEAST_WORDS:
            found.append(f"- {' '.join(words)[:NOTE_CHARS]}\n")
    return list(dict.fromkeys(found))
