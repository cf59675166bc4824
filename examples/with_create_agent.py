"""LangChain's create_agent with CompactionMiddleware.

python examples/with_create_agent.py
"""

from __future__ import annotations

from inspector import WINDOW, Inspector, hottest, read_pump
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import ExtractiveSummarizer
from langgraph_compaction.middleware import CompactionMiddleware

PUMPS = 40


def main() -> int:
    """Inspect forty pumps in a window of ten; the exit status is 0 if the answer is right."""
    compaction = CompactionMiddleware(ExtractiveSummarizer(), context_window=WINDOW)
    agent = create_agent(
        Inspector(),
        [read_pump],
        middleware=[compaction],
        system_prompt="You are careful.",
        checkpointer=InMemorySaver(),
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "pumps"}, "recursion_limit": 1_000}
    asked = HumanMessage(f"Inspect the pumps 1 to {PUMPS} and name the hottest.")
    for event in agent.stream({"messages": [asked]}, thread, stream_mode="custom"):
        if event["type"] == "compaction.completed":
            print(f"folded: {event['tokens_before']} to {event['tokens_after']} tokens")
    state = agent.get_state(thread).values
    answer = state["messages"][-1].text
    print(f"{len(state['messages'])} messages, {len(compaction.view(state))} in the view")
    print(answer)
    return 0 if f"pump {hottest(1, PUMPS)}," in answer else 1


if __name__ == "__main__":
    raise SystemExit(main())
