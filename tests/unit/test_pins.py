"""Pins: what a person or a rule says must stay, stays, and nobody's message is changed for it.

A mark that is set in place is in the returned state and missing from the checkpoint; a rule with a
slip of the pen pins nothing, and nobody notices before the skill text is gone.
"""

import copy
import logging
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import ConfigurationError, merge_messages, pin
from langgraph_compaction.plan.pins import (
    first_human,
    newest_human,
    pin_rule,
    protected,
)
from langgraph_compaction.view.marks import PIN_MARK

NOBODY = pin_rule(None)


def call(*names: str) -> AIMessage:
    return AIMessage(
        "",
        id="call",
        tool_calls=[{"name": name, "args": {}, "id": f"c-{name}"} for name in names],
    )


def result(called: str, content: Any = "ok", **more: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=f"c-{called}", **more)


# ---- the mark


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("x", id="h", additional_kwargs={"mine": 1}),
        call("shell"),
        result("shell", name="shell", artifact=[1]),
        SystemMessage("x"),
    ],
)
def test_pinning_makes_a_marked_copy_and_can_be_undone(message: BaseMessage) -> None:
    before = copy.deepcopy(message)
    marked = pin(message)
    assert message == before
    assert type(marked) is type(message)
    assert NOBODY(marked)
    assert not NOBODY(message)
    assert marked.additional_kwargs == {**message.additional_kwargs, PIN_MARK: True}
    assert pin(marked) == marked
    assert pin(marked, pinned=False) == message
    assert NOBODY(marked)


def test_a_pinned_copy_replaces_its_original_in_the_channel() -> None:
    message = HumanMessage("x", id="h")
    (found,) = merge_messages([message], [pin(message)])
    assert NOBODY(found)


# ---- rules


@pytest.mark.parametrize(
    ("rule", "message", "pinned"),
    [
        ({"type": "human"}, HumanMessage("x"), True),
        ({"type": "human"}, AIMessage("x"), False),
        ({"type": "ai"}, AIMessage("x"), True),
        ({"type": "ai"}, AIMessageChunk(content="x"), True),
        ({"type": "tool"}, result("shell"), True),
        ({"name": "load_skill"}, result("load_skill", name="load_skill"), True),
        ({"name": "load_skill"}, result("shell", name="shell"), False),
        ({"id": "m1"}, HumanMessage("x", id="m1"), True),
        ({"id": "m1"}, HumanMessage("x"), False),
        ({"contains": "MUST"}, HumanMessage("You MUST test."), True),
        ({"contains": "MUST"}, HumanMessage("you must test"), False),
        ({"contains": "MUST"}, HumanMessage([{"type": "text", "text": "You MUST."}]), True),
        ({"contains": "MUST"}, HumanMessage(["You MUST."]), True),
        ({"contains": "MUST"}, HumanMessage([{"type": "image", "base64": "MUST"}]), False),
        ({"type": "tool", "contains": "x"}, result("a", "y"), False),
        ({"type": "tool", "contains": "x"}, HumanMessage("x"), False),
        ({"type": "tool", "contains": "x"}, result("a", "x"), True),
        ([{"type": "human"}, {"id": "m1"}], AIMessage("x", id="m1"), True),
        ([], HumanMessage("x"), False),
        (lambda message: message.id == "m1", AIMessage("x", id="m1"), True),
        (lambda message: None, AIMessage("x", id="m1"), False),
    ],
)
def test_a_rule_pins_what_matches_all_of_it(
    rule: Any, message: BaseMessage, *, pinned: bool
) -> None:
    assert pin_rule(rule)(message) is pinned
    assert pin_rule(rule)(pin(message)) is True


@pytest.mark.parametrize(
    "rule",
    [
        "human",
        7,
        {},
        [{}],
        ["human"],
        {"kind": "human"},
        {"type": "human", "role": "user"},
        {"type": ""},
        {"type": 1},
        {"contains": None},
        {"contains": ["a"]},
        [{"type": "human"}, {"name": 3}],
        # No message has such a type: the rule would never pin anything.
        {"type": "user"},
        {"type": "tols"},
    ],
)
def test_a_rule_that_cannot_work_is_named_with_the_remedy(rule: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^pinned: ") as caught:
        pin_rule(rule)
    wrong = rule[-1] if isinstance(rule, list) else rule
    assert repr(wrong) in str(caught.value)
    assert "write a dict" in str(caught.value)


def test_a_rule_that_is_changed_later_does_not_change_the_pins() -> None:
    rules = [{"type": "human"}]
    decided = pin_rule(rules)
    rules[0]["type"] = "ai"
    rules.clear()
    assert decided(HumanMessage("x"))
    assert not decided(AIMessage("x"))


# ---- what is protected


def test_a_pin_takes_its_whole_call_group_with_it() -> None:
    asked, one, two = call("a", "b"), result("a"), result("b")
    for members in ([pin(asked), one, two], [asked, pin(one), two], [asked, one, pin(two)]):
        messages = [HumanMessage("x"), *members, AIMessage("y")]
        assert protected(messages, range(5), NOBODY, set()) == {1, 2, 3}
    unpinned = [HumanMessage("x"), asked, one, two, AIMessage("y")]
    assert protected(unpinned, range(5), NOBODY, set()) == set()


def test_a_tool_is_known_by_name_even_where_its_result_has_none() -> None:
    # Results that were converted from OpenAI's format carry the id of their call only.
    messages = [HumanMessage("x"), call("load_skill"), result("load_skill"), AIMessage("y")]
    rule = pin_rule({"type": "tool", "name": "load_skill"})
    assert protected(messages, range(4), rule, set()) == {1, 2}


def test_system_messages_and_what_is_named_are_protected_by_themselves() -> None:
    messages = [SystemMessage("s"), HumanMessage("x"), AIMessage("y"), SystemMessage("t")]
    assert protected(messages, range(4), NOBODY, {1}) == {0, 1, 3}


def test_only_the_given_places_are_looked_at() -> None:
    messages = [pin(HumanMessage("x")), HumanMessage("y"), pin(HumanMessage("z")), AIMessage("w")]
    assert protected(messages, [1, 2], NOBODY, set()) == {2}
    assert protected(messages, [], NOBODY, set()) == set()


def test_the_newest_and_the_first_request_are_found() -> None:
    messages = [SystemMessage("s"), HumanMessage("x"), AIMessage("y"), HumanMessage("z"), call("a")]
    assert first_human(messages, 0) == 1
    assert first_human(messages, 2) == 3
    assert first_human(messages, 4) is None
    assert newest_human(messages, 0, ()) == 3
    assert newest_human(messages, 4, (0, 1)) == 1
    assert newest_human(messages, 4, (0,)) is None


def test_a_callable_that_raises_ends_no_run_and_pins_what_it_raises_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As `startswith` does for a message with an image: what is not known to be free stays."""
    is_pinned = pin_rule(lambda message: message.content.startswith("KEEP"))
    image: Any = [{"type": "image", "url": "https://example.com/pump.png"}]
    with caplog.at_level(logging.WARNING):
        found = [is_pinned(HumanMessage(one)) for one in ("KEEP this", "x", image, image)]
    assert found == [True, False, True, True]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "'list' object has no attribute 'startswith'" in told[0]
