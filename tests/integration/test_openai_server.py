"""langchain-openai's ChatOpenAI over real HTTP: what arrives, and what a bad answer does.

A local server speaks as much of OpenAI's Chat Completions as it takes. The agent's model and the
summariser are two model names on it.
"""

import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessageChunk,
    HumanMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from langgraph_compaction import CompactionNode, model_view
from tests.support.doubles import (
    DIGEST_WORD,
    STEPS,
    assert_folded_once,
    digest,
    loop,
    markers,
    request,
    steps_done,
    work,
    worker,
)

AGENT, SUMMARISER = "gpt-5", "gpt-5-mini"
# The hard limit is far away: there a failed summary is replaced by extracts.
LIMITS: dict[str, Any] = {"context_window": 100_000, "trigger": ("tokens", 2_000)}

Answer = Callable[[], Response]


def completion(message: dict[str, Any], finish_reason: str = "stop") -> Response:
    """A whole answer in one body."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": message}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Response(json.dumps(body), content_type="application/json")


def text(content: str | None, finish_reason: str = "stop", **more: Any) -> Response:
    """An answer of the assistant."""
    return completion({"role": "assistant", "content": content, **more}, finish_reason)


def streamed(message: dict[str, Any]) -> Response:
    """An answer as server-sent events, word by word."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in (message["content"] or "").split(" ")]
    for n, call in enumerate(message.get("tool_calls") or ()):
        deltas.append({"tool_calls": [{"index": n, **call}]})

    def events() -> Iterator[str]:
        for delta in [*deltas, {}]:
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            yield f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    return Response(events(), content_type="text/event-stream")


class Provider:
    """The server: keeps the bodies of all requests, and answers as the models would."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("/v1")
        self.bodies: dict[str, list[dict[str, Any]]] = {AGENT: [], SUMMARISER: []}
        self.summary: Answer | None = None  # None: a digest that is accepted
        server.expect_request("/v1/chat/completions").respond_with_handler(self._handle)

    def model(self, name: str, url: str | None = None) -> ChatOpenAI:
        return ChatOpenAI(
            model=name, api_key=SecretStr("unused"), base_url=url or self.url, max_retries=0
        )

    def _handle(self, incoming: Request) -> Response:
        body = json.loads(incoming.get_data())
        if body["model"] == AGENT and "tools" not in body:
            # The last tier of the cascade: here the server has nothing to say to it.
            return Response("busy", status=503)
        self.bodies[body["model"]].append(body)
        if body["model"] == SUMMARISER:
            if self.summary is not None:
                return self.summary()
            content = digest(len(self.bodies[SUMMARISER]))
            message: Any = {"role": "assistant", "content": content}
        else:
            reply = worker().reply(convert_to_messages(body["messages"]))
            message = convert_to_openai_messages(reply)
        return streamed(message) if body.get("stream") else completion(message)


@pytest.fixture
def provider(httpserver: HTTPServer) -> Provider:
    return Provider(httpserver)


def graph_of(provider: Provider, summariser: Any) -> Any:
    """An agent with tools, bound for the server's agent model, that compacts."""
    compact = CompactionNode(summariser, agent_model=provider.model(AGENT), **LIMITS)
    return loop(compact, provider.model(AGENT).bind_tools([work]))


def asked(last: int) -> Any:
    return {"messages": [request(1, last)]}


def markers_of(body: dict[str, Any]) -> list[str]:
    return markers([HumanMessage(body["messages"][-1]["content"])])


def assert_requests(provider: Provider, state: dict[str, Any]) -> None:
    """What has to hold of all requests of a run in which every summary was accepted."""
    summaries = provider.bodies[SUMMARISER]
    for body in summaries:
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert "tools" not in body
        assert "functions" not in body
    shown = {message.id for message in model_view(state)}
    hidden = [m for m in state["messages"] if m.id not in shown]
    expected = [name for m in hidden for name in re.findall(r"^(?:call|result)-\d+", m.text)]
    folded = [name for body in summaries for name in markers_of(body)]
    assert folded == expected
    assert_folded_once(folded)
    agent = provider.bodies[AGENT]
    assert all(body["tools"] for body in agent)
    last = agent[-1]["messages"]
    assert [m["role"] for m in last if DIGEST_WORD in str(m["content"])] == ["user"]
    for number in range(1, len(summaries) + 1):
        assert f"{DIGEST_WORD} entry {number}:" in str(last)


def test_requests_of_a_run_with_accepted_summaries(provider: Provider) -> None:
    graph = graph_of(provider, provider.model(SUMMARISER))
    state = graph.invoke(asked(40), STEPS)
    assert steps_done(state["messages"]) == list(range(1, 41))
    assert len(provider.bodies[SUMMARISER]) > 1
    assert_requests(provider, state)


async def test_requests_of_an_async_run(provider: Provider) -> None:
    graph = graph_of(provider, provider.model(SUMMARISER))
    state = await graph.ainvoke(asked(20), STEPS)
    assert steps_done(state["messages"]) == list(range(1, 21))
    assert_requests(provider, state)


def test_a_streaming_run_shows_the_agent_and_nothing_of_the_summary(provider: Provider) -> None:
    graph = graph_of(provider, provider.model(SUMMARISER))
    shown, state = [], {}
    for mode, part in graph.stream(asked(20), STEPS, stream_mode=["messages", "values"]):
        if mode == "messages":
            shown.append(part[0])
        else:
            state = part
    assert_requests(provider, state)
    streamed_texts = [m.text for m in shown if isinstance(m, AIMessageChunk)]
    assert "Finished " in streamed_texts
    assert not any(DIGEST_WORD in m.text or "Goal" in m.text for m in shown)
    assert {m.id for m in shown if m.id} <= {m.id for m in state["messages"]}


CALL = {"id": "x", "type": "function", "function": {"name": "work", "arguments": '{"n": 1}'}}
BAD_ANSWERS: dict[str, Answer] = {
    "500": lambda: Response('{"error": {"message": "boom", "type": "server_error"}}', 500),
    "not JSON": lambda: Response("<html>Bad gateway</html>", content_type="text/html"),
    "empty": lambda: text(""),
    "refusal field": lambda: text(None, refusal="I cannot help with that, as a matter of policy."),
    "refusal text": lambda: text(
        "I'm sorry, but I can't help with the request that you made here."
    ),
    "question back": lambda: text("Could you please provide the conversation to be summarized?"),
    "tool call": lambda: text(digest(1), "tool_calls", tool_calls=[CALL]),
    "cut off": lambda: text(digest(1), "length"),
    "filtered": lambda: text(digest(1), "content_filter"),
}


@pytest.mark.parametrize("fault", BAD_ANSWERS)
def test_a_bad_answer_changes_nothing_and_the_run_goes_on(provider: Provider, fault: str) -> None:
    provider.summary = BAD_ANSWERS[fault]
    assert_unfolded(provider, graph_of(provider, provider.model(SUMMARISER)))
    assert provider.bodies[SUMMARISER]


def test_a_refused_connection_changes_nothing_and_the_run_goes_on(provider: Provider) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        assert_unfolded(provider, graph_of(provider, provider.model(SUMMARISER, url)))


def assert_unfolded(provider: Provider, graph: Any) -> None:
    """A run to the end in which no summary is accepted."""
    events: list[Any] = []
    state: Any = {}
    for mode, part in graph.stream(asked(16), STEPS, stream_mode=["custom", "values"]):
        if mode == "custom":
            events.append(part["type"])
        else:
            state = part
    assert steps_done(state["messages"]) == list(range(1, 17))
    assert "compaction.failed" in events
    assert "compaction.completed" not in events
    assert not state["compaction"].get("segments")
    assert state["compaction"].get("last_summarized_index", -1) == -1
    assert model_view(state) == state["messages"]
    last = provider.bodies[AGENT][-1]["messages"]
    assert len(last) == len(state["messages"]) - 1


def test_a_summary_is_made_once_the_server_is_well_again(provider: Provider) -> None:
    provider.summary = BAD_ANSWERS["500"]
    graph = graph_of(provider, provider.model(SUMMARISER))
    state = graph.invoke(asked(16), STEPS)
    failed = len(provider.bodies[SUMMARISER])
    assert failed
    provider.summary = None
    more = {**state, "messages": [*state["messages"], request(17, 40)]}
    state = graph.invoke(more, STEPS)
    assert steps_done(state["messages"]) == list(range(1, 41))
    del provider.bodies[SUMMARISER][:failed]
    folded = [name for body in provider.bodies[SUMMARISER] for name in markers_of(body)]
    assert folded[:2] == ["call-0001", "result-0001"]
    assert_folded_once(folded)


def test_a_name_is_built_at_first_use_with_the_environment_of_that_time(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(provider, SUMMARISER)
    # Without a key nothing can be built: a failed tier, not a failed run.
    assert_unfolded(provider, graph)
    assert provider.bodies[SUMMARISER] == []
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    state = graph.invoke(asked(20), STEPS)
    assert state["compaction"]["segments"][0]["model"] == SUMMARISER
    assert_requests(provider, state)
