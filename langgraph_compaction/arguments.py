"""The keyword arguments of node and middleware as a type checker and an editor see them.

`CompactionSettings` and `CompactionNode` have the values, the checks and the documentation; what
stands here is pinned to them by tests/contracts/test_arguments.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import BaseStore

# pydantic refuses typing.TypedDict before Python 3.12.
from typing_extensions import TypedDict

from langgraph_compaction.digest.redaction import Redact
from langgraph_compaction.live import LiveState
from langgraph_compaction.plan.counting import TokenCounter
from langgraph_compaction.run.reporting import Hook
from langgraph_compaction.settings import CompactionSettings


class SettingValues(TypedDict, total=False):
    """Values of `CompactionSettings` by name, as `CompactionNode` takes them. None is required.

    For a dict that is made before the node:

    Examples:
        >>> rules: SettingValues = {"trigger": ("tokens", 60_000), "context_window": 128_000}
        >>> compact = CompactionNode(ExtractiveSummarizer(), **rules)
    """

    enabled: bool
    trigger: Any
    keep: Any
    min_keep: int | Literal["auto"]
    target: int | Literal["auto"] | None
    context_window: int | None
    reserve_tokens: int | Literal["auto"]
    overhead_tokens: int
    calibrate: bool | Literal["auto"]
    task: Literal["first", "latest"] | None
    pinned: Callable[[BaseMessage], bool] | Mapping[str, str] | Sequence[Any] | None
    digest: Literal["chain", "rolling"]
    max_digest_tokens: int | Literal["auto"]
    segment_share: float
    min_segment_tokens: int
    max_segment_tokens: int
    max_result_tokens: int | Literal["auto"] | None
    live_state_tokens: int
    clear: bool | Literal["auto"]
    clear_keep: int
    clear_min_share: float
    clear_min_chars: int
    clear_argument_chars: int
    protected_tools: Sequence[str]
    recall_tool: str | None
    history: Literal["full", "prune"]
    min_fold_tokens: int | Literal["auto"]
    min_fold_share: float
    result_chars: int
    prompt: str | None
    instructions: str | None
    sections: Sequence[str] | Mapping[str, str | None] | None
    tool_markers: Mapping[str, str | None] | None
    digest_role: Literal["human", "system"]
    digest_header: str | None
    digest_footer: str | None
    roles: Literal["any", "alternating"]
    background: bool
    summary_timeout: float | None
    on_error: Literal["continue", "raise"]


class MiddlewareArguments(SettingValues, total=False):
    """What `CompactionMiddleware` takes beside a model: the node's arguments, and settings by name.

    Without the names of channels that ``create_agent`` decides on.
    """

    agent_model: Any
    settings: CompactionSettings | Mapping[str, Any] | str | PathLike[str] | None
    token_counter: str | Callable[[list[BaseMessage]], int] | TokenCounter | None
    tools: Sequence[Any]
    system_prompt: str | SystemMessage | None
    hook: Hook | None
    redact: Redact | None
    live_state: LiveState | None
    archive: BaseStore | str | None
    compaction_key: str
    settings_key: str
    name: str
