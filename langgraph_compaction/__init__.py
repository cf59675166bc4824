"""Compaction for LangGraph agents: older messages become a digest, nothing that matters is lost.

    from langgraph_compaction import CompactionNode, CompactionState

See the README for a first agent, and `CompactionNode` for the parameters.
"""

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
    "request_compaction",
    "restore",
    "with_overflow_recovery",
]
