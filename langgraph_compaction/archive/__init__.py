"""The archive of folded originals, in any LangGraph store.

An archive holds what was pruned from the messages channel of one graph in one thread. Its items
form a chain: each names the one before it, so that a key leads to exactly the history of the branch
that wrote it, and branches share what they share. Nothing is overwritten, and a write that is done
again writes the same keys.
"""

from langgraph_compaction.archive.appending import steps_of_append
from langgraph_compaction.archive.chain import Archive, archive_of
from langgraph_compaction.archive.items import Archived
from langgraph_compaction.archive.naming import ROOT, namespace_of
from langgraph_compaction.archive.performing import Steps, aperform, check_synchronous, perform

__all__ = [
    "ROOT",
    "Archive",
    "Archived",
    "Steps",
    "aperform",
    "archive_of",
    "check_synchronous",
    "namespace_of",
    "perform",
    "steps_of_append",
]
