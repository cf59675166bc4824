"""Every message of a span reaches a summariser, and every word of it but a clamped result's middle.

Unique words are planted everywhere and looked for in the prompts. Summarisers with a window of
4,000 tokens are the hard case: spans, messages and digests so far are longer than a call.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, ModelTier, merge_compaction
from tests.support import folding
from tests.support.folding import Recorder

CLAMP = 2_000
PLANTED = re.compile(r"\bq\d+z\b")
BARE = "## Goal\nRead.\n## State now\nUnder way.\n## Next step\nGo on."


class Words:
    """Unique words, counted up."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, count: int) -> str:
        start, self.number = self.number, self.number + count
        return " ".join(f"q{n}z" for n in range(start, self.number))


class Reader(Recorder):
    """Of it is asked what it was shown; one that is narrow overflows where that is too long."""

    def __init__(self, answer: str = BARE, narrow: int | None = None) -> None:
        super().__init__(lambda _: answer)
        self.narrow = narrow

    def __call__(self, messages: list[BaseMessage]) -> str:
        if self.narrow and len(str(messages[-1].content)) > self.narrow:
            raise ContextOverflowError("too long")
        return super().__call__(messages)

    @property
    def seen(self) -> set[str]:
        return {word for text in self.prompts for word in PLANTED.findall(text)}


def call(n: int, arguments: Any, *results: str) -> list[BaseMessage]:
    made: list[Any] = [
        {"name": "look", "args": arguments, "id": f"c{n}-{at}", "type": "tool_call"}
        for at in range(len(results))
    ]
    answers = [
        ToolMessage(text, tool_call_id=f"c{n}-{at}", id=f"t{n}-{at}")
        for at, text in enumerate(results)
    ]
    return [AIMessage("", tool_calls=made, id=f"a{n}"), *answers]


def histories() -> Iterator[tuple[str, list[BaseMessage]]]:
    words = Words()
    yield "a long span", [AIMessage(words(150), id=f"m{n}") for n in range(80)]
    yield "long user text", [HumanMessage(words(15_000), id="u")]
    yield "long agent text", [AIMessage(words(15_000), id="u")]
    yield "text without line ends or spaces", [AIMessage(words(8_000).replace(" ", ","), id="u")]
    yield "long arguments", call(1, {"text": words(15_000), "list": [words(500)] * 2}, "fine")
    yield (
        "long error",
        [
            AIMessage("", tool_calls=[{"name": "run", "args": {}, "id": "e"}], id="a"),
            ToolMessage(words(9_000), tool_call_id="e", id="t", status="error"),
        ],
    )
    yield "parallel results", call(2, {}, *(words(40) for _ in range(120)))
    yield (
        "blocks",
        [HumanMessage([{"type": "text", "text": words(2_000)} for _ in range(4)], id="b")],
    )


def thread(odd: Sequence[BaseMessage]) -> list[BaseMessage]:
    task = HumanMessage("Read everything.", id="task")
    rest = [AIMessage(f"Part {n} is read. " * 20, id=f"r{n}") for n in range(8)]
    return [
        task,
        AIMessage("I begin.", id="begin"),
        *odd,
        *rest[:5],
        HumanMessage("Go on.", id="n"),
        *rest[5:],
    ]


def node(model: Any, **values: Any) -> CompactionNode:
    settings: dict[str, Any] = {
        "context_window": 400_000, "trigger": ("tokens", 2_000), "keep": ("messages", 3),
        "result_chars": CLAMP,
    }  # fmt: skip
    return folding.node(model, **(settings | values))


def planted(messages: Sequence[BaseMessage]) -> set[str]:
    said = [str((one.content, getattr(one, "tool_calls", ()))) for one in messages]
    return {word for text in said for word in PLANTED.findall(text)}


CASES = dict(histories())
each_mode = pytest.mark.parametrize("mode", ["chain", "rolling"])


@pytest.mark.parametrize(
    ("window", "mode"), [(None, "chain"), (4_000, "chain"), (4_000, "rolling")]
)
@pytest.mark.parametrize("case", CASES)
def test_every_message_and_every_word_is_in_some_prompt(
    case: str, window: int | None, mode: str
) -> None:
    recorder = Reader()
    messages = thread(CASES[case])
    update = node(ModelTier(recorder, window=window), digest=mode).invoke(
        {"messages": messages, "compaction": {}}
    )
    last = update["compaction"]["last_summarized_index"]
    hidden = [
        (at, message)
        for at, message in enumerate(messages[: last + 1])
        if message.id not in update["compaction"]["kept_ids"]
    ]
    assert {one.id for one in CASES[case]} <= {message.id for _, message in hidden}
    shown = "\n".join(recorder.prompts)
    for at, _ in hidden:
        assert f' n="{at}"' in shown
    assert recorder.seen == planted(CASES[case])
    if window:
        assert len(recorder.prompts) > 1


@pytest.mark.parametrize("window", [None, 4_000])
def test_of_a_long_result_head_tail_and_the_size_of_its_middle_are_shown(
    window: int | None,
) -> None:
    recorder = Reader()
    text = Words()(15_000)
    messages = thread(call(1, {}, text))
    node(ModelTier(recorder, window=window)).invoke({"messages": messages, "compaction": {}})
    (said,) = re.findall(
        r"\[\.\.\. ([\d,]+) characters left out \.\.\.\]", "\n".join(recorder.prompts)
    )
    assert int(said.replace(",", "")) == len(text) - CLAMP
    head = CLAMP * 2 // 3
    ends = f"{text[:head].rpartition(' ')[0]} {text[head - CLAMP :].partition(' ')[2]}"
    assert set(ends.split()) <= recorder.seen


@pytest.mark.parametrize("window", [None, 4_000])
def test_without_a_clamp_a_long_result_is_shown_in_full(window: int | None) -> None:
    recorder = Reader()
    messages = thread(call(1, {}, Words()(15_000)))
    node(ModelTier(recorder, window=window), result_chars=0).invoke(
        {"messages": messages, "compaction": {}}
    )
    assert recorder.seen == planted(messages)


def test_a_summariser_that_overflows_reads_smaller_pieces_and_misses_nothing() -> None:
    recorder = Reader(narrow=9_000)
    messages = thread([HumanMessage(Words()(6_000), id="u")])
    update = node(recorder).invoke({"messages": messages, "compaction": {}})
    assert update["compaction"]["segments"]
    assert recorder.seen == planted(messages)


@each_mode
def test_every_line_of_an_earlier_record_reaches_who_replaces_it(mode: str) -> None:
    words = Words()
    lines = "\n".join(f"- {words(6)} was found in part {n}." for n in range(200))
    recorder = Reader(f"{BARE}\n## Findings\n{lines}")
    roomy = node(recorder, max_digest_tokens=20_000, max_segment_tokens=6_000, segment_share=0.9)
    state: dict[str, Any] = {"messages": thread([AIMessage("word " * 9_000, id="w0")])}
    state["compaction"] = roomy.invoke({**state, "compaction": {}})["compaction"]
    again = Reader()
    tight = node(ModelTier(again, window=4_000), max_digest_tokens=1_000, digest=mode)
    for number in range(3):
        more = [AIMessage(f"More of part {number} is read. " * 400, id=f"x{number}")]
        state["messages"] = [*state["messages"], *more, *thread([])[2:]]
        state["messages"] = [
            one.model_copy(update={"id": f"y{at}"}) if at > 12 else one
            for at, one in enumerate(state["messages"])
        ]
        update = tight.invoke(state)
        state["compaction"] = merge_compaction(state["compaction"], update.get("compaction"))
    assert set(PLANTED.findall(lines)) <= again.seen
