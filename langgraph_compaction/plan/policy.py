"""The numbers one visit decides by: settings resolved against the agent model's window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from langchain_core.messages import BaseMessage

from langgraph_compaction.plan.triggers import Clause
from langgraph_compaction.record import LEAST_SEGMENT_TOKENS, Render

FREE_SHARE = 0.3
"""Share of what the segments before it leave of the digest's budget that a new segment may take.

Two folds may fill half of the budget, and the fourth is down to `LEAST_SHARE`. Tried instead was a
fixed share of the whole: with a fifth the digest is full after five folds, and every later fold
has to condense; with a tenth the spans of a short thread are told too briefly."""
LEAST_SHARE = 0.125
"""Share of the digest's budget that a new segment may always take, however little the others leave.

Tried out with a sixth, an eighth and a tenth in ``tests.benchmarks.survival``. As many references
outlast ten folds with a sixth as with a tenth. Of those that real transcripts come back to, the
digest still has most with an eighth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingRule:
    """What may be cleared, and when it is worth it.

    Attributes:
        keep: newest groups with calls whose results stay.
        min_share: tokens that a clearing has to free, as a share of the view.
        min_chars: characters of a result below which it stays.
        argument_chars: characters of a call's arguments above which they are shortened; 0: never.
        protected_tools: names of tools whose results and arguments stay.
    """

    keep: int
    min_share: float
    min_chars: int
    argument_chars: int
    protected_tools: tuple[str, ...]


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
        clearing: what may be cleared; None: nothing.
        prune: whether folded messages leave the channel.
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
        sections: the user's own sections and what each asks for, None: the built-in ones.
        tool_markers: templates of the lines that stand for calls and their results, by tool.
        summary_timeout: seconds for all summary calls of a visit, None: no limit.
        raises: whether a failing summariser may end the run.
        live_tokens: tokens that live state may take in the view.
        live: tokens that it takes, in each view that has a digest.
        background: whether folds that are not urgent are made beside the agent.
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
    clearing: ClearingRule | None
    prune: bool
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
    live_tokens: int
    live: int = 0
    background: bool = False
    slope: float = 1.0
    beyond: float = 0.0
    beyond_of: int = 0
    render: Render = field(default_factory=Render)
    clamp_chars: int
    prompt: str | None
    instructions: str | None
    sections: Mapping[str, str | None] | None
    tool_markers: Mapping[str, str | None]
    summary_timeout: float | None
    raises: bool

    @property
    def weighs_costs(self) -> bool:
        """Whether the trigger asks what a fold costs."""
        return any(one.prices is not None for clause in self.clauses for one in clause)

    def with_live(self, digest: object) -> Policy:
        """The policy for a view with this digest: live state is shown where there is one."""
        if digest is None or not self.live:
            return self
        return replace(self, overhead=self.overhead + self.live, live=0)

    def call_tokens(self, counted: int) -> int:
        """Tokens of a call whose messages count ``counted`` tokens.

        What was reported beyond these may be fixed (schemas that nobody told of) or grow with
        the messages (another tokenizer). Whichever is less is added: of a view that a fold made
        shorter, only as large a share as it still has of what was reported on.
        """
        share = min(1.0, counted / self.beyond_of) if self.beyond_of else 1.0
        return self.overhead + round(counted * self.slope + self.beyond * share)

    def segment_cap(self, source_tokens: int, standing: int = 0) -> int:
        """Tokens that a segment may have at most.

        So many as its source calls for (``segment_share`` of it, between ``min_segment`` and
        ``max_segment``), but only a share of what is left of the digest's budget: `FREE_SHARE`, or
        `LEAST_SHARE` of the whole if that is more. A thread that is folded twice may be told in
        full, and one of thousands of steps has room for all its spans. The smallest window leaves
        `LEAST_SEGMENT_TOKENS` still; but a segment is always shorter than its source.

        Args:
            source_tokens: tokens of what it replaces.
            standing: tokens of the segments before it; 0 gives the most that it may ever have.
        """
        wanted = max(self.min_segment, int(source_tokens * self.segment_share))
        left = max(
            int((self.max_digest - standing) * FREE_SHARE), int(self.max_digest * LEAST_SHARE)
        )
        cap = max(LEAST_SEGMENT_TOKENS, min(wanted, self.max_segment, left))
        return max(1, min(cap, source_tokens - 1))
