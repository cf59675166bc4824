"""Whether a text that a model returned may become part of the digest.

A refusal, an echo, an error page or half a sentence that is stored as the digest silently
replaces everything the agent knew. So every candidate is checked; a rejected one changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from langgraph_compaction.digest.headings import sections_in
from langgraph_compaction.digest.prompts import EXPECTED_SECTIONS
from langgraph_compaction.digest.verifying.cleaning import cleaned
from langgraph_compaction.digest.verifying.kinds import kind_fault
from langgraph_compaction.digest.verifying.language import Mismatch, mismatch
from langgraph_compaction.digest.verifying.repetition import copied, loops, template
from langgraph_compaction.digest.verifying.verdict import Reply, Usage, Verdict

__all__ = [
    "LONGEST",
    "MIN_CHARACTERS",
    "REPAIRABLE_SIZE",
    "Reply",
    "Usage",
    "Verdict",
    "cleaned",
    "verify",
]

MIN_CHARACTERS = 30
"""Characters below which a text says nothing about a span (stagewise's limit, too)."""
LONGEST = 200_000
"""Characters above which a text is over any cap, and is not looked at any further."""
REPAIRABLE_SIZE = 3
"""Times its cap up to which the model is asked to shorten its text: a longer one is no overshoot,
and showing it again would cost more than the next tier's call."""

# As the providers name them, casefolded: OpenAI, Anthropic, Gemini.
_CUT_OFF = {
    "length",
    "max_tokens",
    "max_output_tokens",
    "incomplete",
    "model_context_window_exceeded",
}
_FILTERED = {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content"}


def verify(
    reply: Reply,
    *,
    source: Sequence[str],
    previous: Sequence[str],
    source_tokens: int,
    max_tokens: int,
    count: Callable[[str], int],
    sections: bool,
    conversation: Sequence[str] = (),
    prompt: str = "",
) -> Verdict:
    """Check a reply against everything a digest must not be.

    The first fault that is found counts. Those that a second answer would hardly mend come first;
    of the others, all that is to be mended is asked for at once. A text without any heading is no
    record but an answer to the conversation, and is not worth a second call, unless it is so long
    that it may well be one: then sections and length are asked for together.

    Args:
        reply: what the summariser returned.
        source: the rendered messages (or segments) it was made from.
        previous: texts of the segments that stand already.
        source_tokens: tokens of what it would replace.
        max_tokens: tokens it may have.
        count: tokens of a text.
        sections: whether the built-in prompt asked for sections; other prompts may ask for any
            prose.
        conversation: texts that user and agent wrote, whose language it has to be in; empty: not
            known, or any language will do.
        prompt: the instructions that the summariser was given; empty: not known.
    """
    if len(reply.text) > LONGEST:
        problem = _outer_fault(reply, reply.text)
        return Verdict(reply.text, problem, max_tokens=max_tokens)
    text = cleaned(reply.text)
    tokens = count(text)
    found = sections_in(text) if sections else set()
    over = _over_cap(tokens, max_tokens)
    problem = (
        _outer_fault(reply, text)
        or kind_fault(text)
        or (None if reply.verbatim else _repetition(text, source, previous, prompt))
        or _inflated(tokens, source_tokens)
        or (over if tokens > max_tokens * REPAIRABLE_SIZE else None)
        or (_without_sections(found) if sections and not over else None)
    )
    if problem is not None:
        return Verdict(text, problem, tokens=tokens, max_tokens=max_tokens)
    if reply.verbatim:
        return Verdict(text, over, tokens=tokens, max_tokens=max_tokens)
    missing = tuple(name for name in EXPECTED_SECTIONS if sections and name not in found)
    language = mismatch(text, conversation)
    problem = over or (language and f"wrong language ({language.found}, not {language.expected})")
    asks = _asks(missing, language, over, tokens, max_tokens)
    return Verdict(text, problem, missing, asks, tokens, max_tokens)


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


def _repetition(
    text: str, source: Sequence[str], previous: Sequence[str], prompt: str
) -> str | None:
    if template(text, prompt):
        return "template text"
    if loops(text):
        return "repeats itself"
    return (
        "an echo of what it was given" if copied(text, source) or copied(text, previous) else None
    )


def _inflated(tokens: int, source_tokens: int) -> str | None:
    if tokens < source_tokens:
        return None
    return f"larger than what it replaces ({tokens} of {source_tokens} tokens)"


def _over_cap(tokens: int, max_tokens: int) -> str | None:
    return f"over its cap ({tokens} of {max_tokens} tokens)" if tokens > max_tokens else None


def _without_sections(found: Collection[str]) -> str | None:
    return None if found else "none of the sections that were asked for"


def _asks(
    missing: Sequence[str],
    language: Mismatch | None,
    over: str | None,
    tokens: int,
    max_tokens: int,
) -> tuple[str, ...]:
    asks = []
    if missing:
        names = ", ".join(f"## {name}" for name in missing)
        asks.append(
            f"it lacks the sections {names}: add them, and leave out one only if the transcript "
            "really says nothing for it"
        )
    if language is not None:
        asks.append(
            f"it is written in {language.found}, and the conversation in {language.expected}: "
            f"write all but the headings in {language.expected}"
        )
    if over is not None:
        asks.append(f"it has {tokens} tokens, and at most {max_tokens} are allowed: shorten it")
    return tuple(asks)
