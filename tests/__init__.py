"""Tests of langgraph_compaction."""
