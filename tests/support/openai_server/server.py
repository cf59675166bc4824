"""The server and its exchanges: what comes in is kept, and a queued case answers it."""

import json
import select
import socket
import socketserver
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from tests.support.openai_server.wire import (
    Json,
    Message,
    Wire,
    chat_wire,
    error_body,
    responses_wire,
)

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
        if self.responses_api or self.path == "/v1/chat/completions":
            case(self)
        else:
            self.send(404, error_body(f"Invalid URL (POST {self.path})"), {})

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def wire(self, message: Message) -> Wire:
        """The message in the form of the API that is asked."""
        form = responses_wire if self.responses_api else chat_wire
        return form(message, self.body, self.number)

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
