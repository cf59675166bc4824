"""Compaction for LangGraph agents: older messages become a digest, nothing that matters is lost.

    from langgraph_compaction import CompactionNode, CompactionState

See the README for a first agent, and `CompactionNode` for the parameters.
"""

from typing import TYPE_CHECKING

from langgraph_compaction import presets
from langgraph_compaction.arguments import SettingValues
from langgraph_compaction.corrections import edit_digest, restore
from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.errors import (
    BudgetError,
    CascadeExhaustedError,
    CompactionError,
    ConfigurationError,
    MissingChannelError,
    RecordError,
    RecordVersionError,
)
from langgraph_compaction.files import load_settings
from langgraph_compaction.forgetting import forget
from langgraph_compaction.looking import Explanation, Measurement, TriggerCheck
from langgraph_compaction.node import CompactionNode
from langgraph_compaction.ondemand import (
    compact_conversation,
    create_compact_tool,
    request_compaction,
)
from langgraph_compaction.overflow import overflow_handler, with_overflow_recovery
from langgraph_compaction.recall import create_recall_tool
from langgraph_compaction.record import CompactionRecord, DigestSegment
from langgraph_compaction.run.tiers import ModelTier
from langgraph_compaction.settings import CompactionSettings
from langgraph_compaction.state import (
    CompactionState,
    merge_compaction,
    merge_messages,
    merge_settings,
)
from langgraph_compaction.view import model_view
from langgraph_compaction.view.marks import pin

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "CascadeExhaustedError",
    "CompactionError",
    "CompactionNode",
    "CompactionRecord",
    "CompactionSettings",
    "CompactionState",
    "ConfigurationError",
    "DigestSegment",
    "Explanation",
    "ExtractiveSummarizer",
    "Measurement",
    "MissingChannelError",
    "ModelTier",
    "RecordError",
    "RecordVersionError",
    "SettingValues",
    "TriggerCheck",
    "compact_conversation",
    "create_compact_tool",
    "create_recall_tool",
    "edit_digest",
    "forget",
    "load_settings",
    "merge_compaction",
    "merge_messages",
    "merge_settings",
    "model_view",
    "overflow_handler",
    "pin",
    "presets",
    "request_compaction",
    "restore",
    "with_overflow_recovery",
]

if not TYPE_CHECKING:  # a checker is to know that these are not here

    def __getattr__(name: str) -> object:
        """Say where the names are that users look for here."""
        if name in {"CompactionMiddleware", "CompactionAgentState"}:
            raise ImportError(
                f"{name} is imported from langgraph_compaction.middleware, which takes the "
                "langchain extra: from langgraph_compaction.middleware import "
                f'{name} (pip install "langgraph-compaction[langchain]").'
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
