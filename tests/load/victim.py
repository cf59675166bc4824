"""A process that works on one thread until it is done, or until it is killed.

It tells the process that started it where it is, and then stands still there, so that the kill hits
that very place.
"""

import json
import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from psycopg import Connection as PostgresConnection
from psycopg.rows import dict_row

from langgraph_compaction import CompactionNode
from tests.load.crew import MODES, Scribe, answer, graph_of, marks, request

PLACES = ("summary", "archiving", "archived", "checkpointing", "checkpointed")
"""Where a process may be told to stand still: in the call of a summariser; before and after it
wrote originals to the archive; before and after it wrote a checkpoint with a new record."""
TURN = 6
"""Steps that one run is asked for."""
LOCKED = 60.0
"""Seconds that a process waits for a SQLite file that another one writes to."""


@dataclass(frozen=True)
class Job:
    """What a process is to do.

    Attributes:
        database: the path of a SQLite file, or the address of a PostgreSQL database.
        log: a folder for what its summariser was asked.
        thread: the thread.
        last: the last step of the thread.
        mode: one of `MODES`.
        place: one of `PLACES`, or "" to go on to the end.
        nth: at which visit of that place it stands still.
        durability: LangGraph's: "sync" or "async".
        seed: of what goes wrong with the summariser.
    """

    database: str
    log: str
    thread: str
    last: int
    mode: str
    place: str = ""
    nth: int = 1
    durability: Any = "sync"
    seed: int = 1


Halt = Callable[[str], None]


class _HaltingStore:
    halt: Halt

    def batch(self, ops: Any) -> Any:
        operations = list(ops)
        writes = any(isinstance(one, PutOp) for one in operations)
        if writes:
            self.halt("archiving")
        results = super().batch(operations)  # type: ignore[misc]  # the store that it is mixed into
        if writes:
            self.halt("archived")
        return results


class _HaltingSaver:
    halt: Halt

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        folds = "compaction" in new_versions and metadata.get("step", -1) >= 0
        if folds:
            self.halt("checkpointing")
        written = super().put(config, checkpoint, metadata, new_versions)  # type: ignore[misc]
        if folds:
            self.halt("checkpointed")
        return written


class HaltingSqliteStore(_HaltingStore, SqliteStore):
    pass


class HaltingPostgresStore(_HaltingStore, PostgresStore):
    pass


class HaltingSqliteSaver(_HaltingSaver, SqliteSaver):
    pass


class HaltingPostgresSaver(_HaltingSaver, PostgresSaver):
    pass


@contextmanager
def opened(database: str, halt: Halt = lambda place: None) -> Iterator[tuple[Any, Any]]:
    """A checkpointer and a store on one database, for one process."""
    if database.startswith("postgres"):
        options: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
        }
        with (
            PostgresConnection.connect(database, **options) as one,
            PostgresConnection.connect(database, **options) as two,
        ):
            pair: tuple[Any, Any] = HaltingPostgresSaver(one), HaltingPostgresStore(two)
            pair[0].halt = pair[1].halt = halt
            yield pair
        return
    connections = [
        sqlite3.connect(f"{database}{name}", timeout=LOCKED, check_same_thread=False, **more)
        for name, more in (("", {}), (".store", {"isolation_level": None}))
    ]
    try:
        pair = HaltingSqliteSaver(connections[0]), HaltingSqliteStore(connections[1])
        pair[0].halt = pair[1].halt = halt
        yield pair
    finally:
        for connection in connections:
            connection.close()


class LoggingScribe(Scribe):
    """A summariser that writes down at once what it is asked, so that the log survives a kill."""

    def __init__(self, folder: Path, halt: Halt, seed: int) -> None:
        super().__init__(seed=seed, seconds=(0.0, 0.02), fails=0.15)
        self._log = (folder / f"{os.getpid()}-{seed}.jsonl").open("a", encoding="utf-8")
        self._halt = halt

    def number(self) -> str:
        return f"{os.getpid()}-{self.seed}-{super().number()}"

    def _asked(
        self, messages: list[BaseMessage], config: RunnableConfig
    ) -> tuple[random.Random, str]:
        found = super()._asked(messages, config)
        number, read = next(reversed(self.read.items()))
        self._log.write(json.dumps([number, read]) + "\n")
        self._log.flush()
        self._halt("summary")
        return found


def read_by(folder: Path) -> dict[str, list[str]]:
    """What all summarisers that logged into a folder have read, by the number of the digest."""
    lines = (line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines())
    return dict(json.loads(line) for line in lines)


def agent_graph(scribe: Scribe, mode: str, saver: Any, store: Any) -> tuple[CompactionNode, Any]:
    """The graph that all processes run."""
    compact = CompactionNode(
        scribe.model,
        context_window=8_000,
        trigger=("tokens", 900),
        keep=("tokens", 300),
        min_fold_tokens=100,
        token_counter="estimate",
        clear=False,
        **MODES[mode],
    )

    def agent(state: Any) -> dict[str, Any]:
        return {"messages": [answer(compact.view(state))]}

    return compact, graph_of(agent, compact, checkpointer=saver, store=store)


def entry(thread: str, state: Any, last: int) -> Any:
    """What to invoke a graph with next: None to go on where a killed run stopped; () at the end."""
    if state.tasks:  # `next` lacks a task whose writes are there, and whose checkpoint is not
        return None
    done = finished(state.values.get("messages", ()))
    if done >= last:
        return ()
    return {"messages": [request(thread, done + 1, min(done + TURN, last))]}


def finished(messages: Sequence[BaseMessage]) -> int:
    """The last step of the last run that came to its end."""
    ends = [name for message in messages for name in marks(message.text)[:1] if "-d" in name]
    return int(ends[-1].rpartition("-d")[2]) if ends else 0


def main(job: Job, parent: Connection) -> None:
    """Do a job. Tells the parent first how it finds the thread, then where it stands still."""
    visits = dict.fromkeys(PLACES, 0)

    def halt(place: str) -> None:
        visits[place] += 1
        if place == job.place and visits[place] == job.nth:
            parent.send(place)
            threading.Event().wait()

    with opened(job.database, halt) as (saver, store):
        scribe = LoggingScribe(Path(job.log), halt, job.seed)
        _, graph = agent_graph(scribe, job.mode, saver, store)
        config: Any = {"configurable": {"thread_id": job.thread}, "recursion_limit": 1_000}
        state = graph.get_state(config)
        parent.send("resumes" if state.tasks else "begins")
        while (given := entry(job.thread, state, job.last)) != ():
            graph.invoke(given, config, durability=job.durability)
            state = graph.get_state(config)
        parent.send("done")
