"""LangGraph's stores, each opened and set up, under one name whether it is asynchronous or not."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraph_compaction.archive import Steps, aperform, perform

T = TypeVar("T")

KINDS = ("memory", "memory-async", "sqlite", "sqlite-async", "postgres", "postgres-async")
"""What `opened` opens; "-async" is used through its asynchronous methods."""


@asynccontextmanager
async def opened(kind: str, folder: Path, postgres: Callable[[], str]) -> AsyncIterator[BaseStore]:
    """A store of that kind.

    Args:
        kind: one of `KINDS`.
        folder: where a file of SQLite's is.
        postgres: gives the address of a database; called for PostgreSQL only.
    """
    if kind.startswith("memory"):
        yield InMemoryStore()
    elif kind == "sqlite":
        from langgraph.store.sqlite import SqliteStore

        with SqliteStore.from_conn_string(str(folder / "store.sqlite")) as store:
            store.setup()
            yield store
    elif kind == "sqlite-async":
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        async with AsyncSqliteStore.from_conn_string(str(folder / "store.sqlite")) as astore:
            await astore.setup()
            yield astore
    elif kind == "postgres":
        from langgraph.store.postgres import PostgresStore

        with PostgresStore.from_conn_string(postgres()) as pg:
            pg.setup()
            yield pg
    else:
        from langgraph.store.postgres.aio import AsyncPostgresStore

        async with AsyncPostgresStore.from_conn_string(postgres()) as apg:
            await apg.setup()
            yield apg


async def called(kind: str, thing: Any, method: str, *arguments: Any) -> Any:
    """Call a method, or the asynchronous one of the same name with an ``a`` before it."""
    if kind.endswith("-async"):
        return await getattr(thing, f"a{method}")(*arguments)
    return getattr(thing, method)(*arguments)


async def done(kind: str, store: BaseStore, steps: Steps[T]) -> T:
    """Do steps on a store, or asynchronously where that is its kind."""
    return await aperform(store, steps) if kind.endswith("-async") else perform(store, steps)
