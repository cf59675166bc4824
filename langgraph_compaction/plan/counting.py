"""How many tokens a message takes, measured once: text by a tokenizer, the rest by rules.

`plan.contents` says what of a message counts. Tool schemas and the reply's priming belong to a
request, not to a message; what the provider reported of it corrects the sum, see
`plan.calibration`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from math import ceil, inf
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.plan import estimate
from langgraph_compaction.plan.contents import AI_TYPES, message_parts
from langgraph_compaction.plan.vocabulary import Vocabulary, encoding_name

CACHED_MESSAGES = 1 << 16
"""Counts that a counter remembers, at most; about 300 bytes each."""

NAMED_COUNTERS = ("tiktoken", "estimate", "approximate", "chars/4+400")
"""Counters that have a name, so that a settings file can ask for one."""

_SCALARS = frozenset({int, float, bool, bytes, type(None)})


class TokenCounter:
    """Counts tokens of texts and messages; each message is measured once and then remembered.

    What is remembered are hashes of a message's id, name, content and calls, no text: an edited
    message is measured anew, also under its old id. One counter may serve many threads. Made by
    `token_counter`.

    Args:
        name: what `name` says.
        text: tokens of a text.
        message: tokens of a message; by the rules of this module where it is not given.
        vocabulary: what ``text`` counts by, if it does.
        cache_size: counts to remember, at most.
    """

    def __init__(
        self,
        name: str,
        text: Callable[[str], int],
        message: Callable[[BaseMessage], int] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        cache_size: int = CACHED_MESSAGES,
    ) -> None:
        self._name = name
        self._text = text
        self._measure = message or self._by_parts
        self._vocabulary = vocabulary
        # Two halves: when the younger is full it becomes the older, and the older is dropped. What
        # is in use stays, and no lock is needed: a race costs a second count, not a wrong one.
        self._half = max(1, cache_size // 2)
        self._young: dict[Any, int] = {}
        self._old: dict[Any, int] = {}

    @property
    def name(self) -> str:
        """What counts: "tiktoken:o200k_base", "estimate", "approximate", "chars/4+400", "custom".

        "estimate" also where a vocabulary turned out not to be loadable.
        """
        return "estimate" if self.notice() else self._name

    @property
    def exact(self) -> bool:
        """Whether a vocabulary counts the text, which need not be the one of the model."""
        return self._vocabulary is not None and not self._vocabulary.notice()

    @property
    def as_provider(self) -> bool:
        """Whether it counts tokens as a provider would report them, at least nearly."""
        return self._vocabulary is not None or self._name == "estimate"

    def notice(self) -> str | None:
        """One sentence where the estimate counts because no vocabulary could be loaded."""
        return None if self._vocabulary is None else self._vocabulary.notice()

    def load(self) -> None:
        """Load the vocabulary, which may take seconds; whether it can be had shows only then."""
        self._text("a")

    def text(self, text: str) -> int:
        """Tokens of a plain text; the names of special tokens in it are plain text, too."""
        return self._text(text)

    def message(self, message: BaseMessage) -> int:
        """Tokens of a message as the provider reads it, its framing included."""
        try:
            key = _key(message)
        except RecursionError:  # arguments nested too deep to be told apart cheaply
            return self._measure(message)
        count = self._young.get(key)
        if count is None:
            count = self._old.get(key)
            if count is None:
                count = self._measure(message)
            self._remember(key, count)
        return count

    def messages(self, messages: Iterable[BaseMessage]) -> int:
        """Tokens of all these messages together."""
        return sum(map(self.message, messages))

    def _remember(self, key: Any, count: int) -> None:
        young = self._young
        if len(young) >= self._half:
            self._old = young
            self._young = young = {}
        young[key] = count

    def _by_parts(self, message: BaseMessage) -> int:
        parts = message_parts(message)
        return parts.overhead + parts.media + sum(map(self._text, parts.texts))


def token_counter(
    spec: str | Callable[[list[BaseMessage]], int] | TokenCounter | None = None,
    *,
    model_name: str | None = None,
    cache_size: int = CACHED_MESSAGES,
) -> TokenCounter:
    """The counter that a ``token_counter`` setting asks for. Loads nothing yet.

    Args:
        spec: "tiktoken" or None: the vocabulary of ``model_name``, loaded at the first count, and
            the estimate where it cannot be. "estimate": `estimate_tokens`. "approximate":
            LangChain's `count_tokens_approximately`. "chars/4+400": stagewise's rule, a quarter of
            a message's characters and 400 more, rounded up. A callable: LangChain's
            ``token_counter`` convention, from a list of messages to tokens; it is given one
            message at a time, once. A `TokenCounter`: itself.
        model_name: the model whose tokens matter; without a known one, o200k_base.
        cache_size: messages whose counts are remembered, at most.

    Raises:
        ConfigurationError: the spec is none of these; later, a callable's answer is no number.
    """
    if isinstance(spec, TokenCounter):
        return spec
    if spec is None or spec == "tiktoken":
        vocabulary = Vocabulary(encoding_name(model_name))
        name = f"tiktoken:{vocabulary.name}"
        return TokenCounter(name, vocabulary.count, vocabulary=vocabulary, cache_size=cache_size)
    if spec == "estimate":
        return TokenCounter(spec, estimate.estimate_tokens, cache_size=cache_size)
    if spec == "approximate":
        return TokenCounter(spec, _quarter, _approximately, cache_size=cache_size)
    if spec == "chars/4+400":
        return TokenCounter(spec, _quarter, _quarter_and_400, cache_size=cache_size)
    if callable(spec):
        custom = _checked(spec)
        return TokenCounter(
            "custom", lambda text: custom(HumanMessage(text)), custom, cache_size=cache_size
        )
    raise _unknown_counter(spec)


def check_counter_name(name: Any) -> None:
    """Check a counter that is named, as in a settings file.

    Raises:
        ConfigurationError: there is none of that name; the nearest one is named.
    """
    if name not in NAMED_COUNTERS:
        raise _unknown_counter(name)


def _unknown_counter(spec: Any) -> ConfigurationError:
    near = get_close_matches(spec[:80], NAMED_COUNTERS, n=1) if isinstance(spec, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ConfigurationError(
        f"token_counter: {spec!r:.200} is not a known counter{hint} Give "
        f"{', '.join(map(repr, NAMED_COUNTERS))}, or in code a callable from a list of messages "
        "to tokens."
    )


def _quarter(text: str) -> int:
    return ceil(len(text) / 4)


def _quarter_and_400(message: BaseMessage) -> int:
    parts = message_parts(message)
    return ceil((sum(map(len, parts.texts)) + 400) / 4) + parts.media


def _approximately(message: BaseMessage) -> int:
    try:
        return count_tokens_approximately([message])
    except (TypeError, AttributeError, RecursionError):  # of blocks or calls of odd shapes
        parts = message_parts(message)
        return parts.overhead + parts.media + sum(map(_quarter, parts.texts))


def _checked(count: Callable[[list[BaseMessage]], Any]) -> Callable[[BaseMessage], int]:
    """A user's callable for one message, its answers checked."""

    def measure(message: BaseMessage) -> int:
        try:
            answer = count([message])
        except Exception as error:
            raise ConfigurationError(
                f"token_counter: {count!r} failed on one message ({shortened(error)})."
                " It must take a list of messages and return their tokens, a number from 0 up."
            ) from error
        if not (isinstance(answer, int | float) and 0 <= answer < inf):
            raise ConfigurationError(
                f"token_counter: {count!r} returned {answer!r} for one message. It must take a "
                "list of messages and return their tokens, a number from 0 up."
            )
        return ceil(answer)

    return measure


def _key(message: BaseMessage) -> tuple[Any, ...]:
    """What tells a message's count from others': hashes of its texts, none of the texts.

    Python keeps a string's hash with the string, so an unchanged message is told at once.
    """
    content = message.content
    kind = message.type
    mark = hash(content) if isinstance(content, str) else _fingerprint(content)
    if kind not in AI_TYPES:
        return message.id, message.name, kind, mark
    ai: Any = message
    calls, invalid, extra = ai.tool_calls, ai.invalid_tool_calls, ai.additional_kwargs
    if not (calls or invalid or extra):
        return message.id, message.name, kind, mark
    legacy = (extra.get("tool_calls"), extra.get("function_call")) if extra else ()
    sent = [
        (call.get("id"), call.get("name"), _fingerprint(call.get("args")))
        for call in [*calls, *invalid]
    ]
    return message.id, message.name, kind, mark, hash(tuple(sent)), _fingerprint(legacy)


def _fingerprint(value: Any) -> int:
    """A hash of a JSON-like value."""
    kind = value.__class__
    if kind is str:
        return hash(value)
    if kind is dict:
        return hash((*value, *map(_fingerprint, value.values())))
    if kind is list or kind is tuple:
        return hash((kind, *map(_fingerprint, value)))
    return hash((kind, value) if kind in _SCALARS else repr(value))
