"""What an archive asks of its store, written once for synchronous and asynchronous runs.

The steps are a generator: it yields operations, and is sent their results.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Op

T = TypeVar("T")

Steps = Generator[list[Op], list[Any], T]
"""Yields lists of operations, is sent the list of their results, and returns its own."""


def perform(store: BaseStore, steps: Steps[T]) -> T:
    """Do the steps on a store.

    Raises:
        Exception: what the store raises, unless the steps catch it.
    """
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
