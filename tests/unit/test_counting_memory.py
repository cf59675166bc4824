"""Every message is measured once, anew where it was edited, and the memory of it is bounded."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.plan.counting import TokenCounter, token_counter
from tests.unit.counted import CALL, WORDS, tokens


class Stub:
    """Counts a text as its length and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def test_every_message_is_measured_once() -> None:
    count = Stub()
    counter = TokenCounter("stub", count)
    messages: list[BaseMessage] = []
    for turn in range(50):
        messages.append(HumanMessage(f"text {turn}", id=f"h{turn}"))
        messages.append(AIMessage([{"type": "text", "text": f"answer {turn}"}], id=f"a{turn}"))
        counter.messages(messages)
        counter.messages([message.model_copy(deep=True) for message in messages])
    assert len(count.asked) == len(set(count.asked)) == 100


CHANGES: list[tuple[str, Callable[[AIMessage], object]]] = [
    ("content", lambda m: setattr(m, "content", "another text")),
    ("content's block", lambda m: setattr(m, "content", [{"type": "text", "text": WORDS}])),
    ("name", lambda m: setattr(m, "name", "bob")),
    ("arguments in place", lambda m: m.tool_calls[0]["args"].update(path="/another/path")),
    ("nested arguments", lambda m: m.tool_calls[0]["args"]["deep"].append(WORDS)),
    ("tool name", lambda m: m.tool_calls[0].update({"name": "another_tool"})),
    ("no calls", lambda m: setattr(m, "tool_calls", [])),
    (
        "invalid calls",
        lambda m: m.invalid_tool_calls.append(
            {"name": "f", "args": "{", "id": "2", "error": None, "type": "invalid_tool_call"}
        ),
    ),
]


@pytest.mark.parametrize("change", [change for _, change in CHANGES], ids=[c[0] for c in CHANGES])
def test_an_edited_message_is_measured_anew(change: Callable[[AIMessage], object]) -> None:
    call = {"name": "f", "args": {"path": "/p", "deep": [1, {"x": None}]}, "id": "1"}
    message = AIMessage("text", id="same", tool_calls=[call])
    counter = token_counter("tiktoken")
    before = counter.message(message)
    change(message)
    after = counter.message(message)
    assert after == token_counter("tiktoken").message(message)
    assert after != before


def test_legacy_calls_that_appear_are_measured() -> None:
    message = AIMessage("", id="same")
    counter = token_counter("tiktoken")
    before = counter.message(message)
    message.additional_kwargs["function_call"] = {"name": "f", "arguments": "{}"}
    assert counter.message(message) == before + 9 + tokens("f", "{}")


def test_the_memory_holds_no_text() -> None:
    counter = token_counter("tiktoken")
    secret = "a secret that must not outlive its message " * 3
    counter.messages(
        [
            HumanMessage(secret, id="h"),
            AIMessage(
                [{"type": "text", "text": secret}], tool_calls=[CALL | {"args": {"k": secret}}]
            ),
            ToolMessage(secret, tool_call_id="1", id="t"),
        ]
    )
    pending: list[Any] = [counter]
    seen: set[int] = set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        assert not (isinstance(thing, str) and "secret" in thing)
        pending += gc.get_referents(thing)
    assert len(seen) > 10


def test_the_memory_is_bounded_and_keeps_what_is_in_use() -> None:
    count = Stub()
    counter = TokenCounter("stub", count, cache_size=100)
    in_use = [HumanMessage(f"in use {n}", id=f"u{n}") for n in range(20)]
    for round_ in range(30):
        counter.messages(in_use)
        counter.messages([HumanMessage(f"once {round_} {n}") for n in range(20)])
        assert len(counter._young) + len(counter._old) <= 100
    assert sum(text.startswith("in use") for text in count.asked) == 20


def test_the_smallest_memory_still_counts_right() -> None:
    counter = token_counter("estimate", cache_size=0)
    messages = [HumanMessage(WORDS), HumanMessage("b"), HumanMessage(WORDS)]
    assert counter.messages(messages) == token_counter("estimate").messages(messages)


def test_many_threads_count_alike() -> None:
    counter = token_counter("tiktoken", cache_size=64)
    messages = [AIMessage(f"{WORDS} {n}", id=str(n), tool_calls=[CALL]) for n in range(200)]
    expected = token_counter("tiktoken").messages(messages)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: counter.messages(messages), range(16))) == {expected}
