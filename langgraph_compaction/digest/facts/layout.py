"""What stands in a segment beside the text that a summariser wrote, and how it is told apart.

    # Messages 3 to 40 (folded after step 18)
    ... what the summariser wrote ...
    The user said, word for word:
    - Never touch the production database.
    Also done by tool calls, with their outcome:
    - send_email(to=ann@example.com, …) → ok: sent
    Also mentioned, exactly as written: /srv/app/main.py | port: 8080 | v2.4.1
    Also printed by tools, exactly as written: 9f86d081884c
    The user's newest message here, word for word:
    ...
    Said or printed after that message: port: 9090

Every part can be taken out of a segment again, so that the facts survive condensing. No line of a
summariser, a user or a tool can pass for one of the labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph_compaction.digest.facts.mentions import BETWEEN
from langgraph_compaction.digest.spelling import MARKS, UNSEEN, phrase

QUOTES = "The user said, word for word:"
"""Line before the user's own sentences."""
DONE = "Also done by tool calls, with their outcome:"
"""Line before the calls with an effect that the text does not tell of."""
MENTIONS = "Also mentioned, exactly as written: "
"""Before names and values that user or agent used and the text lost."""
PRINTED = "Also printed by tools, exactly as written: "
"""Before those that stand in results alone."""
NEWEST = "The user's newest message here, word for word:"
"""Line before the user's newest message, which goes on to the segment's end or its last line."""

SINCE = "Said or printed after that message: "
"""Before newer values of what the user's newest message names, as the segment's last line."""

_LABELS = "|".join(filter(None, map(phrase, (QUOTES, DONE, MENTIONS, PRINTED, NEWEST, SINCE))))
_LABEL = re.compile(
    rf"^(?:{MARKS}(?:{_LABELS})(?:</?[a-z][a-z0-9]{{0,9}}>|[ \t*_.:：{UNSEEN}])*)+\n?",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a segment's text, without its heading.

    Attributes:
        body: what a summariser wrote, or a person.
        quotes: sentences of the user, oldest first, one line each.
        mentioned: names and values that user or agent used, oldest first.
        printed: the same from results alone.
        newest: the user's newest message, in full; "" where the segment does not have it.
        since: newer values of what it names, oldest first.
        unsourced: names in the body that stand in nothing it was made from; no part of the text.
        done: calls with an effect and their outcomes, oldest first, one line each.
    """

    body: str
    quotes: Sequence[str] = ()
    mentioned: Sequence[str] = ()
    printed: Sequence[str] = ()
    newest: str = ""
    since: Sequence[str] = ()
    unsourced: Sequence[str] = ()
    done: Sequence[str] = ()

    def changed(self, change: Callable[[str], str]) -> Parts:
        """The parts, each text put through ``change``; all but body and request on one line."""

        def lines(texts: Sequence[str]) -> list[str]:
            return [line for line in (" ".join(change(text).split()) for text in texts) if line]

        return Parts(
            change(self.body),
            lines(self.quotes),
            lines(self.mentioned),
            lines(self.printed),
            change(self.newest),
            lines(self.since),
            self.unsourced,
            lines(self.done),
        )

    def text(self) -> str:
        """The parts as one text."""
        body = unlabelled(self.body)
        shown = [body] if body else []
        if self.quotes:
            shown.append("\n".join([QUOTES, *(f"- {quote}" for quote in self.quotes)]))
        if self.done:
            shown.append("\n".join([DONE, *(f"- {line}" for line in self.done)]))
        if self.mentioned:
            shown.append(MENTIONS + BETWEEN.join(self.mentioned))
        if self.printed:
            shown.append(PRINTED + BETWEEN.join(self.printed))
        if self.newest:
            shown.append(f"{NEWEST}\n{self.newest}")
            # An empty line of its kind tells that a message ends in words like it by itself.
            if self.since or self.newest.rpartition("\n")[2].startswith(SINCE):
                shown.append(SINCE + BETWEEN.join(self.since))
        return "\n".join(shown)


def unlabelled(text: str) -> str:
    """``text`` without what could pass for one of the labels, and never longer than it was.

    A label at the beginning of a line is taken off, and what is left of the line stays. What some
    readers take for the end of a line becomes one.
    """
    found = "\n".join(text.strip().splitlines())
    while (fewer := _LABEL.sub("", found)) != found:
        found = fewer
    return found.strip()


def taken_apart(text: str) -> Parts:
    """The parts of a segment's text as `Parts.text` wrote it; what is in no part is the body."""
    above, has_newest, newest = _divided(text, f"{NEWEST}\n")
    since: list[str] = []
    head, _, last = newest.rpartition("\n")
    if has_newest and last.startswith(SINCE):
        newest, since = head, _names(last.removeprefix(SINCE))
    body: list[str] = []
    rows: dict[str, list[str]] = {QUOTES: [], DONE: []}
    listed: dict[str, list[str]] = {MENTIONS: [], PRINTED: []}
    below: list[str] | None = None
    for line in above.splitlines():
        label = next((label for label in listed if line.startswith(label)), None)
        if label is not None:
            listed[label] += _names(line.removeprefix(label))
            below = None
        elif line in rows:
            below = rows[line]
        elif below is not None and line.startswith("- "):
            below.append(line[2:])
        else:
            body.append(line)
            below = None
    return Parts(
        body="\n".join(body).strip(),
        quotes=rows[QUOTES],
        mentioned=listed[MENTIONS],
        printed=listed[PRINTED],
        newest=newest,
        since=since,
        done=rows[DONE],
    )


def _names(line: str) -> list[str]:
    return [name for name in line.split(BETWEEN) if name]


def _divided(text: str, label: str) -> tuple[str, str, str]:
    """The text before and after the first line that consists of ``label``."""
    if text.startswith(label):
        return "", label, text[len(label) :]
    return text.partition(f"\n{label}")
