"""`roles="alternating"`: what a chat template that wants user and assistant in turns is given."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import CompactionNode, ConfigurationError, model_view, pin
from langgraph_compaction.view.roles import NO_COMMENT, OPENING, alternating
from tests.support import folding
from tests.support.histories import histories, random_history
from tests.support.replay import good_summary
from tests.support.templates import turn_fault


def call(number: int, text: str = "", **fields: Any) -> AIMessage:
    calls: Any = [{"name": "check", "args": {"n": number}, "id": f"c{number}"}]
    return AIMessage(text, tool_calls=calls, id=f"a{number}", **fields)


def result(number: int, text: str = "Well.") -> ToolMessage:
    return ToolMessage(text, tool_call_id=f"c{number}", id=f"t{number}")


S = SystemMessage("Be brief.", id="s")
H1, H2 = HumanMessage("One.", id="h1"), HumanMessage("Two.", id="h2")
A1, A2 = AIMessage("Yes.", id="a1"), AIMessage("No.", id="a2")
IMAGE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def told(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    return [(message.type, message.content) for message in messages]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            [S, H1, A1, H2],
            [("system", "Be brief."), ("human", "One."), ("ai", "Yes."), ("human", "Two.")],
        ),
        ([H1, H2], [("human", "One.\n\nTwo.")]),
        ([H1, A1, A2], [("human", "One."), ("ai", "Yes.\n\nNo.")]),
        (
            [S, SystemMessage("Be kind."), H1],
            [("system", "Be brief.\n\nBe kind."), ("human", "One.")],
        ),
        (
            [H1, A1, S, H2],
            [("system", "Be brief."), ("human", "One."), ("ai", "Yes."), ("human", "Two.")],
        ),
        ([H1, S, H2], [("system", "Be brief."), ("human", "One.\n\nTwo.")]),
        ([A1, H1], [("human", OPENING), ("ai", "Yes."), ("human", "One.")]),
        (
            [H1, call(1), result(1), A1],
            [("human", "One."), ("ai", ""), ("tool", "Well."), ("ai", "Yes.")],
        ),
        (
            [H1, call(1), result(1), H2],
            [
                ("human", "One."),
                ("ai", ""),
                ("tool", "Well."),
                ("ai", NO_COMMENT),
                ("human", "Two."),
            ],
        ),
        (
            [H1, A1, call(1, "So."), result(1)],
            [("human", "One."), ("ai", "Yes.\n\nSo."), ("tool", "Well.")],
        ),
        (
            [H1, call(1), result(1), call(2), result(2)],
            [("human", "One."), ("ai", ""), ("tool", "Well."), ("ai", ""), ("tool", "Well.")],
        ),
        (
            [H1, HumanMessage(["Two.", IMAGE])],
            [("human", [{"type": "text", "text": "One."}, "Two.", IMAGE])],
        ),
        ([HumanMessage([IMAGE]), H2], [("human", [IMAGE, {"type": "text", "text": "Two."}])]),
        ([H1, HumanMessage("  ")], [("human", "One.")]),
        ([ChatMessage("One.", role="user"), H2], [("chat", "One.\n\nTwo.")]),
        ([], []),
    ],
)
def test_neighbours_become_one_message(before: list[BaseMessage], after: list[Any]) -> None:
    given_messages = copy.deepcopy(before)
    found = alternating(before)
    assert told(found) == after
    assert before == given_messages
    assert turn_fault(found, tools=True) is None
    assert alternating(found) == found


def test_what_has_no_neighbours_is_the_same_object() -> None:
    messages = [S, H1, call(1), result(1), A1, H2]
    assert all(one is other for one, other in zip(alternating(messages), messages, strict=True))


def test_the_merged_message_keeps_the_first_ids_and_the_newest_answer() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    one = AIMessage(
        "So.", id="a0", additional_kwargs={"x": 1, "y": 1}, response_metadata={"id": "resp_1"}
    )
    two = call(
        1,
        "Then.",
        usage_metadata=usage,
        response_metadata={"id": "resp_2"},
        additional_kwargs={"y": 2},
    )
    merged: Any = alternating([H1, one, two, result(1)])[1]
    assert merged.id == "a0"
    assert merged.tool_calls == two.tool_calls
    assert merged.usage_metadata == usage
    assert merged.response_metadata == {"id": "resp_2"}
    assert merged.additional_kwargs == {"x": 1, "y": 2}
    pinned = pin(H1)
    assert alternating([pinned, H2])[0] == pinned.model_copy(update={"content": "One.\n\nTwo."})


def test_names_stay_where_they_agree() -> None:
    anna, ben = HumanMessage("One.", name="anna"), HumanMessage("Two.", name="ben")
    assert alternating([anna, anna])[0].name == "anna"
    assert alternating([anna, ben])[0].name is None


def node(**values: Any) -> CompactionNode:
    rules = {
        "trigger": ("messages", 8),
        "keep": ("messages", 3),
        "min_fold_tokens": 0,
        "min_fold_share": 0.0,
        "context_window": 200_000,
        "token_counter": "estimate",
        "roles": "alternating",
        **values,
    }
    return CompactionNode(good_summary, **rules)


def conversation(turns: int) -> list[BaseMessage]:
    """A person who writes two messages in a row now and then, and an agent that uses a tool."""
    found: list[BaseMessage] = [S]
    for n in range(turns):
        found.append(HumanMessage(f"Question {n}. " + "Please look closely. " * 20, id=f"q{n}"))
        if n % 3 == 0:
            found.append(HumanMessage(f"And {n}, too.", id=f"r{n}"))
        found += [call(n, f"Looking at {n}."), result(n, f"Result {n}. " + "As drawn. " * 20)]
        if n % 4:
            found.append(AIMessage(f"Answer {n}.", id=f"b{n}"))
    return found


@pytest.mark.parametrize("role", ["human", "system"])
def test_over_folds_every_view_takes_turns_and_the_default_does_not(role: str) -> None:
    refused = 0
    for roles in ("alternating", "any"):
        compact = node(roles=roles, digest_role=role, task="first")
        state: Any = {"messages": [], "compaction": {}}
        for message in conversation(12):
            state["messages"] = [*state["messages"], message]
            if isinstance(message, SystemMessage | AIMessage):
                continue
            state.update(compact.invoke(state))
            for view in (compact.view(state), compact.view(state, system="You inspect pumps.")):
                fault = turn_fault(view, tools=True)
                refused += roles == "any" and fault is not None
                assert roles == "any" or fault is None
        assert len(state["compaction"]["segments"]) > 1
        assert model_view(state) == compact.view(state)
    assert refused > 10


def test_the_setting_is_frozen_into_the_record_by_a_fold() -> None:
    compact = node()
    state: Any = {"messages": conversation(6), "compaction": {}}
    assert turn_fault(compact.view(state), tools=True) is None
    assert turn_fault(model_view(state), tools=True) is not None  # nothing tells it so far
    state.update(compact.invoke(state))
    assert state["compaction"]["render"]["roles"] == "alternating"
    assert turn_fault(model_view(state), tools=True) is None
    # Switched on it counts at once, switched off with the next fold.
    record = node(roles="any").invoke({"messages": conversation(6), "compaction": {}})
    assert "roles" not in record["compaction"]["render"]
    other: Any = {"messages": conversation(6), **record}
    on = {**other, "compaction_settings": {"roles": "alternating"}}
    assert turn_fault(node(roles="any").view(on), tools=True) is None
    assert node(roles="any").view(state) == compact.view(state)


def test_a_wrong_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="roles"):
        node(roles="strict")


def test_the_view_grows_by_its_newest_messages_alone() -> None:
    compact = node(trigger=None)
    state: Any = {"messages": [], "compaction": {}}
    before = ""
    for message in conversation(8):
        state["messages"] = [*state["messages"], message]
        text = "".join(f"[{m.type}]{m.content}" for m in compact.view(state))
        assert text.startswith(before)
        before = text


def test_sizes_are_counted_message_by_message() -> None:
    merged, apart = node(), node(roles="any")
    state: Any = {"messages": conversation(4), "compaction": {}}
    assert merged.measure(state) == apart.measure(state)
    assert len(merged.view(state)) < len(apart.view(state))


@given(histories(max_size=30), st.booleans())
def test_no_history_is_out_of_turn_and_nothing_is_lost(
    history: list[BaseMessage], folds: bool
) -> None:
    compact, plain = node(), node(roles="any")
    before = copy.deepcopy(history)
    state: Any = {"messages": history, "compaction": {}}
    if folds:
        state.update(compact.invoke(state))
    view = compact.view(state)
    assert history == before
    if history and not waits(history):
        assert turn_fault(view, tools=True) is None
    record = {**state["compaction"]}
    record["render"] = {k: v for k, v in record.get("render", {}).items() if k != "roles"}
    unmerged = plain.view({**state, "compaction": record})
    assert texts(view) >= texts(unmerged)


def waits(messages: list[BaseMessage]) -> bool:
    from tests.support.replay import Thread

    thread = Thread(node())
    thread.messages = messages
    return thread.waits()


def texts(messages: list[BaseMessage]) -> set[str]:
    """The paragraphs of all texts, which merging leaves whole."""
    found = []
    for message in messages:
        blocks = [message.content] if isinstance(message.content, str) else message.content
        found += [b if isinstance(b, str) else str(b.get("text", b)) for b in blocks]
    parts = (part.strip() for text in found for part in text.split("\n\n"))
    return {part for part in parts if part}


@pytest.mark.parametrize("block", range(2))
def test_broken_histories_take_turns_over_their_folds(block: int) -> None:
    folds = 0
    for seed in range(block * 100, block * 100 + 100):
        rng = random.Random(seed)
        compact = node(
            keep=rng.choice([("messages", 0), ("messages", 3)]), task=rng.choice(["first", None])
        )
        state: Any = {"messages": [], "compaction": {}}
        for message in random_history(rng, length=30):
            state["messages"] = [*state["messages"], message]
            if waits(state["messages"]):
                continue
            state.update(compact.invoke(state))
            fault = turn_fault(compact.view(state), tools=True)
            assert fault is None, f"seed {seed}: {fault}"
        folds += len(state["compaction"].get("segments", []))
    assert folds > 100


@pytest.mark.parametrize("settings", [{"digest_role": "system"}, {"roles": "alternating"}])
@pytest.mark.parametrize("content", [None, "", []])
def test_a_system_message_without_content_is_left_out_of_the_system_text(
    settings: dict[str, Any], content: Any
) -> None:
    """Some integrations write None."""
    empty, prompt = SystemMessage("x", id="e"), SystemMessage("Be brief.", id="s")
    empty.content = content
    compact = folding.node(**settings)
    state = folding.state_of([empty, prompt, *folding.chat(20)])
    state |= compact.invoke(state)
    assert state["compaction"]["segments"]
    system = [m for m in compact.view(state) if isinstance(m, SystemMessage)]
    assert len(system) == 1
    assert system[0].text.startswith("Be brief.")
