"""What must not fade over dozens of folds: directives, the newest values, the request in hand.

Each is a way in which a digest lost something once, over a node as users have it.
"""

import random
import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, edit_digest, merge_compaction, model_view
from langgraph_compaction.digest.facts.layout import NEWEST
from tests.support import folding
from tests.support.folding import State, failing, state_of

SUBJECTS = ("upload timeout", "retry limit", "worker count", "api port", "batch size")
FILL = " The work on this part went on without anything of note." * 12


def vague() -> Callable[[list[BaseMessage]], str]:
    """A summariser that keeps nothing."""
    number = count()

    def write(_: list[BaseMessage]) -> str:
        return (
            f"## Goal\nDo as the user said.\n## State now\nUnder way {next(number)}.\n"
            "## Next step\nGo on."
        )

    return write


def node(model: Any, **values: Any) -> CompactionNode:
    return folding.node(model, **({"trigger": ("messages", 20), "keep": ("messages", 4)} | values))


def visited(compact: CompactionNode, state: State) -> State:
    update = compact.invoke(state)
    return {**state, "compaction": merge_compaction(state["compaction"], update.get("compaction"))}


def text_of(state: State) -> str:
    return "\n".join(message.text for message in model_view(state))


@pytest.mark.parametrize("window", [8_000, 30_000])
@pytest.mark.parametrize("digest", ["chain", "rolling"])
def test_directives_and_newest_values_outlast_sixty_folds(window: int, digest: str) -> None:
    rng, number = random.Random(5), count()
    values: dict[str, str] = {}
    rules: list[str] = []
    compact = node(vague(), context_window=window, digest=digest)
    state, folds = state_of([HumanMessage("Run the project.", id="task")]), 0
    while folds < 60:
        n, text = next(number), "Work went on here. " * rng.randint(1, 24)
        kind: Any = AIMessage if rng.random() < 0.6 else HumanMessage
        if rng.random() < 0.2:
            subject = rng.choice(SUBJECTS)
            values[subject] = str(rng.randint(1_000, 99_999))
            text = f"The {subject} is {values[subject]} now. {text}"
        elif n % 25 == 10 and len(rules) < 12:
            kind, text = HumanMessage, f"Never touch the table rule{n}."
            rules.append(text)
        state["messages"] = [*state["messages"], kind(text, id=f"m{n}")]
        before = state["compaction"]
        state = visited(compact, state)
        if state["compaction"] is before:
            continue
        folds += 1
        view = text_of(state)
        assert [rule for rule in rules if rule not in view] == []
        for subject, value in values.items():
            told = re.findall(rf"{subject}(?: is|:) (\d+)", view)
            assert not told or told[-1] == value, f"{subject} after {folds} folds"


def said(number: Any, *lines: str) -> list[BaseMessage]:
    """Messages of the agent; of the user where a line begins with "U: "."""
    return [
        (HumanMessage if line.startswith("U: ") else AIMessage)(
            line.removeprefix("U: ") + FILL, id=f"m{next(number)}"
        )
        for line in lines
    ]


def test_a_message_that_was_kept_is_read_at_its_place() -> None:
    number = count()
    compact = node(vague(), keep=("messages", 2))
    working = ["Working on it."] * 20
    lines = ["U: The upload timeout is 30 s.", "The upload timeout is 60 s now.", *working]
    state = state_of([HumanMessage("Run the shop.", id="task"), *said(number, *lines)])
    state = visited(compact, state)
    assert "m0" in state["compaction"]["kept_ids"]
    state["messages"] += said(number, "U: Go on with the work.", *working)
    state = visited(compact, state)
    assert "m0" not in state["compaction"]["kept_ids"]
    digest = "\n".join(one["text"] for one in state["compaction"]["segments"])
    assert digest.rfind("60 s") > digest.rfind("30 s")
    # And the other way round: the kept one may be the newer.
    number = count()
    lines = ["The retry limit is 5.", "U: The retry limit is 7.", *working]
    state = state_of([HumanMessage("Run the shop.", id="task"), *said(number, *lines)])
    state = visited(compact, state)
    state["messages"] += said(number, "U: Go on with the work.", *working)
    state = visited(compact, state)
    told = re.findall(r"retry limit(?: is|:) (\d)", text_of(state))
    assert told[-1] == "7"


def test_a_name_that_is_told_as_another_things_is_not_told() -> None:
    texts = iter([
        "The primary host is db-1.example.com. The standby host is db-2.example.com.",
        "The standby host was rebooted: db-2.example.com was healthy.",
    ])  # fmt: skip

    def write(_: list[BaseMessage]) -> str:
        return f"## Goal\nMigrate.\n## State now\n{next(texts)}\n## Next step\nGo on."

    number = count()
    compact = node(write, trigger=("messages", 8), keep=("messages", 2))
    hosts = ["The primary host is db-1.example.com.", "The standby host is db-2.example.com."]
    working = ["Working on it."] * 7
    state = state_of([HumanMessage("Migrate.", id="task"), *said(number, *hosts, *working)])
    state = visited(compact, state)
    change = "The primary host is db-2.example.com now."
    state["messages"] += said(number, "A failover was made.", change, "U: Go on.", *working)
    state = visited(compact, state)
    assert "primary host: db-2.example.com" in text_of(state)


def test_a_summariser_that_repeats_what_it_was_shown_is_corrected() -> None:
    number = count()
    values = iter(["2058-08-18", "2072-04-12", "2058-08-18"])

    def write(_: list[BaseMessage]) -> str:
        return (
            f"## Goal\nShip it.\n## State now\nThe release date is {next(values)}, step "
            f"{next(number)}.\n## Next step\nGo on."
        )

    compact = node(write, trigger=("messages", 8), keep=("messages", 2))
    state = state_of([HumanMessage("Ship it.", id="task")])
    for line in ("The release date is 2058-08-18.", "The release date is 2072-04-12.", "Go."):
        state["messages"] += said(number, line, *["Working on it."] * 9)
        state = visited(compact, state)
    digest = "\n".join(one["text"] for one in state["compaction"]["segments"])
    assert len(state["compaction"]["segments"]) == 3
    assert digest.rfind("2072-04-12") > digest.rfind("2058-08-18")


def test_the_request_in_hand_outlasts_extracts_beside_a_rolling_digest() -> None:
    number = count()
    settings: dict[str, Any] = {
        "digest": "rolling", "keep": ("messages", 0), "trigger": ("tokens", 2_000),
        "context_window": 6_000, "task": None,
    }  # fmt: skip
    request = "Paint the fence green, and tell me once it is dry."
    state = state_of([HumanMessage(request, id="r"), *said(number, *["Working on it."] * 20)])
    for model in (vague(), failing, vague(), vague()):
        compact = node(model, **settings)
        state = visited(compact, state)
        texts = [one["text"] for one in state["compaction"]["segments"]]
        assert any(f"{NEWEST}\n{request}" in text for text in texts)
        state["messages"] += said(number, *["Working on it."] * 45)


def test_extracts_are_redacted_as_they_are_written() -> None:
    secret = "sk-live-4f9a8b7c6d5e"
    coloured = f"The key is {secret[:7]}\x1b[m\x1b[K{secret[7:]} and it was accepted by the host."
    messages: Sequence[BaseMessage] = [
        message
        for n in range(12)
        for message in (
            AIMessage("", id=f"a{n}", tool_calls=[{"name": "grep", "args": {}, "id": f"c{n}"}]),
            ToolMessage(coloured + FILL, tool_call_id=f"c{n}", id=f"t{n}", status="error"),
        )
    ]
    hidden: Any = {"redact": lambda text: text.replace(secret, "[key]")}
    compact = node(failing, context_window=2_000, trigger=("tokens", 1_500), clear=False, **hidden)
    state = visited(compact, state_of([HumanMessage("Find the key.", id="h"), *messages]))
    assert state["compaction"]["segments"][0]["model"] == "extractive"
    assert secret not in str(state["compaction"])


@pytest.mark.parametrize("digest", ["chain", "rolling"])
def test_a_long_correction_leaves_room_for_what_follows(digest: str) -> None:
    number = count()
    compact = node(vague(), context_window=6_000, digest=digest)
    state = state_of([HumanMessage("Run the shop.", id="task"), *said(number, *["Work."] * 22)])
    state = visited(compact, state)
    long = "# Messages 0 to 18 (folded after step 18)\n" + "A person knows this well. " * 200
    update = edit_digest(state, long)
    state["compaction"] = merge_compaction(state["compaction"], update["compaction"])
    rule = "U: Never touch service ninety-nine."
    for _ in range(6):
        state["messages"] += said(number, rule, *["Work."] * 22, "U: Go on.")
        state = visited(compact, state)
    segments = state["compaction"]["segments"]
    assert segments[0]["text"] == long
    assert "Never touch service ninety-nine." in "\n".join(one["text"] for one in segments[1:])
    assert 60 < sum(one["tokens"] for one in segments[1:]) <= 600


def test_a_rolling_digest_stays_within_its_budget_heading_included() -> None:
    number = count()
    compact = node(vague(), digest="rolling", max_digest_tokens=300)
    state = state_of([HumanMessage("Run the shop.", id="task")])
    for n in range(12):
        lines = [f"U: Remember the file /srv/data/{n}/{m}.csv, please." for m in range(10)]
        state["messages"] += said(number, *lines, *["Work."] * 12)
        state = visited(compact, state)
        assert sum(one["tokens"] for one in state["compaction"]["segments"]) <= 300


def test_ever_new_directives_neither_break_the_budget_nor_condense_a_text_at_every_fold() -> None:
    number, folds = count(), 0
    compact = node(vague(), max_digest_tokens=3_000, trigger=("messages", 14))
    state = state_of([HumanMessage("Run the shop.", id="task")])
    while folds < 120:
        lines = [f"U: Never touch the table rule{next(number)}_{n}, please." for n in range(3)]
        state["messages"] += said(number, *lines, *["Work."] * 9)
        before = state["compaction"]
        state = visited(compact, state)
        folds += state["compaction"] is not before
        segments = state["compaction"].get("segments", [])
        assert sum(one["tokens"] for one in segments) <= 3_000
    assert max(one["level"] for one in segments) <= 8
    assert len(segments) > 4
