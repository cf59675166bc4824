"""The settings of compaction: plain values, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.markers import check_markers
from langgraph_compaction.digest.prompts import parsed_sections
from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.plan.pins import pin_rule
from langgraph_compaction.plan.requests import REQUEST_KEY
from langgraph_compaction.plan.triggers import parse_keep, parse_trigger
from langgraph_compaction.setting_names import IN_FILES, check_names

DEFAULT_TRIGGER = (("fraction", 0.8), ("tokens", 200_000))
"""80% of the window is where LangChain's and stagewise's users fold; beyond 200,000 tokens models
lose the thread whatever their window (stagewise's limit, too)."""
MIN_FOLD_SHARE = 0.1
"""A span is worth a model call from a tenth of the view on: a fold breaks the cached prefix."""


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """How a thread is compacted. Plain JSON values, except ``pinned`` where it is a callable.

    Attributes:
        enabled: the off switch. False: no visit does anything, requests and clipping included; a
            digest that is there stays in the view.
        trigger: when to fold: a pair such as ``("fraction", 0.8)``, a dict (all of), a list (any
            of) or None (off). Kinds: "fraction" (of the window), "tokens" (of the view), "messages"
            (in the view), "steps" (AI messages since the last fold), "cost" (a fold pays, by the
            prices of tokens: a dict, or the name of a model whose prices are listed).
        keep: what stays word for word, from the end: a pair such as ``("tokens", 20_000)``, or a
            list of which the smallest counts. Kinds: "fraction", "tokens", "messages". "auto": the
            smaller of a quarter of the trigger and 40,000 tokens, of 8,000 where the trigger weighs
            costs; where it counts messages (or steps, of two messages each), a quarter of them.
            ``("messages", 0)``: everything is folded that is neither kept nor open.
        min_keep: messages that stay even if they exceed ``keep``, as long as the hard limit allows.
            "auto": 6, or 0 where ``keep`` counts messages.
        target: tokens that a fold has to bring the view down to; less than ``keep`` stays if need
            be. "auto": 0.6 of the trigger, or what ``keep`` asks for if that is more. None: no
            target.
        context_window: tokens of the agent model's window. None: from the profile of
            ``agent_model``. Where neither has it, there is no hard limit: while folds fail, the
            view grows, and no extracts stand in.
        reserve_tokens: tokens of the window that the view leaves free; the rest is the hard limit.
            "auto": the smallest of 20,000, a tenth of the window, and the model's maximum output.
        overhead_tokens: tokens of each call beside the messages, beyond the node's ``tools`` and
            ``system_prompt``. Counts as long as no report of the provider does.
        calibrate: whether the input tokens that the provider reports for the newest call correct
            the count. "auto": with the counters "tiktoken" and "estimate".
        task: which user message is the task, which stays in front of the digest: "first", "latest"
            or None.
        pinned: messages that no fold takes, beside those marked by `pin`: a rule, a list of rules,
            or a callable from message to bool. Keys of a rule: "type", "name", "id", "contains";
            all of them have to match.
        digest: "chain": every fold adds a segment, and older ones keep their bytes until the budget
            is reached. "rolling": every fold rewrites the digest as one segment, apart from what a
            person edited and what stands before that.
        max_digest_tokens: tokens of the whole digest; above it old segments are condensed, down to
            0.8 of it. "auto": a tenth of the window, at most 16,000; in a window below 10,000 the
            smaller of 1,000 and a quarter of it; 16,000 where the window is not known.
        segment_share: tokens that a new segment may have, as a share of its span.
        min_segment_tokens: tokens that a new segment may have though its share is less. The
            digest's budget comes first: a full digest, or a small window, leaves fewer.
        max_segment_tokens: tokens that a new segment may have though its share is more. Neither a
            rolling digest nor a condensed segment is bound by it, and the heading and a newest
            request that is quoted in full come on top.
        max_result_tokens: tokens that the results of one step, all its parallel calls together, may
            take in the view from the start, at three UTF-8 bytes a token; the largest are cut to
            head and tail. "auto": half of the hard limit; no limit where the window is not known or
            the trigger is off. None: no limit but the hard one.
        live_state_tokens: tokens that the node's ``live_state`` may take in the view, at three
            UTF-8 bytes a token; what is beyond is cut to head and tail.
        clear: whether old tool results become placeholders, as far as that is enough, before a
            model is asked. "auto": where ``history`` is "full"; what is cleared stays in the
            channel, so that a thread which prunes would not get shorter.
        clear_keep: newest groups of calls whose results are cleared only where a later one repeats
            or replaces them.
        clear_min_share: tokens that a clearing has to free, as a share of the view: it breaks the
            provider's cached prefix.
        clear_min_chars: characters of a tool result below which it is not cleared.
        clear_argument_chars: characters of a call's arguments, as JSON, above which they are
            shortened where results are cleared; they stay valid JSON with the same keys. 0: never.
        protected_tools: names of tools whose results and arguments are never cleared.
        recall_tool: name of the agent's recall tool, which cleared and clipped results then point
            to. None: the agent has none.
        history: "full": folded messages stay in the state. "prune": they leave it with the fold,
            after they were written to the archive.
        min_fold_tokens: tokens of the smallest span worth a summary. "auto": the smaller of 500 and
            a tenth of the window.
        min_fold_share: the same as a share of the view. The greater of the two counts.
        result_chars: characters of a tool result that the summariser sees: two thirds head, one
            third tail. Failed results are shown in full. 0: no limit.
        prompt: replaces the built-in instructions to the summariser, word for word.
        instructions: added to the instructions to the summariser.
        sections: sections of the digest in place of the built-in ones: names, or a mapping from
            names to what each asks for. None of them is required of an answer. Of no effect beside
            ``prompt``.
        tool_markers: lines by which the summariser is told of a call and its result: templates by
            the tool's name, "*" for all others. Slots: ``{name}``, ``{label}`` (the command, path
            or other main argument), ``{arguments}``, ``{outcome}``. A template of None: calls are
            shown in full.
        digest_role: "human": the digest is a message of its own. "system": it is part of the
            leading system message.
        digest_header: replaces the text that opens the digest.
        digest_footer: replaces the text that closes it.
        roles: "any": messages of one role may follow one another. "alternating": the view has one
            system message, and user and assistant take turns, as strict chat templates want it.
        background: whether a fold that is not urgent is made beside the agent: begun at one visit,
            applied at a later one. Above the hard limit the visit waits for it. Takes a thread id.
        summary_timeout: seconds that all summary calls of one visit may take together. None: no
            limit but that of each attempt, see `ModelTier`.
        on_error: whether a failing summariser may end the run. "continue": it may not. "raise":
            refused credentials and errors of the program are raised at once, and
            `CascadeExhaustedError` where no summariser wrote an acceptable text and the view still
            fits.
    """

    enabled: bool = True
    trigger: Any = DEFAULT_TRIGGER
    keep: Any = "auto"
    min_keep: int | Literal["auto"] = "auto"
    target: int | Literal["auto"] | None = "auto"
    context_window: int | None = None
    reserve_tokens: int | Literal["auto"] = "auto"
    overhead_tokens: int = 0
    calibrate: bool | Literal["auto"] = "auto"
    task: Literal["first", "latest"] | None = "first"
    pinned: Callable[[BaseMessage], bool] | Mapping[str, str] | Sequence[Any] | None = None
    digest: Literal["chain", "rolling"] = "chain"
    max_digest_tokens: int | Literal["auto"] = "auto"
    segment_share: float = 0.2
    min_segment_tokens: int = 200
    max_segment_tokens: int = 4_000
    max_result_tokens: int | Literal["auto"] | None = "auto"
    live_state_tokens: int = 2_000
    clear: bool | Literal["auto"] = "auto"
    clear_keep: int = 3
    clear_min_share: float = 0.1
    clear_min_chars: int = 1_000
    clear_argument_chars: int = 2_000
    protected_tools: Sequence[str] = ()
    recall_tool: str | None = None
    history: Literal["full", "prune"] = "full"
    min_fold_tokens: int | Literal["auto"] = "auto"
    min_fold_share: float = MIN_FOLD_SHARE
    result_chars: int = 2_000
    prompt: str | None = None
    instructions: str | None = None
    sections: Sequence[str] | Mapping[str, str | None] | None = None
    tool_markers: Mapping[str, str | None] | None = None
    digest_role: Literal["human", "system"] = "human"
    digest_header: str | None = None
    digest_footer: str | None = None
    roles: Literal["any", "alternating"] = "any"
    background: bool = False
    summary_timeout: float | None = 90.0
    on_error: Literal["continue", "raise"] = "continue"

    def __post_init__(self) -> None:
        for name, others in _SWITCHES.items():
            _check_switch(name, getattr(self, name), others)
        _check_rules(self)
        for name, least in _WHOLE_NUMBERS.items():
            _check_whole(name, getattr(self, name), least)
        for name in ("segment_share", "min_fold_share", "clear_min_share"):
            _check_share(name, getattr(self, name))
        check_seconds("summary_timeout", self.summary_timeout)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigurationError(
                    f"{name}: {getattr(self, name)!r} is none of the choices; write one of "
                    f"{', '.join(map(repr, choices))}."
                )
        for name, without in _TEXTS.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ConfigurationError(
                    f"{name}: {value!r} is no text; write a non-empty string, or None {without}."
                )
        _check_names("protected_tools", self.protected_tools)
        parsed_sections(self.sections)
        check_markers(self.tool_markers)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Settings from a mapping.

        Raises:
            ConfigurationError: a key is unknown (the nearest valid one is named), or a value is
                wrong.
        """
        check_names(values, NAMES)
        return cls(**values)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """A copy with some values changed.

        Raises:
            ConfigurationError: as `of`.
        """
        check_names(values, NAMES)
        return replace(self, **values)


LONGEST_SECONDS = 1e6
"""Seconds that a timeout may be, at most (about 12 days): the system's clocks take no more."""
MOST_TOKENS = 10**12
"""Greatest number of tokens, messages or characters that is taken for one that was meant."""
NAMES = tuple(field.name for field in fields(CompactionSettings))
"""The names of all settings."""
_WHOLE_NUMBERS: dict[str, int] = {
    "min_keep": 0,
    "target": 1,
    "context_window": 1,
    "reserve_tokens": 0,
    "overhead_tokens": 0,
    "max_digest_tokens": 200,
    "min_segment_tokens": 1,
    "max_segment_tokens": 1,
    "max_result_tokens": 100,
    "live_state_tokens": 100,
    "clear_keep": 1,
    "clear_min_chars": 0,
    "clear_argument_chars": 0,
    "min_fold_tokens": 0,
    "result_chars": 0,
}
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "task": ("first", "latest", None),
    "digest": ("chain", "rolling"),
    "digest_role": ("human", "system"),
    "roles": ("any", "alternating"),
    "history": ("full", "prune"),
    "on_error": ("continue", "raise"),
}
_TEXTS = {
    "prompt": "for the built-in one",
    "instructions": "for none",
    "digest_header": "for the built-in one",
    "digest_footer": "for the built-in one",
    "recall_tool": "where the agent has no recall tool",
}
"""Settings that are texts, and what None stands for."""
_SWITCHES: dict[str, tuple[str, ...]] = {
    "enabled": (),
    "background": (),
    "clear": ("auto",),
    "calibrate": ("auto",),
}
_MAPPINGS = ("sections", "tool_markers")
"""Settings that are dicts by names of anybody's, which may be those of settings."""
_AUTO = {
    "min_keep",
    "target",
    "reserve_tokens",
    "max_digest_tokens",
    "max_result_tokens",
    "min_fold_tokens",
}
_OPTIONAL = {"target", "context_window", "max_result_tokens"}


def divided(values: Mapping[str, Any], node: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings for all nodes, and over them those for one.

    Args:
        values: settings that several nodes may read.
        node: the name of the one that reads them.
    """
    sections = sections_in(values)
    general = {key: value for key, value in values.items() if key not in sections}
    return general, dict(sections.get(node, {}))


def sections_in(values: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Of settings that several nodes may read those that are for one node, by its name.

    A dict that holds a setting itself is a node's own: no setting has such a value but the
    mappings by tool and by section, so that a node may have the name of any other.
    """
    return {
        key: value
        for key, value in values.items()
        if key not in (*_MAPPINGS, REQUEST_KEY)  # no node has that name
        and isinstance(value, Mapping)
        and any(name in NAMES or name in IN_FILES for name in value)
    }


def _check_rules(settings: CompactionSettings) -> None:
    try:
        parse_trigger(settings.trigger)
        if settings.keep != "auto":
            parse_keep(settings.keep)
        pin_rule(settings.pinned)
    except RecursionError:
        raise ConfigurationError(
            "trigger, keep or pinned: its values are nested without end. Write a pair, a dict, or "
            "a list of these."
        ) from None


def _check_switch(name: str, value: Any, others: tuple[str, ...]) -> None:
    if not isinstance(value, bool) and value not in others:
        listed = ", ".join(["True", "False", *map(repr, others)])
        raise ConfigurationError(f"{name}: {value!r} has to be one of {listed}.")


def _check_names(name: str, value: Any) -> None:
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or not all(isinstance(one, str) and one for one in value):
        raise ConfigurationError(
            f'{name}: {shortened(value)} has to be a list of names, such as ["load_skill"].'
        )


def check_seconds(name: str, value: Any) -> None:
    """Check a timeout: seconds above 0, or None for no limit.

    Raises:
        ConfigurationError: it is neither.
    """
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= LONGEST_SECONDS:
        raise ConfigurationError(
            f"{name}: {shortened(value)} has to be a number of seconds above 0, such as 30.0, or "
            "None for no limit."
        )


def _check_whole(name: str, value: Any, least: int) -> None:
    if (name in _AUTO and value == "auto") or (name in _OPTIONAL and value is None):
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= MOST_TOKENS:
        others = [' or "auto"'] if name in _AUTO else []
        others += [" or None"] if name in _OPTIONAL else []
        raise ConfigurationError(
            f"{name}: {shortened(value)} has to be a whole number of at least {least}"
            f"{''.join(others)}.{_alone(name, value)}"
        )


def _alone(name: str, value: Any) -> str:
    """What to write in place of a pair, as trigger and keep have it."""
    if not isinstance(value, list | tuple) or len(value) != 2 or not isinstance(value[1], int):
        return ""
    return f" Write the number alone: {name}={value[1]}."


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ConfigurationError(
            f"{name}: {value!r} has to be a number from 0 to below 1, such as 0.2."
        )
