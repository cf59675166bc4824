"""Getting one acceptable text out of the cascade: tier by tier, piece by piece, verified."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.parts import (
    CONTEXT_SHARE,
    LEAST_ROOM,
    MARGIN,
    context,
    pieces,
    room,
)
from langgraph_compaction.digest.prompts import repair_request, summary_request, system_prompt
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.digest.verifying import Verdict, verify
from langgraph_compaction.engine.effects import (
    CallFailed,
    CallModel,
    Effect,
    Emit,
    SummaryRequest,
    TierInfo,
)

LEAST_PIECE = 60
"""Tokens asked of each piece of a long message at least: less says nothing about it. If the pieces
together are over the cap then, they are condensed in one more call."""
PROMPT_MARGIN = 100
"""Tokens of a call beside its instructions, transcript and context: tags and closing lines."""


@dataclass(slots=True)
class Writer:
    """The cascade as one visit uses it.

    Attributes:
        tiers: in the order in which they are tried.
        count: tokens of a text.
        prompt: replaces the built-in instructions, None: built in.
        instructions: added to the instructions.
        calls: calls made so far in this visit.
        failures: one line for each call that brought no acceptable text.
        out: numbers of the tiers that raised: they are not asked again at this visit. A client
            retries by itself, so what reaches us would most likely fail for the next part, too.
        ended: whether no tier may be asked any more, but for those that need no waiting for.
        learned: tokens of transcript and context that a tier can read at most, by its number,
            where a call overflowed its window although less was expected.
        exhausted: whether all tiers failed for some source.
        condensed: segments that were condensed into others in this visit.
    """

    tiers: Sequence[TierInfo]
    count: Callable[[str], int]
    prompt: str | None
    instructions: str | None
    calls: int = 0
    failures: list[str] = field(default_factory=list)
    out: set[int] = field(default_factory=set)
    ended: bool = False
    learned: dict[int, int] = field(default_factory=dict)
    exhausted: bool = False
    condensed: int = 0

    def write(self, source: Source) -> Generator[Effect, object, tuple[str, str] | None]:
        """Ask the tiers in turn for a text that stands for ``source``.

        Returns:
            The text and the name of the tier that wrote it, or None where all tiers failed.
        """
        for number in range(len(self.tiers)):
            if number in self.out or (self.ended and not self.tiers[number].local):
                continue
            text = yield from self._ask(number, source)
            if text is not None:
                return text, self.tiers[number].name
        self.exhausted = True
        return None

    def least_room(self, max_tokens: int) -> int | None:
        """Tokens of transcript that every tier can read in one call; None: no limit.

        Spans are divided by it, so that the parts do not depend on which tier answers.
        """
        numbers = range(len(self.tiers))
        rooms = [self._rooms(number, max_tokens, condense=False)[1] for number in numbers]
        return min((limit for limit in rooms if limit is not None), default=None)

    def _rooms(
        self, number: int, max_tokens: int, *, condense: bool
    ) -> tuple[int | None, int | None]:
        """Tokens of context and of transcript that one call may carry; None: no limit."""
        asked = system_prompt(self.prompt, self.instructions, condense=condense)
        prompt = self.count(asked) + PROMPT_MARGIN
        planned = room(self.tiers[number].window, prompt=prompt, answer=max_tokens)
        known = [limit for limit in (planned, self.learned.get(number)) if limit is not None]
        if not known:
            return None, None
        limit = min(known)
        for_context = int(limit * CONTEXT_SHARE)
        return for_context, limit - for_context

    def _ask(self, number: int, source: Source) -> Generator[Effect, object, str | None]:
        """One tier's text for the source, in smaller pieces where its window overflows."""
        while True:
            before = self.learned.get(number)
            text = yield from self._in_pieces(number, source)
            if text is not None or self.learned.get(number) == before:
                return text

    def _in_pieces(self, number: int, source: Source) -> Generator[Effect, object, str | None]:
        """One tier's text for the source, joined from its pieces if it takes several calls."""
        for_context, for_source = self._rooms(number, source.max_tokens, condense=source.condenses)
        previous = context(source.previous, for_context, self.count)
        found = pieces(source.chunks, for_source, self.count)
        share = max(LEAST_PIECE, source.max_tokens // len(found))
        texts: list[str] = []
        for index, chunks in enumerate(found, 1):
            part = replace(
                source,
                chunks=chunks,
                tokens=max(1, source.tokens // len(found)),
                max_tokens=min(source.max_tokens, share),
            )
            text = yield from self._verified(number, part, previous, (index, len(found)))
            if text is None:
                return None
            texts.append(text)
        joined = "\n".join(texts)
        if len(texts) == 1 or self.count(joined) <= source.max_tokens:
            return joined
        if len(joined) >= sum(map(len, source.chunks)):  # it does not get shorter: no end in sight
            return None
        whole = replace(source, chunks=render_segments(texts), texts=texts, span=())
        return (yield from self._in_pieces(number, whole))

    def _verified(
        self, number: int, source: Source, previous: str | None, part: tuple[int, int]
    ) -> Generator[Effect, object, str | None]:
        """The text of one request, after one repair if expected sections are missing."""
        messages = summary_request(
            source.chunks,
            max_tokens=source.max_tokens,
            previous=previous,
            prompt=self.prompt,
            instructions=self.instructions,
            part=part,
            condense=source.condenses,
        )
        verdict = yield from self._call(number, messages, source)
        if verdict is None:
            return None
        repair = repair_request(messages, verdict.text, verdict.missing)
        spare = self._room(number, repair)
        if verdict.missing and (spare is None or spare >= source.max_tokens):
            second = yield from self._call(number, repair, source)
            if second is not None and len(second.missing) < len(verdict.missing):
                verdict = second
        return verdict.text

    def _room(self, number: int, messages: Sequence[BaseMessage]) -> int | None:
        """Tokens that the tier's window leaves for the answer, None where it is unknown."""
        window = self.tiers[number].window
        return None if window is None else int(window * MARGIN) - self._size(messages)

    def _size(self, messages: Sequence[BaseMessage]) -> int:
        return sum(self.count(str(message.content)) for message in messages)

    def _call(
        self, number: int, messages: Sequence[BaseMessage], source: Source
    ) -> Generator[Effect, object, Verdict | None]:
        """One call and its verdict; None where it failed or its text is rejected."""
        name = self.tiers[number].name
        self.calls += 1
        request = SummaryRequest(
            messages,
            source.span,
            source.texts,
            source.max_tokens,
            room=self._room(number, messages),
        )
        outcome = yield CallModel(number, request)
        if isinstance(outcome, CallFailed):
            reason = _described(outcome.error)
            self.failures.append(f"{name}: {reason}")
            self.calls -= not outcome.asked
            self._learn(number, outcome, messages)
            yield Emit({"type": "compaction.tier_failed", "tier": name, "reason": reason})
            return None
        verdict = verify(
            outcome,  # type: ignore[arg-type]  # a Reply, by the contract of CallModel
            # Condensing may keep lines word for word; its size is checked all the same.
            source=() if source.condenses else source.chunks,
            previous=source.previous,
            source_tokens=source.tokens,
            max_tokens=source.max_tokens,
            count=self.count,
            sections=self.prompt is None,
        )
        if verdict.problem is not None:
            self.failures.append(f"{name}: {verdict.problem}")
            yield Emit({"type": "compaction.rejected", "tier": name, "reason": verdict.problem})
            return None
        return verdict

    def _learn(self, number: int, failure: CallFailed, messages: Sequence[BaseMessage]) -> None:
        """What a failed call says about the calls after it."""
        self.ended = self.ended or failure.ends_visit
        smaller = self._size(messages[1:]) // 2  # the instructions stay as long as they are
        smaller = min(smaller, self.learned.get(number, smaller + 1) - 1)
        if failure.overflow and smaller >= LEAST_ROOM:
            self.learned[number] = smaller
        else:
            self.out.add(number)


def _described(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  # an error that cannot even say what it is
        return type(error).__name__
