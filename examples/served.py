"""The agent as LangGraph's own server runs it: see langgraph.json.

    pip install "langgraph-cli[inmem]"
    cd examples && langgraph dev

The server brings checkpointer and store; the graph is given without one. `compaction` is part of
each thread's values: GET /threads/{thread_id}/state. The agent understands one request, with any
two numbers: "Inspect the pumps 1 to 40."
"""

from __future__ import annotations

from inspector import WINDOW, agent_loop

from langgraph_compaction import CompactionNode, ExtractiveSummarizer

graph = agent_loop(CompactionNode(ExtractiveSummarizer(), context_window=WINDOW)).compile()
