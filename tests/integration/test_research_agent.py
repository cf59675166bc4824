"""The bundled agent, as a person runs it: a survey, a second run, a kill, a bad summariser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.research import (
    PROGRAM,
    ROOT,
    command,
    research_agent,
    survey,
    thread,
    write_small,
)

ASKING = (PROGRAM, ROOT / "examples" / "README.md")
ASKED = re.compile(r'--ask "([^"]+)"')
FOLD = re.compile(r"fold \d+  ([\d,]+) \S+ ([\d,]+) tokens")


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, without a terminal, in ``folder``."""
    return subprocess.run(
        [sys.executable, PROGRAM, *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("small"))


def test_the_survey_of_this_repository_folds_often_and_answers_from_the_folded_part(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, "--offline")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    folds = [[int(n.replace(",", "")) for n in fold] for fold in FOLD.findall(done.stdout)]
    assert len(folds) >= 5
    assert all(after < before for before, after in folds)
    assert "the answer agrees with the files" in done.stdout
    assert "folded twice: 0" in done.stdout
    assert re.search(r"Repeated calls +0 ", done.stdout)
    state = thread(tmp_path / ".demo" / "research.sqlite")
    assert survey.remembered(state["messages"][:-1], state["compaction"]) >= 5
    assert survey.rereads(state["messages"]) == 0
    # No terminal, 80 columns: plain lines that fit, and nothing on the error stream.
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""
    # The question that the documents suggest has an answer in this very thread.
    suggested = {found for path in ASKING for found in ASKED.findall(path.read_text("utf-8"))}
    assert len(suggested) == 1
    asked = run(tmp_path, "--offline", "--ask", suggested.pop())
    assert asked.returncode == 0, asked.stdout[-2000:] + asked.stderr
    assert "The greatest constant is " in asked.stdout


def test_the_same_command_again_shows_the_answer_and_does_nothing(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "threads.sqlite"
    assert research_agent.main(command(small, db)) == 0
    first = capsys.readouterr().out
    before = thread(db)
    assert research_agent.main(command(small, db)) == 0
    again = capsys.readouterr().out
    assert f"{len(before['messages'])} messages, folded up to" in again
    assert "0 model calls, 0 folds, 0 clearings, 0 new summaries" in again
    headline = next(line for line in first.splitlines() if "of them set" in line)
    assert headline in again
    assert thread(db) == before


def test_a_question_is_answered_from_the_thread(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "threads.sqlite"
    assert research_agent.main(command(small, db, "--ask", "What is LIMIT_02?")) == 0
    shown = capsys.readouterr().out
    assert "LIMIT_02 is 14, set in module_02.py" in shown
    assert "1 model call, " in shown
    assert research_agent.main(command(small, db, "--ask", "Who won?")) == 0
    shown = capsys.readouterr().out
    assert "I find nothing about that" in shown
    assert "0 model calls, 0 folds, 0 clearings, 0 new summaries" in shown


@pytest.mark.parametrize(
    ("moment", "stop", "status"),
    [
        (" +fold 2", signal.SIGKILL, -signal.SIGKILL),
        pytest.param(" +9 ", signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_stopped_goes_on_where_it_was(
    moment: str, stop: signal.Signals, status: int, small: Path, tmp_path: Path
) -> None:
    db = tmp_path / "threads.sqlite"
    shown = 0
    with subprocess.Popen(
        [sys.executable, PROGRAM, *command(small, db, "--slow")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Tests that run in the background ignore interrupts, and so do their heirs.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            shown += bool(re.match(r" {2,3}\d+ \w", line))
            if re.match(moment, line):
                process.send_signal(stop)
                break
    assert process.returncode == status
    interrupted = thread(db)["messages"]
    assert sum(message.type == "ai" for message in interrupted) >= shown
    done = run(tmp_path, *command(small, db))
    assert done.returncode == 0, done.stdout
    assert f"{len(interrupted)} messages, folded up to position" in " ".join(done.stdout.split())
    finished = thread(db, history=True)
    assert finished["messages"][: len(interrupted)] == interrupted
    assert len(finished["messages"]) > len(interrupted)
    assert finished["twice"] == []
    assert survey.rereads(finished["messages"]) == 0


def test_the_agent_notices_a_digest_that_lost_the_facts(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "threads.sqlite"
    assert research_agent.main(command(small, db, "--forgetful")) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Exit status 1 is expected" in shown
    assert "I cannot go on. What I need is no longer in what I can see: finding 1 of 14" in shown
    assert research_agent.main(command(small, db)) == 1
    assert research_agent.main(command(small, db, "--fresh")) == 0


# ---- what cannot work


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folder", "nowhere"], "--folder: nowhere is not a folder"),
        (["--folder", "empty"], "holds no text files"),
        (["--folder", "prose"], "--folder: there is nothing to survey"),
        (["--model", "gpt-5"], "set OPENAI_API_KEY or pass --base-url"),
        (["--offline", "--base-url", "http://localhost/v1"], "--offline takes no"),
        (["--window", "500"], "--window: 500 is too small; give at least 8000"),
        (["--size", "0"], "--size: 0 is none"),
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
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "letter.txt").write_text("There are 40 pumps.\n")
    (tmp_path / "broken.sqlite").write_text("this is no database, whatever its name says\n" * 40)
    assert research_agent.main(options) == 2
    assert message in capsys.readouterr().err


def test_a_thread_is_not_continued_over_another_folder(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("LIMIT = 3\n")
    db = tmp_path / "threads.sqlite"
    assert research_agent.main(command(other, db)) == 0
    assert research_agent.main(command(small, db)) == 2
    assert "start anew with --fresh" in capsys.readouterr().err
    assert research_agent.main(command(small, db, "--fresh")) == 0


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
