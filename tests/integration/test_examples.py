"""The short examples, as a person runs them: each judges itself, and its exit status says so.

`research_agent.py` has tests of its own.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.support.openai_server import OVERFLOWS, Exchange, OpenAIServer, text

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGEST = (
    "## Goal\nThe user gives notes on pumps and asks which one each is about.\n"
    "## Findings\nPump 1 runs at 57 degrees, pump 2 at 33 degrees.\n"
    "## State now\nThe notes so far were answered.\n## Next step\nAnswer the next note."
)
NOBODY = "127.0.0.1:9"
"""An address where nobody answers."""
SECONDS = 180
"""That the server of LangGraph may take to start, or to answer, on a busy machine."""


def run(name: str, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """An example in a process of its own, in another folder."""
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def shown(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return done.stdout


def test_with_create_agent(tmp_path: Path) -> None:
    out = shown(run("with_create_agent.py", folder=tmp_path))
    folds = re.findall(r"folded: (\d+) to (\d+) tokens", out)
    assert len(folds) >= 3
    assert all(int(after) < int(before) for before, after in folds)
    assert "The hottest is pump 28, at 80 degrees." in out


def test_background(tmp_path: Path) -> None:
    """The machine may be busy: what counts is that a summary stands in the way of no step."""
    out = shown(run("background.py", folder=tmp_path))
    waiting, beside = map(float, re.findall(r"longest step ([\d.]+) s", out))
    assert waiting >= 0.5
    assert beside < waiting


def test_subgraphs(tmp_path: Path) -> None:
    out = shown(run("subgraphs.py", folder=tmp_path))
    spans = [tuple(map(int, span)) for span in re.findall(r"(\d+) to (\d+)", out)]
    assert spans[0][0] == 0
    assert all(one[1] + 1 == other[0] for one, other in pairwise(spans))


def test_settings_file(tmp_path: Path) -> None:
    out = shown(run("settings_file.py", folder=tmp_path))
    assert "trigger ['fraction', 0.7], digest 'rolling'" in out
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("trigger: [fraction, 0.7]\ndigset: rolling\n")
    done = run("settings_file.py", "--file", str(wrong), folder=tmp_path)
    assert done.returncode == 2
    assert "wrong.yaml" in done.stdout
    assert "did you mean 'digest'?" in done.stdout


def test_clear_chat(tmp_path: Path) -> None:
    out = shown(run("clear_chat.py", folder=tmp_path))
    assert "after: 0 messages in the state, 0 items in the archive" in out


def test_local_server(tmp_path: Path) -> None:
    """Against a server of the same API; one call is refused as too long, and made again."""
    answer, digest, refused = text("It was that pump, as the note says."), text(DIGEST), []

    def case(exchange: Exchange) -> None:
        said = json.dumps(exchange.body)
        if "<transcript>" in said:
            digest(exchange)
        elif len(said) > 9_000 and not refused:
            refused.append(len(said))
            OVERFLOWS["llama.cpp"](exchange)
        else:
            answer(exchange)

    with OpenAIServer() as server:
        server.answer(case)
        done = run("local_server.py", "--base-url", server.url, folder=tmp_path)
        out = shown(done)
        seen = server.requests
    assert re.search(r"digests by: .*local", out)
    assert refused
    assert "The provider refused the call" in out
    for request in seen:  # turns alternate
        roles = [message["role"] for message in request["messages"] if message["role"] != "system"]
        assert all(one != other for one, other in pairwise(roles))


def test_postgres_workers(postgres: str, tmp_path: Path) -> None:
    out = shown(run("postgres_workers.py", "--uri", postgres, folder=tmp_path))
    assert "the first worker ended with -9" in out
    assert out.count("The hottest is pump 23, at 78 degrees.") == 3
    done = run("postgres_workers.py", folder=tmp_path)
    assert done.returncode == 2
    assert "set POSTGRES_URI" in done.stderr


def test_without_its_database_or_package_an_example_says_what_it_takes(tmp_path: Path) -> None:
    done = run("postgres_workers.py", "--uri", f"postgresql://u@{NOBODY}/x", folder=tmp_path)
    assert done.returncode == 2
    assert "error: the database cannot be reached" in done.stderr
    hidden = (
        f"import runpy, sys; sys.modules['psycopg'] = None; sys.path.insert(0, {str(EXAMPLES)!r})"
    )
    path = str(EXAMPLES / "postgres_workers.py")
    done = subprocess.run(
        [sys.executable, "-c", f"{hidden}; runpy.run_path({path!r}, run_name='__main__')"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'pip install "langgraph-checkpoint-postgres"' in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_server_the_example_says_so(tmp_path: Path) -> None:
    done = run("local_server.py", "--base-url", f"http://{NOBODY}/v1", folder=tmp_path)
    assert done.returncode == 2
    assert f"The server at http://{NOBODY}/v1 does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_agent_says_what_it_understands() -> None:
    asked = "Inspect the pumps 1 to 40."
    code = (
        "from inspector import Inspector; model = Inspector(); "
        f"print(model.invoke('Hello.').text, model.invoke({asked!r}).tool_calls)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=EXAMPLES, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert f'Ask me to "{asked}" [{{' in done.stdout, done.stderr
    assert f"```text\n{asked}\n```" in (EXAMPLES / "README.md").read_text("utf-8")


# ---- LangGraph's own server


def call(url: str, body: Any = None) -> Any:
    """The answer to a request, parsed."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json"})
    with urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """`langgraph dev` with langgraph.json, on a free port; it writes beside that file."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = json.loads((folder / "langgraph.json").read_text())
    told["dependencies"] = ["."]  # the package itself is on the path
    (folder / "langgraph.json").write_text(json.dumps(told))
    log = tmp_path / "log"
    command = ["-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with (
        log.open("w") as out,
        subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "LANGSMITH_TRACING": "false"},
            stdout=out,
            stderr=out,
        ) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(SECONDS * 5):
                try:
                    call(f"{url}/ok")
                    break
                except URLError:
                    assert server.poll() is None, log.read_text()[-3_000:]
                    time.sleep(0.2)
            else:
                pytest.fail(f"no answer within {SECONDS} s: {log.read_text()[-3_000:]}")
            yield url
        finally:
            server.kill()


def test_a_thread_on_langgraphs_server_folds_and_its_record_is_read_back(served: str) -> None:
    thread = call(f"{served}/threads", {})["thread_id"]
    for first, last in ((1, 20), (21, 25)):
        asked = f"Inspect the pumps {first} to {last} and name the hottest."
        values = call(
            f"{served}/threads/{thread}/runs/wait",
            {
                "assistant_id": "inspector",
                "input": {"messages": [{"role": "user", "content": asked}]},
                "config": {"recursion_limit": 500},
            },
        )
        assert "The hottest is" in values["messages"][-1]["content"]
    record = call(f"{served}/threads/{thread}/state")["values"]["compaction"]
    assert record["segments"]
    assert record["segments"][0]["first_index"] == 0
    assert "pump 1 runs at 57 degrees" in record["segments"][0]["text"]
    # It can be changed over HTTP, too: from here on this thread folds every third step.
    call(
        f"{served}/threads/{thread}/state",
        {"values": {"compaction_settings": {"trigger": ["steps", 3]}}, "as_node": "compact"},
    )
    state = call(f"{served}/threads/{thread}/state")["values"]
    assert state["compaction_settings"] == {"trigger": ["steps", 3]}
    assert state["compaction"] == record
