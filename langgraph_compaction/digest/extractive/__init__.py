"""A digest without a model: extracts of a span, ranked, sorted into sections, within a budget."""

from langgraph_compaction.digest.extractive.summarizer import ExtractiveSummarizer

__all__ = ["ExtractiveSummarizer"]
