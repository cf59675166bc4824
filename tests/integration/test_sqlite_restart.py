"""A graph on a SQLite file, in processes that end or are killed: each goes on where the last was.

Run as a program this file is such a process (`python -m tests.integration.test_sqlite_restart`
with a job in JSON on stdin): it prints what it finds and what it ends with as JSON, and notes every
summary prompt in the job's log at once, so that the log survives a kill.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langgraph_compaction import CompactionNode
from tests.support.doubles import (
    WINDOW,
    ScriptedModel,
    assert_folded_once,
    digest,
    loop,
    markers,
    request,
    result,
    shows_digest,
    steps_done,
    worker,
)

ROOT = Path(__file__).parents[2]
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}


class Job(TypedDict):
    """What a process is to do: go on with the thread, or begin it with steps 1 to ``last``."""

    folder: str
    saver: str  # "sync" or "async"
    last: int
    die: str  # "": never; "tool 17": at that step; "summary 2", "agent 2": with that fold


def run(job: Job, *, strict: bool, dies: bool = False) -> dict[str, Any]:
    """Do a job in a process of its own; nothing may be on its stderr, where warnings go."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.test_sqlite_restart"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": str(strict).lower()},
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == (-signal.SIGKILL if dies else 0)
    facts: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        facts |= json.loads(line)
    return facts


def log_of(job: Job) -> list[list[str]]:
    """The markers of the messages in each summary prompt so far, over all processes."""
    lines = Path(job["folder"], "log").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("saver", "strict"),
    [
        ("sync", True),
        pytest.param("async", False, marks=pytest.mark.slow),
        pytest.param("sync", False, marks=pytest.mark.slow),
        pytest.param("async", True, marks=pytest.mark.slow),
    ],
)
def test_new_processes_go_on_and_fold_nothing_twice(
    tmp_path: Path, saver: str, *, strict: bool
) -> None:
    job = Job(folder=str(tmp_path), saver=saver, last=20, die="")
    first = run(job, strict=strict)
    second = run({**job, "last": 50, "die": "tool 43"}, strict=strict, dies=True)
    # The record is plain JSON, and comes out of the file as it went in.
    assert second["before"] == first["after"] != {}
    last = run({**job, "last": 50}, strict=strict)
    assert last["steps"] == list(range(1, 51))
    folded = log_of(job)
    assert len(folded) > 2  # some of their segments may be condensed by now
    assert_folded_once([name for names in folded for name in names])


@pytest.mark.slow
@pytest.mark.parametrize(("die", "prompts"), [("summary 2", 3), ("agent 2", 2)])
def test_a_kill_during_a_fold_repeats_that_fold_alone_and_one_after_it_nothing(
    tmp_path: Path, die: str, prompts: int
) -> None:
    job = Job(folder=str(tmp_path), saver="sync", last=30, die=die)
    run(job, strict=True, dies=True)
    last = run({**job, "die": ""}, strict=True)
    assert last["steps"] == list(range(1, 31))
    folded = log_of(job)[:prompts]
    assert len(folded) == prompts
    if prompts == 3:
        assert folded[1] == folded[2]
        del folded[2]
    assert len(folded[1]) > 2
    assert_folded_once([name for names in folded for name in names])


# ---- the process


def _summariser(job: Job) -> ScriptedModel:
    log = Path(job["folder"], "log")

    def reply(messages: list[BaseMessage]) -> AIMessage:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(markers(messages)) + "\n")
        number = len(log_of(job))
        if job["die"] == f"summary {number}":
            os.kill(os.getpid(), signal.SIGKILL)
        return AIMessage(digest(number))

    return ScriptedModel(reply=reply)


def _graph(job: Job, saver: Any) -> Any:
    def dies(moment: str) -> None:
        if job["die"] == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    @tool("work")
    def doomed(n: int) -> str:
        """Do step n."""
        dies(f"tool {n}")
        return result(n)

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if shows_digest(messages):
            dies(f"agent {len(log_of(job))}")
        return worker().reply(messages)

    # An estimate: a process need not load a vocabulary for this.
    compact = CompactionNode(_summariser(job), context_window=WINDOW, token_counter="estimate")
    return loop(compact, ScriptedModel(reply=reply), tools=[doomed], checkpointer=saver)


def _entry(job: Job, state: Any) -> Any:
    """None to go on where a killed run stopped, else the next steps."""
    if state.tasks:  # `next` lacks a task whose writes are there, and whose checkpoint is not
        return None
    done = steps_done(state.values.get("messages", ()))
    return {"messages": [request(len(done) + 1, job["last"])]}


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201  # to the test


def _run(job: Job) -> None:
    with SqliteSaver.from_conn_string(str(Path(job["folder"], "db"))) as saver:
        graph = _graph(job, saver)
        state = graph.get_state(CONFIG)
        _tell(before=state.values.get("compaction"))
        found = graph.invoke(_entry(job, state), CONFIG, durability="sync")
        _tell(after=found["compaction"], steps=steps_done(found["messages"]))


async def _arun(job: Job) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(Path(job["folder"], "db"))) as saver:
        graph = _graph(job, saver)
        state = await graph.aget_state(CONFIG)
        _tell(before=state.values.get("compaction"))
        found = await graph.ainvoke(_entry(job, state), CONFIG, durability="sync")
        _tell(after=found["compaction"], steps=steps_done(found["messages"]))


if __name__ == "__main__":
    given: Job = json.load(sys.stdin)
    if given["saver"] == "async":
        asyncio.run(_arun(given))
    else:
        _run(given)
