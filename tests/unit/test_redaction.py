"""No text for a model passes the hook by, and what is no text is left alone.

Secrets live on in digests: they are sent to a second provider, and stored in every checkpoint. What
the hook does not see, it cannot take out.
"""

import re
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import ConfigurationError
from langgraph_compaction.digest.redaction import (
    DEEPEST,
    checked_redact,
    redacted_message,
    redacted_messages,
    redacted_text,
)
from langgraph_compaction.digest.rendering import render_message
from langgraph_compaction.errors import RedactionError
from tests.support.histories import histories

SECRET = "sk-4f9a"
CARD = 4_111_111


def hide(text: str) -> str:
    return text.replace(SECRET, "[key]").replace(str(CARD), "[card]")


def call(args: Any, name: str = "post") -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"c-{SECRET}", "type": "tool_call"}


def said(args: Any) -> AIMessage:
    """An agent's message with one call, whatever its arguments."""
    return AIMessage("", id="a").model_copy(update={"tool_calls": [call(args)]})


CONTENTS: list[Any] = [
    f"the key is {SECRET}",
    [f"the key is {SECRET}"],
    ["a", {"type": "text", "text": f"the key is {SECRET}"}],
    [{"type": "output_text", "text": SECRET, "annotations": [{"title": SECRET, "url": SECRET}]}],
    [{"type": "refusal", "refusal": SECRET}],
    [{"type": "image_url", "image_url": {"url": f"https://x.org/a.png?key={SECRET}"}}],
    [{"type": "image_url", "image_url": f"https://x.org/a.png?key={SECRET}"}],
    [{"type": "file", "file": {"filename": f"{SECRET}.pdf", "file_data": "AAAA"}}],
    [{"type": "document", "title": SECRET, "source": {"type": "base64", "data": "AAAA"}}],
    [{"type": "server_tool_use", "id": "s1", "name": "search", "input": {"query": SECRET}}],
    [{"type": "mcp_tool_use", "id": "s1", "name": "search", "input": {"a": [{"b": SECRET}]}}],
    [{"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": SECRET}]}],
    [{"type": "tool_use", "id": "t1", "name": "post", "input": {SECRET: 1}}],
    [{"type": "function_call", "call_id": "t1", "name": "post", "arguments": f'{{"a": "{SECRET}'}],
    [{"type": "gadget", "notes": [SECRET]}],
]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize(
    "kind",
    [
        HumanMessage,
        AIMessage,
        SystemMessage,
        partial(ToolMessage, tool_call_id="c"),
        partial(ToolMessage, tool_call_id="c", status="error"),
        partial(FunctionMessage, name="f"),
        partial(ChatMessage, role="critic"),
    ],
)
def test_text_in_any_content_is_redacted_in_a_copy(content: Any, kind: Any) -> None:
    message = kind(content=deepcopy(content), id="m1")
    redacted = redacted_message(message, hide)
    assert SECRET not in str(redacted.content)
    assert re.search(r"\[key]", str(redacted.content))
    assert message.content == content
    assert type(redacted) is type(message)
    assert redacted.model_copy(update={"content": content}) == message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"a": f"is {SECRET}"}, {"a": "is [key]"}),
        ({"a": [{"b": (SECRET, 1, None, True)}]}, {"a": [{"b": ("[key]", 1, None, True)}]}),
        ({SECRET: 1}, {"[key]": 1}),
        ({"card": CARD, "n": 7}, {"card": "[card]", "n": 7}),
        ({CARD: "x"}, {"[card]": "x"}),
        (f'{{"a": "{SECRET}', '{"a": "[key]'),
        ([SECRET], ["[key]"]),
    ],
)
def test_arguments_are_redacted_at_any_depth_keys_and_numbers_too(
    arguments: Any, expected: Any
) -> None:
    message = said(deepcopy(arguments))
    redacted = redacted_message(message, hide)
    assert isinstance(redacted, AIMessage)
    assert redacted.tool_calls == [call(expected)]
    assert message.tool_calls == [call(arguments)]


def test_a_call_that_could_not_be_parsed_is_redacted_with_its_error() -> None:
    bad: Any = {
        "type": "invalid_tool_call",
        "name": "post",
        "args": f'{{"a": "{SECRET}',
        "id": "c1",
        "error": f"cannot parse {SECRET}",
    }
    redacted = redacted_message(AIMessage("", invalid_tool_calls=[bad]), hide)
    assert isinstance(redacted, AIMessage)
    assert SECRET not in str(redacted.invalid_tool_calls)
    assert redacted.invalid_tool_calls[0]["name"] == "post"


def test_keys_that_become_alike_lose_no_value() -> None:
    def hide_all(text: str) -> str:
        return re.sub(r"user\d", "[user]", text)

    redacted: Any = redacted_message(said({"user1": "a", "user2": "b", "user3": "c"}), hide_all)
    assert list(redacted.tool_calls[0]["args"].values()) == ["a", "b", "c"]


def test_a_secret_known_by_the_name_before_it_is_found_in_arguments() -> None:
    def by_name(text: str) -> str:
        return re.sub(r'("password": )"[^"]*"', r'\1"[hidden]"', text)

    redacted: Any = redacted_message(said({"user": "ada", "password": "hunter2"}), by_name)
    assert redacted.tool_calls[0]["args"] == {"user": "ada", "password": "[hidden]"}

    def roughly(text: str) -> str:
        return re.sub(r'"password": .*', "[hidden]", text)

    redacted = redacted_message(said({"user": "ada", "password": "hunter2"}), roughly)
    assert redacted.tool_calls[0]["args"] == '{"user": "ada", [hidden]'


def test_arguments_that_contain_themselves_or_are_nested_without_end_are_redacted() -> None:
    cyclic: dict[str, Any] = {"key": SECRET}
    cyclic["self"] = [cyclic, cyclic]
    nested: dict[str, Any] = {"key": SECRET}
    for _ in range(40 * DEEPEST):
        nested = {"a": nested}
    for arguments in (cyclic, nested):
        message = said(arguments)
        assert SECRET in render_message(message, 0)
        shown = render_message(redacted_message(message, hide), 0)
        assert SECRET not in shown
        assert "[key]" in shown


def test_blocks_that_contain_themselves_or_are_nested_without_end_are_redacted() -> None:
    cyclic: dict[str, Any] = {"type": "custom", "text": SECRET}
    cyclic["self"] = [cyclic]
    deep: Any = SECRET
    for _ in range(40 * DEEPEST):
        deep = [deep]
    for block in (cyclic, {"type": "custom", "text": "x", "deep": deep}):
        message = AIMessage("").model_copy(update={"content": [block]})
        shown = str(redacted_message(message, hide).content)
        assert SECRET not in shown
        assert "[key]" in shown


def test_ids_names_of_tools_data_and_metadata_stay_as_they_are() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SECRET}"}}
    use = {"type": "server_tool_use", "id": SECRET, "name": SECRET, "input": {}}
    thought = {"type": "thinking", "thinking": SECRET, "signature": SECRET}
    message = AIMessage(
        [image, use, thought],
        id=SECRET,
        tool_calls=[call({}, name=SECRET)],
        additional_kwargs={"secret": SECRET},
        response_metadata={"secret": SECRET},
    )
    result = ToolMessage("ok", tool_call_id=SECRET, name=SECRET, artifact=SECRET, id=SECRET)
    assert redacted_message(message, hide) is message
    assert redacted_message(result, hide) is result


def test_the_name_of_a_speaker_is_redacted_and_that_of_a_tool_is_not() -> None:
    assert redacted_message(HumanMessage("x", name=f"ada {SECRET}"), hide).name == "ada [key]"
    assert redacted_message(FunctionMessage(content="x", name=SECRET), hide).name == SECRET


@given(histories(max_size=12))
def test_what_holds_no_secret_is_the_same_object(history: list[BaseMessage]) -> None:
    before = deepcopy(history)
    found = redacted_messages(history, lambda text: text)
    assert all(one is two for one, two in zip(found, history, strict=True))
    assert history == before


@given(histories(max_size=12))
def test_all_that_is_rendered_went_through_the_hook(history: list[BaseMessage]) -> None:
    def letters(text: str) -> str:
        return re.sub(r"[^\W\d_]", "x", text)

    names = re.compile(
        r"^<call>\S+|<[^<>]*>|\[(?:image|file|audio|media|\w+ block)\b[^]]*]", re.MULTILINE
    )
    for position, message in enumerate(redacted_messages(history, letters)):
        lines = names.sub("", render_message(message, position, result_chars=0)).split()
        words = [word for line in lines for word in re.findall(r"[^\W\d_]+", line)]
        assert [word for word in words if set(word) - set("xX")] == []


def test_without_a_hook_nothing_is_touched() -> None:
    message = HumanMessage(SECRET)
    assert redacted_message(message, None) is message
    assert redacted_text(SECRET, None) is SECRET


def test_a_hook_that_raises_is_named_and_what_it_says_is_not_told() -> None:
    def broken(text: str) -> str:
        raise ValueError(f"cannot redact {text}")

    with pytest.raises(
        RedactionError, match=r"redact: the hook raised ValueError \(test_"
    ) as found:
        redacted_message(HumanMessage(SECRET), broken)
    assert SECRET not in str(found.value)
    assert found.value.__suppress_context__
    assert isinstance(found.value, ConfigurationError)


@pytest.mark.parametrize("answer", [None, b"x", 3, ["x"]])
def test_a_hook_that_returns_no_text_is_an_error(answer: Any) -> None:
    with pytest.raises(RedactionError, match=f"returned {type(answer).__name__} instead of str"):
        redacted_message(HumanMessage(SECRET), lambda _: answer)


def test_a_hook_that_turns_out_to_be_awaited_is_an_error() -> None:
    async def later(text: str) -> str:
        return text

    hook: Any = later
    with pytest.raises(RedactionError, match="returned coroutine"):
        redacted_text(SECRET, hook)


def test_what_can_be_no_hook_is_refused_at_once() -> None:
    async def later(text: str) -> str:
        return text

    class Later:
        async def __call__(self, text: str) -> str:
            return text

    for wrong in ("x", 3, later, Later(), partial(later), str):
        with pytest.raises(ConfigurationError, match=r"redact: .* has to be a plain function"):
            checked_redact(wrong)
    assert checked_redact(None) is None
    for right in (hide, partial(re.sub, SECRET, "[key]"), str.upper):
        assert checked_redact(right) is right


def test_a_secret_in_a_key_of_an_unknown_block_is_hidden() -> None:
    """A summariser reads such a block as JSON, its keys and numbers included."""
    block: Any = {"type": "gadget", "data": {SECRET: 1}}
    found = redacted_message(HumanMessage([block]), hide)
    assert SECRET not in str(found.content)
    assert redacted_message(HumanMessage([{"type": "gadget", "n": 1}]), hide).content != []
