"""An agent that reads more than its context window holds, and answers from all of it.

    python examples/research_agent.py                    # this repository; no key, no network
    python examples/research_agent.py --folder ~/project # your own files, read-only
    python examples/research_agent.py --ask "Which constant is the greatest?"

The thread is kept in an SQLite file: interrupt the run, and the same command goes on where it
stopped; run it again at the end, and it shows the answer with nothing summarised again.
"""

from __future__ import annotations

import argparse
import logging
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError
from offline_model import OfflineModel
from pydantic import SecretStr
from session import STEPS, OtherFolderError, Session
from survey import build, has_constants
from tools import SIZE, Workspace

from langgraph_compaction import CompactionError, ExtractiveSummarizer

REPOSITORY = Path(__file__).resolve().parents[1]
OWN_FILES = ("README.md", "langgraph_compaction", "docs")
"""What is read of this repository, in this order."""
WINDOW = 16_000
"""Tokens: small enough that the survey fills it several times."""
LEAST_WINDOW = 8_000
"""Tokens. Two pages of source, the digest and the tools' schemas need about so much."""
MODEL = "gpt-5-mini"

ANSWERED, UNANSWERED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


class UsageError(Exception):
    """The command cannot run as it was given; the text says what to do."""


def forgetful(_: Sequence[Any]) -> str:
    """A summariser as bad as they come: well-formed, confident, and without any fact."""
    return (
        "## Goal\nSurvey the folder.\n## Findings\nSeveral files were read and noted.\n"
        "## State now\nThe survey is going well.\n## Next step\nGo on with the next file."
    )


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, parsed."""
    parser = argparse.ArgumentParser(
        description="Watch an agent work past its context window. It surveys a folder of text "
        "files with read-only tools; compaction folds its older messages again and again; the "
        "answer needs what was found all along. Without a key it runs offline.",
        epilog="The same command resumes an interrupted run; once the survey is finished, it shows "
        "the answer without any work. Exit status: 0 answered; 1 not answered (the view lost what "
        "the agent needed, or its model failed); 2 the command cannot run as given; "
        "130 interrupted.",
    )
    add = parser.add_argument
    add("--folder", type=Path, metavar="DIR", help="folder to survey (default: this repository)")
    add("--size", type=int, metavar="KB", help="kilobytes of text to survey at most (default: what "
        f"fills the window four or five times, {SIZE // 1000} at --window {WINDOW})")  # fmt: skip
    add("--ask", metavar="QUESTION", help="ask the thread a question once it is finished")
    add("--fresh", action="store_true", help="forget the thread and start anew")
    add = parser.add_argument_group("thread").add_argument
    add("--db", type=Path, default=Path(".demo/research.sqlite"), metavar="FILE",
        help="SQLite file with the threads (default: %(default)s)")  # fmt: skip
    add("--thread", default="survey", metavar="NAME", help="which thread (default: %(default)s)")
    add("--window", type=int, default=WINDOW, metavar="TOKENS",
        help="the agent's context window (default: %(default)s)")  # fmt: skip
    add = parser.add_argument_group(
        "model", "Offline, unless OPENAI_API_KEY is set or --base-url is given."
    ).add_argument
    add("--model", metavar="NAME", help=f"chat model that calls the tools (default: {MODEL})")
    add("--base-url", metavar="URL", help="OpenAI-compatible server, as http://localhost:8000/v1")
    add("--summary-model", metavar="NAME", help="model that writes digests (default: --model)")
    add("--offline", action="store_true", help="use no key even if there is one")
    add = parser.add_argument_group("show").add_argument
    add("--slow", action="store_true", help="pause at each step, to watch it")
    add("--forgetful", action="store_true",
        help="let a useless summariser write the digests: the agent notices")  # fmt: skip
    return parser.parse_args(argv)


def models(options: argparse.Namespace) -> tuple[BaseChatModel, Any, str]:
    """The agent's model, the summariser, and both in words."""
    key = os.environ.get("OPENAI_API_KEY")
    if options.offline and (options.model or options.summary_model or options.base_url):
        raise UsageError("--offline takes no --model, --summary-model or --base-url.")
    if options.offline or not (key or options.base_url):
        if options.model or options.summary_model:
            raise UsageError(
                "--model and --summary-model need a server: set OPENAI_API_KEY or pass --base-url."
            )
        return OfflineModel(), ExtractiveSummarizer(), "offline; digests are extracts"
    # Only where it is used: importing it takes longer than the offline survey's folds.
    from langchain_openai import ChatOpenAI

    name = options.model or MODEL
    summary_name = options.summary_model or name

    def chat(model_name: str) -> ChatOpenAI:
        # A server of one's own needs no key, but the client insists on one.
        secret = SecretStr(key or "none")
        return ChatOpenAI(model=model_name, base_url=options.base_url, api_key=secret)

    words = f"{name}; digests by {summary_name} (--offline needs no key)"
    return chat(name), [chat(summary_name), ExtractiveSummarizer()], words


def workspace_of(options: argparse.Namespace) -> Workspace:
    """The files to survey."""
    if options.size is not None and options.size < 1:
        raise UsageError(f"--size: {options.size} is none; give at least 1 (kilobyte).")
    size = options.size * 1000 if options.size else SIZE * options.window // WINDOW
    try:
        if options.folder is None:
            workspace = Workspace(REPOSITORY, OWN_FILES, size)
        else:
            workspace = Workspace(options.folder.expanduser(), (), size)
    except ValueError as error:
        raise UsageError(f"--folder: {error}") from None
    if not has_constants(workspace):
        raise UsageError(
            f"--folder: there is nothing to survey: no line of the {len(workspace.files)} files in "
            f"{workspace.root} sets a name in capitals to a number. Name a folder with source code."
        )
    return workspace


def run(options: argparse.Namespace, saver: SqliteSaver) -> int:
    """The survey, then the question; the exit status."""
    if options.window < LEAST_WINDOW:
        raise UsageError(f"--window: {options.window} is too small; give at least {LEAST_WINDOW}.")
    workspace = workspace_of(options)
    model, summarizer, words = models(options)
    if options.forgetful:
        summarizer, words = forgetful, f"{words.partition(';')[0]}; the summariser forgets"
    if options.fresh:
        saver.delete_thread(options.thread)
    graph, compact = build(model, summarizer, workspace, window=options.window, checkpointer=saver)
    left_out = workspace.left_out()
    session = Session(
        graph,
        compact,
        workspace,
        thread=options.thread,
        header={
            "Job": "find the constants of a folder: on which numbers is it built?",
            "Folder": f"{workspace.root.name}: {len(workspace.files)} files"
            + (f"; left out: {left_out}" if left_out else ""),
            "Model": words,
            "Thread": f"{options.thread!r} in {options.db}",
        },
        strict=isinstance(model, OfflineModel),
        slow=options.slow,
    )
    answered = session.survey(briefly=bool(options.ask))
    if answered and options.ask:
        answered = session.ask(options.ask)
    elif answered:
        session.say("The same command again resumes from the checkpoint; --ask asks the thread.")
    else:
        if options.forgetful:
            session.say("Exit status 1 is expected: the summariser forgot, and the agent noticed.")
        session.say("The thread ends here. --fresh starts anew.")
    return ANSWERED if answered else UNANSWERED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    options = arguments(argv)
    # The screen shows every event of compaction; the log need not say it again.
    logging.getLogger("langgraph_compaction").addHandler(logging.NullHandler())
    try:
        options.db.parent.mkdir(parents=True, exist_ok=True)
        with SqliteSaver.from_conn_string(str(options.db)) as saver:
            return run(options, saver)
    except KeyboardInterrupt:
        return _stop("interrupted. The same command goes on where it stopped.", INTERRUPTED)
    except (UsageError, OtherFolderError, CompactionError) as error:
        return _stop(str(error), USAGE)
    except (OSError, sqlite3.Error) as error:
        return _stop(f"--db: {options.db} cannot be used: {error}", USAGE)
    except GraphRecursionError:
        return _stop(f"no answer after {STEPS} graph steps.", UNANSWERED)
    except server_errors() as error:
        return _stop(
            f"the model's server: {error}\nWhat was done is kept: the same command goes on.",
            UNANSWERED,
        )


def server_errors() -> tuple[type[Exception], ...]:
    """What a chat model's server may raise; looked up only once something was raised."""
    from openai import OpenAIError

    return (OpenAIError,)


def _stop(reason: str, status: int) -> int:
    sys.stderr.write(f"research_agent: {reason}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
