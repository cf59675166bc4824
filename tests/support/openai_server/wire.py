"""What OpenAI's two text APIs send: a message as one body, or as the events of a stream."""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

Json = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """What the model says: one of content, refusal, reasoning and call, or nothing."""

    content: str | None = None
    refusal: str = ""
    reasoning: str = ""
    call: tuple[str, str] | None = None  # name and arguments
    finish: str = "stop"
    prompt_tokens: int | None = None  # None: about 4 characters each, as English has
    cached_tokens: int = 0
    completion_tokens: int | None = None

    @property
    def said(self) -> str:
        """The text that is streamed, whatever it is."""
        return self.call[1] if self.call else self.content or self.refusal or self.reasoning

    @property
    def words(self) -> list[str]:
        return re.findall(r"\S+\s*|\s+", self.said)

    def usage(self, body: Json, asked: str, answered: str) -> Json:
        """The tokens of request and answer, under the names that an API has for the two."""
        sent = json.dumps([body.get("messages"), body.get("input"), body.get("tools")])
        prompt = len(sent) // 4 if self.prompt_tokens is None else self.prompt_tokens
        given = self.completion_tokens
        completion = (len(self.said) + 3) // 4 if given is None else given
        return {
            f"{asked}_tokens": prompt,
            f"{asked}_tokens_details": {"cached_tokens": self.cached_tokens},
            f"{answered}_tokens": completion,
            f"{answered}_tokens_details": {"reasoning_tokens": completion * bool(self.reasoning)},
            "total_tokens": prompt + completion,
        }


class Wire(NamedTuple):
    """A message as an API sends it: in one body, or as events."""

    whole: Json
    opening: list[Json]
    words: list[Json]
    closing: list[Json]


def chat_wire(message: Message, asked: Json, number: int) -> Wire:
    """The message in the form of Chat Completions, as the answer to request `asked`."""
    usage = message.usage(asked, "prompt", "completion")
    said: Json = {"role": "assistant", "content": message.content, "refusal": None}
    first: Json = {"role": "assistant", "content": ""}
    deltas: list[Json] = [{"content": word} for word in message.words]
    if message.refusal:
        said |= {"refusal": message.refusal}
        deltas = [{"refusal": word} for word in message.words]
    if message.reasoning:  # OpenAI never sends it; the name is that of DeepSeek, vLLM, llama.cpp
        said |= {"reasoning_content": message.reasoning}
        deltas = [{"reasoning_content": word} for word in message.words]
    if message.call:
        name, arguments = message.call
        call = {"id": f"call_{number}", "type": "function"}
        said |= {"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}
        blank = {"index": 0, **call, "function": {"name": name, "arguments": ""}}
        first |= {"content": None, "tool_calls": [blank]}
        parts = [{"index": 0, "function": {"arguments": word}} for word in message.words]
        deltas = [{"tool_calls": [part]} for part in parts]

    def body(kind: str, choices: list[Json], **more: Any) -> Json:
        head = {"id": f"chatcmpl-{number}", "object": kind, "created": 1_760_000_000}
        return {**head, "model": asked.get("model"), "choices": choices, **more}

    # Where usage was asked for, every chunk has the key, and one more at the end has the numbers.
    counted = (asked.get("stream_options") or {}).get("include_usage")

    def event(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return body("chat.completion.chunk", [choice], **({"usage": None} if counted else {}))

    closing = [event({}, message.finish)]
    if counted:
        closing.append(body("chat.completion.chunk", [], usage=usage))
    choice = {"index": 0, "message": said, "finish_reason": message.finish}
    whole = body("chat.completion", [choice], usage=usage)
    return Wire(whole, [event(first)], [event(delta) for delta in deltas], closing)


def response_body(asked: Json, number: int, state: str, **more: Any) -> Json:
    """The body that the Responses API has for a response in any state."""
    given: Json = {"model": asked.get("model"), "status": state, "output": [], "tools": []}
    head = {"id": f"resp_{number}", "object": "response", "created_at": 1_760_000_000}
    unset = dict.fromkeys(("error", "incomplete_details", "instructions", "usage"))
    chosen = {"parallel_tool_calls": True, "tool_choice": "auto", "temperature": 1.0, "top_p": 1.0}
    return {**head, **unset, **chosen, **given, "metadata": {}, **more}


def responses_wire(message: Message, asked: Json, number: int) -> Wire:
    """The message in the form of the Responses API, as the answer to request `asked`."""
    reason = {"length": "max_output_tokens"}.get(message.finish, message.finish)
    details = {"reason": reason} if message.finish in ("length", "content_filter") else None
    state = "incomplete" if details else "completed"
    # The one item; what it is before its text comes; what the text's events and field are called.
    part: Json | None = None
    blank: Json
    if message.call:
        name, arguments = message.call
        item: Json = {"type": "function_call", "call_id": f"call_{number}", "name": name}
        item |= {"arguments": arguments, "status": state}
        blank, kind, key, place = {"arguments": ""}, "function_call_arguments", "arguments", ""
    elif message.reasoning:
        part = {"type": "summary_text", "text": message.reasoning}
        item, blank = {"type": "reasoning", "summary": [part]}, {"summary": []}
        kind, key, place = "reasoning_summary_text", "text", "summary"
    else:
        kind, key, place = "output_text", "text", "content"
        part = {"type": kind, "text": message.content, "annotations": []}
        if message.refusal:
            kind = key = "refusal"
            part = {"type": kind, "refusal": message.refusal}
        item = {"type": "message", "role": "assistant", "content": [part], "status": state}
        blank = {"content": []}
    prefix = {"function_call": "fc", "reasoning": "rs", "message": "msg"}[item["type"]]
    item["id"] = f"{prefix}_{number}"
    at = {"item_id": item["id"], "output_index": 0, **({f"{place}_index": 0} if place else {})}

    def event(name: str, **more: Any) -> Json:
        return {"type": f"response.{name}", **at, **more}

    part_name = "reasoning_summary_part" if message.reasoning else "content_part"
    added, done = [event("output_item.added", item={**item, **blank})], []
    if part:
        added.append(event(f"{part_name}.added", part={**part, key: ""}))
        done.append(event(f"{part_name}.done", part=part))
    words = [event(f"{kind}.delta", delta=word) for word in message.words]
    done = [event(f"{kind}.done", **{key: message.said}), *done]
    done.append(event("output_item.done", item=item))
    output = [item]
    if not message.said and message.content is None:
        output, added, words, done = [], [], [], []
    usage = message.usage(asked, "input", "output")
    whole = response_body(
        asked, number, state, output=output, incomplete_details=details, usage=usage
    )
    begun = response_body(asked, number, "in_progress")
    started = ("response.created", "response.in_progress")
    opening = [{"type": name, "response": begun} for name in started]
    ended = {"type": f"response.{state}", "response": whole}
    return Wire(whole, opening + added, words, [*done, ended])


def error_body(
    message: str, kind: str | None = "invalid_request_error", param: Any = None, code: Any = None
) -> Json:
    """What stands in the body of an HTTP error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
