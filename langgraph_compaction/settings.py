"""The settings of compaction: plain values, checked once and resolved to the numbers of a visit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, Self

from langchain_core.messages import BaseMessage

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.pins import pin_rule
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.plan.triggers import (
    Clause,
    Condition,
    count_threshold,
    parse_keep,
    parse_trigger,
    threshold,
    token_threshold,
)
from langgraph_compaction.state import Render

DEFAULT_TRIGGER = [("fraction", 0.8), ("tokens", 200_000)]
"""80% of the window is where LangChain's and stagewise's users fold; beyond 200,000 tokens models
lose the thread whatever their window (stagewise's limit, too)."""
KEEP_TOKENS = 40_000
"""Tokens of recent messages that "auto" keeps at most (stagewise's limit)."""
KEEP_SHARE = 0.25
"""Share of the trigger that "auto" keeps: 0.2 of the window at the default trigger."""
MIN_KEEP = 6
"""Messages that stay by default where keep is given in tokens."""
TARGET_SHARE = 0.6
"""Share of the trigger that a fold has to come down to by default."""
RESERVE_TOKENS = 20_000
RESERVE_SHARE = 0.1
"""By default the smaller of the two (of the window) and the model's maximum output is reserved."""
DIGEST_TOKENS = 16_000
DIGEST_SHARE = 0.1
"""By default the digest may have the smaller of the two (of the window)."""
DIGEST_FLOOR = 1_000
DIGEST_FLOOR_SHARE = 0.25
"""In a small window a tenth holds no record worth having: the digest may have the smaller of these
two in any case."""
MIN_FOLD_TOKENS = 500
MIN_FOLD_SHARE = 0.1
"""A span is worth a model call from 500 tokens on (from a tenth of the window, if that is less)
and from a tenth of the view on."""


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """How a thread is compacted. Plain JSON values, except ``pinned`` where it is a callable.

    Attributes:
        trigger: when to compact. A pair such as ``("fraction", 0.8)``, a dict (all of), a list
            (any of) or None (off). Kinds: "fraction" (of the window), "tokens" (of the view),
            "messages" (in the view), "steps" (AI messages since the last fold).
        keep: what stays verbatim: a pair such as ``("tokens", 20_000)`` or a list (the smallest
            counts). Kinds: "fraction", "tokens", "messages". "auto": the smaller of a quarter of
            the trigger and 40,000 tokens. ``("messages", 0)``: fold all that is not kept or open.
        min_keep: messages that stay even if they exceed ``keep``, as long as they fit the window.
            "auto": 6, or 0 where ``keep`` counts messages.
        target: tokens that a fold has to bring the view down to. "auto": 0.6 × the trigger, or
            what ``keep`` asks for if that is more. None: no target.
        context_window: tokens of the agent model's context window. None: taken from the model.
        reserve_tokens: tokens of the window that the view must leave free. "auto": the smallest
            of 20,000, a tenth of the window and the model's maximum output.
        overhead_tokens: tokens of each call beside the messages: tool schemas, the agent's own
            system prompt.
        task: which human message is the task that stays: "first", "latest" or None.
        pinned: messages that no fold takes: a rule, a list of rules (see `pin_rule`) or a
            callable from message to bool.
        max_digest_tokens: tokens of the whole digest. "auto": the smaller of 16,000 and a tenth of
            the window (a quarter of a small window).
        segment_share: tokens of a new segment as a share of its span, at most.
        min_segment_tokens: tokens that a segment may always have.
        max_segment_tokens: tokens that a segment may have at most.
        min_fold_tokens: tokens of the smallest span worth a model call. "auto": the smaller of 500
            and a tenth of the window.
        min_fold_share: the same as a share of the view.
        result_chars: characters of a tool result that the summariser sees; the middle of longer
            ones is left out. 0: no limit.
        prompt: replaces the built-in instructions to the summariser; may ask for any prose.
        instructions: added to the instructions to the summariser.
        digest_role: "human": the digest is a message of its own; "system": it is part of the
            leading system text.
        digest_header: replaces the line that opens the digest.
        digest_footer: replaces the line that closes it.
    """

    trigger: Any = tuple(DEFAULT_TRIGGER)
    keep: Any = "auto"
    min_keep: int | Literal["auto"] = "auto"
    target: int | Literal["auto"] | None = "auto"
    context_window: int | None = None
    reserve_tokens: int | Literal["auto"] = "auto"
    overhead_tokens: int = 0
    task: Literal["first", "latest"] | None = "first"
    pinned: Callable[[BaseMessage], bool] | Mapping[str, str] | Sequence[Any] | None = None
    max_digest_tokens: int | Literal["auto"] = "auto"
    segment_share: float = 0.2
    min_segment_tokens: int = 200
    max_segment_tokens: int = 4_000
    min_fold_tokens: int | Literal["auto"] = "auto"
    min_fold_share: float = MIN_FOLD_SHARE
    result_chars: int = 2_000
    prompt: str | None = None
    instructions: str | None = None
    digest_role: Literal["human", "system"] = "human"
    digest_header: str | None = None
    digest_footer: str | None = None

    def __post_init__(self) -> None:
        parse_trigger(self.trigger)
        if self.keep != "auto":
            parse_keep(self.keep)
        pin_rule(self.pinned)
        for name, least in _WHOLE_NUMBERS.items():
            _check_whole(name, getattr(self, name), least)
        for name in ("segment_share", "min_fold_share"):
            _check_share(name, getattr(self, name))
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigurationError(
                    f"{name}: {getattr(self, name)!r} is not one of "
                    f"{', '.join(map(repr, choices))}."
                )
        for name in ("prompt", "instructions", "digest_header", "digest_footer"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ConfigurationError(
                    f"{name}: {value!r} is no text; write a non-empty string, or None for the "
                    "built-in one."
                )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Settings from a mapping.

        Raises:
            ConfigurationError: a key is unknown (the nearest valid one is named), or a value is
                wrong.
        """
        return cls(**_known(cls, values))

    def changed(self, values: Mapping[str, Any]) -> Self:
        """A copy with some values changed.

        Raises:
            ConfigurationError: as `of`.
        """
        return replace(self, **_known(type(self), values))

    def policy(self, *, window: int | None = None, max_output: int | None = None) -> Policy:
        """Resolve the settings against a model.

        Args:
            window: tokens of the agent model's context window, if the settings name none.
            max_output: tokens that the agent's model writes at most, None where unknown.

        Raises:
            ConfigurationError: a fraction or ``reserve_tokens`` needs a window and there is none;
                or the values contradict each other.
        """
        return _resolved(self, self.context_window or window, max_output)


_WHOLE_NUMBERS: dict[str, int] = {
    "min_keep": 0,
    "target": 1,
    "context_window": 1,
    "reserve_tokens": 0,
    "overhead_tokens": 0,
    "max_digest_tokens": 1,
    "min_segment_tokens": 1,
    "max_segment_tokens": 1,
    "min_fold_tokens": 0,
    "result_chars": 0,
}
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "task": ("first", "latest", None),
    "digest_role": ("human", "system"),
}
_AUTO = {"min_keep", "target", "reserve_tokens", "max_digest_tokens", "min_fold_tokens"}
_OPTIONAL = {"target", "context_window"}


def _known(cls: type[CompactionSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    names = [field.name for field in fields(cls)]
    for key in values:
        if key not in names:
            near = get_close_matches(str(key), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}."
            raise ConfigurationError(f"{key!r} is not a setting{hint}")
    return dict(values)


def _check_whole(name: str, value: Any, least: int) -> None:
    if (name in _AUTO and value == "auto") or (name in _OPTIONAL and value is None):
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        others = [' or "auto"'] if name in _AUTO else []
        others += [" or None"] if name in _OPTIONAL else []
        raise ConfigurationError(
            f"{name}: {value!r} has to be a whole number of at least {least}{''.join(others)}."
        )


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ConfigurationError(f"{name}: {value!r} has to be a share from 0 up to, below, 1.")


def _resolved(settings: CompactionSettings, window: int | None, max_output: int | None) -> Policy:
    clauses = parse_trigger(settings.trigger)
    if settings.trigger == CompactionSettings.trigger and window is None:
        raise ConfigurationError(
            f"trigger: the default {DEFAULT_TRIGGER!r} needs the context window of the agent's "
            "model. Pass agent_model= (a model whose profile is known) or context_window=, or "
            'give the trigger in tokens, such as trigger=("tokens", 100_000).'
        )
    _need_window("trigger", settings.trigger, [c for clause in clauses for c in clause], window)
    soft = token_threshold(clauses, window)
    hard = _hard(settings, window, max_output)
    if soft is not None and hard is not None and soft >= hard:
        raise ConfigurationError(
            f"trigger: {settings.trigger!r} fires at {soft} tokens, but a view may have at most "
            f"{hard} (a window of {window} tokens less reserve_tokens). Lower the trigger, or "
            "lower reserve_tokens."
        )
    keep_tokens, keep_messages, fold_all = _keep(settings, clauses, soft, window)
    if settings.min_keep == "auto":
        min_keep = 0 if keep_messages is not None else MIN_KEEP
    else:
        min_keep = settings.min_keep
    target = _target(settings, soft, keep_tokens)
    render: Render = {"role": settings.digest_role}
    if settings.digest_header is not None:
        render["heading"] = settings.digest_header
    if settings.digest_footer is not None:
        render["end"] = settings.digest_footer
    if hard is not None:
        # As many characters as tokens fit: even the densest text (a token a character) leaves the
        # call group within the window, and ordinary text is far from it.
        render["result_chars"] = hard
    return Policy(
        clauses=clauses,
        window=window,
        soft=soft,
        hard=hard,
        target=target,
        keep_tokens=keep_tokens,
        keep_messages=keep_messages,
        fold_all=fold_all,
        min_keep=min_keep,
        min_fold_tokens=_min_fold(settings, window),
        min_fold_share=settings.min_fold_share,
        segment_share=settings.segment_share,
        min_segment=settings.min_segment_tokens,
        max_segment=settings.max_segment_tokens,
        max_digest=_max_digest(settings, window),
        overhead=settings.overhead_tokens,
        task=settings.task,
        pinned=pin_rule(settings.pinned),
        render=render,
        clamp_chars=settings.result_chars,
        prompt=settings.prompt,
        instructions=settings.instructions,
    )


def _need_window(
    parameter: str, value: Any, conditions: Sequence[Condition], window: int | None
) -> None:
    if window is None and any(condition.kind == "fraction" for condition in conditions):
        raise ConfigurationError(
            f"{parameter}: {value!r} is a fraction of the context window, which is not known. "
            "Pass agent_model= (a model whose profile is known) or context_window=, or give "
            f"{parameter} in tokens."
        )


def _hard(settings: CompactionSettings, window: int | None, max_output: int | None) -> int | None:
    if window is None:
        if settings.reserve_tokens != "auto":
            raise ConfigurationError(
                f"reserve_tokens: {settings.reserve_tokens!r} is a part of the context window, "
                "which is not known. Pass agent_model= (a model whose profile is known) or "
                "context_window=."
            )
        return None
    if isinstance(settings.reserve_tokens, int):
        reserve = settings.reserve_tokens
    else:
        known = [RESERVE_TOKENS, int(window * RESERVE_SHARE)]
        reserve = min([*known, max_output] if max_output else known)
    if reserve + settings.overhead_tokens >= window:
        raise ConfigurationError(
            f"reserve_tokens: {reserve} and overhead_tokens: {settings.overhead_tokens} together "
            f"leave nothing of a window of {window} tokens. Lower them, or use a larger window."
        )
    return window - reserve


def _keep(
    settings: CompactionSettings,
    clauses: Sequence[Clause],
    soft: int | None,
    window: int | None,
) -> tuple[int | None, int | None, bool]:
    """Tokens to keep, messages to keep, and whether everything else folds."""
    least = count_threshold(clauses, "messages")
    steps = count_threshold(clauses, "steps")
    if settings.keep == "auto":
        tokens = KEEP_TOKENS if soft is None else min(KEEP_TOKENS, int(soft * KEEP_SHARE))
        # A step is about two messages: an AI message and its result.
        counts = [n // 4 for n in (least, 2 * steps if steps else None) if n]
        return tokens, min(counts) if counts else None, False
    conditions = parse_keep(settings.keep)
    _need_window("keep", settings.keep, conditions, window)
    sizes = [int(threshold(c, window)) for c in conditions if c.kind in {"fraction", "tokens"}]
    numbers = [int(c.value) for c in conditions if c.kind == "messages"]
    keep_tokens = min(sizes) if sizes else None
    keep_messages = min(numbers) if numbers else None
    if soft is not None and keep_tokens is not None and keep_tokens >= soft:
        raise ConfigurationError(
            f"keep: {settings.keep!r} keeps {keep_tokens} tokens, but the trigger fires at {soft}: "
            "folding would never get below it. Keep less than the trigger."
        )
    if least is not None and keep_messages is not None and keep_messages >= least:
        raise ConfigurationError(
            f"keep: {settings.keep!r} keeps {keep_messages} messages, but the trigger fires at "
            f"{least}: folding would never get below it. Keep less than the trigger."
        )
    return keep_tokens, keep_messages, keep_messages == 0


def _target(settings: CompactionSettings, soft: int | None, keep_tokens: int | None) -> int | None:
    if settings.target != "auto":
        if settings.target is not None and soft is not None and settings.target >= soft:
            raise ConfigurationError(
                f"target: {settings.target} tokens is not below the trigger, which fires at {soft}."
            )
        return settings.target
    if soft is None:
        return None
    return max(int(soft * TARGET_SHARE), min(keep_tokens or 0, soft - 1))


def _min_fold(settings: CompactionSettings, window: int | None) -> int:
    if settings.min_fold_tokens != "auto":
        return settings.min_fold_tokens
    return MIN_FOLD_TOKENS if window is None else min(MIN_FOLD_TOKENS, window // 10)


def _max_digest(settings: CompactionSettings, window: int | None) -> int:
    if settings.max_digest_tokens != "auto":
        return settings.max_digest_tokens
    if window is None:
        return DIGEST_TOKENS
    floor = min(DIGEST_FLOOR, int(window * DIGEST_FLOOR_SHARE))
    return max(1, min(DIGEST_TOKENS, max(int(window * DIGEST_SHARE), floor)))
