"""What holds of every count, whatever the text and whatever the message."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.plan import vocabulary
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.estimate import estimate_tokens
from tests.benchmarks.counting_error import CODE, PROSE

EXACT = token_counter("tiktoken")
SPECS = st.sampled_from(["tiktoken", "estimate", "approximate", "chars/4+400"])

anything = st.text(st.characters(exclude_categories=()))  # lone surrogates and NULs included
written = st.sampled_from([*PROSE.values(), *CODE.values()])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)
block_types = st.sampled_from(
    "text image image_url input_image audio input_audio video file document media text-plain "
    "thinking reasoning redacted_thinking tool_use tool_call tool_result server_tool_use "
    "non_standard unheard_of".split()
)
keys = st.sampled_from(
    "text data base64 url image_url source file mime_type media_type detail content summary "
    "thinking reasoning id name input args arguments input_audio toolUse".split()
)
blocks = anything | st.builds(
    lambda kind, rest: {"type": kind, **rest},
    block_types,
    st.dictionaries(keys, json_values, max_size=4),
)
contents = anything | st.lists(blocks, max_size=4)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": anything,
            "args": st.dictionaries(anything, json_values, max_size=3),
            "id": st.sampled_from(["1", "2", None]),
            "type": st.just("tool_call"),
        }
    ),
    max_size=2,
)


@st.composite
def messages(draw: st.DrawFn) -> BaseMessage:
    content: Any = draw(contents)
    name = draw(st.none() | st.just("alice"))
    identity = draw(st.none() | st.sampled_from(["a", "b", "c"]))
    kind = draw(st.sampled_from(["human", "ai", "tool"]))
    if kind == "ai":
        return AIMessage(content=content, tool_calls=draw(calls), name=name, id=identity)
    if kind == "tool":
        return ToolMessage(content=content, tool_call_id="1", name=name, id=identity)
    return HumanMessage(content=content, name=name, id=identity)


@given(anything)
def test_an_estimate_is_never_far_off(text: str) -> None:
    truth, estimate = EXACT.text(text), estimate_tokens(text)
    assert (estimate == 0) == (text == "")
    assert truth / 3 - 5 <= estimate <= 3 * truth + 5


@given(written, st.data())
def test_two_cuts_change_the_estimate_by_three_tokens_at_most(
    text: str, data: st.DataObject
) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    parts = text[:start], text[start:end], text[end:]
    assert abs(sum(map(estimate_tokens, parts)) - estimate_tokens(text)) <= 3


@given(st.lists(written | anything, max_size=4))
def test_joined_texts_cost_about_their_sum(texts: list[str]) -> None:
    joined = estimate_tokens("\n".join(texts))
    apart = sum(map(estimate_tokens, texts))
    assert abs(joined - apart) <= 3 * len(texts)


@given(st.lists(written | anything, min_size=1, max_size=6), st.integers(1, 3))
def test_chunks_of_a_long_text_join_to_the_text(texts: list[str], times: int) -> None:
    text = "".join(texts) * (times * vocabulary.CHUNK_CHARACTERS // (len("".join(texts)) + 1) + 1)
    chunks = list(vocabulary._chunks(text))
    assert "".join(chunks) == text
    assert all(len(chunk) <= vocabulary.CHUNK_CHARACTERS for chunk in chunks)


@given(SPECS, st.lists(messages(), max_size=5))
def test_a_used_counter_counts_as_a_fresh_one(spec: str, history: list[BaseMessage]) -> None:
    used = token_counter(spec, cache_size=4)
    before = copy.deepcopy(history)
    total = used.messages(history)
    assert total == sum(token_counter(spec).message(message) for message in history)
    assert used.messages(reversed(history)) == used.messages(copy.deepcopy(history)) == total
    assert repr(history) == repr(before)


@given(messages(), messages())
def test_a_message_that_takes_anothers_place_is_measured_anew(
    old: BaseMessage, new: BaseMessage
) -> None:
    counter = token_counter("tiktoken")
    new.id = old.id
    counter.message(old)
    assert counter.message(new) == EXACT.message(new) == token_counter("tiktoken").message(new)


@given(st.text(min_size=1), calls, st.lists(blocks, max_size=2))
def test_more_content_never_counts_less(text: str, called: list[Any], more: list[Any]) -> None:
    bare = AIMessage(content=[text], tool_calls=called)
    full = AIMessage(content=[text, *more], tool_calls=called)
    assert EXACT.message(full) >= EXACT.message(bare) >= 4 + EXACT.text(text)
