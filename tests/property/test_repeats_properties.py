"""What is cleared, and what is said of it, beside a plain reference that compares all with all."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import pin
from langgraph_compaction.record import Clearing, Render
from langgraph_compaction.view import build_view
from langgraph_compaction.view.blocks import block_marker
from langgraph_compaction.view.clearing import Cleared, apply_clearing
from langgraph_compaction.view.clipping import clip_limits
from langgraph_compaction.view.pairing import Group, calls_of, groups

PIXEL = {"type": "image", "base64": "aGk=" * 30, "mime_type": "image/png"}
PICTURE = {"type": "image", "base64": "aGo=" * 30, "mime_type": "image/png"}  # as long, another one
TEXTS = ("a" * 400, "b" * 400, "c" * 200, "c" * 199, "d" * 800, "e" * 30)
CONTENTS: tuple[Any, ...] = (
    *TEXTS,
    [{"type": "text", "text": TEXTS[0]}],
    [PIXEL],
    [PICTURE],
    [PIXEL, {"type": "text", "text": TEXTS[1]}],
    [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": TEXTS[2]}],
    "",
)
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"path": "a.py", "lines": 1},
    {"lines": 1, "path": "a.py"},  # the same call
    {"path": "a.py", "lines": 1.0},
    {"path": "a.py", "lines": True},
    {"path": "a.py", "lines": 2},
    {"path": "lines", "lines": "a.py"},
    {"path": ["a.py", "b.py"]},
    {"path": ["b.py", "a.py"]},
    {"path": "b.py", "mode": "r"},
    {"mode": "r", "path": "b.py"},
    {},
)

LEFT_OUT = re.compile(r"\[\.\.\. .* characters left out\. .* \.\.\.\]")
THREADS = 20
"""Made from each seed: drawing all that is in them one by one takes Hypothesis far longer."""

Steps = list[list[tuple[Any, ...]]]
"""Rounds of parallel calls; an empty one stands for a human message."""


def steps(pick: Random, least: int = 5) -> Steps:
    """From a few contents and arguments each time: else hardly anything is repeated."""
    tools = pick.choices(("read", "look", "recall"), weights=(4, 2, 1), k=3)
    arguments = pick.choices(ARGUMENTS, k=2)
    contents = pick.choices(CONTENTS, k=pick.randint(2, 6))

    def call() -> tuple[Any, ...]:
        outcomes = ("success", "error", "pinned", "nameless", "missing", "twice")
        return (
            pick.choice(tools),
            pick.choice(arguments),
            pick.choice(contents),
            *pick.choices(outcomes, weights=(9, 1, 1, 1, 1, 1)),
            *pick.choices(("fresh", "c0", "c1", ""), weights=(5, 1, 1, 1)),
        )

    rounds = pick.choices((0, 1, 2, 3), weights=(1, 3, 1, 1), k=pick.randint(least, 12))
    return [[call() for _ in range(count)] for count in rounds]


def thread(steps: Steps, *, ids: bool) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for number, calls in enumerate(steps):
        if not calls:
            messages.append(HumanMessage("Go on."))
            continue
        names = [f"c{number}.{n}" if one[4] == "fresh" else one[4] for n, one in enumerate(calls)]
        named = list(zip(names, calls, strict=True))
        made: list[Any] = [{"name": one[0], "args": one[1], "id": name} for name, one in named]
        messages.append(AIMessage("", tool_calls=made))
        for name, (tool, _, content, outcome, _) in named:
            result = ToolMessage(
                content,
                tool_call_id=name,
                name=None if outcome == "nameless" else tool,
                status="error" if outcome == "error" else "success",
            )
            made_of_it = {"missing": [], "twice": [result, result.model_copy()]}
            found = made_of_it.get(outcome, [result])
            messages += [pin(one) for one in found] if outcome == "pinned" else found
    if ids:
        for index, message in enumerate(messages):
            message.id = f"m{index}"
    return messages


class Case(NamedTuple):
    """A thread with its clearing; see `apply_clearing`."""

    messages: list[BaseMessage]
    clearing: Clearing
    start: int
    position: int
    render: Render


def case(pick: Random) -> Case:
    ids = pick.random() < 0.5
    messages = thread(steps(pick), ids=ids)
    ends = [group.stop - 1 for group in groups(messages)]
    start = pick.choice([0, 0, *[end + 1 for end in ends[:2]]])
    marks = [-1, *[end for end in ends if end >= start]]
    last, repeats = pick.choice([-1, -1, *marks]), pick.choice([*marks[-2:], marks[-1]])
    position = start + pick.choice([0, 7])

    def place(index: int) -> int:
        return index + position - start if index >= 0 else -1

    pinned = pick.choice([[], [], [pick.randint(start, len(messages))]])
    clearing = Clearing(
        last_index=place(last),
        last_id=messages[last].id if last >= 0 else None,
        repeats_index=place(repeats),
        repeats_id=messages[repeats].id if repeats >= 0 else None,
        min_chars=pick.choice([0, 100, 300]),
        argument_chars=0,
        protected_tools=pick.choice([[], [], ["look"]]),
        pinned_ids=[f"m{index}" if ids else f"@{index}" for index in pinned],
    )
    render: Render = {"clip_result_bytes": pick.choice([0, 0, 500, 900, 1_500])}
    if pick.random() < 0.5:
        render["recall"] = "recall"
    return Case(messages, clearing, start, position, render)


def shown(messages: Sequence[BaseMessage], case: Case) -> Cleared:
    """What the clearing of a case shows in these messages."""
    return apply_clearing(
        messages, case.clearing, start=case.start, position=case.position, render=case.render
    )


def marks_of(case: Case) -> tuple[int, int]:
    """Indexes of the last of the old messages, and of those that may be repeats; -1: none."""
    found = [case.clearing["last_index"], case.clearing["repeats_index"]]
    last, repeats = [one + case.start - case.position if one >= 0 else -1 for one in found]
    return last, repeats


class Reference:
    """What a clearing should show, by rules that look at each result and every other one."""

    def __init__(self, case: Case) -> None:
        self.messages, self.clearing = case.messages, case.clearing
        self.start, self.recall = case.start, case.render.get("recall")
        self.limits: dict[int, float] = {}
        self.offset = case.start - case.position
        self.last, repeats = marks_of(case)
        self.stop = max(self.last, repeats) + 1
        self.run_of: dict[int, int] = {}
        self.call_of: dict[int, Mapping[str, Any]] = {}
        self.group_of: dict[int, Group] = {}
        for group in groups(self.messages, self.start):
            for run in group.runs:
                for index in range(run.start + 1, min(run.stop, self.stop)):
                    if index in run.strays:
                        continue
                    self.run_of[index], self.group_of[index] = run.start, group
                    call_id = self.result(index).tool_call_id
                    same = [c for c in calls_of(self.messages[run.start]) if c["id"] == call_id]
                    before = [
                        one
                        for one in range(run.start + 1, index)
                        if self.result(one).tool_call_id == call_id
                    ]
                    self.call_of[index] = same[len(before)]
                # Results that stand apart are clipped by themselves.
                stop = min(run.stop, self.stop)
                own = [one for one in range(run.start, stop) if one not in run.strays]
                members = [self.messages[one] for one in own]
                limits = clip_limits(
                    members, case.render.get("clip_result_bytes", 0), case.render.get("recall")
                )
                for index, limit in zip(own, limits, strict=True):
                    self.limits[index] = math.inf if limit is None else limit

    def result(self, index: int) -> ToolMessage:
        message = self.messages[index]
        assert isinstance(message, ToolMessage)
        return message

    def shown(self) -> dict[int, Any]:
        """The content of each result that is cleared, by index."""
        reasons = self.reasons()
        found = {}
        for index in sorted(self.run_of):
            reason = "" if index <= self.last else reasons.get(index)
            if reason is None or self.stays(index):
                continue
            placeholder = self.placeholder(index, reason)
            size, media = measured(self.result(index))
            if media or len(placeholder) < size >= self.clearing["min_chars"]:
                found[index] = placeholder
        return found

    def reasons(self) -> dict[int, str]:
        newer: list[int] = []  # results further below that stay, the newest first
        found = {}
        for index in sorted(self.run_of, reverse=True):
            if self.group_of[index].stop <= self.last + 1 or self.result(index).status == "error":
                continue
            content = self.result(index).content
            again = [
                one
                for one in newer
                if self.run_of[one] != self.run_of[index] and self.same_call(one, index)
            ]
            if any(
                self.result(one).content == content and self.limits[one] >= self.limits[index]
                for one in newer
            ):
                found[index] = "The same text stands further below."
            elif (
                again
                and self.weight(again[0]) >= self.weight(index) / 2
                and self.limits[again[0]] >= self.limits[index]
            ):
                found[index] = "A newer result of the same call stands further below."
            else:
                newer.append(index)
        return found

    def same_call(self, one: int, other: int) -> bool:
        first, second = (
            (found["name"], json.dumps(found["args"], sort_keys=True))
            for found in (self.call_of[one], self.call_of[other])
        )
        return first == second

    def weight(self, index: int) -> int:
        content = self.result(index).content
        blocks: list[Any] = [content] if isinstance(content, str) else content
        texts = [one if isinstance(one, str) else one.get("text") for one in blocks]
        return sum(
            len(block_marker(block) if text is None else text)
            for block, text in zip(blocks, texts, strict=True)
        )

    def stays(self, index: int) -> bool:
        group = self.group_of[index]
        members = range(group.start, min(group.stop, self.stop))
        keys = {self.messages[one].id or f"@{one}" for one in members}
        return bool(
            self.result(index).status == "error"
            or keys & set(self.clearing["pinned_ids"])
            or any(self.messages[one].additional_kwargs for one in members)
            or any(
                one["name"] in self.clearing["protected_tools"]
                for member in members
                for one in calls_of(self.messages[member])
            )
        )

    def placeholder(self, index: int, reason: str) -> str:
        result = self.result(index)
        size, media = measured(result)
        name = result.name or self.call_of[index]["name"]
        what = ", ".join([f"{size:,} characters", *media])
        how = self.how(index, name)
        if reason:
            how = f"{reason} {how}" if how.startswith("recall(") else reason
        return f"[Cleared: result of {name}, {what}, outcome ok. {how}]"

    def how(self, index: int, name: str) -> str:
        if self.recall in {None, name}:
            return "Call the tool again if you need it."
        known = [
            one.tool_call_id
            for one in self.messages[self.start : self.stop]
            if isinstance(one, ToolMessage)
        ]
        result = self.result(index)
        if result.id:
            return f'recall(id="{result.id}") shows it.'
        if result.tool_call_id and known.count(result.tool_call_id) == 1:
            return f'recall(id="{result.tool_call_id}") shows it.'
        return f"recall(first={index - self.offset}) shows it."


def measured(result: ToolMessage) -> tuple[int, list[str]]:
    """Characters of its text, and the markers of its media."""
    if isinstance(result.content, str):
        return len(result.content), []
    blocks: list[Any] = result.content
    media = [block_marker(one) for one in blocks if one["type"] == "image"]
    return sum(len(one.get("text", "")) for one in blocks), media


seeds = st.integers(0, 2**63)


@given(seeds)
def test_what_is_cleared_is_what_a_plain_reference_clears(seed: int) -> None:
    pick = Random(seed)
    for one in (case(pick) for _ in range(THREADS)):
        found = shown(one.messages, one)
        expected = Reference(one).shown()
        assert {index: known.content for index, known in found.messages.items()} == expected
        assert found.results == len(expected)


@given(seeds)
def test_what_comes_later_changes_nothing_of_what_is_cleared(seed: int) -> None:
    pick = Random(seed)
    for one in (case(pick) for _ in range(THREADS)):
        first = one.messages[: max(marks_of(one)) + 1]
        later = thread(steps(pick, 1), ids=False)
        # The first joins the last group, as a result that stands apart from its call.
        late = pin(ToolMessage(TEXTS[0], tool_call_id="late", name="read"))
        for following in (later, [late, *later]):
            assert shown([*first, *following], one) == shown(first, one)


@given(seeds)
@example(685977664)
@example(50243001)
def test_what_stands_further_below_is_shown_there(seed: int) -> None:
    pick = Random(seed)
    for one in (case(pick) for _ in range(THREADS)):
        if one.start or one.position:
            continue
        plain = build_view(one.messages, {"render": one.render})
        view = build_view(one.messages, {"render": one.render, "clearing": one.clearing})
        assert len(view) == len(plain)
        for index, message in enumerate(view):
            if "The same text stands further below." not in str(message.content):
                continue
            # At least to the length at which it was shown itself, both in the view without a
            # clearing: the placeholder of an image beside it may take some of its room.
            start = plain[index].text[:60]
            below = range(index + 1, len(view))
            later = [_shown(plain[other]) for other in below if start in view[other].text]
            assert max(later) >= _shown(plain[index])


def _shown(message: BaseMessage) -> int:
    """Characters of its own that are shown: the mark of a clipped one has the length of its id."""
    return len(LEFT_OUT.sub("", message.text))
