"""Having a digest forgotten: with what it covers, and with the archive of that.

It is a state update, and the one change by hand that asks something of a store.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.base import BaseStore

from langgraph_compaction.archive import archive_of, perform
from langgraph_compaction.corrections import by_hand, emptied
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.heads import heads_of
from langgraph_compaction.record import CompactionRecord
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, read_state
from langgraph_compaction.view.anchors import locate
from langgraph_compaction.view.marks import is_marked


class Unsaid(Enum):
    """In place of a store: nothing was said of one. No value of a caller's can be taken for it."""

    UNSAID = "unsaid"


def forget(
    state: Any,
    *,
    store: BaseStore | Unsaid | None = Unsaid.UNSAID,
    config: RunnableConfig | None = None,
    messages_key: str = MESSAGES_KEY,
    compaction_key: str = COMPACTION_KEY,
) -> dict[str, Any]:
    """A state update that drops the digest and the messages it covers, for good.

    The kept messages (task, pins), whatever is marked as pinned, and the recent messages stay.
    Covered messages still in the state are removed by id; earlier checkpoints of the thread are
    the checkpointer's and stay as they are. Nothing of the digest comes back through a fold that
    was computed before.

    Given a store, it deletes there at once what the record leads to, and the originals of all
    branches that share any of it, before the update is written; if that fails, call it again. What
    another transcript of the same thread id archived stays. An asynchronous
    store has to be called from another thread than its loop's:
    ``await asyncio.to_thread(forget, state, store=store, config=config)``.

    Args:
        state: the values of the graph's state.
        store: where the originals were archived; None leaves them there. Has to be said where
            some were.
        config: names the thread, as ``get_state`` takes or returns it; needed with a store.
        messages_key: name of the channel with the messages.
        compaction_key: name of the channel with the record.

    Raises:
        ConfigurationError: covered messages have no ids and so cannot be removed; give the
            messages channel the `add_messages` reducer, or remove them yourself. Or one has the id
            by which LangGraph removes all. Or originals were
            archived and ``store`` was not given; or it is no store, or was given without a config
            that names a thread; or it is asynchronous, and this is its loop's thread.
        Exception: what the store raises.
        MissingChannelError: the state lacks a channel.
        RecordError, RecordVersionError: the record cannot be read.
    """
    messages, record = read_state(state, messages_key=messages_key, compaction_key=compaction_key)
    anchor = locate(messages, record)
    gone = {index for index in anchor.hidden if not is_marked(messages[index])}
    hidden = [messages[index] for index in sorted(gone)]
    if any(message.id is None for message in hidden):
        raise ConfigurationError(
            "forget: covered messages of this state have no ids, so that they cannot be removed "
            f"from {messages_key!r}. Give that channel the add_messages reducer, or remove the "
            "messages yourself and write an empty record with a greater epoch."
        )
    if any(message.id == REMOVE_ALL_MESSAGES for message in hidden):
        raise ConfigurationError(
            f"forget: a covered message has the id {REMOVE_ALL_MESSAGES!r}. To remove it LangGraph "
            f"would empty {messages_key!r}. Write the messages anew with another id for it."
        )
    _forget_archive(record, store, config)
    left = [message for index, message in enumerate(messages) if index not in gone]
    empty = by_hand(emptied(record, left, len(left)), left)
    empty["forgotten_epoch"] = empty["epoch"]
    update: dict[str, Any] = {compaction_key: empty}
    if hidden:
        update[messages_key] = [RemoveMessage(id=str(message.id)) for message in hidden]
    return update


def _forget_archive(
    record: CompactionRecord, store: BaseStore | Unsaid | None, config: RunnableConfig | None
) -> None:
    heads = heads_of(record)
    if store is Unsaid.UNSAID and heads:
        raise ConfigurationError(
            "forget: originals of this thread are in an archive. Pass store= (the store that the "
            "graph runs with, or the node's archive) and config= (that of the thread) to delete "
            "them, too, or store=None to leave them there."
        )
    if store is None or store is Unsaid.UNSAID:
        return
    if not isinstance(store, BaseStore):
        raise ConfigurationError(
            f"forget: store={store!r} is no store, so that no original was deleted. Pass a "
            "LangGraph store (a BaseStore) that is open, or None to leave the archive as it is."
        )
    if config is None:
        raise ConfigurationError(
            "forget: with store= it has to know the thread whose archive is to be deleted. Pass "
            'config={"configurable": {"thread_id": "..."}} as well.'
        )
    archive = archive_of(store, config, in_node=False)
    deleted = perform(store, archive.steps_of_delete(*heads))
    if heads and not deleted:
        raise ConfigurationError(
            "forget: this store has nothing of what the record says was archived, under the thread "
            f"{config.get('configurable', {}).get('thread_id')!r}. Pass the store and the thread's "
            "config that the node works with; or store=None, if the archive is gone already."
        )
