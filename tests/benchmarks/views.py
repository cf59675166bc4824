"""What the systems' views are like: would a provider take them, and does each extend the last one?

Fuzzed histories, sound ones and broken ones, grow message by message. Before each AI message and at
the end every system is visited as an agent would, with the same limits. A history counts as spoilt
if one of its views breaks a rule that the transcript kept at that moment, and as refused if the
system raised. Then two sound threads grow for 400 steps, one with long results, one with long
arguments, and every view that does not begin with the one before it is counted, beside the
summaries that were written. Run:

    python -m tests.benchmarks.views            # --histories 1000 is the default
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from tests.benchmarks.survival.counting import tokens
from tests.benchmarks.survival.peers import PEERS, Deepagents
from tests.benchmarks.survival.systems import Limits, Ours, System
from tests.support.histories import random_history
from tests.support.validity import Rule, new_violations, violations

SUMMARY = (
    "## Goal\nGo on with the task.\n## State now\nThe work is under way.\n## Next step\nContinue."
)
SMALL = Limits(trigger=500, keep=150, digest=400, window=200_000)
"""For histories of 5 to 40 short messages."""
LARGE = Limits(trigger=16_000, keep=4_000, digest=2_000, window=200_000)
STEPS = 400
"""Of a sound thread; each brings a call and its result, one of them long."""
LONG = "def f():\n    return 1\n" * 120
"""2,640 characters: deepagents shortens arguments of `write_file` from 2,000 on."""


class CountedModel(FakeListChatModel):
    """Writes the same summary each time, and counts how often."""

    calls: int = 0

    def _call(self, *args: Any, **kwargs: Any) -> str:
        self.calls += 1
        return super()._call(*args, **kwargs)


class Editing:
    """langchain's ContextEditingMiddleware: it clears results at each call, and folds nothing."""

    def __init__(self, model: Any, limits: Limits) -> None:
        self.refused: list[str] = []
        self._model = model
        self._messages: list[BaseMessage] = []
        edit = ClearToolUsesEdit(trigger=limits.trigger, keep=3)
        self._middleware = ContextEditingMiddleware(edits=[edit], token_counter=tokens)

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._messages += arrived
        seen: list[BaseMessage] = []

        def handler(request: Any) -> Any:
            seen[:] = request.messages
            return ModelResponse(result=[AIMessage("ok")])

        request: Any = ModelRequest(model=self._model, messages=list[Any](self._messages))
        self._middleware.wrap_model_call(request, handler)
        return seen


def _ours(model: Any, limits: Limits) -> System:
    return Ours(model, limits, min_fold_tokens=0, min_fold_share=0.0)


def _shortening(model: Any, limits: Limits) -> System:
    # What its factory sets for a model whose window it does not know.
    default = {"trigger": ("messages", 20), "keep": ("messages", 20)}
    return Deepagents(model, limits, truncate_args_settings=default)


SYSTEMS: dict[str, Callable[[Any, Limits], System]] = {
    "ours": _ours,
    "langmem": PEERS["langmem"],
    "langchain": PEERS["langchain (untrimmed)"],
    "langchain, editing": Editing,
    "deepagents": PEERS["deepagents"],
    "deepagents, short arguments": _shortening,
}


@dataclass
class Outcome:
    """Of many histories under one system.

    Attributes:
        spoilt: histories with a view that breaks a rule which the transcript kept.
        refused: histories in which the system raised.
        rules: how many histories each rule was broken in.
    """

    spoilt: int = 0
    refused: int = 0
    rules: Counter[Rule] = field(default_factory=Counter)


def calls_of(history: Sequence[BaseMessage]) -> list[int]:
    """Where an agent is called: before each AI message, and at the end."""
    before = [n for n, message in enumerate(history) if isinstance(message, AIMessage) and n]
    return [*before, len(history)]


def broken_rules(system: System, history: Sequence[BaseMessage]) -> set[Rule]:
    """The rules that a view of this history broke and its transcript did not, at any call."""
    found: set[Rule] = set()
    start = 0
    for end in calls_of(history):
        view = system.visit([message.model_copy(deep=True) for message in history[start:end]])
        start = end
        ends = isinstance(history[end - 1], AIMessage)
        before = violations(history[:end], state_ends_with_ai=ends)
        after = violations(view, state_ends_with_ai=ends)
        found |= {violation.rule for violation in new_violations(before, after)}
    return found


def validity(make: Callable[[Any, Limits], System], count: int, *, malformed: bool) -> Outcome:
    """What the views of ``count`` fuzzed histories broke."""
    outcome = Outcome()
    for seed in range(count):
        rng = random.Random(seed)
        length = rng.randint(5, 40)
        history = random_history(rng, length=length, malformed=malformed, ids="unique")
        system = make(CountedModel(responses=[SUMMARY]), SMALL)
        try:
            rules = broken_rules(system, history)
        except Exception:  # noqa: BLE001  # whatever a system raises ends the run
            outcome.refused += 1
            continue
        outcome.spoilt += bool(rules)
        outcome.rules.update(rules)
    return outcome


def sound_thread(steps: int, *, writes: bool) -> list[BaseMessage]:
    """A task, then calls and their results; what is long are the arguments, or the results."""
    messages: list[BaseMessage] = [HumanMessage("Go through all files.", id="task")]
    for number in range(steps):
        arguments = {"path": f"src/{number}.py", **({"content": LONG} if writes else {})}
        name, result = ("write_file", "Written.") if writes else ("read_file", LONG)
        call = {"name": name, "args": arguments, "id": f"c{number}"}
        messages.append(AIMessage("", tool_calls=[call], id=f"a{number}"))
        messages.append(ToolMessage(result, tool_call_id=f"c{number}", id=f"t{number}"))
    return messages


def prefix_breaks(
    make: Callable[[Any, Limits], System], thread: Sequence[BaseMessage]
) -> tuple[int, int]:
    """Views that do not begin with the one before, and summaries that were written."""
    model = CountedModel(responses=[SUMMARY])
    system = make(model, LARGE)
    breaks, start, last = 0, 0, list[tuple[str, str]]()
    for end in calls_of(thread):
        view = [_looks(message) for message in system.visit(thread[start:end])]
        start = end
        breaks += view[: len(last)] != last
        last = view
    return breaks, model.calls


def _looks(message: BaseMessage) -> tuple[str, str]:
    calls = getattr(message, "tool_calls", None)
    return message.type, f"{message.content}{[(c['name'], c['args']) for c in calls or ()]}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000, help="of each kind")
    count = parser.parse_args().histories
    print("| system | histories | spoilt | refused | rules broken most often |")
    print("|---|---|---:|---:|---|")
    for name, make in SYSTEMS.items():
        for malformed in (False, True):
            outcome = validity(make, count, malformed=malformed)
            most = ", ".join(f"{rule} {times}" for rule, times in outcome.rules.most_common(3))
            kind = "broken" if malformed else "sound"
            spoilt, refused = (100 * n / count for n in (outcome.spoilt, outcome.refused))
            print(f"| {name} | {kind} | {spoilt:.1f}% | {refused:.1f}% | {most or '–'} |")
    print(f"\n| of {STEPS + 1} views break the prefix (summaries) | reads | writes |")
    print("|---|---:|---:|")
    threads = [sound_thread(STEPS, writes=writes) for writes in (False, True)]
    for name, make in SYSTEMS.items():
        cells = ["{} ({})".format(*prefix_breaks(make, thread)) for thread in threads]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
