"""What one step of compaction looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.redaction import Redact, redacted_text
from langgraph_compaction.digest.segments import parts_of, text_of
from langgraph_compaction.engine.effects import Described
from langgraph_compaction.plan.boundaries import SpanEnd
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.reading import Counter, read_tokens
from langgraph_compaction.plan.requests import Request
from langgraph_compaction.record import CompactionRecord, DigestSegment
from langgraph_compaction.view import Layout, lay_out


@dataclass(frozen=True, slots=True)
class Visit:
    """Everything one step looks at.

    Attributes:
        messages: the messages channel.
        record: the record in the state.
        policy: the numbers to decide by.
        counter: counts tokens.
        tiers: the cascade, in the order in which it is tried.
        problems: what is wrong with the state, or with settings of thread and run, one line each.
        request: the request for compaction in the thread's settings, carried out or not.
        redact: takes secrets out of what is sent to a summariser and of what is stored.
        until: where a span has to end that an earlier visit chose, None: this one chooses.
        run: tells the present run of a subgraph from its others; "" where the graph is none.
        live: what the application holds beside the messages, as the view shows it; "" for nothing.
        advice: what to say in addition where a fold fails; "" for nothing.
    """

    messages: Sequence[BaseMessage]
    record: CompactionRecord
    policy: Policy
    counter: Counter
    tiers: Sequence[Described]
    problems: Sequence[str] = ()
    request: Request | None = None
    redact: Redact | None = None
    until: SpanEnd | None = None
    run: str = ""
    live: str = ""
    advice: str = ""

    def texts(self, segments: Sequence[DigestSegment]) -> list[str]:
        """The texts of segments as they may be sent: some may be older than the hook.

        Raises:
            RedactionError: the hook failed.
        """
        redact = None if self.redact is None else self.redacted
        return [text_of(segment, redact) for segment in segments]

    def parts(self, segments: Sequence[DigestSegment]) -> list[Parts]:
        """The parts of segments as they may be sent; raises what `texts` raises."""
        redact = None if self.redact is None else self.redacted
        return [parts_of(segment, redact) for segment in segments]

    def redacted(self, text: str) -> str:
        """A text without secrets; raises what `texts` raises."""
        return redacted_text(text, self.redact)

    def size(self, layout: Layout) -> int:
        """Tokens of a call with this view."""
        policy = self.policy.with_live(layout.digest)
        return policy.call_tokens(read_tokens(layout.view(), self.counter))

    def layout(self, record: CompactionRecord) -> Layout:
        """The parts of the view under ``record``."""
        return lay_out(self.messages, record, defaults=self.policy.render)
