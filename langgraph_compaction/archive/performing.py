"""What an archive asks of its store, written once for synchronous and asynchronous runs.

The steps are a generator: it yields operations, and is sent their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Op
from langgraph.store.base.batch import AsyncBatchedBaseStore

from langgraph_compaction.errors import ConfigurationError

T = TypeVar("T")

Steps = Generator[list[Op], list[Any], T]
"""Yields lists of operations, is sent the list of their results, and returns its own."""


def perform(store: BaseStore, steps: Steps[T]) -> T:
    """Do the steps on a store.

    Raises:
        ConfigurationError: this thread runs the loop of an asynchronous store, which would wait for
            itself.
        Exception: what the store raises, unless the steps catch it.
    """
    check_synchronous(store)
    try:
        operations = next(steps)
        while True:
            try:
                results = store.batch(operations)
            except Exception as error:  # noqa: BLE001  # the steps raise it or answer for it
                operations = steps.throw(error)
            else:
                operations = steps.send(results)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # it is what the steps return


async def aperform(store: BaseStore, steps: Steps[T]) -> T:
    """Do the steps on a store asynchronously; see `perform`."""
    try:
        operations = next(steps)
        while True:
            try:
                results = await store.abatch(operations)
            except Exception as error:  # noqa: BLE001  # the steps raise it or answer for it
                operations = steps.throw(error)
            else:
                operations = steps.send(results)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # it is what the steps return


def check_synchronous(store: BaseStore) -> None:
    """Refuse a store that this thread cannot ask synchronously.

    Raises:
        ConfigurationError: this thread runs the store's own event loop.
    """
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:  # none in this thread
        return
    # Its own check is not in all versions, and some callers take what a store raises for its being
    # down.
    if isinstance(store, AsyncBatchedBaseStore) and getattr(store, "_loop", None) is running:
        raise ConfigurationError(
            f"The archive is in a {type(store).__name__}, which is asynchronous, and was asked "
            "synchronously by the thread that runs its event loop. Use ainvoke or astream, or a "
            "synchronous store; call forget by asyncio.to_thread."
        )
