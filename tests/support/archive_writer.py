"""A program that writes a chain of originals: `python -m tests.support.archive_writer`.

Its arguments are the store (an address of PostgreSQL or a file of SQLite's), the thread and the
number of messages. It prints a line when it begins to write, and the key of the newest item.
"""

import json
import sys
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from langgraph_compaction.archive import Archive, namespace_of, perform


def talk(first: int, stop: int, note: str = "") -> list[tuple[int, BaseMessage]]:
    """Messages with the positions from ``first`` on and before ``stop``."""
    return [(n, HumanMessage(f"Message {n}{note}.", id=f"m{n}{note}")) for n in range(first, stop)]


def open_at(where: str) -> Any:
    """A store on disk, as a context manager."""
    if where.startswith("postgres"):
        from langgraph.store.postgres import PostgresStore

        return PostgresStore.from_conn_string(where)
    from langgraph.store.sqlite import SqliteStore

    return SqliteStore.from_conn_string(where)


def main(where: str, thread: str, count: int) -> None:
    """Write a chain and say so on stdout."""
    with open_at(where) as store:
        archive = Archive(store, namespace_of(thread))
        sys.stdout.write("writing\n")
        sys.stdout.flush()
        head = perform(archive.store, archive.steps_of_write(talk(0, count), None))
        sys.stdout.write(json.dumps(head) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
