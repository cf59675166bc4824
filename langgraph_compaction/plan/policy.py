"""The numbers one visit decides by: settings resolved against the agent model's window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from langchain_core.messages import BaseMessage

from langgraph_compaction.plan.triggers import Clause
from langgraph_compaction.record import LEAST_SEGMENT_TOKENS, Render

FREE_SHARE = 0.3
"""Share of the free part of the digest's budget that a new segment may take."""
MOST_SEGMENTS = 8
"""A new segment may always take one part in this many of the budget. With fewer and larger ones old
spans fade sooner, with more and smaller ones the newest span is told too briefly: in the survival
benchmark references outlast ten rounds with 6 as with 10, and 8 recalls most of real transcripts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Settings in one internal form.

    Attributes:
        enabled: False: nothing is done at all.
        clauses: the trigger: any of these; empty: off.
        window: tokens of the agent model's context window, None where unknown.
        soft: fewest tokens at which the trigger can fire, None where it looks at no tokens.
        hard: tokens that a view must not exceed, None where the window is unknown.
        target: tokens that a fold must bring the view down to, None: no target.
        keep_tokens: tokens of recent messages to keep, None: no such limit.
        keep_messages: recent messages to keep, None: no such limit.
        fold_all: fold everything that is neither kept nor open.
        min_keep: recent messages that stay even where ``keep_tokens`` says less.
        min_fold_tokens: tokens of the smallest span that is worth a model call.
        min_fold_share: the same as a share of the view.
        segment_share: tokens of a new segment as a share of its span, at most.
        min_segment: tokens that a segment may always have.
        max_segment: tokens that a segment may have at most.
        rolling: whether each fold rewrites the digest, rather than adding to it.
        max_digest: tokens of all segments together, at most.
        overhead: tokens of every call beside the messages (tool schemas, the agent's prompt).
        slope: tokens that one counted token is, by what the provider reported, from 1 up.
        beyond: tokens that the provider reported beyond that and overhead, from 0 up.
        beyond_of: counted tokens of the messages of which it reported them.
        calibrate: whether the provider's reports correct the count.
        task: which human message is the task.
        pinned: whether a message is pinned.
        render: how the view shows digest and oversized messages.
        clamp_chars: characters of a tool result that the summariser sees.
        prompt: replaces the built-in instructions to the summariser, None: built in.
        instructions: added to the instructions.
        summary_timeout: seconds for all summary calls of a visit, None: no limit.
        raises: whether a failing summariser may end the run.
    """

    enabled: bool
    clauses: tuple[Clause, ...]
    window: int | None
    soft: int | None
    hard: int | None
    target: int | None
    keep_tokens: int | None
    keep_messages: int | None
    fold_all: bool
    min_keep: int
    min_fold_tokens: int
    min_fold_share: float
    segment_share: float
    min_segment: int
    max_segment: int
    rolling: bool
    max_digest: int
    overhead: int
    calibrate: bool
    task: Literal["first", "latest"] | None
    pinned: Callable[[BaseMessage], bool]
    slope: float = 1.0
    beyond: float = 0.0
    beyond_of: int = 0
    render: Render = field(default_factory=Render)
    clamp_chars: int
    prompt: str | None
    instructions: str | None
    summary_timeout: float | None
    raises: bool

    def call_tokens(self, counted: int) -> int:
        """Tokens of a call whose messages count ``counted`` tokens.

        What was reported beyond these may be fixed (schemas that nobody told of) or grow with
        the messages (another tokenizer). Whichever is less is added: of a view that a fold made
        shorter, only as large a share as it still has of what was reported on.
        """
        share = min(1.0, counted / self.beyond_of) if self.beyond_of else 1.0
        return self.overhead + round(counted * self.slope + self.beyond * share)

    def segment_cap(self, source_tokens: int, standing: int = 0) -> int:
        """Tokens that a segment may have.

        It follows its source, and takes no more than a part of what is left of the digest's
        budget: a thread that is folded twice may be told in full, and in one that goes on for
        thousands of steps there is room for all its spans.

        Args:
            source_tokens: tokens of what it replaces.
            standing: tokens of the segments before it; 0 gives the most that it may ever have.
        """
        cap = min(max(self.min_segment, int(source_tokens * self.segment_share)), self.max_segment)
        free = self.max_digest - standing
        share = max(int(free * FREE_SHARE), self.max_digest // MOST_SEGMENTS)
        cap = max(LEAST_SEGMENT_TOKENS, min(cap, share))
        return max(1, min(cap, source_tokens - 1))
