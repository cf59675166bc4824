"""A real HTTP server that speaks OpenAI's two text APIs, and misbehaves on demand.

It serves `/v1/chat/completions` and `/v1/responses`, whole and streamed, as OpenAI's API reference
describes them. A case is one answer; the server picks its form on the wire from the path and from
`stream`. As a fixture:

    @pytest.fixture
    def server() -> Iterator[OpenAIServer]:
        with OpenAIServer() as running:
            yield running
"""

import json
import re
import select
import socket
import socketserver
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import cycle
from typing import Any, NamedTuple, Self

Json = dict[str, Any]
Case = Callable[["Exchange"], None]


class OpenAIServer(socketserver.ThreadingTCPServer):
    """The server, on a free port of 127.0.0.1: a context manager that leaves no thread behind.

    Attributes:
        url: what to pass as `base_url`.
        requests: the bodies that came in, in order, each with its "_path" and "_headers" (names in
            lower case) added. A retry is one more request.
        held: connections whose answers are, or were for a while, held back.
    """

    daemon_threads = False  # so that server_close() waits for every one
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.requests: list[Json] = []
        self.held: set[socket.socket] = set()
        self.lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cases: deque[Case] = deque()
        self._errors: list[BaseException] = []

    def answer(self, *cases: Case) -> None:
        """Answer the next requests so; the last case repeats. Replaces what was queued before."""
        with self.lock:
            self._cases = deque(cases)

    def release(self) -> None:
        """End every answer that is being held back, by closing its connection."""
        self._hang_up(self.held)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))  # seconds
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self._hang_up(self._open)
        self.server_close()
        if self._errors and kind is None:
            raise self._errors[0]

    def take(self, request: Json) -> tuple[int, Case]:
        """Note a request; return its number, from 1, and what it is to be answered with."""
        with self.lock:
            self.requests.append(request)
            if not self._cases:
                raise RuntimeError("a request came, but no answer is queued: call answer() first")
            case = self._cases.popleft() if len(self._cases) > 1 else self._cases[0]
            return len(self.requests), case

    def _hang_up(self, connections: set[socket.socket]) -> None:
        with self.lock:
            for connection in connections:
                with suppress(OSError):  # the other side was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self._open.discard(request)
            self.held.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep faults of the server itself for `__exit__`; connections end as they like."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self._errors.append(error)


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


class Exchange(BaseHTTPRequestHandler):
    """One request, and the means to answer it.

    Every connection ends with its answer: one that was kept open would keep its thread, too.
    """

    protocol_version = "HTTP/1.1"
    server: OpenAIServer

    def do_POST(self) -> None:
        self.body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.close_connection = True
        self.streamed = bool(self.body.get("stream"))
        self.responses_api = self.path == "/v1/responses"
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.number, case = self.server.take({**self.body, "_path": self.path, "_headers": headers})
        if not self.responses_api and self.path != "/v1/chat/completions":
            case = status(404, _error(f"Invalid URL (POST {self.path})"))
        case(self)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def wire(self, message: Message) -> Wire:
        return (_responses_wire if self.responses_api else _chat_wire)(message, self)

    def head(self, code: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        self.send_response(code)
        given = {"connection": "close", "x-request-id": f"req_{self.number}", **headers}
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, code: int, body: Any, headers: Mapping[str, str]) -> None:
        """Send an answer in one piece: text as HTML, None as an empty body, all else as JSON."""
        for half in self.halves(code, body, headers):
            self.wfile.write(half)

    def halves(self, code: int, body: Any, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Send the head of an answer, and return its body in two halves."""
        kind = "text/html" if isinstance(body, str) else "application/json"
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        raw = text.encode()
        self.head(code, {"content-type": kind, "content-length": str(len(raw)), **headers})
        return raw[: len(raw) // 2], raw[len(raw) // 2 :]

    def stream(self, kind: str = "text/event-stream") -> None:
        """Send the head of an answer whose length nobody knows."""
        self.sent = 0
        self.head(200, {"content-type": kind, "transfer-encoding": "chunked"})

    def chunk(self, raw: bytes) -> None:
        """Send a piece of a stream; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def events(self, events: list[Json]) -> None:
        """Send events of a stream; those of the Responses API are named and numbered."""
        for event in events:
            name, data = "", event
            if self.responses_api:
                name = f"event: {event['type']}\n"
                data = {**event, "sequence_number": self.sent}
            self.sent += 1
            self.chunk(f"{name}data: {json.dumps(data)}\n\n".encode())

    def end(self) -> None:
        if not self.responses_api:
            self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def say(self, message: Message, pause: Callable[[], None] = lambda: None) -> None:
        """Send a message, pausing when half of the body or all words of the stream are out."""
        wire = self.wire(message)
        if self.streamed:
            self.stream()
            self.events(wire.opening + wire.words)
            pause()
            self.events(wire.closing)
            self.end()
        else:
            first, second = self.halves(200, wire.whole, {})
            self.wfile.write(first)
            pause()
            self.wfile.write(second)

    def hold(self, seconds: float | None = None) -> None:
        """Do nothing for a number of seconds, or for ever.

        Raises:
            ConnectionAbortedError: the client hung up, or `release` was called.
        """
        with self.server.lock:
            self.server.held.add(self.connection)
        ended, _, _ = select.select([self.connection], [], [], seconds)
        if ended:
            self.drop()

    def drop(self) -> None:
        """Close the connection here, whatever was sent.

        Raises:
            ConnectionAbortedError: always.
        """
        raise ConnectionAbortedError


def _chat_wire(message: Message, exchange: Exchange) -> Wire:
    usage = message.usage(exchange.body, "prompt", "completion")
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
        call = {"id": f"call_{exchange.number}", "type": "function"}
        said |= {"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}
        blank = {"index": 0, **call, "function": {"name": name, "arguments": ""}}
        first |= {"content": None, "tool_calls": [blank]}
        parts = [{"index": 0, "function": {"arguments": word}} for word in message.words]
        deltas = [{"tool_calls": [part]} for part in parts]

    def body(kind: str, choices: list[Json], **more: Any) -> Json:
        head = {"id": f"chatcmpl-{exchange.number}", "object": kind, "created": 1_760_000_000}
        return {**head, "model": exchange.body.get("model"), "choices": choices, **more}

    # Where usage was asked for, every chunk has the key, and one more at the end has the numbers.
    asked = (exchange.body.get("stream_options") or {}).get("include_usage")

    def event(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return body("chat.completion.chunk", [choice], **({"usage": None} if asked else {}))

    closing = [event({}, message.finish)]
    if asked:
        closing.append(body("chat.completion.chunk", [], usage=usage))
    choice = {"index": 0, "message": said, "finish_reason": message.finish}
    whole = body("chat.completion", [choice], usage=usage)
    return Wire(whole, [event(first)], [event(delta) for delta in deltas], closing)


def _response(exchange: Exchange, state: str, **more: Any) -> Json:
    given = {"model": exchange.body.get("model"), "status": state, "output": [], "tools": []}
    head = {"id": f"resp_{exchange.number}", "object": "response", "created_at": 1_760_000_000}
    unset = dict.fromkeys(("error", "incomplete_details", "instructions", "usage"))
    chosen = {"parallel_tool_calls": True, "tool_choice": "auto", "temperature": 1.0, "top_p": 1.0}
    return {**head, **unset, **chosen, **given, "metadata": {}, **more}


def _responses_wire(message: Message, exchange: Exchange) -> Wire:
    reason = {"length": "max_output_tokens"}.get(message.finish, message.finish)
    details = {"reason": reason} if message.finish in ("length", "content_filter") else None
    state = "incomplete" if details else "completed"
    # The one item; what it is before its text comes; what the text's events and field are called.
    part: Json | None = None
    if message.call:
        name, arguments = message.call
        item: Json = {"type": "function_call", "call_id": f"call_{exchange.number}", "name": name}
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
    item["id"] = f"{prefix}_{exchange.number}"
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
    usage = message.usage(exchange.body, "input", "output")
    whole = _response(exchange, state, output=output, incomplete_details=details, usage=usage)
    begun = _response(exchange, "in_progress")
    started = ("response.created", "response.in_progress")
    opening = [{"type": name, "response": begun} for name in started]
    ended = {"type": f"response.{state}", "response": whole}
    return Wire(whole, opening + added, words, [*done, ended])


# Answers that are what they should be, or are empty in one of the ways in which answers are.


def _says(message: Message) -> Case:
    return lambda exchange: exchange.say(message)


def text(
    content: str,
    *,
    prompt_tokens: int | None = None,
    cached_tokens: int = 0,
    completion_tokens: int | None = None,
) -> Case:
    """A plain answer. Numbers of tokens that are not given are worked out from the lengths."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return _says(Message(content, cached_tokens=cached_tokens, **usage))


def empty(content: str | None = "") -> Case:
    """An answer without text: content "", or with None null and no output item."""
    return _says(Message(content))


def refusal(message: str = "I'm sorry, but I can't help with that.") -> Case:
    """A refusal in the field that is meant for it."""
    return _says(Message(refusal=message))


def reasoning_only(reasoning: str = "The user wants a summary. First") -> Case:
    """Reasoning, and then no answer."""
    return _says(Message(reasoning=reasoning))


def cut_off(content: str) -> Case:
    """An answer that met the limit of output tokens."""
    return _says(Message(content, finish="length"))


def content_filter(content: str = "") -> Case:
    """An answer that the provider's filter ended."""
    return _says(Message(content, finish="content_filter"))


def tool_call(name: str, args: Json | str) -> Case:
    """A call of a tool; arguments given as text are sent as they are, valid or not."""
    arguments = args if isinstance(args, str) else json.dumps(args)
    return _says(Message(call=(name, arguments), finish="tool_calls"))


# HTTP statuses, with OpenAI's codes (platform.openai.com/docs/guides/error-codes).


def status(code: int, body: Any = None, headers: Mapping[str, str] | None = None) -> Case:
    """Any HTTP status with any body: JSON, HTML text, or none at all."""
    return lambda exchange: exchange.send(code, body, headers or {})


def _error(
    message: str, kind: str | None = "invalid_request_error", param: Any = None, code: Any = None
) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def unauthorized() -> Case:
    return status(401, _error("Incorrect API key provided: unused.", code="invalid_api_key"))


def forbidden() -> Case:
    code = "unsupported_country_region_territory"
    return status(403, _error("Country not supported.", "request_forbidden", code=code))


def rate_limited(retry_after_seconds: float) -> Case:
    message = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29500, Requested 900."
    body = _error(message, "tokens", code="rate_limit_exceeded")
    return status(429, body, {"retry-after": str(retry_after_seconds)})


def server_error() -> Case:
    return status(500, _error("The server had an error processing your request.", "server_error"))


def unavailable() -> Case:
    return status(503, _error("The engine is currently overloaded.", "service_unavailable_error"))


def not_json() -> Case:
    """Status 200 with a web page, as from a proxy or a wrong `base_url`."""
    return status(200, "<html><body>Bad gateway</body></html>")


# Faults of time and of the connection.

_LONG = Message("This answer takes its time, and it never comes to its end, however long you wait.")


def silent() -> Case:
    """The request is taken, and nothing is ever answered."""
    return lambda exchange: exchange.hold()


def slow(case: Case, seconds: float) -> Case:
    """A case that comes late."""

    def late(exchange: Exchange) -> None:
        exchange.hold(seconds)
        case(exchange)

    return late


def stalled_stream(words: str, then: float | None = None) -> Case:
    """Words, and then nothing; a whole answer stops in the middle of its body.

    Args:
        words: the text that is sent.
        then: seconds after which the answer comes to its end after all; None: it never does.
    """
    message = Message(words)
    return lambda exchange: exchange.say(message, partial(exchange.hold, then))


def trickle(seconds_between: float) -> Case:
    """Word after word, for ever: no time-out between two reads ever ends it.

    A whole answer sends white space before its body, as DeepSeek does to keep connections alive
    (api-docs.deepseek.com/quick_start/rate_limit).
    """

    def drip(exchange: Exchange) -> None:
        wire = exchange.wire(_LONG)
        exchange.stream("text/event-stream" if exchange.streamed else "application/json")
        if exchange.streamed:
            exchange.events(wire.opening)
        for word in cycle(wire.words):
            exchange.hold(seconds_between)
            if exchange.streamed:
                exchange.events([word])
            else:
                exchange.chunk(b"\n")

    return drip


def dropped() -> Case:
    """The connection closes without an answer."""
    return lambda exchange: exchange.drop()


def dropped_midway() -> Case:
    """The connection closes in the middle of the body or the stream."""
    return lambda exchange: exchange.say(_LONG, exchange.drop)


def refused_url() -> str:
    """A URL on which nothing listens: only the administrator could open port 1 (RFC 1078)."""
    return "http://127.0.0.1:1/v1"


# Context overflow, in the words and the shape of each provider.


def _midway(code: int, error: Json) -> Case:
    """An error in the middle of a stream; a whole answer has the status and the error as body."""

    def case(exchange: Exchange) -> None:
        if not exchange.streamed:
            exchange.send(code, {"error": error}, {})
            return
        exchange.stream()
        exchange.events(exchange.wire(Message()).opening)
        exchange.events([{"type": "error", "error": error}])
        exchange.end()

    return case


def _failed(code: int, error: Json) -> Case:
    """A response of status "failed". Chat Completions have none: they answer as `status` does."""

    def case(exchange: Exchange) -> None:
        failed = _response(exchange, "failed", error=error)
        if not exchange.responses_api:
            exchange.send(code, {"error": error}, {})
        elif not exchange.streamed:
            exchange.send(200, failed, {})
        else:
            exchange.stream()
            exchange.events(exchange.wire(Message()).opening)
            exchange.events([{"type": "response.failed", "response": failed}])
            exchange.end()

    return case


_SHAPES: dict[str, Callable[[int, Json], Case]] = {
    "error": lambda code, error: status(code, {"error": error}),
    "list": lambda code, error: status(code, [{"error": error}]),
    "top": status,
    "word": lambda code, error: status(code, {"error": error.pop("message"), **error}),
    "midway": _midway,
    "failed": _failed,
}


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return written


def _table(written: str) -> dict[str, Case]:
    """Cases from lines "name: status shape key=value ... # source", each with its message below."""
    cases = {}
    for head, below in re.findall(r"^(\S.*)\n((?: .*\n)+)", written, re.MULTILINE):
        name, _, rest = head.partition(" # ")[0].partition(": ")
        code, shape, *pairs = rest.split()
        fields = {key: _value(value) for key, _, value in (pair.partition("=") for pair in pairs)}
        cases[name] = _SHAPES[shape](int(code), {"message": " ".join(below.split()), **fields})
    return cases


# Each as users of the provider reported it; the sources that no line has room for:
# assafelovic/gpt-researcher#680, cline/cline#5474, anomalyco/opencode#6071 (window and midway),
# Azure/azure-sdk-for-net#41892, llmmllab/llmmllab-api#188, ggml-org/llama.cpp#15780,
# OpenHands/OpenHands#1902 (Groq); for Mistral, and for Cerebras without a body, the patterns of
# badlogic/pi-mono, packages/ai/src/utils/overflow.ts. The proxy's page is nginx's.
OVERFLOWS = _table("""\
openai: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    This model's maximum context length is 128000 tokens. However, your messages resulted in 192041
    tokens. Please reduce the length of the messages.
openai input: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650
    tokens. Please reduce the length of the messages.
openai window: 400 error type=invalid_request_error param=input code=context_length_exceeded
    Your input exceeds the context window of this model. Please adjust your input and try again.
openai midway: 400 midway type=invalid_request_error param=input code=context_length_exceeded
    Your input exceeds the context window of this model. Please adjust your input and try again.
openai failed: 400 failed code=context_length_exceeded # james-6-23/codex2api#310
    Your input exceeds the context window of this model. Please adjust your input and try again.
azure: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    This model's maximum context length is 32768 tokens. However, you requested 35969 tokens (9969
    in the messages, 26000 in the completion). Please reduce the length of the messages or
    completion.
llama.cpp: 400 error code=400 type=exceed_context_size_error n_prompt_tokens=120737 n_ctx=100096
    request (120737 tokens) exceeds the available context size (100096 tokens), try increasing it
llama.cpp 500: 500 error code=500 type=exceed_context_size_error n_prompt_tokens=1407 n_ctx=256
    the request exceeds the available context size. try increasing the context size or enable
    context shift
vllm: 400 error type=BadRequestError param=input_tokens code=400 # vllm-project/vllm#33425
    This model's maximum context length is 2048 tokens. However, your request has 2500 input tokens.
    Please reduce the length of the input messages. (parameter=input_tokens, value=2500)
vllm top: 400 top object=error type=BadRequestError param=null code=400 # vllm-project/vllm#20409
    This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591
    in the messages, 10000 in the completion). Please reduce the length of the messages or
    completion. None
sglang: 400 top object=error type=BadRequestError param=null code=400 # QwenLM/Qwen3#1321
    The input (61709 tokens) is longer than the model's context length (40960 tokens).
anthropic: 400 error type=invalid_request_error # anthropics/claude-code#62560
    prompt is too long: 211180 tokens > 200000 maximum
anthropic output: 400 error type=invalid_request_error # anthropics/claude-code#408
    input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease input
    length or `max_tokens` and try again
anthropic size: 413 error type=request_too_large # anthropics/anthropic-sdk-python#938
    Request exceeds the maximum size
gemini: 400 error code=400 status=INVALID_ARGUMENT # google-gemini/gemini-cli#4231
    The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).
gemini list: 400 list code=400 status=INVALID_ARGUMENT # google-gemini/gemini-cli#6678
    The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).
mistral: 400 top object=error type=invalid_request_invalid_args param=null code="3051"
    Prompt contains 159202 tokens and 0 draft tokens, too large for model with 131072 maximum
    context length
bedrock: 400 top # aws-samples/assessment-generator#2
    Input is too long for requested model.
together: 400 error type=invalid_request_error param=max_tokens code=null # BerriAI/litellm#4934
    Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125
    `inputs` tokens and 4096 `max_new_tokens`
deepseek: 400 error type=invalid_request_error code=invalid_request_error # bytedance/deer-flow#66
    This model's maximum context length is 65536 tokens. However, you requested 87731 tokens (87731
    in the messages, 0 in the completion). Please reduce the length of the messages or completion.
groq: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    Please reduce the length of the messages or completion.
cerebras: 400 error # cline/cline#5140
    Please reduce the length of the messages or completion. Current length is 42328 while limit is
    40000
xai: 400 word # cline/cline#3120
    This model's maximum prompt length is 131072 but the request contains 136973 tokens.
openrouter: 400 error code=400 metadata={"provider_name":null} # earendil-works/pi#6378
    This endpoint's maximum context length is 262000 tokens. However, you requested about 263390
    tokens (658 of text input, 732 of tool input, 262000 in the output). Please reduce the length of
    either one.
openrouter 200: 200 midway code=400 metadata={"provider_name":"Chutes"} # Aider-AI/aider#3721
    This endpoint's maximum context length is 131072 tokens. However, you requested about 141607
    tokens (10535 of text input, 131072 in the output). Please reduce the length of either one.
lm studio: 400 word # Gitlawb/openclaude#353
    The number of tokens to keep from the initial prompt is greater than the context length (n_keep:
    13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter
    input.
lm studio midway: 400 midway # lmstudio-ai/lmstudio-bug-tracker#2322
    The number of tokens to keep from the initial prompt is greater than the context length.
moonshot: 400 error type=invalid_request_error # MoonshotAI/kimi-cli#2011
    Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)
dashscope: 400 error type=invalid_request_error code=invalid_parameter_error # QwenPaw#6255
    <400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]
minimax: 400 error type=bad_request_error http_code="400" # rowboatlabs/rowboat#514
    invalid params, context window exceeds limit (2013)
copilot: 400 error code=model_max_prompt_tokens_exceeded # microsoft/copilot-intellij-feedback#94
    prompt token count of 138898 exceeds the limit of 64000
litellm: 400 error type=null param=null code="400" # OpenHands/OpenHands#5350
    litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError -
    {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209303
    tokens > 200000 maximum"}}
""")
OVERFLOWS["cerebras no body"] = status(413)
OVERFLOWS["proxy"] = status(413, "<html><h1>413 Request Entity Too Large</h1></html>")

LOOKALIKES = _table("""\
output limit: 400 error type=invalid_request_error param=max_tokens code=null # NextChat#3195
    max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you
    provided 8192.
long parameter: 400 error type=invalid_request_error param=user code=string_above_max_length
    Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with
    length 100 instead.
rate: 413 error type=tokens code=rate_limit_exceeded # ITSpecialist111/ai_automation_suggester#61
    Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 6000,
    Requested 14810, please reduce your message size and try again.
""")
"""Errors that speak of tokens or lengths, and are no context overflow."""


def overflow(shape: str) -> Case:
    """A context overflow; `OVERFLOWS` has the names."""
    return OVERFLOWS[shape]
