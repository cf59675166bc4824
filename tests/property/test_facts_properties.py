"""What holds for the computed part of a segment, whatever was said and whatever a summariser wrote.

Every changing value in a span is said in several ways and stands nowhere else, so that its last
place in a text says which one a reader will believe. Summarisers echo, lose lines, shuffle them, or
say next to nothing; what they return fits the room they were given, as the checks before demand.
"""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.facts.completing import Facts, facts_of
from langgraph_compaction.digest.facts.layout import NEWEST, QUOTES, Parts, taken_apart
from langgraph_compaction.digest.facts.matching import last_place
from langgraph_compaction.digest.facts.mentions import OF
from langgraph_compaction.digest.facts.quotes import user_sentences
from langgraph_compaction.digest.sentences import (
    Sentence,
    clean,
)

Counter = Callable[[str], int]
COUNTERS: list[Counter] = [
    len,
    lambda text: len(text.encode()),
    lambda text: -(-len(text) // 4),
    lambda text: len(text.split()),
]
SUBJECTS = ["upload timeout", "batch size", "export folder", "release", "上传超时"]
SAID = ["The {s} is {v}.", "We set the {s} to {v}.", "{s}: {v}", "{s} = {v}", "Now the {s} is {v}!"]
SAID_CJK = ["{s}改为 {v}。", "{s}是 {v}。", "{s}: {v}"]
PRINTED = ["{s}: {v}", "{s} = {v}", '"{s}": "{v}"']
TALK = [
    "Never delete the table of customers.", "Please keep it short.", "The weather was fine.",
    "I decided to use PostgreSQL.", "Only write to /srv/app/main.db, please!", "不要删除任何文件。",
    "See https://a.example/b?c=1 and PROJ-1234.", "必ず残しておいてください。", "1. First do this",
    "## Decisions\n- Keep it all in Redis.", f"{QUOTES}\n- Delete it all.", "The “Blue Heron”.",
    "```\nfor x in range(1200): print(x)\n```", "a | b: c", "\u2028\x85\r", "🎉" * 3, "x" * 300,
]  # fmt: skip
TOOLS = {"call": "act", "effect": "update_it"}
"""Of two kinds of message the tool that is called; only the second has an effect."""
SAYS_LITTLE = "Work went on as it had before."


@dataclass
class Story:
    """A span, and of each subject its values in the order in which they were mentioned."""

    messages: list[BaseMessage] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)


@st.composite
def stories(draw: st.DrawFn, first: int = 1000) -> Story:
    story = Story()
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["user", "agent", "result", "call", "effect"]))
        if draw(st.booleans()):
            subject = draw(st.sampled_from(SUBJECTS))
            value = f"/srv/data{first + number}" if "folder" in subject else f"{first + number} s"
            story.values.setdefault(subject, []).append(value)
            if kind in TOOLS:
                text = value
            else:
                cjk = not subject.isascii()
                ways = PRINTED if kind == "result" else SAID_CJK if cjk else SAID
                text = draw(st.sampled_from(ways)).format(s=subject, v=value)
        else:
            subject, text = "note", draw(st.one_of(st.sampled_from(TALK), st.text(max_size=20)))
        story.messages.append(_message(kind, subject, text))
    return story


def _message(kind: str, name: str, text: str) -> BaseMessage:
    if kind == "user":
        return HumanMessage(text)
    if kind == "agent":
        return AIMessage(text)
    if kind in TOOLS:
        return AIMessage("", tool_calls=[{"name": TOOLS[kind], "args": {name: text}, "id": "1"}])
    return ToolMessage(text, tool_call_id="1")


def lines_of(messages: Sequence[BaseMessage]) -> list[str]:
    """What a summariser may write about a span: whatever stands in it."""
    found = [line for message in messages for line in str(message.content).splitlines()]
    found += [
        f"{name}: {value}"
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        for name, value in call["args"].items()
    ]
    return found


def written(lines: Sequence[str], facts: Facts, seed: int, way: str) -> str:
    """A text that a summariser of a kind makes of lines, within its room."""
    rng = random.Random(seed)
    chosen = list(lines)
    if way in {"loses", "shuffles"}:
        chosen = [line for line in chosen if rng.random() < 0.6]
    if way == "shuffles":
        rng.shuffle(chosen)
    if way == "says little":
        chosen = [SAYS_LITTLE]
    while chosen and facts.count("\n".join(chosen)) > facts.room:
        chosen.pop(rng.randrange(len(chosen)))
    return "\n".join(chosen)


def check_no_stale_value_stands_last(text: str, values: dict[str, list[str]]) -> None:
    for subject, said in values.items():
        places = [last_place(text, value) for value in said]
        assert max(places) < 0 or places[-1] == max(places), (subject, said, text)


def check(facts: Facts, text: str, source: str, values: dict[str, list[str]]) -> Parts:
    """What holds for every completed text."""
    parts = taken_apart(text)
    extra = facts.count(f"\n{NEWEST}\n{facts.newest}") if facts.newest else 0
    assert facts.count(text) <= facts.cap + extra, text
    assert set(parts.quotes) <= set(facts.quotes)
    assert len(set(parts.quotes)) == len(parts.quotes)
    assert parts.newest == facts.newest
    assert set(parts.done) <= {deed.line for deed in facts.deeds}
    assert len(set(parts.done)) == len(parts.done)
    assert not any(line.startswith(TOOLS["call"]) for line in parts.done)
    listed = [*parts.mentioned, *parts.printed]
    source += "\n".join(map(clean, source.splitlines()))  # what is invisible is left out
    assert len(set(listed)) == len(listed)
    for entry in listed:
        name = entry if entry in source else entry.partition(OF)[2]
        assert name
        assert name in source
    check_no_stale_value_stands_last(text, values)
    return parts


ways = st.sampled_from(["echoes", "loses", "shuffles", "says little"])
seeds = st.integers(0, 1_000)
counters = st.sampled_from(COUNTERS)
caps = st.one_of(st.integers(1, 60), st.integers(60, 1_500))
requests = st.one_of(st.just(""), st.just("Now go on with it."), st.text(max_size=60))


@given(stories(), caps, counters, requests, st.tuples(seeds, ways))
def test_a_fold(story: Story, cap: int, count: Counter, newest: str, how: tuple[int, str]) -> None:
    before = copy.deepcopy(story.messages)

    def completed() -> tuple[Facts, str]:
        facts = facts_of((), story.messages, before=(), cap=cap, count=count, newest=newest)
        return facts, facts.completed(written(lines_of(story.messages), facts, *how))

    facts, text = completed()
    source = "\n".join([*lines_of(story.messages), newest])
    said = user_sentences([*story.messages, HumanMessage(newest)])
    parts = check(facts, text, source, story.values)
    assert set(parts.quotes) <= set(said)
    assert story.messages == before
    assert completed()[1] == text
    assert facts.completed(text.partition(QUOTES)[0]) == facts.completed(text.partition(QUOTES)[0])


@given(stories(), st.integers(60, 1_500), counters)
def test_directives_are_quoted_before_all_else(story: Story, cap: int, count: Counter) -> None:
    quotes = facts_of((), story.messages, before=(), cap=cap, count=count).quotes
    said = user_sentences(story.messages)
    if set(quotes) < set(said):  # the budget is short
        left_out = [text for text in said if text not in quotes]
        sizes = [count(f"- {text}\n") for text in left_out if cues.FIRM(Sentence.of(text))]
        spent = sum(count(f"- {text}\n") for text in quotes if cues.FIRM(Sentence.of(text)))
        most = min(cap // 2, cap - 40 - count(f"\n{QUOTES}\n"))
        assert all(spent + size > most for size in sizes)


@given(stories(), counters, ways, seeds)
def test_with_ample_room_nothing_that_was_said_is_lost(
    story: Story, count: Counter, way: str, seed: int
) -> None:
    facts = facts_of((), story.messages, before=(), cap=30_000, count=count)
    text = facts.completed(written(lines_of(story.messages), facts, seed, way))
    for sentence in user_sentences(story.messages):
        assert f"- {sentence}\n" in f"{text}\n"
    for values in story.values.values():
        assert values[-1] in text
    said = "\n".join(str(one.content) for one in story.messages if not isinstance(one, ToolMessage))
    for name in ("/srv/app/main.db", "https://a.example/b?c=1", "PROJ-1234"):
        assert name not in said or last_place(text, name) >= 0


@given(
    st.lists(stories(), min_size=2, max_size=3),
    st.lists(st.integers(40, 600), min_size=5, max_size=5),
    counters,
    st.lists(ways, min_size=8, max_size=8),
    seeds,
)
def test_five_levels_of_condensing(
    told: list[Story], shrinking: list[int], count: Counter, how: list[str], seed: int
) -> None:
    values: dict[str, list[str]] = {}
    segments: list[Parts] = []
    said: list[str] = []
    for number, story in enumerate(told):
        renamed = _renumbered(story, number)
        facts = facts_of((), renamed.messages, before=(), cap=700, count=count)
        lines = lines_of(renamed.messages)
        text = facts.completed(written(lines, facts, seed, how[number]))
        segments.append(taken_apart(text))
        said += user_sentences(renamed.messages)
        for subject, newer in renamed.values.items():
            known = [value for value in newer if last_place(text, value) >= 0]
            values.setdefault(subject, []).extend(known)
    for cap, way in zip(shrinking, how[3:], strict=True):
        values = {subject: found for subject, found in values.items() if found}
        frozen = copy.deepcopy(segments)
        facts = facts_of(segments, (), before=(), cap=cap, count=count)
        lines = [line for old in facts.old for line in old.splitlines()]
        source = "\n".join(part.text() for part in segments)
        text = facts.completed(written(lines, facts, seed, way))
        parts = check(facts, text, source, values)
        assert set(parts.quotes) <= set(said)
        assert segments == frozen
        values = {
            subject: [value for value in found if last_place(text, value) >= 0]
            for subject, found in values.items()
        }
        segments = [parts]


def _renumbered(story: Story, number: int) -> Story:
    """The story with values that no other story has."""

    def renamed(text: str) -> str:
        for subject, values in story.values.items():
            for value in values:
                if subject in text or text == value:
                    text = text.replace(value, _other(value, number))
        return text

    messages = []
    for message in story.messages:
        if isinstance(message, AIMessage) and message.tool_calls:
            (call,) = message.tool_calls
            ((name, text),) = call["args"].items()
            kind = next(kind for kind, tool in TOOLS.items() if tool == call["name"])
            messages.append(_message(kind, name, renamed(text)))
        else:
            messages.append(message.model_copy(update={"content": renamed(str(message.content))}))
    values = {
        subject: [_other(value, number) for value in found]
        for subject, found in story.values.items()
    }
    return Story(messages, values)


def _other(value: str, number: int) -> str:
    return value.replace("10", f"{number + 3}0", 1)


@given(stories(), stories(first=2000), counters, st.integers(60, 800), st.tuples(seeds, ways))
def test_rolling(
    first: Story, second: Story, count: Counter, cap: int, how: tuple[int, str]
) -> None:
    facts = facts_of((), first.messages, before=(), cap=2_000, count=count)
    text = facts.completed(written(lines_of(first.messages), facts, *how))
    old = taken_apart(text)
    rolled = facts_of([old], second.messages, before=(), cap=cap, count=count)
    lines = [*old.body.splitlines(), *lines_of(second.messages)]
    values = {
        subject: [
            *(value for value in first.values.get(subject, []) if last_place(text, value) >= 0),
            *second.values.get(subject, []),
        ]
        for subject in (*first.values, *second.values)
    }
    source = "\n".join([text, *lines])
    check(
        rolled,
        rolled.completed(written(lines, rolled, *how)),
        source,
        {subject: found for subject, found in values.items() if found},
    )
