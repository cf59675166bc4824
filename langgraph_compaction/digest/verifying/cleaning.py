"""What is taken off an answer before it is judged, and what of it are headings."""

from __future__ import annotations

import re

from langgraph_compaction.digest.prompts import SECTIONS
from langgraph_compaction.digest.rendering import FENCES

MOST_WRAPPINGS = 8
"""Fences, thoughts and end marks around a text that are taken off; more of them are no mistake."""
LONGEST_HEADING = 60
"""Characters that a line set as a heading may have to be one; a longer one says something."""

_FENCE_TAG = re.compile(r"</?(?:" + "|".join(FENCES) + r")\b[^<>\n]{0,200}>", re.IGNORECASE)
_THOUGHT = re.compile(r"\A<think>.*?</think>", re.DOTALL)
_CODE_FENCE = re.compile(r"\A```[a-zA-Z]*\n(.*?)\n?```\Z", re.DOTALL)
# End marks of GPT, Llama, Gemma, Mistral, Phi and Qwen, of streams, and those that agents are
# told to end a task with (Webwright, AutoGen).
_END_MARK = re.compile(
    r"(?:<\|(?:endoftext|end_of_text|im_end|eot_id|eom_id|end|return)\|>|</s>|<eos>|<end_of_turn>"
    r"|\[DONE\]|(?:\A|\n)[ \t]*\W{0,3}(?:TASK[ _]COMPLETED?|TERMINATE)\W{0,3})\s*\Z"
)
_LONGEST_END_MARK = 60
_HEADING_MARKS = " \t#*_:.-0123456789"
_NAMES = {name.casefold() for name in SECTIONS}


def cleaned(text: str) -> str:
    """The text without thoughts before it, our own fence tags, a code fence and outer space.

    Tokens and words by which a model says that it is done are taken off its end.
    """
    for _ in range(MOST_WRAPPINGS):
        before = text
        text = _FENCE_TAG.sub("", _THOUGHT.sub("", text.strip())).strip()
        wrapped = _CODE_FENCE.match(text)
        text = _without_end_mark(wrapped.group(1).strip() if wrapped else text)
        if text == before:
            break
    return text


def headings(text: str) -> set[str]:
    """What may be headings in the text, casefolded: its short lines and line beginnings."""
    found: set[str] = set()
    for line in text.splitlines():
        found.update(_name(part) for part in (line, line.partition(":")[0]))
    return found


def body(text: str) -> list[str]:
    """The lines of the text that are no headings, and what stands behind one on its line."""
    found = []
    for line in text.splitlines():
        stripped = line.strip()
        head, _, rest = stripped.partition(":")
        if _name(head) in _NAMES:
            stripped = rest.strip(" \t*_")
        elif _set_as_heading(stripped):
            continue
        if stripped:
            found.append(stripped)
    return found


def _set_as_heading(line: str) -> bool:
    if _name(line) in _NAMES:
        return True
    bold = line.startswith("**") and line.endswith("**")
    return len(line) <= LONGEST_HEADING and (bold or line[:1] == "#" or line[-1:] == ":")


def _name(heading: str) -> str:
    return heading[:80].strip(_HEADING_MARKS).casefold()


def _without_end_mark(text: str) -> str:
    tail = text[-_LONGEST_END_MARK:]
    mark = _END_MARK.search(tail)
    return text if mark is None else text[: len(text) - len(tail) + mark.start()].strip()
