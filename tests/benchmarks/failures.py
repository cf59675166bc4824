"""What a visit of the node makes of every fault of a provider, how long it takes, what it asks.

A cascade of one ChatOpenAI asks a local server that misbehaves on demand (`tests.support`). Every
case is run synchronously and asynchronously, with room (soft) and without (hard), by Chat
Completions in one body and by the Responses API as a stream. An attempt may take 1 second. Verdicts
that differ are all shown; times are the longest. Run:

    python -m tests.benchmarks.failures
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langgraph_compaction import ModelTier
from tests.support.openai_server import (
    LOOKALIKES,
    OVERFLOWS,
    Case,
    Exchange,
    OpenAIServer,
    rate_limited,
    refused_url,
    server_error,
    text,
)
from tests.support.openai_server.clients import wire_model
from tests.support.openai_server.faults import FAULTS, SLOW_FAULTS
from tests.support.openai_server.runs import DIGEST, Run, arun, prompt_of, run

ATTEMPT = 1.0
"""Seconds that an attempt may take, beside the grace."""
WIRES = ("chat-whole", "responses-streamed")
SMALL_WINDOW = 3_000
"""Characters of a prompt that a model with too small a window takes: half of what is asked."""
RETRIES = 2
"""Requests that a client makes again by itself, as ChatOpenAI's does by default."""


class Trial(NamedTuple):
    """What the server answers, the last case again and again, and how the client asks."""

    name: str
    cases: Sequence[Case]
    retries: int = 0
    url: str | None = None
    wires: Sequence[str] = WIRES


class Row(NamedTuple):
    """What came of one case.

    Attributes:
        soft: verdict where there was room.
        hard: verdict where there was none.
        sync: seconds of the longest synchronous run.
        awaited: seconds of the longest asynchronous run.
        requests: how many arrived, from fewest to most.
    """

    name: str
    soft: str
    hard: str
    sync: float
    awaited: float
    requests: str


def small_window(overflow: Case) -> Case:
    """An overflow for long prompts, a digest for short ones."""
    good = text(DIGEST)

    def fitting(exchange: Exchange) -> None:
        (overflow if len(prompt_of(exchange.body)) > SMALL_WINDOW else good)(exchange)

    return fitting


def trials() -> Iterator[Trial]:
    """All cases but those of the overflow."""
    digest = text(DIGEST)
    yield Trial("a digest", [digest])
    for name, fault in FAULTS.items():
        yield Trial(name, [fault.case])
    yield Trial("connection refused", [digest], url=refused_url())
    for name, fault in SLOW_FAULTS.items():
        yield Trial(name, [fault.case])
    for name, case in LOOKALIKES.items():
        yield Trial(f"no overflow: {name}", [case])
    limited = rate_limited(0.1)
    yield Trial(f"429 twice, then a digest; {RETRIES} retries", [limited, limited, digest], RETRIES)
    yield Trial(f"429, retry after 0.1 s; {RETRIES} retries", [limited], RETRIES)
    yield Trial(f"500; {RETRIES} retries", [server_error()], RETRIES)


def overflows() -> Iterator[tuple[str, list[Trial]]]:
    """Two kinds of windows that are too small, in the words of every provider; each in one form."""
    for name, fitting in (
        ("window of half the span", small_window),
        ("window of nothing", lambda overflow: overflow),
    ):
        yield (
            name,
            [
                Trial(shape, [fitting(case)], wires=[WIRES[number % len(WIRES)]])
                for number, (shape, case) in enumerate(OVERFLOWS.items())
            ],
        )


def verdict(found: Run) -> str:
    """What became of the thread."""
    if not found.writers:
        return "unchanged"
    return "extracts" if set(found.writers) == {"extractive"} else "digest"


def once(server: OpenAIServer, way: str, tier: ModelTier, need: str) -> Run:
    """One run; what is left of its calls is ended with it."""

    async def awaited() -> Run:
        try:
            return await arun(tier, need=need)
        finally:
            server.release()  # a call that survived its cancellation would keep the loop open

    try:
        return asyncio.run(awaited()) if way == "ainvoke" else run(way, tier, need=need)
    finally:
        server.release()


def measured(server: OpenAIServer, trial: Trial) -> Row:
    """Run a case in all combinations of form, way and need."""
    verdicts: dict[str, list[str]] = {"soft": [], "hard": []}
    seconds: dict[str, list[float]] = {"invoke": [], "ainvoke": []}
    requests = set()
    for wire in trial.wires:
        chat = wire_model(trial.url or server, wire, "model", max_retries=trial.retries)
        for way, times in seconds.items():
            for need, made in verdicts.items():
                server.requests.clear()
                server.answer(*trial.cases)
                found = once(server, way, ModelTier(chat, timeout=ATTEMPT), need)
                if found.shown != ["Done."]:
                    raise RuntimeError(f"{trial.name}: the run showed {found.shown}")
                made.append(verdict(found))
                times.append(found.seconds)
                requests.add(len(server.requests))
    soft, hard = (" / ".join(dict.fromkeys(made)) for made in verdicts.values())
    longest, longest_awaited = (max(times) for times in seconds.values())
    counts = "–".join(str(n) for n in sorted({min(requests), max(requests)}))
    return Row(trial.name, soft, hard, longest, longest_awaited, counts)


def alike(rows: list[Row], name: str) -> Iterator[Row]:
    """One row for all that came to the same, with the longest times."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.soft, row.hard, row.requests), []).append(row)
    for (soft, hard, requests), same in groups.items():
        names = same[0].name if len(same) == 1 else f"{len(same)} shapes"
        longest = max(row.sync for row in same)
        longest_awaited = max(row.awaited for row in same)
        yield Row(f"{name}: {names}", soft, hard, longest, longest_awaited, requests)


def show(row: Row) -> None:
    cells = [row.name, row.soft, row.hard, f"{row.sync:.2f}", f"{row.awaited:.2f}", row.requests]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    logging.getLogger("langgraph_compaction").setLevel(logging.CRITICAL)
    with OpenAIServer() as server:
        measured(server, Trial("the first calls load what the others find", [text(DIGEST)]))
        print("| case | verdict soft | verdict hard | seconds sync | seconds async | requests |")
        print("|---|---|---|---:|---:|---:|")
        for trial in trials():
            show(measured(server, trial))
        for name, shapes in overflows():
            for row in alike([measured(server, trial) for trial in shapes], name):
                show(row)
        # The last one: abandoned clients ask again half a minute later.
        late = Trial(f"429, retry after 30 s; {RETRIES} retries", [rate_limited(30)], RETRIES)
        show(measured(server, late))


if __name__ == "__main__":
    main()
