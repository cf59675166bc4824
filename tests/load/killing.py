"""Processes on one database, killed at chosen and at random moments; what is left is checked.

python -m tests.load.killing --database sqlite --mode prune --kills 200
python -m tests.load.killing --database postgres                        # all modes
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction.record import checked_record
from tests.load.crew import MODES, Scribe, answer, graph_of
from tests.load.victim import PLACES, Job, agent_graph, entry, main, opened, read_by
from tests.load.watch import Account, Watch, lost, recalled, transcript_of
from tests.support.validity import violations

SLOTS = 3
"""Processes at the same time, each on threads of its own."""
THREADS = 2
"""Threads of each of them, by turns."""
STEPS_PER_KILL = 6
"""Steps of a thread for each kill that it has to bear: a fold is due after about six; beside the
agents, which go on meanwhile, folds are fewer, and take half as many steps more."""
SPARE = 3
"""So many times these steps more, so that no thread ends before all kills are done."""
WAIT = 120.0
"""Seconds after which a process that neither ends nor stands still is a fault; one that is to work
on to the end of its thread has five times as many."""
RANDOM_SECONDS = (0.0, 0.6)
"""Seconds after which a process is killed that is killed at random."""

_processes = multiprocessing.get_context("forkserver")
# A new process of it has imported what it needs, and nothing has run there.
_processes.set_forkserver_preload(["tests.load.victim"])


@dataclass
class Report:
    """What came of it.

    Attributes:
        kills: how many processes were killed, by place.
        resumed: processes that found a run which had been broken off, and went on with it.
        faults: what is wrong with the threads, in words.
        folds: folds that are in the digests.
        messages: messages of all threads.
        archived: how many of them are in the archive.
        seconds: that it took.
    """

    kills: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    faults: list[str] = field(default_factory=list)
    folds: int = 0
    messages: int = 0
    archived: int = 0
    seconds: float = 0.0

    def count(self, kind: str) -> int:
        """Faults of one kind, by the word in front of them."""
        return sum(kind in fault for fault in self.faults)


UNTOLD = 255
"""Exit code of a process of which multiprocessing's fork server did not tell how it ended."""


def places_for(mode: str) -> list[str]:
    """Where a process of that mode can be told to stand still, and "random"."""
    return [one for one in (*PLACES, "random") if "prune" in mode or not one.startswith("archiv")]


def killed_often(database: str, folder: Path, mode: str, kills: int, seed: int = 1) -> Report:
    """Let processes work on a database, kill them, let the last ones finish, and look.

    Args:
        database: as for `Job`; with its tables.
        folder: for what summarisers were asked.
        mode: one of `MODES`.
        kills: how many processes are killed, in all.
        seed: of moments and failures.
    """
    began, report = time.monotonic(), Report()
    shares = [kills // SLOTS + (n < kills % SLOTS) for n in range(SLOTS)]
    threads = [[f"t{slot}{n:02}" for n in range(THREADS)] for slot in range(SLOTS)]
    each = STEPS_PER_KILL * 3 // 2 if "background" in mode else STEPS_PER_KILL
    last = each * (max(shares) // THREADS + SPARE)

    def slot(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        left, names, turn = shares[number], list(threads[number]), 0
        while names:
            turn += 1
            job = Job(
                database,
                str(folder),
                names[turn % len(names)],
                last,
                mode,
                place=chance.choice(places_for(mode)) if left > 0 else "",
                nth=chance.randint(1, 2),
                durability=chance.choice(("sync", "async")),
                seed=1_000 * number + turn,
            )
            ended = _one(job, chance, report)
            left -= ended == "killed"
            if ended == "done":
                names.remove(job.thread)

    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(slot, range(SLOTS)))
    with opened(database) as (saver, store):
        for thread in (one for row in threads for one in row):
            _look(thread, saver, store, Job(database, str(folder), thread, last, mode), report)
    report.seconds = time.monotonic() - began
    return report


def _one(job: Job, chance: random.Random, report: Report) -> str:
    """Run one process: "killed", "done" with its thread, or "failed"."""
    ours, theirs = _processes.Pipe()
    process = _processes.Process(target=main, args=(job, theirs), daemon=True)
    process.start()
    theirs.close()
    where, killed = "", False
    try:
        while where != "done":
            patience = WAIT if job.place else 5 * WAIT
            if where and job.place == "random":
                patience = chance.uniform(*RANDOM_SECONDS)
            if not ours.poll(patience):
                if job.place != "random":
                    report.faults.append(f"{job} hangs after {where!r}")
                where = "random"
            else:
                where = ours.recv()
            report.resumed += where == "resumes"
            if where in {*PLACES, "random"}:
                if where == "summary":  # the agent may go on beside it
                    time.sleep(chance.choice((0.0, 0.0, 0.05)))
                os.kill(process.pid or 0, signal.SIGKILL)
                killed = True
                break
    except EOFError:  # it ended without a word
        pass
    process.join(WAIT)
    if killed and process.exitcode in {-signal.SIGKILL, UNTOLD}:
        report.kills[where] += 1
        return "killed"
    if process.exitcode != 0:
        report.faults.append(f"failed with {process.exitcode}: {job}")
        return "failed"
    return "done"


def _expected(job: Job) -> list[BaseMessage]:
    """What the same graph without the node, and without kills, keeps of a thread."""

    def agent(state: Any) -> dict[str, Any]:
        return {"messages": [answer(state["messages"])]}

    graph = graph_of(agent, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": job.thread}, "recursion_limit": 1_000}
    while (given := entry(job.thread, graph.get_state(config), job.last)) != ():
        graph.invoke(given, config)
    return list(graph.get_state(config).values["messages"])


def _look(thread: str, saver: Any, store: Any, job: Job, report: Report) -> None:
    """Check one thread in the end."""
    scribe, watch, account = Scribe(), Watch(), Account(thread)
    scribe.read = read_by(Path(job.log))
    compact, graph = agent_graph(scribe, job.mode, saver, store)
    config: Any = {"configurable": {"thread_id": thread}}
    for one in _line(graph, config):
        record = one.values.get("compaction", {})
        account.enter(checked_record(record))
        if one.values.get("messages") and one.next == ("agent",):
            report.faults += [f"invalid view: {v}" for v in violations(compact.view(one.values))]
    state = graph.get_state(config).values
    found = transcript_of(thread, state, store)
    faults = [*lost(_expected(job), found), *account.compare(state, scribe, found), *watch.leaks]
    shown: list[int] = []
    for first in range(0, len(found), 50):
        shown += recalled(thread, state, store, watch, first=first, last=first + 49)
    if shown != list(range(len(found))):
        faults.append(f"recalled twice, or not: {Counter(shown) - Counter(range(len(found)))}")
    report.faults += [f"{thread}: {fault}" for fault in [*faults, *watch.leaks]]
    report.folds += account.folds
    report.messages += len(found)
    report.archived += len(found) - len(state["messages"])


def _line(graph: Any, config: Any) -> Iterator[Any]:
    """The checkpoints that led to the newest one, from the first on."""
    history = list(graph.get_state_history(config))
    by_id = {one.config["configurable"]["checkpoint_id"]: one for one in history}
    line = [history[0]]
    while (parent := line[-1].parent_config) is not None:
        line.append(by_id[parent["configurable"]["checkpoint_id"]])
    yield from reversed(line)


def with_tables(database: str) -> str:
    """The same database, with the tables of checkpointer and store."""
    with opened(database) as (saver, store):
        saver.setup()
        store.setup()
    return database


@contextmanager
def _databases(kind: str) -> Iterator[Callable[[Path], str]]:
    """What gives a new database, with tables; a server runs meanwhile, if it takes one."""
    if kind == "sqlite":
        yield lambda folder: with_tables(str(folder / "threads.sqlite"))
        return
    from tests.support.postgres import new_database, running_postgres

    with running_postgres() as uri:
        yield lambda folder: with_tables(new_database(uri))


def _row(kind: str, mode: str, report: Report) -> str:
    places = ", ".join(f"{place} {n}" for place, n in sorted(report.kills.items()))
    cells = [
        kind,
        mode,
        f"{report.kills.total()} ({places})",
        report.resumed,
        report.messages,
        report.archived,
        report.folds,
        report.count("lost"),
        report.count("twice"),
        report.count("invalid"),
        len(report.faults),
        f"{report.seconds:.0f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def program(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--mode", choices=tuple(MODES), action="append")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    sys.stdout.write(
        "| database | mode | kills (by place) | runs resumed | messages | archived | folds | lost "
        "| twice | invalid views | faults in all | seconds |\n"
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    for kind in given.database or ("sqlite", "postgres"):
        with _databases(kind) as new:
            for mode in given.mode or MODES:
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    report = killed_often(new(folder), folder, mode, given.kills, given.seed)
                sys.stdout.write(f"{_row(kind, mode, report)}\n")
                sys.stdout.write("".join(f"  {fault[:2_000]}\n" for fault in report.faults))
                sys.stdout.flush()


if __name__ == "__main__":
    program(sys.argv[1:])
