"""Whether a text that a model returned may become part of the digest.

A refusal, an echo, an error page or half a sentence that is stored as the digest silently
replaces everything the agent knew. So every candidate is checked; a rejected one changes nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph_compaction.digest.prompts import EXPECTED_SECTIONS, SECTIONS
from langgraph_compaction.digest.rendering import FENCES

MIN_CHARACTERS = 30
"""Characters below which a text says nothing about a span (stagewise's limit, too)."""
ECHO_SHARE = 0.6
"""Share of a digest's characters in lines copied from its source above which it is an echo."""
ECHO_LINE = 60
"""Characters from which a copied line counts as copied: short ones recur by chance."""
LOOP_SHARE = 0.4
"""Share of the lines that one and the same line may make up before the text is a loop."""

REPEATED_SHARE = 0.4
"""Share of a text's runs of three words that are different ones below which it is a loop."""
LONGEST = 200_000
"""Characters above which a text is over any cap, and is not looked at any further."""

# As the providers name them, casefolded: OpenAI, Anthropic, Gemini.
_CUT_OFF = {
    "length",
    "max_tokens",
    "max_output_tokens",
    "incomplete",
    "model_context_window_exceeded",
}
_FILTERED = {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content"}
_FENCE_TAG = re.compile(r"</?(?:" + "|".join(FENCES) + r")\b[^<>\n]{0,200}>", re.IGNORECASE)
_THOUGHT = re.compile(r"\A<think>.*?</think>", re.DOTALL)
_CODE_FENCE = re.compile(r"\A```[a-zA-Z]*\n(.*?)\n?```\Z", re.DOTALL)
_TOOL_PROTOCOL = re.compile(
    r"^[ \t]*(?:</?tool_calls?>|</?tool_response>|<function_calls>|<invoke\s|<function=|<parameter="
    r"|\[TOOL_CALLS\]|<\|(?:python_tag|channel|im_start|im_end|start_header_id|tool_call[^|\n]*)\|>"
    r"|\[/?INST\]|<\uff5ctool)",
    re.MULTILINE,
)
_REFUSAL = re.compile(
    r"\A\W{0,10}(?:(?:sure|of course|certainly|okay|ok)\W{1,3})?"
    r"(?:i'?m sorry|i am sorry|sorry,|i apologi[sz]e|"
    r"i can(?:'|no)t (?:help|assist|provide|comply|summari[sz]e|do that)|i cannot|"
    r"i(?:'| a)m (?:unable|not able)|as an ai\b|"
    r"i don'?t (?:see|have) (?:any|the|a)\b|there is no (?:conversation|transcript)|"
    r"(?:could|can|would) you (?:please )?(?:provide|share|clarify|paste)|"
    r"please (?:provide|share|paste|send)|what would you like|how can i (?:help|assist)|"
    r"no conversation|it (?:looks|seems) like (?:you\b|there(?:'s| is) no|the (?:conv|transc))|"
    r"tut mir leid|es tut mir leid|je suis désolé|désolé|lo siento|"
    r"抱歉|对不起|很抱歉|請提供|请提供|申し訳|죄송)",
    re.IGNORECASE,
)
_HEADING_MARKS = " \t#*_:.-0123456789"


MOST_WRAPPINGS = 8
"""Fences and thoughts around a text that are taken off; more of them are no mistake."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from a summariser.

    Attributes:
        text: its text blocks, joined; reasoning is not part of it.
        finish_reason: why the model stopped, as the provider names it; None: not said.
        called_tools: whether the answer calls tools.
        verbatim: whether the text consists of extracts by design, so that an echo of the source,
            or of its repetitions, is no fault.
    """

    text: str
    finish_reason: str | None = None
    called_tools: bool = False
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one reply.

    Attributes:
        text: the cleaned text, whether accepted or not.
        problem: why it is rejected, one short phrase; None: accepted.
        missing: expected sections that it lacks, asked for once before it is accepted as it is.
    """

    text: str
    problem: str | None = None
    missing: tuple[str, ...] = ()


def verify(
    reply: Reply,
    *,
    source: Sequence[str],
    previous: Sequence[str],
    source_tokens: int,
    max_tokens: int,
    count: Callable[[str], int],
    sections: bool,
) -> Verdict:
    """Check a reply against everything a digest must not be.

    Args:
        reply: what the summariser returned.
        source: the rendered messages (or segments) it was made from.
        previous: texts of the segments that stand already.
        source_tokens: tokens of what it would replace.
        max_tokens: tokens it may have.
        count: tokens of a text.
        sections: whether the built-in prompt asked for sections; other prompts may ask for any
            prose.
    """
    text = cleaned(reply.text) if len(reply.text) <= LONGEST else reply.text
    problem = (
        _outer_fault(reply, text)
        or _inner_fault(reply, text, source, previous)
        or _size_fault(count(text), source_tokens, max_tokens)
    )
    if problem is not None or not sections:
        return Verdict(text, problem)
    found = headings(text)
    if not found & {name.casefold() for name in SECTIONS}:
        return Verdict(text, "none of the sections that were asked for")
    missing = tuple(name for name in EXPECTED_SECTIONS if name.casefold() not in found)
    return Verdict(text, None, () if reply.verbatim else missing)


def cleaned(text: str) -> str:
    """The text without thoughts before it, our own fence tags, a code fence and outer space."""
    for _ in range(MOST_WRAPPINGS):
        before = text
        text = _FENCE_TAG.sub("", _THOUGHT.sub("", text.strip())).strip()
        wrapped = _CODE_FENCE.match(text)
        text = wrapped.group(1).strip() if wrapped else text
        if text == before:
            break
    return text


def headings(text: str) -> set[str]:
    """What may be headings in the text, casefolded: its short lines and line beginnings."""
    found: set[str] = set()
    for line in text.splitlines():
        found.update(
            part[:80].strip(_HEADING_MARKS).casefold() for part in (line, line.partition(":")[0])
        )
    return found


def _outer_fault(reply: Reply, text: str) -> str | None:
    reason = (reply.finish_reason or "").casefold()
    if reason in _CUT_OFF:
        return "cut off by the length limit"
    if reason in _FILTERED:
        return f"stopped by a filter ({reply.finish_reason})"
    if reply.called_tools:
        return "calls tools instead of answering"
    if len(text) < MIN_CHARACTERS:
        return f"only {len(text)} characters" if text else "empty"
    return f"over any cap ({len(text):,} characters)" if len(text) > LONGEST else None


def _inner_fault(
    reply: Reply, text: str, source: Sequence[str], previous: Sequence[str]
) -> str | None:
    if _TOOL_PROTOCOL.search(text):
        return "contains tool-protocol text"
    if _is_json(text):
        return "JSON instead of text"
    if _REFUSAL.match(text.replace("\u2019", "'")):
        return "a refusal or a question back"
    return None if reply.verbatim else _repetition(text, source, previous)


def _repetition(text: str, source: Sequence[str], previous: Sequence[str]) -> str | None:
    if _loops(text):
        return "repeats itself"
    if _copied(text, source) or _copied(text, previous):
        return "an echo of what it was given"
    return None


def _size_fault(tokens: int, source_tokens: int, max_tokens: int) -> str | None:
    if tokens >= source_tokens:
        return f"larger than what it replaces ({tokens} of {source_tokens} tokens)"
    if tokens > max_tokens:
        return f"over its cap ({tokens} of {max_tokens} tokens)"
    return None


def _is_json(text: str) -> bool:
    if text[0] not in "[{":
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _loops(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= 5:
        most = Counter(lines).most_common(1)[0][1]
        if most >= 4 and most > len(lines) * LOOP_SHARE:
            return True
    words = text.split()
    if len(words) < 30:
        return False
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return len(set(runs)) < len(runs) * REPEATED_SHARE


def _copied(text: str, source: Sequence[str]) -> bool:
    known = {line.strip() for piece in source for line in piece.splitlines()}
    total = copied = 0
    for line in text.splitlines():
        stripped = line.strip()
        total += len(stripped)
        if len(stripped) >= ECHO_LINE and stripped in known:
            copied += len(stripped)
    return total > 0 and copied > total * ECHO_SHARE
