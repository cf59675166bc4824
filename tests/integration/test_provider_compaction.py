"""A provider that compacts the conversation itself: what it ignores, and what a fold does about it.

OpenAI's and Anthropic's answers then hold a block of type "compaction", and the provider ignores
what stands before it, a digest included.
"""

import copy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraph_compaction import CompactionNode, model_view
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


@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_a_fold_takes_the_items_out_of_what_stays(block: Any, kind: PayloadKind) -> None:
    """Else the provider would ignore the digest."""
    recorder = Recorder()
    compact = node(recorder, trigger=("messages", 8), keep=("messages", 4), calibrate=False)
    messages = thread(block, SAID)
    before = copy.deepcopy(messages)
    state = state_of(messages)
    state |= compact.invoke(state)
    assert state["compaction"]["segments"]
    view = compact.view(state)
    (shown,) = [message for message in view if message.id == "compacting"]
    assert shown.content == [SAID]
    assert messages == before
    assert violations(view) == []
    assert provider_violations(kind, view) == []
    # What it ignored was folded, too: the digest stands for it now, and is counted.
    assert "w300" not in "".join(m.text for m in view)
    assert "message" in recorder.read
    assert compact.measure(state).counted == sum(
        compact.measure(state_of([m])).counted for m in view
    )
    # An item that comes after the fold stays, and hides the digest from the count again.
    messages = [*state["messages"], compacting(block, SAID).model_copy(update={"id": "later"})]
    later = state_of([*messages, human("h4")], state["compaction"])
    assert [m.content for m in compact.view(later) if m.id == "later"] == [[block, SAID]]
    assert (
        tokens_of(compact, later["messages"], state["compaction"]) < compact.measure(state).tokens
    )


@pytest.mark.parametrize(("block", "kind"), KINDS)
def test_a_message_that_was_nothing_but_an_item_says_so(block: Any, kind: PayloadKind) -> None:
    compact = node(trigger=("messages", 8), keep=("messages", 4))
    state = state_of(thread(block))
    state |= compact.invoke(state)
    (shown,) = [message for message in compact.view(state) if message.id == "compacting"]
    assert shown.text.startswith("[The provider compacted")
    assert provider_violations(kind, compact.view(state)) == []


def test_calls_beside_an_item_stay() -> None:
    call = {"name": "look", "args": {}, "id": "c", "type": "tool_call"}
    messages = thread(OPENAI)
    messages[4] = compacting(OPENAI, tool_calls=[call])
    compact = node(trigger=("messages", 8), keep=("messages", 4))
    state = state_of(messages)
    state |= compact.invoke(state)
    (shown,) = [m for m in compact.view(state) if isinstance(m, AIMessage) and m.tool_calls]
    assert shown.content == []
    assert violations(model_view(state)) == []


def test_the_payloads_have_the_items_where_langchain_puts_them() -> None:
    messages = [HumanMessage("Go on."), compacting(OPENAI, SAID), HumanMessage("And then?")]
    items = openai_responses_payload(messages)["input"]
    assert [item["type"] for item in items if "encrypted_content" in item] == ["compaction"]
    messages[1] = compacting(ANTHROPIC, SAID)
    blocks = anthropic_payload(messages)["messages"][1]["content"]
    assert blocks[0] == ANTHROPIC
