"""Bytes on disk that a long thread takes, by how its state is kept; beside other systems.

    python -m tests.benchmarks.storage                  # all, with the peers; half an hour
    python -m tests.benchmarks.storage --quick          # 100 and 200 steps, a few minutes
    python -m tests.benchmarks.storage --systems plain,delta --databases sqlite

In each step the agent calls a tool, whose result has about 1,200 tokens. Every system gets the same
trigger and the same tail to keep, and is visited before each call of the agent. `CompactionNode`
clears no old results first, but where a row says so: that way it folds as often as the others.
Sizes are those of the files after they were closed (SQLite), and of the databases after a VACUUM
(PostgreSQL) less what empty ones take. An archive is what is kept beside the checkpoints.

A state that is stored whole at each step takes the square of its length. Where the larger number of
steps would take more than ``--most-gigabytes``, the size is computed from the run with the smaller
one, and marked "≈".
"""

import argparse
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from pydantic import PrivateAttr

from langgraph_compaction import CompactionNode, CompactionSettings, CompactionState
from langgraph_compaction.delta import DeltaCompactionState
from tests.benchmarks.survival import filler
from tests.benchmarks.survival.counting import text_tokens, tokens
from tests.benchmarks.survival.tables import table

WINDOW = 128_000
TRIGGER = 64_000
KEEP = 16_000
DIGEST = 2_000
"""Tokens of each text that the summariser writes."""
RESULT = 1_200
"""Tokens of a tool result."""
TARGETS = {"delta": 15, "prune": 5}
"""How many times less than plain they are to take on SQLite after the smaller number of steps."""

_ASKED = re.compile(r"at most ([\d,]+) tokens")
CONFIG: Any = {"configurable": {"thread_id": "thread"}, "recursion_limit": 1_000_000}


class Agent(BaseChatModel):
    """Calls the tool, and finishes when a turn has had its steps."""

    _left: int = PrivateAttr(default=0)
    _done: int = PrivateAttr(default=0)

    def turn(self, steps: int) -> None:
        """Begin a turn of so many steps."""
        self._left = steps

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Agent":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self._left == 0:
            answer = AIMessage("These parts are done.")
        else:
            self._left -= 1
            self._done += 1
            call = {"name": "read_log", "args": {"part": self._done}, "id": f"call-{self._done}"}
            text = filler.sentence(random.Random(self._done))
            answer = AIMessage(text, tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Summariser(BaseChatModel):
    """Writes `DIGEST` tokens or what is asked for, always other ones, and counts its calls."""

    _calls: int = PrivateAttr(default=0)

    @property
    def calls(self) -> int:
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._calls += 1
        rng = random.Random(self._calls)
        asked = [int(n.replace(",", "")) for n in _ASKED.findall(str(messages[-1].content))]
        most = min([DIGEST, *asked[-1:]]) - 50
        text = "## Goal\n- Go through the pipeline.\n## Findings"
        end = "\n## State now\n- Under way.\n## Next step\n- Go on with the next part."
        while text_tokens(text + end) < most:
            text += f"\n- {filler.sentence(rng)} ({rng.randrange(10**6)})"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text + end))])


@tool
def read_log(part: int) -> str:
    """Read the log of one part."""
    rng = random.Random(part)
    lines: list[str] = []
    size = 0
    while size < RESULT:
        lines += filler.output(rng, may_be_long=False)
        size = text_tokens("\n".join(lines))
    return "\n".join(lines)


@dataclass(frozen=True)
class Kept:
    """Where a thread is kept: its checkpointer, a store, and a folder for files."""

    saver: Any
    store: Any
    files: Path


Build = Callable[[Agent, Summariser, Kept], Any]
"""A compiled graph from agent, summariser and where it is kept."""


def _loop(state: type[Any], visit: Any, call: Callable[[Any], Any], **compiled: Any) -> Any:
    """tools → compact → agent."""
    builder = StateGraph(state)
    builder.add_node("compact", visit)
    builder.add_node("agent", call)
    builder.add_node("tools", ToolNode([read_log]))
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "compact")
    return builder.compile(**compiled)


def _ours(state: type[Any], **values: Any) -> Build:
    def build(agent: Agent, summariser: Summariser, kept: Kept) -> Any:
        compact = CompactionNode(
            summariser,
            context_window=WINDOW,
            trigger=("tokens", TRIGGER),
            keep=("tokens", KEEP),
            token_counter=tokens,
            **{"clear": False, **values},
        )

        def call(state: Any) -> Any:
            return {"messages": [agent.invoke(compact.view(state))]}

        return _loop(state, compact, call, checkpointer=kept.saver, store=kept.store)

    return build


def _langmem(agent: Agent, summariser: Summariser, kept: Kept) -> Any:
    from langgraph.graph import MessagesState
    from langmem.short_term import SummarizationNode  # type: ignore[import-untyped]

    class State(MessagesState):
        context: dict[str, Any]
        summarized_messages: list[Any]

    visit = SummarizationNode(
        model=summariser,
        max_tokens=WINDOW,
        max_tokens_before_summary=TRIGGER - KEEP,
        max_summary_tokens=DIGEST,
        token_counter=tokens,
    )

    def call(state: Any) -> Any:
        return {"messages": [agent.invoke(state["summarized_messages"])]}

    return _loop(State, visit, call, checkpointer=kept.saver)


def _langchain(agent: Agent, summariser: Summariser, kept: Kept) -> Any:
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    middleware: Any = SummarizationMiddleware(
        summariser,
        trigger=("tokens", TRIGGER),
        keep=("tokens", KEEP),
        token_counter=tokens,
        trim_tokens_to_summarize=None,
    )
    return create_agent(agent, [read_log], middleware=[middleware], checkpointer=kept.saver)


def _deepagents(*, own_state: bool) -> Build:
    def build(agent: Agent, summariser: Summariser, kept: Kept) -> Any:
        from deepagents.backends import FilesystemBackend
        from deepagents.graph import DeepAgentState
        from deepagents.middleware.summarization import SummarizationMiddleware
        from langchain.agents import create_agent

        middleware: Any = SummarizationMiddleware(
            summariser,
            backend=FilesystemBackend(root_dir=kept.files, virtual_mode=True),
            trigger=("tokens", TRIGGER),
            keep=("tokens", KEEP),
            token_counter=tokens,
            trim_tokens_to_summarize=None,
        )
        state: Any = DeepAgentState if own_state else None
        return create_agent(
            agent, [read_log], middleware=[middleware], checkpointer=kept.saver, state_schema=state
        )

    return build


@dataclass(frozen=True)
class System:
    """One way to keep a thread.

    Attributes:
        build: makes its graph.
        archive: whether it needs a store.
        peer: whether it is another project's; those are measured on SQLite alone.
        grows: whether each checkpoint holds the whole transcript.
    """

    build: Build
    archive: bool = False
    peer: bool = False
    grows: bool = False


SYSTEMS = {
    "plain": System(_ours(CompactionState), grows=True),
    "delta": System(_ours(DeltaCompactionState)),
    "prune": System(_ours(CompactionState, history="prune"), archive=True),
    "prune after clearing": System(
        _ours(CompactionState, history="prune", clear=True), archive=True
    ),
    "delta and prune": System(_ours(DeltaCompactionState, history="prune"), archive=True),
    "langmem": System(_langmem, peer=True, grows=True),
    "langchain": System(_langchain, peer=True),
    "deepagents": System(_deepagents(own_state=False), peer=True, grows=True),
    "deepagents (own state)": System(_deepagents(own_state=True), peer=True),
}


class Sqlite:
    """Files in a folder of their own."""

    name = "SQLite"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="storage-"))
        self._files = self._folder / "files"
        self._files.mkdir()

    @contextmanager
    def opened(self, *, archive: bool) -> Iterator[Kept]:
        """What a graph is compiled with; the store is None without ``archive``."""
        store = SqliteStore.from_conn_string(self._file("store")) if archive else nullcontext()
        with SqliteSaver.from_conn_string(self._file("threads")) as saver, store as opened:
            if opened is not None:
                opened.setup()
            yield Kept(saver, opened, self._files)

    def sizes(self) -> tuple[int, int]:
        """Bytes of the threads and of the archive."""
        files = sum(path.stat().st_size for path in self._files.rglob("*") if path.is_file())
        return self._size("threads"), self._size("store") + files

    def close(self) -> None:
        shutil.rmtree(self._folder)

    def _file(self, name: str) -> str:
        return str(self._folder / name)

    def _size(self, name: str) -> int:
        if not Path(self._file(name)).exists():
            return 0
        with closing(sqlite3.connect(self._file(name))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return sum(path.stat().st_size for path in self._folder.glob(f"{name}*"))


class Postgres:
    """Two databases of one server, new for each thread."""

    name = "PostgreSQL"

    def __init__(self, uri: str) -> None:
        from tests.support.postgres import new_database

        self._threads, self._store = new_database(uri), new_database(uri)
        with PostgresSaver.from_conn_string(self._threads) as saver:
            saver.setup()
        with PostgresStore.from_conn_string(self._store) as store:
            store.setup()
        self._empty = self._size(self._threads), self._size(self._store)
        self._uri = uri

    @contextmanager
    def opened(self, *, archive: bool) -> Iterator[Kept]:
        """What a graph is compiled with; the store is None without ``archive``."""
        store = PostgresStore.from_conn_string(self._store) if archive else nullcontext()
        with PostgresSaver.from_conn_string(self._threads) as saver, store as opened:
            yield Kept(saver, opened, Path())

    def sizes(self) -> tuple[int, int]:
        """Bytes of the threads and of the archive, beyond what empty tables take."""
        return (
            self._size(self._threads) - self._empty[0],
            self._size(self._store) - self._empty[1],
        )

    def close(self) -> None:
        with psycopg.connect(self._uri, autocommit=True) as connection:
            for uri in (self._threads, self._store):
                name = uri.partition("?")[0].rpartition("/")[2]
                connection.execute(f"DROP DATABASE {name}".encode())

    def _size(self, uri: str) -> int:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("VACUUM")
            found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return 0 if found is None else int(found[0])


@dataclass(frozen=True)
class Measured:
    """A thread after some steps: bytes, seconds to open it, summary calls so far."""

    steps: int
    threads: int
    archive: int
    opening: float
    calls: int
    exact: bool = True


def measure(system: System, place: Any, marks: Sequence[int], most: int) -> Iterator[Measured]:
    """Run one thread, closed and measured at each of the ``marks``.

    Args:
        system: how it is kept.
        place: where.
        marks: numbers of steps, ascending.
        most: bytes; the size at a mark that would take more is computed.
    """
    agent, summariser = Agent(), Summariser()
    done = 0
    half = marks[0] // 2
    found: dict[int, Measured] = {}
    for steps in (half, *marks):
        if system.grows and steps > marks[0]:
            computed = _projected(found[half], found[marks[0]], steps)
            if computed > most:
                yield Measured(steps, computed, 0, 0.0, 0, exact=False)
                continue
        with place.opened(archive=system.archive) as kept:
            graph = system.build(agent, summariser, kept)
            agent.turn(steps - done)
            given: Any = {"messages": [("user", filler.OPENING)]}
            graph.invoke(given, CONFIG, durability="sync")
        with place.opened(archive=system.archive) as kept:
            graph = system.build(agent, summariser, kept)
            began = time.perf_counter()
            graph.get_state(CONFIG)
            opening = time.perf_counter() - began
        done = steps
        found[steps] = Measured(steps, *place.sizes(), opening, summariser.calls)
        print(f"{steps:,} steps: {found[steps].threads:,} bytes", file=sys.stderr)
        if steps != half:
            yield found[steps]


def _projected(half: Measured, whole: Measured, steps: int) -> int:
    """Bytes after ``steps``: a sum of a linear and a quadratic part, through two sizes."""
    n = whole.steps
    square = (whole.threads - 2 * half.threads) / (n * n / 2)
    linear = whole.threads / n - square * n
    return round(square * steps * steps + linear * steps)


def _missing(name: str, system: System) -> str:
    """Why a system cannot be measured, or nothing."""
    settings = {field.name for field in fields(CompactionSettings)}
    if "prune" in name and "history" not in settings | set(signature(CompactionNode).parameters):
        return 'this version has no history="prune"'
    if system.peer:
        try:
            system.build(Agent(), Summariser(), Kept(None, None, Path()))
        except ImportError as error:
            return f"{error}; pip install -e '.[dev]'"
    return ""


def report(place: str, results: dict[str, list[Measured]], marks: Sequence[int]) -> str:
    """A table of what was measured in one kind of database."""
    plain = {one.steps: one.threads for one in results.get("plain", ())}

    def row(name: str, found: list[Measured]) -> list[str]:
        cells = [name]
        for one in found:
            size = f"{'' if one.exact else '≈ '}{one.threads / 1e6:,.1f}"
            of_plain = plain.get(one.steps, 0) / one.threads
            cells += [size, f"1/{of_plain:,.0f}" if of_plain >= 1.5 else f"{of_plain:.1f}×"]
            cells += [f"{one.archive / 1e6:,.1f}" if one.archive else "–"]
        last = [one for one in found if one.exact][-1]
        return [*cells, f"{last.opening * 1_000:,.0f} ({last.steps:,})", f"{last.calls:,}"]

    header = [place]
    for steps in marks:
        header += [f"{steps:,} steps, MB", "of plain", "archive, MB"]
    header += ["opening, ms (after steps)", "summary calls"]
    return table(header, [row(name, found) for name, found in results.items()])


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.storage")
    parser.add_argument("--quick", action="store_true", help="100 and 200 steps")
    parser.add_argument("--steps", default="400,2000", help="two numbers, ascending")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--most-gigabytes", type=float, default=3.0)
    given = parser.parse_args()
    marks = [100, 200] if given.quick else [int(number) for number in given.steps.split(",")]
    wanted = [name.strip() for name in given.systems.split(",")]
    if unknown := set(wanted) - set(SYSTEMS):
        parser.error(f"--systems: {', '.join(sorted(unknown))}: none of {', '.join(SYSTEMS)}")
    skipped = {name: why for name in wanted if (why := _missing(name, SYSTEMS[name]))}
    for name, why in skipped.items():
        print(f"{name}: skipped, {why}\n")
    chosen = {name: SYSTEMS[name] for name in wanted if name not in skipped}
    most = round(given.most_gigabytes * 1e9)
    print(
        f"Trigger {TRIGGER:,} tokens, {KEEP:,} kept, results of {RESULT:,}, digests of {DIGEST:,}\n"
    )
    if "sqlite" in given.databases:
        _table(chosen, Sqlite, marks, most)
    if "postgres" in given.databases:
        from tests.support.postgres import running_postgres

        own = {name: system for name, system in chosen.items() if not system.peer}
        with running_postgres() as uri:
            _table(own, lambda: Postgres(uri), marks, most)


def _table(
    systems: dict[str, System], new: Callable[[], Any], marks: Sequence[int], most: int
) -> None:
    results: dict[str, list[Measured]] = {}
    kind = ""
    for name, system in systems.items():
        place = new()
        kind = place.name
        print(f"{kind}, {name}", file=sys.stderr)
        try:
            results[name] = list(measure(system, place, marks, most))
        finally:
            place.close()
    print(report(kind, results, marks))
    for name, factor in TARGETS.items() if kind == Sqlite.name else ():
        if name in results and "plain" in results:
            ratio = results["plain"][0].threads / results[name][0].threads
            met = "met" if ratio >= factor else "MISSED"
            print(
                f"\n{name}, {marks[0]:,} steps: 1/{ratio:.1f} of plain; expected 1/{factor}: {met}"
            )
    print(flush=True)


if __name__ == "__main__":
    main()
