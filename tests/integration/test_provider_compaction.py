"""A provider that compacts the conversation itself: what it ignores, and what a fold does about it.

OpenAI's and Anthropic's answers then hold a block of type "compaction", and the provider ignores
what stands before it, a digest included.
"""

import copy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import CompactionNode, model_view, pin
from tests.faults.threads import agent, human
from tests.support.folding import Recorder, node, state_of
from tests.support.payloads import (
    PayloadKind,
    anthropic_payload,
    openai_responses_payload,
    provider_violations,
)
from tests.support.validity import violations

OPENAI = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA" + "b3BhcXVl" * 40}
ANTHROPIC = {"type": "compaction", "content": "The user restores a clock. Springs 1 to 9 are done."}
BOXED = {"type": "non_standard", "value": OPENAI}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {"type": "text", "text": "The tenth spring is in. " * 20}
KINDS: list[tuple[Any, PayloadKind]] = [
    (OPENAI, "openai_responses"), (BOXED, "openai_responses"), (ANTHROPIC, "anthropic"),
]  # fmt: skip


def compacting(*blocks: Any, **more: Any) -> AIMessage:
    return AIMessage(list(blocks), id="compacting", **more)


def thread(*blocks: Any) -> list[BaseMessage]:
    """Long turns, an answer with which the provider compacted them, and short ones after it."""
    return [
        SystemMessage("You restore clocks.", id="system"),
        human("h0", words=300), agent("a0", words=300), human("h1", words=300),
        compacting(*blocks), human("h2", words=30), agent("a1", words=30), human("h3", words=30),
    ]  # fmt: skip


def later() -> list[BaseMessage]:
    """What makes a fold due again."""
    return [agent("a2", words=800), human("h4"), agent("a3"), human("h5")]


def tokens_of(compact: CompactionNode, messages: list[BaseMessage], record: Any = None) -> int:
    return compact.measure(state_of(messages, record)).tokens


@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_what_the_provider_ignores_is_not_counted(block: Any, kind: PayloadKind) -> None:
    compact, messages = node(calibrate=False), thread(block, SAID)
    whole = tokens_of(compact, [m for m in messages if m.id != "compacting"] + [compacting(SAID)])
    found = compact.measure(state_of(messages))
    assert found.tokens < whole / 3
    assert found.counted == found.tokens
    assert found.tokens == tokens_of(compact, [messages[0], *messages[4:]])
    # It is sent all the same: the provider decides what it ignores.
    assert compact.view(state_of(messages)) == messages
    assert provider_violations(kind, messages) == []


def test_the_newest_of_several_counts() -> None:
    compact, messages = node(calibrate=False), thread(OPENAI, SAID)
    messages[2] = AIMessage([OPENAI, SAID], id="a0")
    assert tokens_of(compact, messages) == tokens_of(compact, [messages[0], *messages[4:]])


def reporting(message: BaseMessage, tokens: int) -> BaseMessage:
    usage = {"input_tokens": tokens, "output_tokens": 9, "total_tokens": tokens + 9}
    return message.model_copy(update={"usage_metadata": usage})


def test_reports_of_the_conversation_before_are_not_believed() -> None:
    """The call that compacted reported all that it still read; the next one what is left."""
    compact, messages = node(), thread(OPENAI, SAID)
    plain = tokens_of(compact, messages)
    messages[2] = reporting(messages[2], 40_000)
    messages[4] = reporting(messages[4], 50_000)
    found = compact.measure(state_of(messages))
    assert (found.tokens, found.reported) == (plain, None)
    messages[6] = reporting(messages[6], 2_000)
    found = compact.measure(state_of(messages))
    read_then = tokens_of(node(calibrate=False), [messages[0], *messages[4:6]])
    assert (found.tokens, found.reported) == (2_000 + plain - read_then, 2_000)


def folded(compact: CompactionNode, messages: list[BaseMessage]) -> dict[str, Any]:
    state = state_of(messages)
    return state | compact.invoke(state)


@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_a_fold_of_what_is_ignored_is_not_made(block: Any, kind: PayloadKind) -> None:
    """The item covers all that the digest would; nobody would read it."""
    recorder = Recorder()
    compact = node(recorder, trigger=("messages", 8), keep=("messages", 4), calibrate=False)
    messages = thread(block, SAID)
    told = compact.explain(state_of(messages))
    assert (told.need, told.action) == ("soft", "skip")
    assert "the provider ignores" in told.reason
    assert "compaction" not in compact.invoke(state_of(messages))
    assert recorder.prompts == []


@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_behind_a_fold_that_takes_the_item_all_is_read_again(block: Any, kind: PayloadKind) -> None:
    recorder = Recorder()
    compact = node(recorder, keep=("messages", 2), calibrate=False)
    messages = [*thread(block, SAID), *later()]
    before = copy.deepcopy(messages)
    state = folded(compact, messages)
    assert state["compaction"]["segments"]
    view = compact.view(state)
    assert "compacting" not in {message.id for message in view}
    assert compact.measure(state).counted == sum(tokens_of(compact, [one]) for one in view)
    assert messages == before
    assert violations(view) == []
    assert provider_violations(kind, view) == []
    # What the provider ignored was read by the summariser, and so was its own text.
    assert "a0-word7 " in recorder.read
    assert ("Springs 1 to 9" in recorder.read) == (block is ANTHROPIC)
    assert "b3BhcXVl" not in recorder.read

    # An item that comes after the fold stays; the digest before it counts nothing.
    newer = compacting(block, SAID).model_copy(update={"id": "newer"})
    state = state_of([*messages, newer, human("h6")], state["compaction"])
    assert [m.content for m in compact.view(state) if m.id == "newer"] == [[block, SAID]]
    assert compact.measure(state).tokens < tokens_of(compact, [messages[0], newer]) + 200


@pytest.mark.parametrize("rest", [[], [REASONING]], ids=["nothing", "reasoning"])
@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_a_pinned_message_of_a_covered_span_loses_its_item(
    block: Any, kind: PayloadKind, rest: list[Any]
) -> None:
    """Else the provider would ignore the digest, which covers more than the item does."""
    if rest and kind == "anthropic":
        rest = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
    messages = [*thread(*rest, block), *later()]
    messages[4] = pin(messages[4])
    compact = node(keep=("messages", 2), calibrate=False)
    state = folded(compact, messages)
    assert state["compaction"]["segments"]
    (shown,) = [message for message in compact.view(state) if message.id == "compacting"]
    assert shown.text.startswith("[The provider compacted")
    assert provider_violations(kind, compact.view(state)) == []
    assert compact.measure(state).tokens == sum(
        tokens_of(compact, [one]) for one in compact.view(state)
    )


def test_a_pinned_message_keeps_what_else_it_says() -> None:
    call = {"name": "look", "args": {}, "id": "c", "type": "tool_call"}
    messages = [*thread(OPENAI), *later()]
    for blocks, calls in (([OPENAI, SAID], []), ([OPENAI], [call])):
        messages[4] = pin(compacting(*blocks, tool_calls=calls))
        state = folded(node(keep=("messages", 2)), messages)
        assert state["compaction"]["segments"]
        (shown,) = [m for m in model_view(state) if m.id == "compacting"]
        assert (shown.content, shown.tool_calls) == (blocks[1:], calls)  # type: ignore[attr-defined]
        assert violations(model_view(state)) == []


def test_a_failed_compaction_is_none() -> None:
    """Anthropic's API takes a block without content for nothing."""
    failed = {"type": "compaction", "content": None}
    compact = node(calibrate=False)
    plain = thread(SAID)
    assert tokens_of(compact, thread(failed, SAID)) >= tokens_of(compact, plain)
    # And one behind a good one hides no more than that does.
    messages = thread(ANTHROPIC, SAID)
    messages[6] = AIMessage([failed, SAID], id="a1")
    assert tokens_of(compact, messages) > tokens_of(compact, [messages[0], *messages[5:]])


def down(_: list[BaseMessage]) -> str:
    raise RuntimeError("down")


def test_neither_a_clearing_nor_a_failure_brings_back_what_is_ignored() -> None:
    """A soft visit ends no run, and makes no call larger."""
    tools: list[BaseMessage] = []
    for n in range(12):
        call = {"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}
        tools.append(AIMessage("", tool_calls=[call], id=f"t{n}"))
        tools.append(ToolMessage(f"r{n} " * 4_000, tool_call_id=f"c{n}", id=f"r{n}"))
    item = compacting(OPENAI, SAID)
    messages = [human("h0"), *tools, item, human("h1"), *tools_named("x", tools[:6]), human("h2")]
    for model in (down, Recorder()):
        compact = node(model, context_window=20_000, trigger=("tokens", 6_000), calibrate=False)
        state = state_of(messages)
        size = compact.measure(state).tokens
        for _ in range(3):
            state |= compact.invoke(state)
            assert compact.measure(state).tokens <= size
            assert violations(compact.view(state)) == []


def tools_named(name: str, tools: list[BaseMessage]) -> list[BaseMessage]:
    """The same calls and results, shorter, under other ids."""
    return [
        one.model_copy(update={"id": f"{name}{one.id}", "content": str(one.content)[:9_000]})
        for one in tools
    ]


def test_a_report_with_the_first_message_is_of_all_that_was_read_before() -> None:
    first = reporting(compacting(OPENAI, SAID), 56_000)
    compact = node()
    messages = [first, human("h0")]
    assert compact.measure(state_of(messages)).reported is None


def test_the_payloads_have_the_items_where_langchain_puts_them() -> None:
    messages = [HumanMessage("Go on."), compacting(OPENAI, SAID), HumanMessage("And then?")]
    items = openai_responses_payload(messages)["input"]
    assert [item["type"] for item in items if "encrypted_content" in item] == ["compaction"]
    messages[1] = compacting(ANTHROPIC, SAID)
    blocks = anthropic_payload(messages)["messages"][1]["content"]
    assert blocks[0] == ANTHROPIC
