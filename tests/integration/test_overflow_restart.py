"""A process that dies between a refused call and the next one: what a new process goes on with.

Run as a program this file is such a process, with a job in JSON on stdin; it dies by SIGKILL.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langgraph_compaction import BudgetError
from tests.integration.overflowing import (
    ANSWER,
    Agent,
    Watched,
    assert_recovered,
    refusing,
    said,
    sent,
    thread,
)
from tests.support.doubles import THREAD
from tests.support.openai_server import OVERFLOWS, OpenAIServer, text
from tests.support.openai_server.clients import chat_model

ROOT = Path(__file__).parents[2]
OVERFLOW = OVERFLOWS["openai"]


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal(Watched):
    """Dies at an event, or before the agent's call of that number."""

    def __init__(self, url: str, job: dict[str, Any]) -> None:
        def hook(event: dict[str, Any]) -> None:
            if event["type"] == f"compaction.{job['event']}":
                die()

        super().__init__(hook=hook)
        self.model: Any = chat_model(url, "chat")
        self.calls = 0
        self.last = job["call"]

    def before(self, messages: Any) -> Any:
        self.calls += 1
        if self.calls == self.last:
            die()
        return messages


def work(job: dict[str, Any]) -> None:
    mortal = Mortal(job["url"], job)
    builder = mortal.builder(mortal.agent(mortal.before | mortal.model))
    given = {"messages": thread()}
    if job["way"] == "invoke":
        with SqliteSaver.from_conn_string(job["file"]) as saver:
            builder.compile(checkpointer=saver).invoke(given, THREAD, durability="sync")
        return

    async def arun() -> None:
        async with AsyncSqliteSaver.from_conn_string(job["file"]) as saver:
            graph = builder.compile(checkpointer=saver)
            await graph.ainvoke(given, THREAD, durability="sync")

    asyncio.run(arun())


def killed(server: OpenAIServer, file: Path, way: str, *, event: str = "", call: int = 0) -> None:
    """Run the agent in a process that dies."""
    job = {"url": server.url, "file": str(file), "way": way, "event": event, "call": call}
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.test_overflow_restart"],
        input=json.dumps(job),
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")


def resumed(server: OpenAIServer, file: Path, then: Callable[[Agent], Any]) -> Any:
    """What comes of the thread in this process."""
    with SqliteSaver.from_conn_string(str(file)) as saver:
        return then(Agent(chat_model(server.url, "chat"), saver=saver))


each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


@pytest.mark.parametrize(
    ("shape", "event", "way"),
    [
        ("openai", "started", "invoke"),
        ("gemini list", "completed", "ainvoke"),
        *(
            pytest.param(shape, event, way, marks=pytest.mark.slow)
            for shape in ("openai", "gemini list", "proxy")
            for event in ("started", "completed")
            for way in ("invoke", "ainvoke")
        ),
    ],
)
def test_killed_before_the_reduction_has_committed(
    server: OpenAIServer, tmp_path: Path, shape: str, event: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    killed(server, tmp_path / "db", way, event=event)
    assert len(server.requests) == 1

    def then(agent: Agent) -> None:
        assert agent.graph.get_state(THREAD).values["compaction"] == {}
        state = agent.run(None)
        assert state["messages"][-1].text == ANSWER
        assert state["compaction"]["revision"] == 1
        # The failed node runs once more, as it would without a handler; then the same follows.
        assert len(server.requests) == 3
        del server.requests[0]
        assert_recovered(agent, server)

    resumed(server, tmp_path / "db", then)


@each_way
def test_killed_between_the_reduction_and_the_next_call(
    server: OpenAIServer, tmp_path: Path, way: str
) -> None:
    server.answer(refusing(OVERFLOW))
    killed(server, tmp_path / "db", way, call=2)

    def then(agent: Agent) -> None:
        waiting = agent.graph.get_state(THREAD)
        assert waiting.next == ("agent",)
        assert waiting.values["compaction"]["overflow"]["node"] == "agent"
        state = agent.run(None)
        assert state["messages"][-1].text == ANSWER
        assert state["compaction"] == waiting.values["compaction"]
        assert agent.events == []
        first, second = sent(server)
        assert second < first * 0.65

    resumed(server, tmp_path / "db", then)


@each_way
def test_a_second_refusal_is_known_as_such_in_the_next_process(
    server: OpenAIServer, tmp_path: Path, way: str
) -> None:
    server.answer(OVERFLOW)
    killed(server, tmp_path / "db", way, call=2)

    def then(agent: Agent) -> None:
        with pytest.raises(BudgetError, match="although it was reduced"):
            agent.run(None)
        assert agent.kinds == ["failed"]
        assert len(server.requests) == 2
        server.answer(text(ANSWER))
        assert agent.run(None)["messages"][-1].text == ANSWER
        assert said(server.requests[1]) == said(server.requests[2])

    resumed(server, tmp_path / "db", then)


if __name__ == "__main__":
    work(json.loads(sys.stdin.read()))
