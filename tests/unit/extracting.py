"""Digests without a model, and spans to make them of.

Counters here are as plain as can be (a token a word, or a character), so that every budget in a
test can be checked by hand.
"""

import re

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langgraph_compaction.digest.extractive import ExtractiveSummarizer

AMPLE = 2_000


def words(text: str) -> int:
    return len(text.split())


def summary(*messages: BaseMessage, tokens: int = AMPLE) -> str:
    return ExtractiveSummarizer().summarize(messages, max_tokens=tokens, count=words)


def condensed(*texts: str, tokens: int = AMPLE) -> str:
    return ExtractiveSummarizer().condense(texts, max_tokens=tokens, count=words)


def section(text: str, name: str) -> list[str]:
    """The bullets under a heading, without their marks."""
    parts = text.split(f"\n## {name}\n")
    return re.findall(r"^- (.*)$", parts[1].split("\n\n")[0], re.MULTILINE) if parts[1:] else []


def called(name: str, call_id: str = "1", /, **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def answered(text: str, call_id: str = "1", status: str = "success") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, status=status)
