"""Writing, reading and deleting the chain of originals, wherever in the thread it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, SearchOp

from langgraph_compaction.archive.items import Archived, item_of
from langgraph_compaction.archive.naming import namespace_of
from langgraph_compaction.archive.performing import Steps
from langgraph_compaction.errors import ConfigurationError

WRITTEN_AT_ONCE = 500
"""Items in one batch: SQLite takes 32,766 parameters in a statement, four of them an item."""
PAGE = 1_000
"""Items that one search asks for."""

_Pools = dict[tuple[str, ...], dict[str, Archived]]
"""Items by namespace and key."""


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

    What it does is written as steps: `perform` does them on a store, `aperform` asynchronously.
    Errors of the store are raised as they are.

    Where graphs share their state, they share a chain. Whoever reads, continues or deletes one
    is led by its key to the archive of the thread that holds it.

    Args:
        store: any LangGraph store.
        namespace: where in it, see `namespace_of`.
    """

    def __init__(self, store: BaseStore, namespace: tuple[str, ...]) -> None:
        self.store = store
        self.namespace = namespace

    def steps_of_write(
        self,
        messages: Sequence[tuple[int, BaseMessage]],
        previous: str | None,
        also: Sequence[str] = (),
    ) -> Steps[str]:
        """Steps that append messages to the chain. A write that was broken off may be done again.

        They are not embedded, whatever index the store has.

        Args:
            messages: each with its position in the thread; at least one.
            previous: key of the newest item so far, None where there is none.
            also: keys of items at which other chains end; the first new item leads to them, too.

        Returns:
            Key of the newest item.

        Raises:
            ValueError: there are no messages.
            Exception: what the store raises. Then some of the items may be there and no harm is
                done: they are found again by their keys.
        """
        if not messages:
            raise ValueError("There are no messages to archive.")
        namespace = yield from self._holding(previous)
        key = previous
        # From the oldest on: what a crash leaves is a beginning of the chain.
        for start in range(0, len(messages), WRITTEN_AT_ONCE):
            puts: list[Op] = []
            for position, message in messages[start : start + WRITTEN_AT_ONCE]:
                key, value = item_of(message, position, key, also)
                also = ()
                puts.append(PutOp(namespace, key, value, index=False))
            yield puts
        return str(key)

    def steps_of_branch(self, *heads: str) -> Steps[list[Archived]]:
        """Steps to the originals of one branch, by their positions; none where it is not found.

        Args:
            heads: keys of the newest items of the branch. The chains are followed from there; where
                an item is gone, its chain ends.
        """
        found, _ = yield from self._reached(heads)
        return _in_order(reversed(found.values()))

    def steps_of_all(self) -> Steps[list[Archived]]:
        """Steps to the originals of all branches, by their positions."""
        items = yield from _items_in(self.namespace)
        return _in_order(items.values())

    def steps_of_delete(self, *heads: str) -> Steps[int]:
        """Steps that delete what some items lead to, and all branches that share any of it.

        What else the namespace holds is another transcript's. If it is broken off, the same steps
        may be done again: the items go before those by which they were found.

        Args:
            heads: keys of items.

        Returns:
            How many items there were.
        """
        found, pools = yield from self._reached(heads, everywhere=True)
        beside: dict[str, set[str]] = {}
        for pool in pools.values():
            for item in pool.values():
                for key in _links(item):
                    beside.setdefault(item.key, set()).add(key)
                    beside.setdefault(key, set()).add(item.key)
        order = dict.fromkeys(found)
        pending = list(found)
        for key in pending:  # it grows while it is gone through
            new = [one for one in sorted(beside.get(key, ())) if one not in order]
            order.update(dict.fromkeys(new))
            pending += new
        puts: list[Op] = [
            PutOp(namespace, key, None)
            for key in reversed(order)
            for namespace, pool in pools.items()
            if key in pool
        ]
        for start in range(0, len(puts), WRITTEN_AT_ONCE):
            yield puts[start : start + WRITTEN_AT_ONCE]
        return len(puts)

    def _reached(
        self, heads: Sequence[str], *, everywhere: bool = False
    ) -> Steps[tuple[dict[str, Archived], _Pools]]:
        """Steps to what some items lead to, from there on, and to all items of where that is.

        Args:
            heads: keys of items.
            everywhere: whether a head is looked for in all graphs of the thread: parallel branches
                may have written the same.
        """
        found: dict[str, Archived] = {}
        pools: _Pools = {}
        pending = [(head, True) for head in reversed(heads)]
        while pending:
            key, may_be_elsewhere = pending.pop()
            if key in found:
                continue
            if everywhere and key in heads:
                yield from self._load(pools, key, (yield from self._all_holding(key)))
            item = _item(pools, key)
            if item is None and may_be_elsewhere:
                yield from self._load(pools, key, [(yield from self._holding(key))])
                item = _item(pools, key)
            if item is not None:
                found[key] = item
                pending += [(one, True) for one in reversed(item.also)]
                pending += [(item.previous, False)] if item.previous else []
        return found, pools

    def _load(self, pools: _Pools, key: str, namespaces: Sequence[tuple[str, ...]]) -> Steps[None]:
        for namespace in namespaces:
            if key not in pools.get(namespace, {}):
                pools[namespace] = yield from _items_in(namespace, key)

    def _holding(self, head: str | None) -> Steps[tuple[str, ...]]:
        """Steps to the namespace in the same thread that holds ``head``; this one if none does.

        A record is also read by another graph than the one that wrote it.
        """
        if head is None or (yield [GetOp(self.namespace, head)])[0] is not None:
            return self.namespace
        found = yield from self._all_holding(head, limit=1)
        return found[0] if found else self.namespace

    def _all_holding(self, head: str, limit: int = PAGE) -> Steps[list[tuple[str, ...]]]:
        thread = self.namespace[:2]
        found = (yield [SearchOp(thread, filter={"key": head}, limit=limit)])[0]
        own = [one for one in found if one.key == head and tuple(one.namespace[:2]) == thread]
        return [tuple(one.namespace) for one in own]


def _item(pools: _Pools, key: str) -> Archived | None:
    return next((pool[key] for pool in pools.values() if key in pool), None)


def _links(item: Archived) -> list[str]:
    return [*([item.previous] if item.previous else []), *item.also]


def _items_in(namespace: tuple[str, ...], head: str | None = None) -> Steps[dict[str, Archived]]:
    """All items by their keys; what a search missed, by ``head`` and the links to it."""
    found: dict[str, Archived] = {}
    offset = 0
    while True:
        page = (yield [SearchOp(namespace, limit=PAGE, offset=offset)])[0]
        known = len(found)
        own = [one for one in page if _is_original(one, namespace)]
        found.update({one.key: Archived.of(one.key, one.value) for one in own})
        offset += len(page)
        if not page or (len(found) == known and own):
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
        got = yield [GetOp(namespace, key) for key in missing]
        found.update({one.key: Archived.of(one.key, one.value) for one in got if one is not None})


def _in_order(items: Any) -> list[Archived]:
    return sorted(items, key=lambda item: item.position)


def _is_original(item: Any, namespace: tuple[str, ...]) -> bool:
    """Whether an item is of this archive: a search finds what lies below the namespace, too."""
    value = item.value
    held = isinstance(value, Mapping) and "v" in value and "previous" in value
    return held and tuple(item.namespace) == namespace
