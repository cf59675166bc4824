"""How far a view has to come down that the provider refused as too long.

It counted as fitting, or nobody asked; so the count or the window is wrong, and what the provider
said is all that is sure: the view has to be smaller than the one that was sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from langgraph_compaction.plan.policy import Policy

REACHED_SHARE = 0.6
"""Share of the refused view that a reduction comes down to at most, and of the provider's own limit
where it names it. What is left makes up for a count that is too low by up to two thirds, or for an
answer that has to fit beside the prompt. The same share as that of ``target``: the next steps have
room, and one refused call does not follow another."""
MOST_SHARE = 0.9
"""Share of the refused view above which a reduced one is not worth sending: the count is not that
exact, and most likely it would be refused as well."""
DIGEST_SHARE = 0.5
"""Share of the reduced view that the digest may take, where a budget of its own allows more: that
was for a larger window."""
LEAST_LIMIT = 256
"""Tokens: a number below that in an error's text is not the window of a model."""
FARTHEST_COUNT = 10
"""Times by which a count may differ from the provider's: a number that says more is another one.
CJK text counted as four characters a token is 8 times too low."""


@dataclass(frozen=True, slots=True)
class Excess:
    """What a provider said of a call that was too long, in its own tokens.

    Attributes:
        limit: tokens that a call may have, None where the error names none.
        asked: tokens that the refused one had, None where the error names none.
    """

    limit: int | None = None
    asked: int | None = None

    @property
    def named(self) -> int | None:
        """The limit, if it may be the window of a model; None: no such number was found."""
        return None if self.limit is None or self.limit < LEAST_LIMIT else self.limit

    def counted_limit(self, counted: int) -> int | None:
        """The provider's limit in our tokens, None where it is not known.

        Args:
            counted: tokens of the refused call as we count them.
        """
        limit = self.named
        if limit is None or self.asked is None or self.asked <= limit or not counted:
            return limit
        scale = counted / self.asked
        if not 1 / FARTHEST_COUNT <= scale <= FARTHEST_COUNT:
            return limit
        return max(1, int(limit * scale))


def wrong_window(excess: Excess, window: int | None, *, node: str) -> str | None:
    """What to say where the window that a node goes by is not the provider's; None: nothing.

    A smaller one than the provider's is nobody's mistake: there the count was too low.

    Args:
        excess: what the provider said.
        window: tokens of the window that the node goes by, None where it knows none.
        node: the node's name.
    """
    limit = excess.named
    if limit is None or (window is not None and window <= limit):
        return None
    goes_by = "knows no window" if window is None else f"goes by {window}"
    return (
        f"context_window: the provider refused a call as too long and names a limit of {limit} "
        f"tokens, but the node {node!r} {goes_by}, so it compacts too late. Set "
        f"context_window={limit}."
    )


@dataclass(frozen=True, slots=True)
class Room:
    """What a reduced view may take, in our tokens.

    Attributes:
        goal: what the reduction tries to come down to.
        limit: what a call may have at most, by all that is known; the means if the goal is out of
            reach.
        most: what is worth sending. Not the limit: that is read out of a text, and one more call
            tells for sure.
    """

    goal: int
    limit: int
    most: int

    def under(self, policy: Policy) -> Policy:
        """The policy under which the reduction is made: the room in place of the window."""
        digest = min(policy.max_digest, max(1, int(self.goal * DIGEST_SHARE)))
        return replace(
            policy,
            clauses=(),
            target=self.goal,
            hard=self.goal,
            window=self.limit,
            max_digest=digest,
        )


def room_after(excess: Excess, policy: Policy, counted: int) -> Room:
    """What may be left of a view that the provider refused.

    Args:
        excess: what the provider said.
        policy: the thread's.
        counted: tokens of the refused call as we count them.
    """
    named, most = excess.counted_limit(counted), int(counted * MOST_SHARE)
    limit = min(n for n in (most, policy.window, named) if n is not None)
    goal = min(
        counted * REACHED_SHARE,
        policy.target or counted,
        (named or counted) * REACHED_SHARE,
    )
    return Room(goal=max(1, int(goal)), limit=max(1, limit), most=max(1, most))
