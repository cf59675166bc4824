"""A user clears the chat: nothing of it may come back, neither by digest nor by recall.

python examples/clear_chat.py
"""

from __future__ import annotations

from typing import Any

from inspector import WINDOW, agent_loop
from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import CompactionNode, ExtractiveSummarizer, forget

PUMPS = 30


def main() -> int:
    """Fold and prune a thread, clear it, and go on; the exit status is 0 if nothing is left."""
    compact = CompactionNode(ExtractiveSummarizer(), context_window=WINDOW, history="prune")
    store = InMemoryStore()
    graph = agent_loop(compact).compile(checkpointer=InMemorySaver(), store=store)

    thread: Any = {"configurable": {"thread_id": "pumps"}, "recursion_limit": 1_000}
    graph.invoke({"messages": [("user", f"Inspect the pumps 1 to {PUMPS}.")]}, thread)
    archive = ("langgraph_compaction", "pumps")
    values = graph.get_state(thread).values
    print(f"before: {len(values['messages'])} messages in the state, "
          f"{len(store.search(archive, limit=1_000))} items in the archive")  # fmt: skip

    # The digest, the covered messages and their originals go; then what was never folded. Said to
    # come from "compact": behind the agent its condition would ask for a message.
    graph.update_state(thread, forget(values, store=store, config=thread), as_node="compact")
    everything: Any = {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}
    graph.update_state(thread, everything, as_node="compact")
    values = graph.get_state(thread).values
    left = len(store.search(archive, limit=1_000))
    print(f"after: {len(values['messages'])} messages in the state, {left} items in the archive")

    state = graph.invoke({"messages": [("user", "And now?")]}, thread)
    print(f"the agent knows nothing any more: {state['messages'][-1].text}")
    view = "\n".join(message.text for message in compact.view(state))
    return 0 if not left and "degrees" not in view else 1


if __name__ == "__main__":
    raise SystemExit(main())
