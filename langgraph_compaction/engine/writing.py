"""Getting one acceptable text out of the cascade: tier by tier, piece by piece, verified."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction.digest.dividing import (
    CONTEXT_SHARE,
    LEAST_ROOM,
    MARGIN,
    context,
    pieces,
    room,
)
from langgraph_compaction.digest.prompts import (
    Sections,
    Task,
    repair_request,
    summary_request,
    system_prompt,
)
from langgraph_compaction.digest.redaction import Redact, redacted_text
from langgraph_compaction.digest.rendering import message_text
from langgraph_compaction.digest.source import Source, render_segments
from langgraph_compaction.digest.verifying import LONGEST, Reply, Usage, Verdict, cleaned, verify
from langgraph_compaction.digest.verifying.language import names_language
from langgraph_compaction.engine.effects import (
    CallFailed,
    CallModel,
    Effect,
    Emit,
    SummaryRequest,
    TierInfo,
)
from langgraph_compaction.engine.tally import Tally

LEAST_PIECE = 60
"""Tokens that the record of a piece may have at least: less says nothing about it. If together they
are over the cap then, they are condensed in one more call."""
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
        sections: the user's own, in place of the built-in ones.
        redact: takes secrets out of what is sent and of what comes back.
        tally: what the calls come to.
        out: numbers of the tiers that raised: they are not asked again at this visit. A client
            retries by itself, so what reaches us would most likely fail for the next part, too.
        ended: whether no tier may be asked any more, but for those that need no waiting for.
        learned: tokens of transcript and context that a tier can read at most, by its number,
            where a call overflowed its window although less was expected.
    """

    tiers: Sequence[TierInfo]
    count: Callable[[str], int]
    prompt: str | None
    instructions: str | None
    sections: Sections | None = None
    redact: Redact | None = None
    tally: Tally = field(default_factory=Tally)
    out: set[int] = field(default_factory=set)
    ended: bool = False
    learned: dict[int, int] = field(default_factory=dict)

    def write(self, source: Source) -> Generator[Effect, object, tuple[str, str] | None]:
        """Ask the tiers in turn for a text that stands for ``source``.

        Returns:
            The text and the name of the tier that wrote it, or None where all tiers failed.
        """
        number = self.next_tier()
        while number is not None:
            written = yield from self.ask(number, source)
            if written is not None:
                return written
            number = self.next_tier(number + 1)
        return None

    def next_tier(self, first: int = 0) -> int | None:
        """Number of the first tier from ``first`` on that may be asked; None: there is none."""
        for number in range(first, len(self.tiers)):
            if number not in self.out and (not self.ended or self.tiers[number].local):
                return number
        return None

    def room_of(self, number: int | None, max_tokens: int) -> int | None:
        """Tokens of transcript that a tier can read in one call; None: no limit.

        A span is divided by the window of the tier that is asked first. Those after it are asked
        only for what it could not write, so that their windows would cost calls for nothing.
        """
        return None if number is None else self._rooms(number, max_tokens, "fold")[1]

    def ask(self, number: int, source: Source) -> Generator[Effect, object, tuple[str, str] | None]:
        """Ask one tier for a text that stands for ``source``, in pieces where it takes them.

        Returns:
            The text and the name of the tier, or None where it gave none that is acceptable.
        """
        text = yield from self._ask(number, source)
        return None if text is None else (text, self.tiers[number].name)

    def _rooms(self, number: int, max_tokens: int, task: Task) -> tuple[int | None, int | None]:
        """Tokens of context and of transcript that one call may carry; None: no limit."""
        asked = system_prompt(self.prompt, self.instructions, task=task, sections=self.sections)
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
        if self.tiers[number].local:
            source = replace(source, max_tokens=source.extract_tokens)
        while True:
            before = self.learned.get(number)
            text = yield from self._in_pieces(number, source)
            if text is not None or self.learned.get(number) == before:
                return text

    def _in_pieces(self, number: int, source: Source) -> Generator[Effect, object, str | None]:
        """One tier's text for the source, joined from its pieces if it takes several calls."""
        for_context, for_source = self._rooms(number, source.max_tokens, source.task)
        previous = context(source.previous, for_context, self.count)
        found = pieces(source.chunks, for_source, self.count)
        share = max(LEAST_PIECE, source.max_tokens // len(found))
        texts: list[str] = []
        for index, chunks in enumerate(found, 1):
            piece = replace(
                source,
                chunks=chunks,
                tokens=max(1, source.tokens // len(found)),
                max_tokens=min(source.max_tokens, share),
            )
            text = yield from self._verified(number, piece, previous, (index, len(found)))
            if text is None:
                return None
            texts.append(text)
        joined = "\n".join(texts)
        if len(texts) == 1 or self.count(joined) <= source.max_tokens:
            return joined
        if len(joined) >= sum(map(len, source.chunks)):  # it does not get shorter: no end in sight
            return None
        fullness = self.count(joined) / source.max_tokens
        whole = replace(
            source, chunks=render_segments(texts), texts=texts, span=(), fullness=fullness
        )
        return (yield from self._in_pieces(number, whole))

    def _verified(
        self, number: int, source: Source, previous: str | None, place: tuple[int, int]
    ) -> Generator[Effect, object, str | None]:
        """The text of one request, after one repair if asking again may mend its faults."""
        messages = summary_request(
            source.chunks,
            max_tokens=source.max_tokens,
            previous=previous,
            prompt=self.prompt,
            instructions=redacted_text(self.instructions or "", self.redact) or None,
            sections=self.sections,
            piece=place,
            task=source.task,
            fullness=source.fullness,
        )
        first = yield from self._call(number, messages, source)
        if first is None:
            return None
        second = None
        if first.repair:
            repair = repair_request(messages, first.text, first.repair)
            spare = self._room(number, repair)
            if spare is None or spare >= source.max_tokens:
                second = yield from self._call(number, repair, source)
        best = self._better_one(self.tiers[number].name, first, second)
        return best.text if best.problem is None else None

    def _better_one(self, tier: str, first: Verdict, second: Verdict | None) -> Verdict:
        """The text that counts, the first one or its repair; both are noted as candidates."""
        if second is None:
            self.tally.note(tier, first, "accepted")
            return first
        if _improves(second, first):
            self.tally.note(tier, first, "rejected", "its repair is better")
            self.tally.note(tier, second, "repaired")
            return second
        self.tally.note(tier, first, "accepted")
        self.tally.note(tier, second, "rejected", "no better than the first")
        return first

    def _room(self, number: int, messages: Sequence[BaseMessage]) -> int | None:
        """Tokens that the tier's window leaves for the answer, None where it is unknown."""
        window = self.tiers[number].window
        return None if window is None else int(window * MARGIN) - self._size(messages)

    def _size(self, messages: Sequence[BaseMessage]) -> int:
        return sum(self.count(str(message.content)) for message in messages)

    def _call(
        self, number: int, messages: Sequence[BaseMessage], source: Source
    ) -> Generator[Effect, object, Verdict | None]:
        """One call and its verdict; None where it failed."""
        name = self.tiers[number].name
        self.tally.calls += 1
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
            self.tally.failures.append(f"{name}: {reason}")
            self.tally.calls -= not outcome.asked
            self._learn(number, outcome, messages)
            yield Emit({"type": "compaction.tier_failed", "tier": name, "reason": reason})
            return None
        reply: Reply = outcome  # type: ignore[assignment]  # as CallModel says
        self._spend(number, reply, messages)
        verdict = verify(
            self._redacted(reply),
            source=source.fresh(),
            previous=source.previous,
            source_tokens=source.tokens,
            max_tokens=source.max_tokens,
            count=self.count,
            sections=self.prompt is None and self.sections is None,
            conversation=self._conversation(source),
            prompt=str(messages[0].content),
        )
        if verdict.problem is not None:
            self.tally.failures.append(f"{name}: {verdict.problem}")
            sizes = {"tokens": verdict.tokens, "max_tokens": verdict.max_tokens}
            known = {key: size for key, size in sizes.items() if size is not None}
            event = {"type": "compaction.rejected", "tier": name, "reason": verdict.problem}
            yield Emit({**event, **known})
        return verdict

    def _spend(self, number: int, reply: Reply, messages: Sequence[BaseMessage]) -> None:
        """Note the tokens of a call: the provider's count, or ours where it reports none."""
        if self.tiers[number].local:
            return
        own = reply.usage or Usage(self._size(messages), self.count(reply.text[:LONGEST]))
        self.tally.spent.add(own, reported=reply.usage is not None)

    def _redacted(self, reply: Reply) -> Reply:
        """The reply without secrets, cleaned first: a model may put one together from parts.

        Before it is verified, so that what is measured is what is stored.
        """
        if self.redact is None or len(reply.text) > LONGEST:  # too long to be looked at, or kept
            return reply
        return replace(reply, text=redacted_text(cleaned(reply.text), self.redact))

    def _conversation(self, source: Source) -> Sequence[str]:
        """The texts whose language the digest has to be in; none where a user may say otherwise."""
        if self.prompt is not None or names_language(self.instructions):
            return ()
        if source.task == "condense":
            return source.texts
        spoken = (one for one in source.span if isinstance(one, HumanMessage | AIMessage))
        return [text for text in map(message_text, spoken) if text.strip()]

    def _learn(self, number: int, failure: CallFailed, messages: Sequence[BaseMessage]) -> None:
        """What a failed call says about the calls after it."""
        self.ended = self.ended or failure.ends_visit
        smaller = self._size(messages[1:]) // 2  # the instructions stay as long as they are
        smaller = min(smaller, self.learned.get(number, smaller + 1) - 1)
        if failure.overflow and smaller >= LEAST_ROOM:
            self.learned[number] = smaller
        else:
            self.out.add(number)


def _improves(second: Verdict, first: Verdict) -> bool:
    """Whether the repaired text is to be taken rather than the first one."""
    if second.problem is not None or first.problem is not None:
        return second.problem is None
    return len(second.missing) < len(first.missing)


def _described(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  # an error that cannot even say what it is
        return type(error).__name__
