"""What is taken off an answer before it is judged, and what of it says something."""

from __future__ import annotations

import re

from langgraph_compaction.digest.headings import LONGEST_HEADING, headings
from langgraph_compaction.digest.rendering import FENCES

MOST_WRAPPINGS = 8
"""Fences, thoughts and end marks around a text that are taken off; more of them are no mistake."""

_FENCE_TAG = re.compile(r"</?(?:" + "|".join(FENCES) + r")\b[^<>\n]{0,200}>", re.IGNORECASE)
# An answer that ends within its thought has no text. Templates such as DeepSeek-R1's open the
# thought in the prompt, so that the answer has only its end, on a line that ends there.
_THOUGHT = re.compile(
    r"\A(?:<(think(?:ing)?|thought)>.*?(?:</\1>|\Z)|◁think▷.*?(?:◁/think▷|\Z)"
    r"|(?:(?!<think).)*?</think(?:ing)?>[ \t]*(?=[\n#]))",
    re.DOTALL | re.IGNORECASE,
)
# Also behind a line that announces it ("Here is the record:").
_CODE_FENCE = re.compile(
    r"\A(?:[^\n`]{1,100}:[*_]*\s*\n\s*)?```[a-zA-Z]*\n(.*?)\n?```\Z", re.DOTALL
)
# End marks of GPT, Llama, Gemma, Mistral, Phi and Qwen, of streams, and those that agents are
# told to end a task with (Webwright, AutoGen).
_END_MARK = re.compile(
    r"(?:<\|(?:endoftext|end_of_text|im_end|eot_id|eom_id|end|return)\|>|</s>|<eos>|<end_of_turn>"
    r"|\[DONE\]|(?:\A|\n)[ \t]*\W{0,3}(?:TASK[ _]COMPLETED?|TERMINATE)\W{0,3})\s*\Z"
)
_LONGEST_END_MARK = 60


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


def body(text: str) -> list[str]:
    """The lines of the text that are no headings, and what stands behind one on its line.

    A short line that ends in a colon only leads to the next one, and is left out, too.
    """
    lines = []
    for row, heading in zip(text.splitlines(), headings(text), strict=True):
        line = row.strip() if heading is None else heading.rest
        leads_on = line.endswith(":") and len(line) <= LONGEST_HEADING
        if line and not leads_on:
            lines.append(line)
    return lines


def _without_end_mark(text: str) -> str:
    tail = text[-_LONGEST_END_MARK:]
    mark = _END_MARK.search(tail)
    return text if mark is None else text[: len(text) - len(tail) + mark.start()].strip()
