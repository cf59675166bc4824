"""LangGraph's checkpointers, each opened and set up, under one name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

KINDS = ("memory", "sqlite", "postgres")


@contextmanager
def opened(kind: str, folder: Path, postgres: Callable[[], str]) -> Iterator[Any]:
    """A checkpointer of that kind.

    Args:
        kind: one of `KINDS`.
        folder: where the file of SQLite's is.
        postgres: gives the address of a database; called for PostgreSQL only.
    """
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
            yield saver
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(postgres()) as pg:
            pg.setup()
            yield pg
