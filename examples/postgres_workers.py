"""Worker processes that serve the threads of one PostgreSQL database.

    pip install "langgraph-checkpoint-postgres" "psycopg[binary]"
    POSTGRES_URI=postgresql://user@localhost/agents python examples/postgres_workers.py

Each job is one request to one thread, and any worker takes it: what counts of a thread is in its
checkpoint, so that a process has nothing to remember. One of them is killed in the middle.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from typing import Any

from inspector import WINDOW, agent_loop, hottest

from langgraph_compaction import CompactionNode, ExtractiveSummarizer

try:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore
    from psycopg import OperationalError
except ImportError as error:
    raise SystemExit(
        f"{error}. Install what this example takes: "
        'pip install "langgraph-checkpoint-postgres" "psycopg[binary]"'
    ) from None

THREADS, PUMPS = 3, 24
KILLED = 10
"""Steps after which the first worker of the first thread is killed."""


def build(saver: PostgresSaver, store: PostgresStore) -> Any:
    """The graph that every worker makes for itself, with the same settings."""
    compact = CompactionNode(ExtractiveSummarizer(), context_window=WINDOW, history="prune")
    return agent_loop(compact).compile(checkpointer=saver, store=store)


def work(uri: str, thread_id: str, steps: int | None) -> None:
    """Serve a thread: begin its request, or go on where another worker left it.

    Args:
        uri: the database.
        thread_id: the thread.
        steps: kill this process after so many steps of the graph; None: finish.
    """
    with PostgresSaver.from_conn_string(uri) as saver, PostgresStore.from_conn_string(uri) as store:
        graph = build(saver, store)
        thread: Any = {"configurable": {"thread_id": thread_id}, "recursion_limit": 1_000}
        begun = bool(graph.get_state(thread).tasks)
        asked: Any = {"messages": [("user", f"Inspect the pumps 1 to {PUMPS}.")]}
        for number, _ in enumerate(graph.stream(None if begun else asked, thread)):
            if number == steps:
                os.kill(os.getpid(), signal.SIGKILL)


def start(uri: str, thread_id: str, steps: int | None = None) -> int:
    """Run a worker in a process of its own; its exit status."""
    command = [sys.executable, __file__, "--uri", uri, "--work", thread_id]
    return subprocess.run(  # noqa: S603  # this very program
        [*command, *(["--die", str(steps)] if steps else [])], check=False
    ).returncode


def main(argv: list[str] | None = None) -> int:
    """Serve three threads by several workers; the exit status is 0 if every answer is right."""
    parser = argparse.ArgumentParser(description="Workers on one database, one of them killed.")
    parser.add_argument("--uri", default=os.environ.get("POSTGRES_URI"), help="or POSTGRES_URI")
    parser.add_argument("--work", metavar="THREAD", help=argparse.SUPPRESS)
    parser.add_argument("--die", type=int, metavar="STEPS", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if not options.uri:
        parser.error("set POSTGRES_URI or pass --uri, such as postgresql://user@localhost/agents")
    if options.work:
        work(options.uri, options.work, options.die)
        return 0
    try:
        return serve(options.uri)
    except OperationalError as error:
        parser.error(f"the database cannot be reached: {error}")


def serve(uri: str) -> int:
    """Start the workers, one after another, and look at what they left; the exit status."""
    with PostgresSaver.from_conn_string(uri) as saver, PostgresStore.from_conn_string(uri) as store:
        saver.setup()  # once, before the first worker starts
        store.setup()
        names = [f"pumps-{number}" for number in range(THREADS)]
        print(f"the first worker ended with {start(uri, names[0], KILLED)}")
        for name in names:  # the first of them goes on where that one was killed
            start(uri, name)
        graph, right = build(saver, store), True
        for name in names:
            state = graph.get_state({"configurable": {"thread_id": name}}).values
            answer, record = state["messages"][-1].text, state["compaction"]
            right = right and f"pump {hottest(1, PUMPS)}," in answer
            print(f"{name}: {len(record['segments'])} segments, {len(state['messages'])} messages "
                  f"left in the state. {answer}")  # fmt: skip
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
