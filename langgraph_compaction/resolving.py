"""From settings and a model to the numbers that a visit decides by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from langgraph_compaction.digest.prompts import parsed_sections
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.plan.pins import pin_rule
from langgraph_compaction.plan.policy import ClearingRule, Policy
from langgraph_compaction.plan.triggers import (
    Clause,
    Condition,
    as_written,
    count_threshold,
    parse_keep,
    parse_trigger,
    threshold,
    token_threshold,
)
from langgraph_compaction.record import Render
from langgraph_compaction.settings import DEFAULT_TRIGGER, CompactionSettings
from langgraph_compaction.view.clipping import BYTES_PER_TOKEN

KEEP_TOKENS = 40_000
"""Tokens of recent messages that "auto" keeps at most (stagewise's limit)."""
KEEP_SHARE = 0.25
"""Share of the trigger that "auto" keeps: 0.2 of the window at the default trigger."""
COST_KEEP_TOKENS = 8_000
COST_KEEP_SHARE = 0.1
"""With a trigger by costs "auto" keeps the smaller of the two (of the window): each token that
stays is paid for at every call, and written to the cache anew at every fold."""
MIN_KEEP = 6
"""Messages that stay by default where keep is given in tokens."""
TARGET_SHARE = 0.6
"""Share of the trigger that a fold has to come down to by default."""
RESERVE_TOKENS = 20_000
RESERVE_SHARE = 0.1
"""By default the smaller of the two (of the window) and the model's maximum output is reserved."""
RESULT_SHARE = 0.5
"""Share of the hard limit that the results of one step may take by default. Dense text (hashes,
base64) has up to twice the tokens that its bytes are taken for, and then fills the window."""
DIGEST_TOKENS = 16_000
DIGEST_SHARE = 0.1
"""By default the digest may have the smaller of the two (of the window)."""
DIGEST_FLOOR = 1_000
DIGEST_FLOOR_SHARE = 0.25
"""In a small window a tenth holds no record worth having: the digest may have the smaller of these
two in any case."""
MIN_FOLD_TOKENS = 500
MIN_FOLD_WINDOW_SHARE = 0.1
"""A span is worth a model call from 500 tokens on; in a small window from a tenth of it on."""


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What is known of the agent's model and of how its tokens are counted.

    Attributes:
        window: tokens of its context window, None where unknown.
        max_output: tokens that it writes at most, None where unknown.
        model: its name; None: no model was given.
        counts_tokens: whether the counter's numbers may be mixed with a provider's.
    """

    window: int | None = None
    max_output: int | None = None
    counts_tokens: bool = True
    model: str | None = None

    @property
    def remedy(self) -> str:
        """How to have the window known, where it is not."""
        if self.model is None:
            return "Pass context_window=, or an agent_model= whose profile LangChain knows"
        return (
            f"LangChain has no profile of the agent_model {self.model!r} that says how large its "
            "window is: pass context_window="
        )


NOTHING_KNOWN = AgentLimits()


def resolved(settings: CompactionSettings, limits: AgentLimits = NOTHING_KNOWN) -> Policy:
    """Resolve settings against a model.

    Args:
        settings: the settings; a window that they name wins over the model's.
        limits: what is known of the agent's model.

    Raises:
        ConfigurationError: a fraction or ``reserve_tokens`` needs a window and there is none; or
            the values contradict each other.
    """
    window = settings.context_window or limits.window
    clauses = parse_trigger(settings.trigger)
    if settings.trigger == CompactionSettings.trigger and window is None:
        raise ConfigurationError(
            f"trigger: the default, {as_written(DEFAULT_TRIGGER)}, needs the context window of the "
            f"agent's model, which is not known. {limits.remedy}, or give the trigger in tokens, "
            'such as trigger=("tokens", 100_000).'
        )
    remedy = None if window else limits.remedy
    _need_window("trigger", settings.trigger, list(chain.from_iterable(clauses)), remedy)
    soft = token_threshold(clauses, window)
    hard = _hard(settings, window, limits)
    if soft is not None and hard is not None and soft >= hard:
        raise ConfigurationError(
            f"trigger: {as_written(settings.trigger)} fires at {soft} tokens, but a view may have "
            f"at most {hard} (a window of {window} tokens less reserve_tokens). Lower the trigger, "
            "or lower reserve_tokens."
        )
    keep_tokens, keep_messages, fold_all = _keep(settings, clauses, soft, window, remedy)
    if settings.min_keep == "auto":
        min_keep = 0 if keep_messages is not None else MIN_KEEP
    else:
        min_keep = settings.min_keep
    if settings.min_segment_tokens > settings.max_segment_tokens:
        raise ConfigurationError(
            f"min_segment_tokens: {settings.min_segment_tokens} is more than max_segment_tokens, "
            f"{settings.max_segment_tokens}. Lower the one or raise the other."
        )
    target = _target(settings, soft, keep_tokens)
    calibrate = limits.counts_tokens if settings.calibrate == "auto" else settings.calibrate
    return Policy(
        enabled=settings.enabled,
        clauses=clauses,
        window=window,
        soft=soft,
        hard=hard,
        target=target,
        keep_tokens=keep_tokens,
        keep_messages=keep_messages,
        fold_all=fold_all,
        min_keep=min_keep,
        clearing=_clearing(settings),
        prune=settings.history == "prune",
        min_fold_tokens=_min_fold(settings, window),
        min_fold_share=settings.min_fold_share,
        segment_share=settings.segment_share,
        min_segment=settings.min_segment_tokens,
        max_segment=settings.max_segment_tokens,
        rolling=settings.digest == "rolling",
        max_digest=_max_digest(settings, window),
        overhead=settings.overhead_tokens,
        calibrate=calibrate,
        task=settings.task,
        pinned=pin_rule(settings.pinned),
        render=_render(settings, hard if clauses else None),
        clamp_chars=settings.result_chars,
        prompt=settings.prompt,
        instructions=settings.instructions,
        sections=parsed_sections(settings.sections),
        tool_markers=dict(settings.tool_markers or {}),
        live_tokens=settings.live_state_tokens,
        summary_timeout=settings.summary_timeout,
        raises=settings.on_error == "raise",
        background=settings.background,
    )


def _render(settings: CompactionSettings, hard: int | None) -> Render:
    """How the view is made; what is as by default has no entry.

    Args:
        settings: the settings.
        hard: tokens that a view may have, None where that is not known or nothing ever fires.
    """
    render: Render = {"role": settings.digest_role}
    if settings.digest_header is not None:
        render["header"] = settings.digest_header
    if settings.digest_footer is not None:
        render["footer"] = settings.digest_footer
    if settings.roles != "any":
        render["roles"] = settings.roles
    if settings.recall_tool is not None:
        render["recall"] = settings.recall_tool
    most_of_results = _max_result(settings, hard)
    if most_of_results is not None and settings.enabled:
        render["clip_result_bytes"] = most_of_results * BYTES_PER_TOKEN
    return render


def _clearing(settings: CompactionSettings) -> ClearingRule | None:
    if not (settings.history == "full" if settings.clear == "auto" else settings.clear):
        return None
    return ClearingRule(
        keep=settings.clear_keep,
        min_share=settings.clear_min_share,
        min_chars=settings.clear_min_chars,
        argument_chars=settings.clear_argument_chars,
        protected_tools=tuple(settings.protected_tools),
    )


def _need_window(
    parameter: str, value: Any, conditions: Sequence[Condition], remedy: str | None
) -> None:
    """Refuse a fraction of a window that is not known; ``remedy`` says so, None: it is known."""
    if remedy is not None and any(condition.kind == "fraction" for condition in conditions):
        raise ConfigurationError(
            f"{parameter}: {as_written(value)} is a fraction of the context window, which is not "
            f"known. {remedy}, or give {parameter} in tokens."
        )


def _hard(settings: CompactionSettings, window: int | None, limits: AgentLimits) -> int | None:
    if window is None:
        if settings.reserve_tokens != "auto":
            raise ConfigurationError(
                f"reserve_tokens: {settings.reserve_tokens!r} is a part of the context window, "
                f"which is not known. {limits.remedy}."
            )
        return None
    if isinstance(settings.reserve_tokens, int):
        reserve = settings.reserve_tokens
    else:
        known = [RESERVE_TOKENS, int(window * RESERVE_SHARE)]
        reserve = min([*known, limits.max_output] if limits.max_output else known)
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
    remedy: str | None,
) -> tuple[int | None, int | None, bool]:
    """Tokens to keep, messages to keep, and whether everything else folds."""
    least = count_threshold(clauses, "messages")
    steps = count_threshold(clauses, "steps")
    if settings.keep == "auto":
        tokens = KEEP_TOKENS if soft is None else min(KEEP_TOKENS, int(soft * KEEP_SHARE))
        if any(one.prices is not None for clause in clauses for one in clause):
            tokens = min(tokens, COST_KEEP_TOKENS, int((window or KEEP_TOKENS) * COST_KEEP_SHARE))
        # A step is about two messages: an AI message and its result.
        counts = [n // 4 for n in (least, 2 * steps if steps else None) if n]
        return tokens, min(counts) if counts else None, False
    conditions = parse_keep(settings.keep)
    _need_window("keep", settings.keep, conditions, remedy)
    sizes = [int(threshold(c, window)) for c in conditions if c.kind in {"fraction", "tokens"}]
    numbers = [int(c.value) for c in conditions if c.kind == "messages"]
    keep_tokens = min(sizes) if sizes else None
    keep_messages = min(numbers) if numbers else None
    if soft is not None and keep_tokens is not None and keep_tokens >= soft:
        raise ConfigurationError(
            f"keep: {as_written(settings.keep)} keeps {keep_tokens} tokens, but the trigger fires "
            f"at {soft}: folding would never get below it. Keep less than the trigger."
        )
    if least is not None and keep_messages is not None and keep_messages >= least:
        raise ConfigurationError(
            f"keep: {as_written(settings.keep)} keeps {keep_messages} messages, but the trigger "
            f"fires at {least}: folding would never get below it. Keep less than the trigger."
        )
    return keep_tokens, keep_messages, keep_messages == 0


def _target(settings: CompactionSettings, soft: int | None, keep_tokens: int | None) -> int | None:
    if settings.target != "auto":
        if settings.target is not None and soft is not None and settings.target >= soft:
            raise ConfigurationError(
                f"target: {settings.target} tokens is not below the trigger, which fires at "
                f'{soft}. Lower it, or leave it at "auto".'
            )
        return settings.target
    if soft is None:
        return None
    return max(int(soft * TARGET_SHARE), min(keep_tokens or 0, soft - 1))


def _min_fold(settings: CompactionSettings, window: int | None) -> int:
    if settings.min_fold_tokens != "auto":
        return settings.min_fold_tokens
    return (
        MIN_FOLD_TOKENS
        if window is None
        else min(MIN_FOLD_TOKENS, int(window * MIN_FOLD_WINDOW_SHARE))
    )


def _max_result(settings: CompactionSettings, hard: int | None) -> int | None:
    if settings.max_result_tokens != "auto":
        return settings.max_result_tokens
    return None if hard is None else max(1, int(hard * RESULT_SHARE))


def _max_digest(settings: CompactionSettings, window: int | None) -> int:
    if settings.max_digest_tokens != "auto":
        if window is not None and settings.max_digest_tokens >= window:
            raise ConfigurationError(
                f"max_digest_tokens: {settings.max_digest_tokens} tokens are the whole window of "
                f'{window}. Lower it, or leave it at "auto".'
            )
        return settings.max_digest_tokens
    if window is None:
        return DIGEST_TOKENS
    floor = min(DIGEST_FLOOR, int(window * DIGEST_FLOOR_SHARE))
    return max(1, min(DIGEST_TOKENS, max(int(window * DIGEST_SHARE), floor)))
