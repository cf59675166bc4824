"""Requests as the providers' own LangChain packages build them, and each provider's rules for them.

The builders are the real classes with a dummy key; nothing is sent. Rules of the group "foreign"
are about what an author or another provider wrote (a block type, a reused id), not about the order
of the messages: `structural` leaves them out.
"""

import socket
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args
from unittest import mock

from langchain_core.messages import BaseMessage, SystemMessage
from pydantic import SecretStr

from tests.support.validity import (
    WHOLE_LIST,
    Rule,
    Violation,
    is_blank,
    match_answers,
    server_pairs,
)

PayloadKind = Literal["openai_chat", "openai_responses", "anthropic", "google"]
PAYLOAD_KINDS: tuple[PayloadKind, ...] = get_args(PayloadKind)

Payload = Mapping[str, Any]

KEY = SecretStr("unused")

# The content parts that a message of each role may have.
# https://platform.openai.com/docs/api-reference/chat/create
_CHAT_BLOCKS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
}
# The content blocks of a request. https://platform.claude.com/docs/en/api/messages/create
_ANTHROPIC_BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {
        *("text", "thinking", "redacted_thinking", "compaction", "container_upload"),
        *("tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "advisor_tool_result"),
        *("web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result"),
        *("code_execution_tool_result", "bash_code_execution_tool_result"),
        "text_editor_code_execution_tool_result",
    },
}


class NetworkAttemptedError(RuntimeError):
    """A builder tried to reach a host, as Gemini's does to fetch an image by its URL.

    Not an `OSError`: HTTP clients would catch that, and try again.
    """


def openai_chat_payload(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The request of `ChatOpenAI` to the Chat Completions API. Raises what the builder raises."""
    return dict(_offline(_openai(responses=False)._get_request_payload, messages))


def openai_responses_payload(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The request of `ChatOpenAI` to the Responses API. Raises what the builder raises."""
    return dict(_offline(_openai(responses=True)._get_request_payload, messages))


def anthropic_payload(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The request of `ChatAnthropic` to the Messages API. Raises what the builder raises."""
    return dict(_offline(_anthropic()._get_request_payload, messages))


def google_payload(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The `contents` that `ChatGoogleGenerativeAI` would send, as plain dicts.

    Raises what the builder raises.
    """
    request = _offline(_google()._prepare_request, messages)
    contents = [part.model_dump(exclude_none=True, warnings=False) for part in request["contents"]]
    return {"model": request["model"], "contents": contents}


def payload_violations(kind: PayloadKind, payload: Payload) -> list[Violation]:
    """The provider's rules that a request breaks; indexes count its messages, items or contents."""
    return sorted(_CHECKS[kind](payload), key=lambda violation: violation.index)


def provider_violations(kind: PayloadKind, messages: Sequence[BaseMessage]) -> list[Violation]:
    """Build the request and check it; a builder that refuses is a violation, too.

    A refusal is one of structure if messages of the same roles and calls, but with plain text, are
    refused as well, and one of content if it stands without the late system messages. The rules
    are then checked on what the builder does accept, so that one refusal hides nothing else.
    """
    payload, refusal = _attempt(kind, messages)
    if payload is not None:
        return payload_violations(kind, payload)
    plain, ordered = _with_plain_content(messages), _without_late_system(messages)
    by_structure, by_content = (_attempt(kind, variant)[0] is None for variant in (plain, ordered))
    found = []
    if by_structure or not by_content:
        found.append(Violation(Rule.REFUSED_STRUCTURE, WHOLE_LIST, refusal))
    if by_content:
        found.append(Violation(Rule.REFUSED_CONTENT, WHOLE_LIST, refusal))
    payload, _ = _attempt(kind, _without_late_system(plain))
    return found if payload is None else [*found, *payload_violations(kind, payload)]


def structural(found: Iterable[Violation]) -> list[Violation]:
    """The violations but those of what an author or another provider wrote."""
    return [violation for violation in found if violation.rule.group != "foreign"]


@cache
def _openai(*, responses: bool) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-5-mini", api_key=KEY, use_responses_api=responses)


@cache
def _anthropic() -> Any:
    from langchain_anthropic import ChatAnthropic

    # A model that takes no system message in mid-conversation: the stricter kind.
    return ChatAnthropic(model_name="claude-sonnet-4-5", api_key=KEY, timeout=None, stop=None)


@cache
def _google() -> Any:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key=KEY)


def _offline(build: Callable[..., Any], messages: Sequence[BaseMessage]) -> Any:
    def refuse(*args: Any, **_: Any) -> None:
        raise NetworkAttemptedError(f"the builder reached for {args[:2]}")

    with (
        warnings.catch_warnings(action="ignore"),
        mock.patch.object(socket, "getaddrinfo", refuse),
        mock.patch.object(socket.socket, "connect", refuse),
    ):
        return build(list(messages))


def _attempt(kind: PayloadKind, messages: Sequence[BaseMessage]) -> tuple[Payload | None, str]:
    try:
        return _BUILDERS[kind](messages), ""
    except Exception as error:  # noqa: BLE001 - whatever a builder raises is its refusal
        return None, f"{type(error).__name__}: {error}"


def _with_plain_content(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [
        message
        if isinstance(message.content, str)
        else message.model_copy(update={"content": "" if is_blank(message.content) else "text"})
        for message in messages
    ]


def _without_late_system(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    first = next((i for i, m in enumerate(messages) if not isinstance(m, SystemMessage)), 0)
    return [*messages[:first], *(m for m in messages[first:] if not isinstance(m, SystemMessage))]


def _check_openai_chat(payload: Payload) -> Iterator[Violation]:
    messages = payload["messages"]
    if not messages:  # "Expected an array with minimum length 1"
        yield Violation(Rule.EMPTY_LIST, WHOLE_LIST, "no messages")
    # "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'";
    # "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    # 'tool_call_id'"; "Duplicate value for 'tool_call_id'": errors of the API, see
    # https://platform.openai.com/docs/guides/function-calling
    caller, calls, answers = WHOLE_LIST, list[str | None](), list[tuple[int, str | None]]()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            answers.append((index, message["tool_call_id"]))
        else:
            yield from match_answers(calls, answers, at=caller)
            made = message.get("tool_calls") or []
            caller, calls, answers = index, [call["id"] for call in made], []
            yield from _nameless(index, ((call["id"], call["function"]["name"]) for call in made))
        # "content: required unless tool_calls is specified"; arrays have at least one element:
        # https://platform.openai.com/docs/api-reference/chat/create
        content = message.get("content")
        if content == [] or (content is None and not message.get("tool_calls")):
            yield Violation(Rule.EMPTY_CONTENT, index, f"{message['role']} content is {content!r}")
        allowed = _CHAT_BLOCKS.get(message["role"], {"text"})
        yield from _foreign_blocks(index, content, allowed)
    yield from match_answers(calls, answers, at=caller)


def _check_openai_responses(payload: Payload) -> Iterator[Violation]:
    items = payload["input"]
    if not items:
        yield Violation(Rule.EMPTY_LIST, WHOLE_LIST, "no input items")
    waiting, called, ids = dict[str, int](), set[str](), set[str]()
    for index, item in enumerate(items):
        kind, call_id = item.get("type", ""), item.get("call_id")
        # "No tool output found for function call ..." and "No tool call found for function call
        # output with call_id ...": https://platform.openai.com/docs/guides/function-calling
        if kind.endswith("_call_output"):
            if call_id not in called:
                yield Violation(Rule.ORPHAN_RESULT, index, f"no call {call_id!r} before it")
            elif waiting.pop(call_id, None) is None:
                # The call of a reused id is dropped by langchain-openai, its output is not.
                yield Violation(Rule.FOREIGN_REUSED_ID, index, f"call {call_id!r} was answered")
        elif "call_id" in item:
            called.add(call_id)
            waiting[call_id] = index
            yield from _nameless(index, [(call_id, item.get("name", kind))])
        # "Duplicate item found with id ... Remove duplicate items from your input"
        if (item_id := item.get("id")) in ids:
            yield Violation(Rule.DUPLICATE_ITEM, index, f"item {item_id!r} is there twice")
        ids.update([item_id] if item_id else [])
        # "Item ... of type 'reasoning' was provided without its required following item":
        # https://platform.openai.com/docs/guides/reasoning
        follower = items[index + 1] if index + 1 < len(items) else {"role": "user"}
        is_output = follower.get("role", "assistant") == "assistant"
        if kind == "reasoning" and (
            not is_output or follower.get("type", "").endswith("_call_output")
        ):
            yield Violation(Rule.REASONING_ALONE, index, "no output of the model follows")
    for call_id, index in waiting.items():
        yield Violation(Rule.MISSING_ANSWER, index, f"call {call_id!r} has no output")


def _check_anthropic(payload: Payload) -> Iterator[Violation]:
    system = payload.get("system")
    for block in system if isinstance(system, list) else ():
        if is_blank(block):  # "system: text content blocks must be non-empty"
            yield Violation(Rule.EMPTY_TEXT, WHOLE_LIST, "a system block without text")
    messages = payload["messages"]
    if not messages:  # "messages: at least one message is required"
        yield Violation(Rule.EMPTY_LIST, WHOLE_LIST, "no messages")
        return
    for index, message in enumerate(messages):
        yield from _anthropic_content(index, message, is_last=index == len(messages) - 1)
    # "Consecutive user or assistant turns in your request will be combined into a single turn":
    # https://platform.claude.com/docs/en/api/messages/create. The other rules hold for those.
    turns: list[tuple[int, str, list[Any]]] = []
    for index, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(blocks)
        else:
            turns.append((index, message["role"], list(blocks)))
    if turns[0][1] != "user":  # "first message must use the user role"
        yield Violation(Rule.FIRST_NOT_HUMAN, 0, f"opens with {turns[0][1]!r}")
    if turns[-1][1] == "assistant":  # "does not support assistant message prefill" (from 4.6 on)
        yield Violation(Rule.ENDS_WITH_AI, turns[-1][0], "ends with an assistant turn")
    yield from _anthropic_pairs(turns)
    yield from server_pairs(
        (index, _anthropic_role(role, blocks), blocks) for index, role, blocks in turns
    )


def _anthropic_content(index: int, message: Payload, *, is_last: bool) -> Iterator[Violation]:
    role, content = message["role"], message["content"]
    is_prefill = is_last and role == "assistant"
    # "all messages must have non-empty content except for the optional final assistant message";
    # "text content blocks must be non-empty", "... must contain non-whitespace text"
    if not content:
        if not is_prefill:
            yield Violation(Rule.EMPTY_CONTENT, index, f"{role} content is {content!r}")
        return
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if any(is_blank(block) for block in blocks):
        yield Violation(Rule.EMPTY_TEXT, index, "a text block without text")
    # "final assistant content cannot end with trailing whitespace"
    last_text = blocks[-1].get("text", "")
    if is_prefill and last_text != last_text.rstrip():
        yield Violation(Rule.TRAILING_SPACE, index, f"ends with {last_text[-10:]!r}")
    yield from _foreign_blocks(index, blocks, _ANTHROPIC_BLOCKS[role])
    calls = [b for b in blocks if b["type"] == "tool_use"]
    yield from _nameless(index, ((call["id"], call["name"]) for call in calls))


def _anthropic_pairs(turns: Sequence[tuple[int, str, list[Any]]]) -> Iterator[Violation]:
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls: tool results
    # are in the very next message, and first in it; "`tool_use` ids were found without
    # `tool_result` blocks immediately after"; "unexpected `tool_use_id` found in `tool_result`
    # blocks"; "each tool_use must have a single result"; "`tool_use` ids must be unique".
    caller, calls, earlier = WHOLE_LIST, list[str | None](), set[str | None]()
    for index, role, blocks in [*turns, (len(turns), "user", [])]:
        kinds = [block["type"] for block in blocks]
        if role == "assistant":
            caller, calls = index, [b["id"] for b in blocks if b["type"] == "tool_use"]
            if reused := earlier.intersection(calls):
                yield Violation(
                    Rule.FOREIGN_REUSED_ID, index, f"used before: {sorted(map(str, reused))}"
                )
            earlier.update(calls)
            after = kinds[kinds.index("tool_use") :] if calls else []
            # A call of a server tool may stand beside a client's; its result comes after theirs.
            if late := set(after) - {"tool_use", "server_tool_use", "mcp_tool_use"}:
                yield Violation(Rule.CALLS_NOT_LAST, index, f"{sorted(late)} after a tool_use")
            continue
        results = [(index, b["tool_use_id"]) for b in blocks if b["type"] == "tool_result"]
        yield from match_answers(calls, results, at=caller)
        if "tool_result" in kinds[len(results) :]:
            yield Violation(Rule.RESULTS_NOT_FIRST, index, "a tool_result after other blocks")
        caller, calls = WHOLE_LIST, []


def _anthropic_role(role: str, blocks: Sequence[Any]) -> str:
    if role == "assistant":
        return "ai"
    return "tool" if all(block["type"] == "tool_result" for block in blocks) else "human"


def _check_google(payload: Payload) -> Iterator[Violation]:
    contents = payload["contents"]
    if not contents:  # "contents is not specified"
        yield Violation(Rule.EMPTY_LIST, WHOLE_LIST, "no contents")
        return
    # https://ai.google.dev/gemini-api/docs/text-generation#multi-turn-conversations
    if contents[0]["role"] != "user":
        yield Violation(Rule.FIRST_NOT_HUMAN, 0, f"opens with {contents[0]['role']!r}")
    if contents[-1]["role"] == "model":  # "ensure that multiturn requests end with a user role"
        yield Violation(Rule.ENDS_WITH_AI, len(contents) - 1, "ends with a model turn")
    # "function call turn comes immediately after a user turn or after a function response turn";
    # "function response turn comes immediately after a function call turn"; "the number of function
    # response parts is equal to the number of function call parts of the function call turn":
    # https://ai.google.dev/gemini-api/docs/function-calling
    before, calls, caller = "user", 0, WHOLE_LIST
    for index, content in enumerate([*contents, {"role": "end", "parts": [{}]}]):
        parts = content.get("parts") or []
        answers = sum("function_response" in part for part in parts)
        if answers and not calls:
            yield Violation(Rule.ORPHAN_RESULT, index, "no function call turn right before it")
        elif answers > calls:
            yield Violation(Rule.DUPLICATE_ANSWER, index, f"{answers} answers to {calls} calls")
        elif answers < calls:
            yield Violation(Rule.MISSING_ANSWER, caller, f"{answers} answers to {calls} calls")
        made = [part["function_call"] for part in parts if "function_call" in part]
        if made and before == "model":
            yield Violation(Rule.CALL_AFTER_MODEL, index, "a function call after a model turn")
        yield from _nameless(index, ((call.get("name"), call.get("name")) for call in made))
        before, calls, caller = content["role"], len(made), index
        # "contents.parts must not be empty"; a part has one of its data fields
        if index < len(contents) and not (parts and all(parts)):
            yield Violation(Rule.EMPTY_CONTENT, index, "no parts, or one without data")


def _foreign_blocks(index: int, content: Any, allowed: Iterable[str]) -> Iterator[Violation]:
    for block in content if isinstance(content, list) else ():
        kind = str(block.get("type")) if isinstance(block, Mapping) else "str"
        if kind not in allowed:
            yield Violation(Rule.FOREIGN_BLOCK, index, f"content block of type {kind!r}")


def _nameless(index: int, calls: Iterable[tuple[str | None, str | None]]) -> Iterator[Violation]:
    """Calls without an id or a name: both are required strings in every provider's reference."""
    for call_id, name in calls:
        if not (call_id and name):
            yield Violation(Rule.FOREIGN_CALL, index, f"call with id {call_id!r}, name {name!r}")


_BUILDERS: Mapping[PayloadKind, Callable[[Sequence[BaseMessage]], Payload]] = {
    "openai_chat": openai_chat_payload,
    "openai_responses": openai_responses_payload,
    "anthropic": anthropic_payload,
    "google": google_payload,
}
_CHECKS: Mapping[PayloadKind, Callable[[Payload], Iterator[Violation]]] = {
    "openai_chat": _check_openai_chat,
    "openai_responses": _check_openai_responses,
    "anthropic": _check_anthropic,
    "google": _check_google,
}
