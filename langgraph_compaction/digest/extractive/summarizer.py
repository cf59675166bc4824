"""A digest without a model: the sentences, calls and references of a span that say most.

The last resort when every model failed, and a summariser in its own right where there is no
model. It writes nothing of its own but headings and labels: every bullet is an extract, and the
first line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.extractive.extracts import sections
from langgraph_compaction.digest.extractive.filling import fill
from langgraph_compaction.digest.extractive.merging import merged
from langgraph_compaction.digest.extractive.reading import Reading
from langgraph_compaction.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Writes digests without a model: extracts of the span, ranked and sorted into sections.

    Deterministic, and safe to share between threads. The first line of its text says that it
    consists of extracts. Time grows linearly with the span.

    Attributes:
        max_sentence_chars: characters of one extract, at least 40; longer sentences are cut
            between clauses.
        sample_chars: characters read of one tool result, half from its head and half from its
            tail, at least 200. The default is what a model sees of a result, too.

    Raises:
        ConfigurationError: one of them is below its least value.
    """

    max_sentence_chars: int = 300
    sample_chars: int = 2_000

    def __post_init__(self) -> None:
        for name, least in (("max_sentence_chars", 40), ("sample_chars", 200)):
            if getattr(self, name) < least:
                raise ConfigurationError(
                    f"{name}={getattr(self, name)!r} is too small for ExtractiveSummarizer: "
                    f"give at least {least} characters."
                )

    def write(
        self,
        texts: Sequence[str],
        messages: Sequence[BaseMessage],
        *,
        max_tokens: int,
        count: Callable[[str], int],
    ) -> str:
        """One digest of earlier digests, of messages that came after them, or of both.

        Args:
            texts: digests, oldest first; none: the messages alone, as by `summarize`.
            messages: the span after them, oldest first; none: the digests alone, as by `condense`.
            max_tokens: tokens that the digest may have, at least 40.
            count: tokens of a text.

        Returns:
            Markdown with the sections of the built-in prompt, never above ``max_tokens``; "" for
            nothing at all.

        Raises:
            ConfigurationError: ``max_tokens`` is too small for the shortest digest.
        """
        fresh = self.summarize(messages, max_tokens=max_tokens, count=count)
        if not texts:
            return fresh
        every = [*texts, fresh] if fresh else texts
        return self.condense(every, max_tokens=max_tokens, count=count)

    def summarize(
        self, messages: Sequence[BaseMessage], *, max_tokens: int, count: Callable[[str], int]
    ) -> str:
        """The digest of a span of messages.

        What user and agent said goes before what tools printed; a quote of a result begins with
        the tool's name and an arrow.

        Args:
            messages: the span, oldest first; never changed. System messages are left out: they
                stay in the view word for word.
            max_tokens: as for `write`.
            count: as for `write`.

        Returns:
            The digest; "" for no messages.

        Raises:
            ConfigurationError: as for `write`.
        """
        if not messages:
            return ""
        reading = Reading(messages, self.max_sentence_chars, self.sample_chars)
        return fill(sections(reading), max_tokens, count)

    def condense(
        self, texts: Sequence[str], *, max_tokens: int, count: Callable[[str], int]
    ) -> str:
        """One digest out of several.

        Constraints, open items and references are kept longest; quotes of results and calls that
        only looked something up go first, and of the rest the oldest. "State now" and "Next step"
        are those of the newest digest that has them; a fact in an older state becomes a finding.

        Args:
            texts: digests, oldest first, with the sections of the built-in prompt, written by a
                model or by this class. What stands under other headings counts as findings.
            max_tokens: as for `write`.
            count: as for `write`.

        Returns:
            The digest; "" for no texts.

        Raises:
            ConfigurationError: as for `write`.
        """
        if not texts:
            return ""
        return fill(merged(texts, self.max_sentence_chars), max_tokens, count)
