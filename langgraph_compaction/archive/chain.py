"""Writing, reading and deleting the chain of originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, SearchOp

from langgraph_compaction.archive.items import Archived, item_of, storable
from langgraph_compaction.archive.naming import namespace_of
from langgraph_compaction.archive.performing import Steps, aperform, perform
from langgraph_compaction.errors import ConfigurationError

WRITTEN_AT_ONCE = 500
"""Items in one batch: SQLite takes 32,766 parameters in a statement, four of them an item."""
PAGE = 1_000
"""Items that one search asks for."""


def archive_of(store: BaseStore, config: RunnableConfig, *, in_node: bool = True) -> Archive:
    """The archive of the graph and thread that a config belongs to.

    Args:
        store: any LangGraph store.
        config: of a run.
        in_node: whether it is the config that a node got, whose ``checkpoint_ns`` ends in the node
            itself; False for that of a graph, such as `get_state` returns.

    Raises:
        ConfigurationError: the config names no thread.
    """
    configurable = config.get("configurable") or {}
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        raise ConfigurationError(
            "The archive of originals belongs to a thread, and this run has none. Run the graph "
            'with {"configurable": {"thread_id": "..."}}.'
        )
    checkpoint_ns = str(configurable.get("checkpoint_ns") or "")
    return Archive(store, namespace_of(thread_id, checkpoint_ns, in_node=in_node))


class Archive:
    """The originals that were folded in one graph of one thread.

    Every method exists twice, the one that begins with ``a`` being asynchronous; what a method
    does with the store stands in ``steps_of_...``. Errors of the store are raised as they are.

    Args:
        store: any LangGraph store.
        namespace: where in it, see `namespace_of`.
    """

    def __init__(self, store: BaseStore, namespace: tuple[str, ...]) -> None:
        self.store = store
        self.namespace = namespace

    def write(self, messages: Sequence[tuple[int, BaseMessage]], previous: str | None) -> str:
        """Append messages to the chain. A write that was broken off may be done again.

        They are not embedded, whatever index the store has.

        Args:
            messages: each with its position in the thread; at least one.
            previous: key of the newest item so far, None where there is none.

        Returns:
            Key of the newest item.

        Raises:
            ValueError: there are no messages.
            Exception: what the store raises. Then some of the items may be there and no harm is
                done: they are found again by their keys.
        """
        return perform(self.store, self.steps_of_write(messages, previous))

    async def awrite(
        self, messages: Sequence[tuple[int, BaseMessage]], previous: str | None
    ) -> str:
        """Append messages asynchronously; see `write`."""
        return await aperform(self.store, self.steps_of_write(messages, previous))

    def steps_of_write(
        self, messages: Sequence[tuple[int, BaseMessage]], previous: str | None
    ) -> Steps[str]:
        """The steps of `write`."""
        if not messages:
            raise ValueError("There are no messages to archive.")
        key = previous
        # From the oldest on: what a crash leaves is a beginning of the chain.
        for start in range(0, len(messages), WRITTEN_AT_ONCE):
            puts: list[Op] = []
            for position, message in messages[start : start + WRITTEN_AT_ONCE]:
                key, value = item_of(message, position, key)
                puts.append(PutOp(self.namespace, key, value, index=False))
            yield puts
        return str(key)

    def branch(self, head: str) -> list[Archived]:
        """The originals of one branch, by their positions; empty if the archive lacks ``head``.

        Args:
            head: key of the newest item of the branch. The chain is followed from there; where an
                item is gone, it ends.
        """
        return perform(self.store, self.steps_of_branch(head))

    async def abranch(self, head: str) -> list[Archived]:
        """The originals of one branch asynchronously; see `branch`."""
        return await aperform(self.store, self.steps_of_branch(head))

    def steps_of_branch(self, head: str) -> Steps[list[Archived]]:
        """The steps of `branch`."""
        items = yield from self._items(head)
        found: list[Archived] = []
        key: str | None = head
        while key is not None and key in items:
            item = items.pop(key)
            found.append(item)
            key = item.previous
        return _in_order(reversed(found))

    def all(self) -> list[Archived]:
        """The originals of all branches, by their positions."""
        return perform(self.store, self.steps_of_all())

    async def aall(self) -> list[Archived]:
        """The originals of all branches asynchronously; see `all`."""
        return await aperform(self.store, self.steps_of_all())

    def steps_of_all(self) -> Steps[list[Archived]]:
        """The steps of `all`."""
        items = yield from self._items()
        return _in_order(items.values())

    def by_id(self, message_id: str, head: str | None = None) -> list[Archived]:
        """The originals with that id, by their positions.

        Args:
            message_id: id of a message.
            head: key of the newest item of a branch; None: of all branches.
        """
        return with_id(self._chosen(head), message_id)

    async def aby_id(self, message_id: str, head: str | None = None) -> list[Archived]:
        """The originals with that id asynchronously; see `by_id`."""
        return with_id(await self._achosen(head), message_id)

    def by_call(self, call_id: str, head: str | None = None) -> list[Archived]:
        """The originals that make or answer a call, by their positions.

        Args:
            call_id: id of a tool call.
            head: key of the newest item of a branch; None: of all branches.
        """
        return with_call(self._chosen(head), call_id)

    async def aby_call(self, call_id: str, head: str | None = None) -> list[Archived]:
        """The originals that make or answer a call asynchronously; see `by_call`."""
        return with_call(await self._achosen(head), call_id)

    def _chosen(self, head: str | None) -> list[Archived]:
        return self.all() if head is None else self.branch(head)

    async def _achosen(self, head: str | None) -> list[Archived]:
        return await (self.aall() if head is None else self.abranch(head))

    def delete(self) -> None:
        """Delete every item of the archive, of all branches."""
        perform(self.store, self.steps_of_delete())

    async def adelete(self) -> None:
        """Delete every item asynchronously; see `delete`."""
        await aperform(self.store, self.steps_of_delete())

    def steps_of_delete(self) -> Steps[None]:
        """The steps of `delete`."""
        gone: set[str] = set()
        skipped = 0
        while True:
            page = (yield [SearchOp(self.namespace, limit=PAGE, offset=skipped)])[0]
            own = (one.key for one in page if tuple(one.namespace) == self.namespace)
            keys = [key for key in own if key not in gone]
            gone.update(keys)
            if keys:
                yield [PutOp(self.namespace, key, None) for key in keys]
            elif page:
                skipped += len(page)
            else:
                return

    def steps_of_holding(self, head: str) -> Steps[Archive]:
        """Steps to the archive of the same thread that holds ``head``; this one if none does.

        Where graphs share their state, a record is also read by another graph than the one that
        wrote it.
        """
        found = yield [GetOp(self.namespace, head)]
        if found[0] is None:
            thread = self.namespace[:2]
            held = (yield [SearchOp(thread, filter={"key": head}, limit=1)])[0]
            for one in held:
                if one.key == head and tuple(one.namespace[:2]) == thread:
                    return Archive(self.store, tuple(one.namespace))
        return self

    def _items(self, head: str | None = None) -> Steps[dict[str, Archived]]:
        """All items by their keys; what a search missed, by the links to it."""
        found: dict[str, Archived] = {}
        offset = 0
        while True:
            page = (yield [SearchOp(self.namespace, limit=PAGE, offset=offset)])[0]
            known = len(found)
            found.update({one.key: self._read(one) for one in page if self._holds(one)})
            offset += len(page)
            if not page or (len(found) == known and any(map(self._holds, page))):
                break
        # Items of one batch have one time, by which the databases order them: pages may overlap,
        # and leave some out.
        asked: set[str] = set()
        while True:
            wanted = {item.previous for item in found.values()} | {head}
            missing = sorted(key for key in wanted if key and key not in found and key not in asked)
            if not missing:
                return found
            asked.update(missing)
            got = yield [GetOp(self.namespace, key) for key in missing]
            found.update({one.key: self._read(one) for one in got if one is not None})

    def _holds(self, item: Any) -> bool:
        """Whether an item is of this archive: a search finds what lies below the namespace, too."""
        return tuple(item.namespace) == self.namespace and _is_original(item.value)

    def _read(self, item: Any) -> Archived:
        return Archived.of(item.key, item.value)


def with_id(originals: Sequence[Archived], message_id: str) -> list[Archived]:
    """Those of the originals whose message has that id."""
    wanted = storable(message_id)
    return [one for one in originals if one.id == wanted]


def with_call(originals: Sequence[Archived], call_id: str) -> list[Archived]:
    """Those of the originals that make or answer that call."""
    wanted = storable(call_id)
    return [one for one in originals if wanted in one.call_ids]


def _in_order(items: Any) -> list[Archived]:
    return sorted(items, key=lambda item: item.position)


def _is_original(value: Any) -> bool:
    return isinstance(value, Mapping) and "v" in value and "previous" in value
