"""Names under which settings are given: which are none, and what such a one was meant for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from langgraph_compaction.errors import ConfigurationError, shortened

ONLY_IN_CODE = frozenset(
    {
        "model",
        "agent_model",
        "settings",
        "token_counter",
        "tools",
        "system_prompt",
        "hook",
        "redact",
        "live_state",
        "archive",
        "messages_key",
        "compaction_key",
        "settings_key",
        "output_messages_key",
        "name",
    }
)
"""Arguments of the node that are no settings: most are objects, which no file or state holds."""
IN_FILES = ("preset", "token_counter")
"""What a settings file may name beside settings: a preset to start from, and what counts tokens."""
ELSEWHERE = {
    "max_tokens_before_summary": 'trigger, such as ("tokens", 4_000)',
    "max_tokens": "target, what a fold comes down to; context_window, if the model's is meant",
    "max_summary_tokens": "max_digest_tokens",
    "messages_to_keep": 'keep, such as ("messages", 20)',
    "summary_prompt": "prompt, instructions without a slot for the messages",
    "initial_summary_prompt": "prompt, instructions without a slot for the messages",
    "existing_summary_prompt": 'prompt or instructions, with digest="rolling"',
    "final_prompt": "digest_header and digest_footer",
    "summarizer": "the first argument of the node or the middleware",
    "trim_tokens_to_summarize": "not needed: a span that is too long is read in parts",
    "input_messages_key": "messages_key, an argument of the node itself",
    "clear_at_least": "clear_min_share, a share of the view",
    "clear_tool_inputs": "clear_argument_chars",
    "exclude_tools": "protected_tools",
    "placeholder": "not needed: it says what was cleared, and how to get it back",
    "token_count_method": "token_counter, an argument of the node itself",
    "truncate_args_settings": "clear_argument_chars",
    "on_failure": 'on_error, "continue" or "raise"',
    "backend": 'archive, an argument of the node itself, with history="prune"',
}
"""What parameters of langmem, deepagents and LangChain's middlewares are called here; see
docs/how-to/migrate.md."""


def check_names(values: Mapping[str, Any], names: Sequence[str]) -> None:
    """Check that values are under names of settings.

    Args:
        values: the settings.
        names: those of all settings.

    Raises:
        ConfigurationError: one is none. The message says where it belongs, what it is called here,
            or which one is the nearest.
    """
    for key in values:
        if key in ONLY_IN_CODE:
            named = ", or named in a settings file" if key in IN_FILES else ""
            raise ConfigurationError(
                f"{key!r} is not a setting: it can be passed only in code, as an argument of "
                f"the node or the middleware itself{named}: {key}=..."
            )
        if key in IN_FILES:
            raise ConfigurationError(
                f"{key!r} is not a setting: it stands in a settings file. In code start from one "
                "of langgraph_compaction.presets, such as CompactionNode(..., **presets.PATTERN)."
            )
        if key in ELSEWHERE:
            raise ConfigurationError(f"{key!r} is not a setting; here it is {ELSEWHERE[key]}.")
        if key not in names:
            raise ConfigurationError(f"{shortened(key)} is not a setting; {_meant(key, names)}")


def _meant(key: Any, names: Sequence[str]) -> str:
    """What a name that is none may have been meant for."""
    near = get_close_matches(str(key)[:80], (*names, *sorted(ONLY_IN_CODE), *IN_FILES), n=1)
    if not near:
        return f"known: {', '.join(names)}."
    (name,) = near
    if name in names:
        return f"did you mean {name!r}?"
    where = "an argument of the node" if name in ONLY_IN_CODE else "which stands in a settings file"
    return f"did you mean {name!r}, {where}?"
