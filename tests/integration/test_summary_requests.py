"""What a summary call sends to OpenAI's two APIs: the prompt, and the options that fit the model.

The rules are those of `langgraph_compaction.run.options`: no option that the model was given
already, none that LangChain's profile of it excludes, and none that the provider has refused.
"""

import pytest
from langchain_openai import ChatOpenAI

from langgraph_compaction import ModelTier
from tests.support.openai_server import (
    LOOKALIKES,
    Case,
    Exchange,
    Json,
    OpenAIServer,
    empty,
    text,
    unsupported,
)
from tests.support.openai_server.clients import HALF, OTHER_HALF, WIRES, wire_model
from tests.support.openai_server.runs import (
    BAD,
    DIGEST,
    assert_digest,
    assert_unchanged,
    messages_of,
    run,
)

REASONING, CHATTING, UNKNOWN = "gpt-5-mini", "gpt-4.1-mini", "house-model"
"""Models of which LangChain's profile knows that they reason, that they do not, and nothing."""
CAP = 314
"""Tokens that the text of the digest may have: a fifth of the span, less what is quoted of the user
and what is kept free for names."""
CAP_NAMES = {"chat": "max_completion_tokens", "responses": "max_output_tokens"}

each_wire = pytest.mark.parametrize("wire", WIRES)
each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke"])
every_second = pytest.mark.parametrize(("wire", "way"), HALF)
each_api = pytest.mark.parametrize(("wire", "way"), [HALF[0], OTHER_HALF[3]])


@pytest.fixture(autouse=True)
def _answers(server: OpenAIServer) -> None:
    server.answer(text(DIGEST))


def options(request: Json) -> Json:
    """Temperature and cap of the answer as they were sent, under one name for both APIs."""
    found = {"temperature": request.get("temperature")}
    caps = [request[name] for name in (*CAP_NAMES.values(), "max_tokens") if name in request]
    found["cap"] = caps[0] if caps else None
    return {name: value for name, value in found.items() if value is not None}


def patience(request: Json) -> float | None:
    """Seconds for which the client waits for the next byte, as it tells the server."""
    seconds = request["_headers"].get("x-stainless-read-timeout")
    return None if seconds is None else float(seconds)


@each_way
@each_wire
@pytest.mark.parametrize("name", [REASONING, CHATTING, UNKNOWN])
def test_nothing_is_sent_but_what_is_needed(
    server: OpenAIServer, name: str, wire: str, way: str
) -> None:
    assert_digest(run(way, wire_model(server, wire, name)), name)
    (request,) = server.requests
    api = wire.partition("-")[0]
    prompt = {"chat": "messages", "responses": "input"}[api]
    own = {"_path", "_headers"}
    fitting = set() if name == REASONING else {"temperature", CAP_NAMES[api]}
    assert set(request) - own == {"model", "stream", prompt} | fitting
    assert [message["role"] for message in messages_of(request)] == ["system", "user"]
    assert request["stream"] is wire.endswith("streamed")
    assert patience(request) == 30.0


@each_api
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (REASONING, {}),
        (CHATTING, {"temperature": 0.1, "cap": 2 * CAP}),
        (UNKNOWN, {"temperature": 0.1, "cap": 2 * CAP + 2_000}),  # it may reason first
    ],
)
def test_options_fit_the_model(
    server: OpenAIServer, name: str, sent: Json, wire: str, way: str
) -> None:
    run(way, wire_model(server, wire, name))
    assert options(server.requests[0]) == sent


@each_api
@pytest.mark.parametrize(
    ("tier", "name", "sent"),
    [
        ({"temperature": 0.5}, CHATTING, {"temperature": 0.5, "cap": 2 * CAP}),
        ({"temperature": 0}, CHATTING, {"temperature": 0, "cap": 2 * CAP}),
        ({"temperature": None}, CHATTING, {"cap": 2 * CAP}),
        ({"temperature": 0.5}, REASONING, {}),
        ({"max_output": 300}, CHATTING, {"temperature": 0.1, "cap": 300}),
        ({"max_output": 5_000}, CHATTING, {"temperature": 0.1, "cap": 2 * CAP}),
        ({"max_output": 5_000}, REASONING, {"cap": 5_000}),
    ],
)
def test_options_of_the_tier(
    server: OpenAIServer, *, tier: Json, name: str, sent: Json, wire: str, way: str
) -> None:
    run(way, ModelTier(wire_model(server, wire, name), **tier))
    assert options(server.requests[0]) == sent


@each_api
@pytest.mark.parametrize("seconds", [7.0, 120.0])
def test_the_client_is_as_patient_as_the_attempt(
    server: OpenAIServer, seconds: float, wire: str, way: str
) -> None:
    run(way, ModelTier(wire_model(server, wire, UNKNOWN), timeout=seconds))
    assert patience(server.requests[0]) == seconds


@each_api
def test_without_a_limit_the_clients_own_patience_counts(
    server: OpenAIServer, wire: str, way: str
) -> None:
    chat = wire_model(server, wire, UNKNOWN)
    chat.invoke("Hi")
    run(way, ModelTier(chat, timeout=None))
    first, second = map(patience, server.requests)
    assert first == second


@each_api
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"temperature": 0.7}, {"temperature": 0.7, "cap": 2 * CAP + 2_000}),
        ({"temperature": 0.0}, {"temperature": 0.0, "cap": 2 * CAP + 2_000}),
        ({"max_tokens": 500}, {"temperature": 0.1, "cap": 500}),
    ],
)
def test_what_the_model_was_built_with_stays(
    server: OpenAIServer, *, given: Json, sent: Json, wire: str, way: str
) -> None:
    run(way, wire_model(server, wire, UNKNOWN, **given))
    assert options(server.requests[0]) == sent
    run(way, wire_model(server, wire, UNKNOWN, timeout=7.0))
    assert patience(server.requests[1]) == 7.0


@each_wire
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"temperature": 0.7}, {"temperature": 0.7, "cap": 2 * CAP + 2_000}),
        ({"max_tokens": 500}, {"temperature": 0.1, "cap": 500}),
    ],
)
def test_what_the_model_was_bound_with_stays(
    server: OpenAIServer, given: Json, sent: Json, wire: str
) -> None:
    chat = wire_model(server, wire, UNKNOWN)
    run("invoke", chat.bind(**given))
    assert options(server.requests[0]) == sent
    run("invoke", chat.bind(timeout=7.0))
    assert patience(server.requests[1]) == 7.0


@each_wire
def test_a_cap_that_was_bound_by_the_apis_own_name_stays(server: OpenAIServer, wire: str) -> None:
    name = CAP_NAMES[wire.partition("-")[0]]
    run("invoke", wire_model(server, wire, UNKNOWN).bind(**{name: 500}))
    assert options(server.requests[0]) == {"temperature": 0.1, "cap": 500}


@every_second
def test_the_agents_own_model_is_asked_without_its_tools(
    server: OpenAIServer, wire: str, way: str
) -> None:
    def measure(part: int) -> str:
        """Measure a part."""
        return f"{part} mm"

    def own_alone(exchange: Exchange) -> None:
        (empty() if exchange.body["model"] == BAD else text(DIGEST))(exchange)

    server.answer(own_alone)
    agent = wire_model(server, wire, UNKNOWN).bind_tools([measure], tool_choice="auto")
    found = run(way, wire_model(server, wire, BAD), agent_model=agent)
    assert_digest(found, UNKNOWN)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(server.requests[-1])


# Options that the provider refuses


def refusing(*names: str) -> Case:
    """A model that takes none of these parameters, and says so one by one, as OpenAI does."""

    def answer(exchange: Exchange) -> None:
        sent = [name for name in names if name in exchange.body]
        (unsupported(sent[0]) if sent else text(DIGEST))(exchange)

    return answer


@every_second
@pytest.mark.parametrize("refused", ["temperature", "cap", "both"])
def test_an_option_that_is_refused_is_left_out(
    server: OpenAIServer, refused: str, wire: str, way: str
) -> None:
    names = {"temperature": ["temperature"], "cap": [*CAP_NAMES.values()]}
    names["both"] = [*names["temperature"], *names["cap"]]
    server.answer(refusing(*names[refused]))
    found = run(way, wire_model(server, wire, UNKNOWN))
    assert_digest(found, UNKNOWN)
    assert found.kinds == ["started", "completed"]
    assert found.events[-1]["attempts"] == 1
    left_out = {"temperature", "cap"} if refused == "both" else {refused}
    assert len(server.requests) == 1 + len(left_out)
    assert set(options(server.requests[-1])) == {"temperature", "cap"} - left_out


@every_second
def test_it_is_left_out_from_then_on(server: OpenAIServer, wire: str, way: str) -> None:
    server.answer(refusing("temperature"))
    small = ModelTier(wire_model(server, wire, UNKNOWN), window=1_500)
    assert_digest(run(way, small), UNKNOWN)
    sent = ["temperature" in request for request in server.requests]
    assert len(sent) > 3
    assert sent == [True, *[False] * (len(sent) - 1)]


@each_api
def test_what_is_refused_without_it_is_a_failure(server: OpenAIServer, wire: str, way: str) -> None:
    server.answer(unsupported("temperature"))
    found = run(way, wire_model(server, wire, UNKNOWN))
    assert_unchanged(found)
    assert len(found.problems) == 1
    assert ["temperature" in request for request in server.requests] == [True, False]


@each_api
def test_an_option_of_the_users_is_not_left_out(server: OpenAIServer, wire: str, way: str) -> None:
    server.answer(refusing("temperature"))
    assert_unchanged(run(way, wire_model(server, wire, UNKNOWN, temperature=0.7)))
    assert len(server.requests) == 1


@each_api
def test_a_cap_above_what_the_model_takes(server: OpenAIServer, wire: str, way: str) -> None:
    def limited(exchange: Exchange) -> None:
        capped = "cap" in options(exchange.body)
        (LOOKALIKES["output limit"] if capped else text(DIGEST))(exchange)

    server.answer(limited)
    assert_digest(run(way, wire_model(server, wire, UNKNOWN)), UNKNOWN)
    assert len(server.requests) == 2


def test_a_name_is_asked_at_its_own_address(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert_digest(run("invoke", CHATTING), CHATTING)
    (request,) = server.requests
    assert options(request) == {"temperature": 0.1, "cap": 2 * CAP}
    assert patience(request) == 30.0
    assert ChatOpenAI(model=CHATTING).temperature is None  # what stands here was asked for by us
