"""Extracts in place of a digest, where every tier failed and something must happen all the same."""

from __future__ import annotations

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.source import Source
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.record import LEAST_SEGMENT_TOKENS

FALLBACK = ExtractiveSummarizer()
"""Writes the segment where the view exceeds the hard limit and every tier failed."""
FALLBACK_NAME = "extractive"


def extracts(source: Source, visit: Visit) -> tuple[str, str] | None:
    """Extracts and their writer's name, None where there is no room even for those.

    Raises:
        RedactionError: the hook failed.
    """
    if source.extract_tokens < LEAST_SEGMENT_TOKENS:
        return None
    try:
        text = FALLBACK.write(
            source.texts, source.span, max_tokens=source.extract_tokens, count=visit.counter.text
        )
    except Exception:  # noqa: BLE001  # the last means must not be what ends a run
        return None
    # Cleaned, a text may have a secret that the messages had in pieces.
    return visit.redacted(text), FALLBACK_NAME
