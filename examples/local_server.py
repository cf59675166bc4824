"""Agent and digests on a server of your own that speaks OpenAI's API: llama.cpp, vLLM, Ollama.

    llama-server -m model.gguf --port 8080 --jinja
    python examples/local_server.py --base-url http://localhost:8080/v1 --model any --window 4096

`roles="alternating"` suits the chat templates of small models. The window is what the server was
started with: it tells nobody. Where a call is too long after all, it is made once more, reduced.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from openai import APIError
from pydantic import SecretStr

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ExtractiveSummarizer,
    ModelTier,
    overflow_handler,
)

TURNS = 12


def main(argv: list[str] | None = None) -> int:
    """Talk until the thread was folded; the exit status is 0 if it was and the agent answered."""
    parser = argparse.ArgumentParser(description="A long talk with a local model.")
    parser.add_argument("--base-url", default="http://localhost:8080/v1")
    parser.add_argument("--model", default="local")
    parser.add_argument(
        "--window", type=int, default=4_096, help="tokens the server was started with"
    )
    options = parser.parse_args(argv)
    model = ChatOpenAI(
        model=options.model,
        base_url=options.base_url,
        api_key=SecretStr("none"),  # a server of one's own needs none, but the client insists
        max_retries=0,
        timeout=120,
    )
    compact = CompactionNode(
        # A small model's digest may be rejected; then extracts stand in.
        [ModelTier(model, timeout=60, window=options.window), ExtractiveSummarizer()],
        agent_model=model,
        context_window=options.window,
        roles="alternating",
    )

    def agent(state: CompactionState) -> dict[str, Any]:
        return {"messages": [model.invoke(compact.view(state, system="Answer in one sentence."))]}

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent, error_handler=overflow_handler(compact))
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())

    thread: Any = {"configurable": {"thread_id": "talk"}}
    try:
        for turn in range(1, TURNS + 1):
            text = f"Note {turn}: pump {turn} runs at {20 + turn * 37 % 61} degrees. " * 40
            asked: Any = {"messages": [("user", f"{text}\nWhich pump was that?")]}
            for event in graph.stream(asked, thread, stream_mode="custom"):
                print(f"  {event['type']} {event.get('model', '')} {event.get('reason', '')}")
            print(f"{turn}: {graph.get_state(thread).values['messages'][-1].text[:80]!r}")
    except BudgetError as error:
        print(error)
        return 1
    except APIError as error:
        print(f"The server at {options.base_url} does not answer: {error}", file=sys.stderr)
        print("Start one as it says in this file, or pass its --base-url.", file=sys.stderr)
        return 2
    segments = graph.get_state(thread).values["compaction"].get("segments", [])
    print(f"digests by: {', '.join(one['model'] for one in segments)}")
    return 0 if segments else 1


if __name__ == "__main__":
    raise SystemExit(main())
