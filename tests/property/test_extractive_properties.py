"""What holds for the model-free digest of any span: budget, shape, safety, determinism.

The texts are drawn from what conversations contain and digests must not: terminal escapes, line
separators, code fences, tool protocol, base64, scripts of all kinds, endless runs.
"""

import base64
import copy
import re
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.digest.extractive import ExtractiveSummarizer
from langgraph_compaction.digest.prompts import SECTIONS
from langgraph_compaction.digest.sentences import (
    sampled,
    sentences,
)
from langgraph_compaction.digest.verifying import Reply, verify

COUNTERS: list[Callable[[str], int]] = [
    len,
    lambda text: len(text.encode()),
    lambda text: -(-len(text) // 4),
    lambda text: len(text.split()),
    lambda text: 7 + len(text) // 3,
]

NASTY = [
    "\x1b[31mred\x1b[0m", "\u2028", "\x85", "\x00\x08", "\u202e\ufeff\u200b", "\r\n", "\t",
    "\ud83d", "```", "```python\nx = 1\n```", "~~~", "{}();" * 20, "<transcript>",
    "<|im_start|>system",
    '<tool_call>{"name": "x", "arguments": {}}</tool_call>', '<invoke name="x">', "[TOOL_CALLS]",
    "data:image/png;base64," + "iVBORw0KGgo" * 20, "https://a.example/b?c=1#d", "/srv/app/main.py",
    "## Goal\n- nothing", "- [ ] open point", "v1.2.3", "100 %", "x" * 500, "。" * 50, "..." * 30,
    "不要删除文件。", "必ず残すこと。", "می‌خواهم", "👩‍👩‍👧", "Never delete it.",
    "I will call you tomorrow.", "because of the cold", "Error: no such file",
]  # fmt: skip

texts = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=40)), max_size=12).map(" ".join)
values = st.one_of(texts, st.integers(), st.none(), st.lists(texts, max_size=2))
calls = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["bash", "write_file", "read_file", "x\u2028y", "```"]),
        "args": st.dictionaries(st.text(max_size=8), values, max_size=3),
        "id": st.sampled_from(["1", "2", ""]),
    }
)
blocks = st.one_of(
    texts.map(lambda text: {"type": "text", "text": text}),
    st.just({"type": "image", "mime_type": "image/png", "base64": "iVBORw0KGgo=" * 30}),
    st.just({"type": "reasoning", "reasoning": "hidden reasoning"}),
)
contents = st.one_of(texts, st.lists(blocks, max_size=3))
messages: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(HumanMessage, content=contents),
    st.builds(SystemMessage, content=texts),
    st.builds(AIMessage, content=contents, tool_calls=st.lists(calls, max_size=2)),
    st.builds(
        ToolMessage,
        content=contents,
        tool_call_id=st.sampled_from(["1", "2", ""]),
        status=st.sampled_from(["success", "error"]),
    ),
)
spans = st.lists(messages, min_size=1, max_size=12)
budgets = st.integers(min_value=40, max_value=2_000)

HEADINGS = {f"## {name}" for name in SECTIONS}
UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ufeff\ud800-\udfff]")
PROTOCOL = re.compile(
    r"</?tool_call|<\||<invoke|\[TOOL_CALLS\]|\"arguments\":|```|~~~", re.IGNORECASE
)


def check_shape(text: str) -> None:
    """Every line is the note, empty, a heading in its order, or a bullet that says something."""
    note, *lines = text.split("\n")
    assert note.startswith("Extracts")
    assert "model" in note
    assert [line for line in lines if line in HEADINGS] == [
        f"## {name}" for name in SECTIONS if f"## {name}" in lines
    ]
    for line in lines:
        assert not line or line in HEADINGS or re.match(r"- \S", line), repr(line)
    assert not UNSEEN.search(text)
    assert not PROTOCOL.search(text)
    assert "iVBORw0KGgoiVBORw0KGgo" not in text
    assert "hidden reasoning" not in text
    text.encode()


@given(spans, budgets, st.sampled_from(COUNTERS))
def test_a_digest_of_any_span(
    span: list[BaseMessage], max_tokens: int, count: Callable[[str], int]
) -> None:
    summarizer = ExtractiveSummarizer()
    before = copy.deepcopy(span)
    text = summarizer.summarize(span, max_tokens=max_tokens, count=count)
    assert count(text) <= max_tokens
    check_shape(text)
    assert span == before
    assert summarizer.summarize(before, max_tokens=max_tokens, count=count) == text


@given(spans)
def test_a_digest_passes_the_checks_that_a_models_text_must_pass(span: list[BaseMessage]) -> None:
    text = ExtractiveSummarizer().summarize(span, max_tokens=800, count=len)
    verdict = verify(
        Reply(text, verbatim=True), source=[], previous=[], source_tokens=10_000, max_tokens=800,
        count=len, sections=True,
    )  # fmt: skip
    assert verdict.problem is None
    assert verdict.missing == ()


@given(
    st.lists(st.one_of(texts, spans), min_size=1, max_size=4), budgets, st.sampled_from(COUNTERS)
)
def test_a_digest_of_any_digests(
    sources: list[str | list[BaseMessage]], max_tokens: int, count: Callable[[str], int]
) -> None:
    summarizer = ExtractiveSummarizer()
    digests = [
        source
        if isinstance(source, str)
        else summarizer.summarize(source, max_tokens=900, count=len)
        for source in sources
    ]
    text = summarizer.condense(digests, max_tokens=max_tokens, count=count)
    assert count(text) <= max_tokens
    check_shape(text)
    assert summarizer.condense(digests, max_tokens=max_tokens, count=count) == text


@given(
    st.binary(min_size=90, max_size=4_000),
    st.sampled_from(["", "word ", "data:x/y;base64,", "/p/"]),
)
def test_data_never_gets_through(data: bytes, before: str) -> None:
    payload = base64.b64encode(data).decode()
    span = [
        HumanMessage(f"Never lose this file here: {before}{payload} and go on."),
        AIMessage(payload, tool_calls=[{"name": "write", "args": {"body": payload}, "id": "1"}]),
        ToolMessage(f"{before}{payload}\n{payload}", tool_call_id="1"),
    ]
    text = ExtractiveSummarizer().summarize(span, max_tokens=3_000, count=len)
    assert not any(payload[at : at + 40] in text for at in range(len(payload) - 40))


plain = st.text(st.sampled_from("abc de. fg! hi? 日本。中"), max_size=200)


@given(plain, st.integers(min_value=40, max_value=120))
def test_sentences_lose_nothing_of_plain_text(text: str, limit: int) -> None:
    parts = list(sentences(text, limit))
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(
    plain,
    plain,
    st.sampled_from(["https://a.example/b.c?d=e!f", "/srv/v1.2/main.py", "v1.2.3-rc.1"]),
)
def test_names_are_never_cut(before: str, after: str, name: str) -> None:
    parts = list(sentences(f"{before} {name} {after}", 120))
    assert any(name in part for part in parts)


@given(
    st.lists(
        st.sampled_from([
            "word", "src/__init__.py", "__all__", "a__b__c", "**/*.py", "lib/**", "**kwargs",
            "2**8", "v1.2.3", "0.5", "List<int>", "/users/<id>",
        ]),
        max_size=12,
    )
)  # fmt: skip
def test_names_pass_unchanged(names: list[str]) -> None:
    text = " word ".join(["So", *names, "end"])
    assert list(sentences(text, 300)) == [text]


@given(st.decimals(min_value=0, max_value=9_999, places=2), st.integers(0, 3))
def test_a_number_at_its_end_ends_a_sentence(number: Decimal, places: int) -> None:
    parts = [f"The share is {round(number, places)}.", "Next comes the rest."]
    assert list(sentences(" ".join(parts), 120)) == parts


@given(texts, st.integers(min_value=10, max_value=400))
def test_a_sample_is_no_longer_than_asked_for(text: str, size: int) -> None:
    assert len(sampled(text, size)) <= max(len(text) if len(text) <= size else 0, size + 1)
