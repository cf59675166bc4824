"""Messages that an application puts into the state before the end of what is covered.

A context note at the head of the list, an answer that came late: the digest stays, what was put in
is shown, and little besides. Nothing is hidden that no digest covers, however often it happens
between folds, and whatever a person restores.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction import merge_compaction, model_view, restore
from langgraph_compaction.view.anchors import locate
from tests.support.folding import Recorder, State, chat, node, state_of


def new(number: int) -> BaseMessage:
    """A message that is put in; every word in it is its own."""
    return HumanMessage(f"message n{number} " + f"wn{number} " * 40, id=f"n{number}")


def name_of(message: BaseMessage) -> str:
    return str(message.content).split()[1]


class Thread:
    """A state that grows, is folded, and has messages put into it."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.node = node(self.recorder, max_digest_tokens=30_000, clear=False)
        self.state: State = state_of([])
        self.made = 0
        self.covered: list[set[str]] = []
        """The messages that each segment was made from."""

    def grow(self, count: int) -> None:
        messages = self.state["messages"]
        start = sum(name_of(message).isdecimal() for message in messages)
        self.state = {**self.state, "messages": [*messages, *chat(count, start=start)]}
        before = len(self.recorder.prompts)
        self.state |= self.node.invoke(self.state)
        for prompt in self.recorder.prompts[before:]:
            read = {name_of(m) for m in self.state["messages"] if f"w{name_of(m)} w" in prompt}
            self.covered.append(read)
        # No more than one prompt a segment: none was condensed or asked for twice.
        assert len(self.covered) == len(self.segments)

    def put_in(self, place: int) -> None:
        self.made += 1
        messages = list(self.state["messages"])
        messages.insert(min(place, len(messages)), new(self.made))
        self.state = {**self.state, "messages": messages}

    def restore(self) -> None:
        update: Any = restore(self.state)
        record = merge_compaction(self.state["compaction"], update["compaction"])
        self.state = {**self.state, "compaction": record}
        self.covered = self.covered[: len(self.segments)]

    @property
    def segments(self) -> list[Any]:
        return list(self.state["compaction"].get("segments", []))

    @property
    def hidden(self) -> set[str]:
        seen = {message.id for message in model_view(self.state)}
        return {name_of(message) for message in self.state["messages"] if message.id not in seen}

    def check(self) -> None:
        assert self.hidden <= set().union(*self.covered)


STEP = st.one_of(
    st.tuples(st.just("grow"), st.integers(2, 20)),
    st.tuples(st.just("put in"), st.integers(0, 40)),
    st.tuples(st.just("restore"), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEP, max_size=12))
def test_nothing_is_hidden_that_no_digest_covers(steps: list[tuple[str, int]]) -> None:
    thread = Thread()
    thread.grow(24)
    for step, number in steps:
        if step == "grow":
            thread.grow(number)
        elif step == "put in":
            thread.put_in(number)
        elif thread.segments:
            thread.restore()
        thread.check()


@pytest.mark.parametrize("length", [24, 60, 200])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("count", [1, 3])
def test_what_is_put_in_is_shown_and_little_besides(length: int, share: float, count: int) -> None:
    thread = Thread()
    thread.grow(length)
    anchor, before = locate(thread.state["messages"], thread.state["compaction"]), thread.hidden
    for _ in range(count):
        thread.put_in(int(share * anchor.boundary))
    view = model_view(thread.state)
    assert any(message.id == "summarization" for message in view)
    assert thread.hidden < before or share == 0.0
    assert {f"n{n + 1}" for n in range(count)} <= {str(message.id) for message in view}
    # A stretch between two messages whose ids the record has: a twelfth of the covered range.
    assert len(before - thread.hidden) <= length / 12 + 1


def test_each_is_folded_once_more_at_most_and_then_stays_folded() -> None:
    thread = Thread()
    thread.grow(24)
    for place in (0, 9):
        thread.put_in(place)
    for _ in range(6):
        thread.grow(12)
    read = [name for one in thread.covered for name in one]
    twice = {name for name in read if read.count(name) > 1}
    assert len(twice) <= 3
    assert all(read.count(name) == 2 for name in twice)
    assert {"n1", "n2"} <= thread.hidden
    view = model_view(thread.state)
    assert len(view) < 30
    assert next(m for m in view if isinstance(m, AIMessage)).id != "m1"


@pytest.mark.parametrize("place", [0, 5, 19, 30])
def test_a_restore_shows_what_the_dropped_segment_covered_and_little_besides(place: int) -> None:
    thread = Thread()
    thread.grow(24)
    thread.grow(24)
    assert len(thread.segments) == 2
    for _ in range(4):
        thread.put_in(place)
    thread.restore()
    assert thread.hidden <= thread.covered[0]
    assert len(thread.covered[0] - thread.hidden) <= (5 if place else 0)
    thread.put_in(place)
    thread.grow(2)
    assert len(thread.segments) == 2
    # With its next fold it is covered as a whole, and its first messages do not come back.
    assert not thread.covered[0] - thread.hidden


def test_a_pair_of_anchors_in_another_order_of_messages_proves_nothing() -> None:
    thread = Thread()
    thread.grow(24)
    messages = thread.state["messages"]
    for changed in (
        [new(1), messages[2], messages[1], messages[0], *messages[3:]],
        [*messages[::-1], *messages[-3:]],
    ):
        seen = {message.id for message in model_view({**thread.state, "messages": changed})}
        assert seen >= {message.id for message in changed}
