"""What survives rounds of compaction: planted facts, and what real transcripts use again.

    python -m tests.benchmarks.survival                    # everything
    python -m tests.benchmarks.survival --quick            # below a minute
    python -m tests.benchmarks.survival --systems ours     # this package alone: no peers needed

Synthetic threads: in each round as many new tokens arrive as make every system compact once, with
facts of 13 types planted among them. One scripted summariser writes all digests, through each
system's own prompt; it loses every fact it could write with probability p, each time. A fact
survives if its exact value stands in what the agent's model would be called with.

Equal budgets: one token count for all; the same trigger, the same tokens kept word for word; a
digest of at most ``--budget`` tokens. Ours has a setting for it. The peers have none, so the
summariser itself never writes more for them, as a model with ``max_tokens`` would not.

Transcripts: three real runs, if ``--transcripts`` or $TRANSCRIPTS names a folder of them, in
OpenAI's chat format; nothing of their text is printed.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from tests.benchmarks.survival.measuring import measure
from tests.benchmarks.survival.summariser import ScriptedSummariser
from tests.benchmarks.survival.systems import Limits, systems
from tests.benchmarks.survival.tables import budgets, survival, table

TRANSCRIPTS = "pi-refactor,swe-sphinx-9258,deerflow-fe3f7974"
"""A long session of coding, a run of SWE-bench, and web research."""
ROUNDS = (1, 5, 10, 20)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.survival")
    parser.add_argument("--quick", action="store_true", help="4 seeds, 10 rounds, one transcript")
    parser.add_argument("--systems", default="all", help="beginnings of names, comma-separated")
    parser.add_argument("--seeds", type=int, help="threads (20)")
    parser.add_argument("--losses", default="0.1,0.5", help="p of the summariser; 0: a control")
    parser.add_argument("--budget", type=int, default=4_000, help="tokens of a digest (4000)")
    parser.add_argument("--round", type=int, default=8_000, help="tokens of a round (8000)")
    parser.add_argument("--keep", type=int, default=2_000, help="tokens kept as they are (2000)")
    parser.add_argument("--transcripts", default=os.environ.get("TRANSCRIPTS", ""))
    parser.add_argument("--names", default=TRANSCRIPTS, help="transcripts, comma-separated")
    options = parser.parse_args()
    options.losses = [float(loss) for loss in options.losses.split(",")]
    return options


def planted(options: argparse.Namespace) -> None:
    """The first part."""
    rounds = ROUNDS[:-1] if options.quick else ROUNDS
    seeds = range(1, 1 + (options.seeds or (4 if options.quick else 20)))
    chosen = systems(options.systems)
    limits = Limits(
        trigger=options.round, keep=options.keep, digest=options.budget, window=4 * options.round
    )
    outcomes = measure(
        chosen, losses=options.losses, rounds=rounds, seeds=seeds, limits=limits, progress=_progress
    )
    print(
        f"# Planted facts\n\n{len(seeds)} threads; {limits.trigger:,} tokens a round, "
        f"{limits.keep:,} kept, digests of at most {limits.digest:,} tokens.\n"
    )
    for loss in options.losses:
        print(f"## Each fact lost with p = {loss} whenever a digest is written\n")
        print(survival(outcomes, loss, list(chosen), rounds), end="\n\n")
        print(budgets(outcomes, loss, list(chosen), rounds), end="\n\n")


def transcripts(options: argparse.Namespace) -> None:
    """The second part."""
    from tests.benchmarks.survival.reuse import facts_of, replay
    from tests.support.histories import load_transcripts

    folder = Path(options.transcripts)
    if not options.transcripts or not folder.is_dir():
        print("No transcripts: name a folder with --transcripts or $TRANSCRIPTS.")
        return
    chosen = systems(options.systems)
    chosen.pop("sees everything", None)
    found = load_transcripts(folder)
    names = options.names.split(",")[-1:] if options.quick else options.names.split(",")
    for name in names:
        if name not in found:
            raise SystemExit(f"--names: there is no {name}.jsonl in {folder}")
    limits = Limits(trigger=16_000, keep=4_000, digest=options.budget, window=64_000)
    rows = []
    for name in names:
        messages = found[name]
        facts = facts_of(messages)
        cells = []
        for factory in chosen.values():
            summariser = ScriptedSummariser(
                facts=facts, loss=options.losses[0], seed=1, budget=limits.digest
            )
            reuse = replay(messages, factory(summariser, limits))
            cells.append((reuse.uses, reuse.cell()))
        rows.append([name, f"{len(messages)}", f"{cells[0][0]:,}", *(cell for _, cell in cells)])
        _progress(f"{name} done")
    print(
        "# Real transcripts\n\nPaths, URLs and numbers that a message of the agent uses again: "
        "% in the view it was written for / % of those that no message in the view shows any "
        f"more (mean tokens of the view). Trigger {limits.trigger:,}, kept {limits.keep:,}, "
        f"digests of at most {limits.digest:,} tokens, p = {options.losses[0]}.\n"
    )
    print(table(["transcript", "messages", "uses", *chosen], rows), end="\n\n")


def _progress(text: str) -> None:
    print(f"\r{text:<40}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run both parts."""
    options = arguments()
    started = time.perf_counter()
    planted(options)
    transcripts(options)
    again = " ".join(["python -m tests.benchmarks.survival", *sys.argv[1:]])
    _progress("")
    print(f"{time.perf_counter() - started:.0f} s. To run it again: {again}")


if __name__ == "__main__":
    main()
