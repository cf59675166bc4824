"""What clearing old tool results costs or spares, and whether recall finds what went out of sight.

    python -m tests.benchmarks.clearing --transcripts FOLDER           # everything
    python -m tests.benchmarks.clearing --transcripts FOLDER --quick   # a minute or two
    python -m tests.benchmarks.clearing --transcripts FOLDER --set clear_keep=1
    python -m tests.benchmarks.clearing --transcripts FOLDER --only-costs --set target_share=0.3

Transcripts of real runs in OpenAI's chat format ($TRANSCRIPTS names their folder, too; nothing of
their text is printed) are replayed through `CompactionNode`, with ``clear=True`` and with
``clear=False``, everything else by default. Before each message of the agent the node is visited
and the agent is called with its view.

Costs: the provider caches the prefix that a view shares with the one before it. Recall: of each
path, URL, number and identifier that a message uses, that stood in an earlier one, and that the
view does not show any more, it is asked by words, and by the handle that the view gives.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.clearing.replaying import Thread, Transcript, replay
from tests.benchmarks.clearing.tables import Pair, costs, ratios, recalled
from tests.support.histories import load_transcripts

WINDOWS = (8_000, 16_000, 32_000)
LONG = 400_000
"""Bytes of a transcript above which ``--quick`` leaves it out."""


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.clearing")
    parser.add_argument("--transcripts", default=os.environ.get("TRANSCRIPTS", ""))
    parser.add_argument("--quick", action="store_true", help="shorter transcripts, window 16,000")
    parser.add_argument("--only-costs", action="store_true", help="look no reference up")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the node that clears; target_share: its target over the trigger",
    )
    options = parser.parse_args()
    options.settings = dict(_setting(given) for given in options.set)
    return options


def _setting(given: str) -> tuple[str, Any]:
    name, _, value = given.partition("=")
    return name, json.loads(value)


def main() -> None:
    """Run it and print the tables."""
    options = arguments()
    folder = Path(options.transcripts)
    if not options.transcripts or not folder.is_dir():
        print("No transcripts: name a folder with --transcripts or $TRANSCRIPTS.")
        return
    started = time.perf_counter()
    windows = WINDOWS[1:2] if options.quick else WINDOWS
    pairs: dict[int, list[Pair]] = {window: [] for window in windows}
    names = 0
    for name, messages in load_transcripts(folder).items():
        if options.quick and (folder / f"{name}.jsonl").stat().st_size > LONG:
            continue
        names += 1
        transcript = Transcript.of(messages)
        for window in windows:
            print(f"\r{name} {window:,}".ljust(50), end="", file=sys.stderr, flush=True)
            pairs[window].append(_pair(transcript, window, options))
    print("\r".ljust(51), end="\r", file=sys.stderr)
    print(f"{names} transcripts.\n")
    print(costs(pairs), ratios(pairs), sep="\n\n")
    if not options.only_costs:
        print(f"\n{recalled(pairs)}")
    again = " ".join(["python -m tests.benchmarks.clearing", *sys.argv[1:]])
    print(f"\n{time.perf_counter() - started:.0f} s. To run it again: {again}")


def _pair(transcript: Transcript, window: int, options: argparse.Namespace) -> Pair:
    def thread(**settings: Any) -> Thread:
        return replay(transcript, window, look_up=not options.only_costs, **settings)

    return Pair(on=thread(**{"clear": True, **options.settings}), off=thread(clear=False))


if __name__ == "__main__":
    main()
