"""The bundled agent, as a person runs it: a whole survey, a second run, a kill, a bad summariser.

Its offline model stands for a real one, so the tests also hold it to what a real model knows: the
messages of its view and nothing else.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from langgraph_compaction import ExtractiveSummarizer, model_view

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "research_agent.py"
sys.path.insert(0, str(PROGRAM.parent))
research_agent = importlib.import_module("research_agent")
survey = importlib.import_module("survey")
offline_model = importlib.import_module("offline_model")
tools = importlib.import_module("tools")

FOLD = re.compile(r"fold \d+  ([\d,]+) \S+ ([\d,]+) tokens")


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, without a terminal, in ``folder``."""
    return subprocess.run(
        [sys.executable, PROGRAM, *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def thread(db: Path, *, history: bool = False) -> dict[str, Any]:
    """The state of the thread in a database file, and its checkpoint's id.

    With ``history`` also what the records of all its checkpoints say was folded twice.
    """
    with SqliteSaver.from_conn_string(str(db)) as saver:
        graph, _ = survey.build(
            offline_model.OfflineModel(),
            ExtractiveSummarizer(),
            tools.Workspace(ROOT, ["pyproject.toml"]),
            window=16_000,
            checkpointer=saver,
        )
        config = {"configurable": {"thread_id": "survey"}}
        newest = graph.get_state(config)
        state = {**newest.values, "id": newest.config["configurable"]["checkpoint_id"]}
        if history:
            ledger = survey.Ledger({})
            for snapshot in reversed(list(graph.get_state_history(config))):
                ledger.take(snapshot.values.get("compaction", {}))
            state["twice"] = ledger.twice()
        return state


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen files with a constant each, together several windows of 8,000 tokens."""
    folder = tmp_path_factory.mktemp("small")
    for number in range(1, 15):
        filler = [f"# line {line} of module {number}: nothing to see" for line in range(150)]
        filler[40] = f"LIMIT_{number:02} = {number * 7}"
        (folder / f"module_{number:02}.py").write_text("\n".join(filler))
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A survey of this repository."""
    folder = tmp_path_factory.mktemp("own")
    return folder, run(folder, "--offline")


def test_the_survey_of_this_repository_folds_often_and_answers_from_the_folded_part(
    own: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = own
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    folds = [[int(n.replace(",", "")) for n in fold] for fold in FOLD.findall(done.stdout)]
    assert len(folds) >= 5
    assert all(after < before for before, after in folds)
    assert "the answer agrees with the files" in done.stdout
    assert "folded twice: 0" in done.stdout
    assert re.search(r"Looked up twice +0 pages", done.stdout)
    state = thread(folder / ".demo" / "research.sqlite")
    assert survey.remembered(state["messages"][:-1], state["compaction"]) >= 5
    assert survey.rereads(state["messages"]) == 0


def test_without_a_terminal_it_prints_plain_lines_that_fit(
    own: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = own
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_the_same_command_again_shows_the_answer_and_does_nothing(
    own: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, first = own
    before = thread(folder / ".demo" / "research.sqlite")
    again = run(folder, "--offline")
    assert again.returncode == 0
    assert "from checkpoint" in again.stdout
    assert "0 model calls, 0 folds, 0 new summaries" in again.stdout
    headline = next(line for line in first.stdout.splitlines() if "of them set" in line)
    assert headline in again.stdout
    assert thread(folder / ".demo" / "research.sqlite") == before


def test_a_question_is_answered_from_the_thread(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--offline", "--folder", str(small), "--window", "8000", "--db", str(tmp_path / "d")]
    assert research_agent.main([*options, "--ask", "What is LIMIT_02?"]) == 0
    shown = capsys.readouterr().out
    assert "LIMIT_02 is 14, set in module_02.py" in shown
    assert "1 model call, " in shown
    assert research_agent.main([*options, "--ask", "Who won?"]) == 0
    shown = capsys.readouterr().out
    assert "I find nothing about that" in shown
    assert "0 model calls, 0 folds, 0 new summaries" in shown


def test_a_killed_run_goes_on_where_it_stopped(small: Path, tmp_path: Path) -> None:
    options = ("--offline", "--folder", str(small), "--window", "8000")
    with subprocess.Popen(
        [sys.executable, PROGRAM, *options, "--slow"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        steps = 0
        for line in process.stdout:
            steps += bool(re.match(r" {2,3}\d+ \w", line))
            if "fold 2" in line:
                process.send_signal(signal.SIGKILL)
                break
    interrupted = thread(tmp_path / ".demo" / "research.sqlite")
    assert steps <= len(interrupted["messages"])
    assert (
        not isinstance(interrupted["messages"][-1], AIMessage)
        or interrupted["messages"][-1].tool_calls
    )
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stdout
    assert f"{len(interrupted['messages'])} messages, folded up to position" in done.stdout
    assert "folded twice: 0" in done.stdout
    finished = thread(tmp_path / ".demo" / "research.sqlite", history=True)
    kept = len(interrupted["messages"])
    assert finished["messages"][:kept] == interrupted["messages"]
    assert finished["twice"] == []
    assert survey.rereads(finished["messages"]) == 0


def test_the_agent_notices_a_digest_that_lost_the_facts(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--offline", "--folder", str(small), "--window", "8000", "--db", str(tmp_path / "d")]
    assert research_agent.main([*options, "--forgetful"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "I cannot go on. What I need is no longer in what I can see: finding 1 of 14" in shown
    assert research_agent.main(options) == 1
    assert research_agent.main([*options, "--fresh"]) == 0


def surveyed(small: Path, summarizer: Any) -> list[BaseMessage]:
    graph, _ = survey.build(
        offline_model.OfflineModel(),
        summarizer,
        tools.Workspace(small),
        window=8_000,
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 500}
    state = graph.invoke({"messages": [survey.opening(tools.Workspace(small))]}, config)
    messages: list[BaseMessage] = state["messages"]
    return messages


class DropsOne(ExtractiveSummarizer):
    """Loses the second finding whenever it sees it."""

    def summarize(self, messages: Sequence[BaseMessage], **limits: Any) -> str:
        return re.sub(r".*Finding 2:.*\n?", "", super().summarize(messages, **limits))


def test_a_lost_finding_is_looked_up_again_and_counted(small: Path) -> None:
    messages = surveyed(small, DropsOne())
    again = [m.text for m in messages if "I cannot see finding 2" in m.text]
    assert len(again) == 1
    assert survey.rereads(messages) >= 1
    assert list(survey.mistakes(messages[-1].text, tools.Workspace(small))) == []


def test_without_the_task_the_model_stops() -> None:
    reply = offline_model.OfflineModel().invoke([HumanMessage("Hello"), AIMessage("Hello.")])
    assert reply.response_metadata["lost"] == ["the task"]


def test_the_model_decides_from_its_messages_alone(small: Path) -> None:
    messages = surveyed(small, ExtractiveSummarizer())
    model = offline_model.OfflineModel()
    end = next(at for at, m in enumerate(messages) if "search_text" in str(m.additional_kwargs)
               or (isinstance(m, AIMessage) and m.tool_calls
                   and m.tool_calls[0]["name"] == "search_text"))  # fmt: skip
    view = list(messages[:end])
    first, second = model.invoke(view), offline_model.OfflineModel().invoke(view)
    assert (first.text, first.tool_calls) == (second.text, second.tool_calls)
    assert first.tool_calls[0]["name"] == "search_text"
    gone = next(at for at, m in enumerate(view) if "Finding 3:" in m.text)
    view[gone] = AIMessage("I go on.", tool_calls=view[gone].tool_calls)
    assert "I cannot see finding 3 of 14" in model.invoke(view).text


# ---- a server that speaks chat completions


def completion(message: AIMessage) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in message.tool_calls
    ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if calls else "stop",
                "message": {"role": "assistant", "content": message.text}
                | ({"tool_calls": calls} if calls else {}),
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@pytest.fixture
def server(httpserver: HTTPServer) -> tuple[str, list[dict[str, Any]]]:
    """Its address and what it was asked. With tools it acts as the agent, without as summariser."""
    asked: list[dict[str, Any]] = []

    def answer(request: Request) -> Response:
        body = request.get_json()
        asked.append(body)
        if "tools" in body:
            reply = offline_model.OfflineModel().invoke(convert_to_messages(body["messages"]))
        else:
            given = body["messages"][1]["content"].partition("\n<transcript>\n")
            text = (given[2] or given[0]).partition("</transcript>")[0]
            found = re.findall(r"Finding \d+: .*?\)\.|The folder has .*? lines\.", text)
            bullets = "\n".join(f"- {one}" for one in dict.fromkeys(found))
            reply = AIMessage(
                f"## Goal\nA survey of constants.\n## Findings\n{bullets}\n"
                "## State now\nUnder way.\n## Next step\nThe next file."
            )
        return Response(json.dumps(completion(reply)), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    return httpserver.url_for("/v1"), asked


def test_the_same_graph_runs_on_chatopenai_with_digests_by_another_model(
    small: Path,
    tmp_path: Path,
    server: tuple[str, list[dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, asked = server
    db = tmp_path / "threads.sqlite"
    status = research_agent.main(
        ["--base-url", url, "--model", "worker", "--summary-model", "writer", "--window", "8000",
         "--folder", str(small), "--db", str(db)]
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert "the answer agrees with the files" in shown, shown
    state = thread(db, history=True)
    assert {body["model"] for body in asked if "tools" in body} == {"worker"}
    summaries = [body for body in asked if "tools" not in body]
    assert {body["model"] for body in summaries} == {"writer"}
    assert {one["model"] for one in state["compaction"]["segments"]} == {"writer"}
    assert survey.DIGEST_INSTRUCTIONS in summaries[0]["messages"][0]["content"]
    assert state["twice"] == []
    assert any(m.id == "summarization" for m in model_view(state))
    assert any(isinstance(m, ToolMessage) for m in state["messages"])


def test_a_server_that_is_down_is_reported_and_the_thread_kept(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "threads.sqlite"
    options = ["--folder", str(small), "--db", str(db)]
    assert research_agent.main([*options, "--base-url", "http://127.0.0.1:9/v1"]) == 1
    assert "the same command goes on" in capsys.readouterr().err
    assert research_agent.main([*options, "--offline"]) == 0


# ---- what cannot work


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folder", "nowhere"], "--folder: nowhere is not a folder"),
        (["--folder", "empty"], "holds no text files"),
        (["--model", "gpt-5"], "set OPENAI_API_KEY or pass --base-url"),
        (["--offline", "--base-url", "http://localhost/v1"], "--offline takes no"),
        (["--window", "500"], "--window: 500 is too small; give at least 8000"),
        (["--files", "0"], "--files: 0 is none"),
        (["--db", "broken.sqlite"], "--db: broken.sqlite cannot be used"),
    ],
)
def test_a_command_that_cannot_work_says_what_to_do(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.sqlite").write_text("this is no database, whatever its name says\n" * 40)
    assert research_agent.main(options) == 2
    assert message in capsys.readouterr().err


def test_a_thread_is_not_continued_over_another_folder(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("LIMIT = 3\n")
    options = ["--offline", "--db", str(tmp_path / "threads.sqlite"), "--folder"]
    assert research_agent.main([*options, str(other)]) == 0
    assert research_agent.main([*options, str(small)]) == 2
    assert "start anew with --fresh" in capsys.readouterr().err
    assert research_agent.main([*options, str(small), "--fresh"]) == 0


def test_the_ledger_counts_what_was_folded_twice() -> None:
    def record(last: int, *segments: tuple[int, int]) -> dict[str, Any]:
        return {
            "last_summarized_index": last,
            "kept_hints": [0],
            "segments": [{"first_index": a, "last_index": b} for a, b in segments],
        }

    ledger = survey.Ledger({})
    ledger.take(record(4, (0, 4)))
    ledger.take(record(9, (0, 4), (5, 9)))
    assert (ledger.folded, ledger.twice()) == (9, [])
    ledger.take(record(9, (0, 6), (5, 9)))
    assert ledger.twice() == [5, 6]
    ledger.take(record(2, (0, 2)))
    ledger.take(record(4, (0, 4)))
    assert ledger.twice() == [3, 4]
