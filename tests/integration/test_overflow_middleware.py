"""A provider that refuses the call of a `create_agent` agent as too long."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import BudgetError
from langgraph_compaction.middleware import CompactionMiddleware
from langgraph_compaction.run.overflow import is_overflow
from tests.integration.overflowing import (
    ANSWER,
    Unasked,
    Watched,
    assert_recovered,
    ran,
    refusing,
    said,
    sent,
    thread,
)
from tests.support.doubles import THREAD
from tests.support.openai_server import OVERFLOWS, OpenAIServer, rate_limited, text
from tests.support.openai_server.clients import HALF, wire_model
from tests.support.validity import violations

OVERFLOW = OVERFLOWS["openai"]
KINDS = (
    "openai",
    "openai input",
    "openai midway",
    "openai failed",
    "llama.cpp 500",
    "openrouter 200",
    "litellm",
    "proxy",
)
"""Of the shapes, those whose errors differ in class, status or moment."""
each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


@tool
def measure(part: int) -> str:
    """Measure a part."""
    return f"Part {part} is as drawn."


class Created(Watched):
    """An agent of `create_agent` with the middleware."""

    def __init__(
        self,
        model: Any,
        *,
        before: Sequence[Any] = (),
        after: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        self.events = []
        self.summariser = Unasked()
        compaction: Any = CompactionMiddleware(
            self.summariser,
            context_window=100_000,
            pinned={"contains": "[pin]"},
            hook=self.events.append,
            **options,
        )
        self.compact = compaction.node
        self.graph = create_agent(
            model,
            [measure],
            middleware=[*before, compaction, *after],
            system_prompt="You measure.",
            checkpointer=InMemorySaver(),
            store=InMemoryStore(),
        )

    def run(self, given: Any, way: str = "invoke") -> Any:
        return ran(self.graph, given, way)


def given(steps: int = 50) -> dict[str, Any]:
    return {"messages": thread(steps)[1:]}


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [(shape, *HALF[n % len(HALF)]) for n, shape in enumerate(KINDS)],
)
def test_every_providers_refusal_is_recovered_from(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    agent = Created(wire_model(server, wire, "m"))
    state = agent.run(given(), way)
    assert state["messages"][-1].text == ANSWER
    assert_recovered(agent, server)
    assert len(state["messages"]) == 103
    assert violations(agent.compact.view(state)[:-1]) == []


@each_way
def test_the_record_commits_with_the_answer(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Created(wire_model(server, "chat-whole", "m"))
    state = agent.run(given(), way)
    assert state["compaction"]["overflow"]["node"] == "model"
    assert len(state["compaction"]["segments"]) == 1
    # So the next call is not refused again.
    agent.run({"messages": [HumanMessage("And part 51?")]}, way)
    assert len(server.requests) == 3
    assert len(sent(server)) == 3


@each_way
def test_a_retry_that_fails_otherwise_leaves_the_thread_as_it_was(
    server: OpenAIServer, way: str
) -> None:
    server.answer(OVERFLOW, rate_limited(7), OVERFLOW, text(ANSWER))
    agent = Created(wire_model(server, "chat-whole", "m"))
    with pytest.raises(Exception, match="429"):
        agent.run(given(), way)
    assert agent.graph.get_state(THREAD).values.get("compaction", {}) == {}
    assert agent.run(None, way)["messages"][-1].text == ANSWER
    assert len(server.requests) == 4


@each_way
def test_refused_twice_it_is_a_budget_error_with_sizes(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW)
    agent = Created(wire_model(server, "chat-whole", "m"))
    with pytest.raises(BudgetError, match="although it was reduced") as caught:
        agent.run(given(), way)
    assert len(server.requests) == 2
    assert sum(caught.value.sizes.values()) == agent.events[-2]["tokens_after"]
    assert is_overflow(caught.value.__cause__)


@each_way
@pytest.mark.parametrize("off", [{"enabled": False}, {"trigger": None}], ids=str)
def test_off_is_off(server: OpenAIServer, off: dict[str, Any], way: str) -> None:
    server.answer(OVERFLOW)
    agent = Created(wire_model(server, "chat-whole", "m"))
    with pytest.raises(Exception, match="maximum context length") as caught:
        agent.run({**given(), "compaction_settings": off}, way)
    assert not isinstance(caught.value, BudgetError)
    assert len(server.requests) == 1
    assert agent.events == []


@each_way
def test_nothing_is_pruned_before_the_next_fold(server: OpenAIServer, way: str) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Created(wire_model(server, "chat-whole", "m"), history="prune")
    state = agent.run(given(), way)
    assert_recovered(agent, server)
    assert len(state["messages"]) == 103
    assert "pruned" not in state["compaction"]


@each_way
def test_a_retry_and_a_fallback_around_it_see_its_errors(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW, OVERFLOW, text(ANSWER))
    small, large = (wire_model(server, "chat-whole", name) for name in ("small", "large"))
    agent = Created(small, before=[ModelFallbackMiddleware(large)])
    state = agent.run(given(), way)
    assert state["messages"][-1].text == ANSWER
    assert [request["model"] for request in server.requests] == ["small", "small", "large"]
    # The larger window gets the whole view.
    assert said(server.requests[0]) == said(server.requests[2])
    assert state.get("compaction", {}) == {}


def retrying(**options: Any) -> ModelRetryMiddleware[Any]:
    """LangChain's middleware, without its pauses."""
    return ModelRetryMiddleware(initial_delay=0, jitter=False, **options)


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [(shape, *HALF[n % len(HALF)]) for n, shape in enumerate(KINDS)],
)
def test_a_retry_around_it_sees_no_refusal(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    server.answer(refusing(OVERFLOWS[shape]))
    agent = Created(wire_model(server, wire, "m"), before=[retrying()])
    assert agent.run(given(), way)["messages"][-1].text == ANSWER
    assert_recovered(agent, server)


@pytest.mark.parametrize(
    ("shape", "wire", "way"),
    [(shape, *HALF[n % len(HALF)]) for n, shape in enumerate(KINDS)],
)
def test_a_retry_around_it_makes_no_call_that_was_refused_twice(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    """`BudgetError` is an overflow to LangChain, too, and those are not retried."""
    server.answer(OVERFLOWS[shape])
    agent = Created(wire_model(server, wire, "m"), before=[retrying()])
    with pytest.raises(BudgetError):
        agent.run(given(), way)
    assert len(server.requests) == 2


@each_way
@pytest.mark.parametrize("shape", ["openai", "llama.cpp 500", "openrouter 200", "proxy"])
def test_a_retry_inside_it_has_the_first_say(server: OpenAIServer, shape: str, way: str) -> None:
    """What LangChain does not know as an overflow is retried, and then answered in its place.

    So docs/how-to/create-agent-middleware.md has it before ours, or with on_failure="error".
    """
    server.answer(refusing(OVERFLOWS[shape]))
    agent = Created(wire_model(server, "chat-whole", "m"), after=[retrying()])
    state = agent.run(given(), way)
    if shape == "openai":
        assert_recovered(agent, server)
        return
    assert state["messages"][-1].text.startswith("Model call failed after 3 attempts")
    assert (len(server.requests), agent.events) == (3, [])
    server.requests.clear()
    raising = Created(
        wire_model(server, "chat-whole", "m"), after=[retrying(max_retries=1, on_failure="error")]
    )
    assert raising.run(given(), way)["messages"][-1].text == ANSWER
    assert len(server.requests) == 3


@each_way
def test_a_fallback_inside_it_is_asked_before_anything_is_reduced(
    server: OpenAIServer, way: str
) -> None:
    small, large = (wire_model(server, "chat-whole", name) for name in ("small", "large"))
    server.answer(OVERFLOW, text(ANSWER))
    agent = Created(small, after=[ModelFallbackMiddleware(large)])
    assert agent.run(given(), way)["messages"][-1].text == ANSWER
    assert [request["model"] for request in server.requests] == ["small", "large"]
    assert said(server.requests[0]) == said(server.requests[1])
    assert agent.events == []


@each_way
def test_a_view_that_all_fallbacks_refuse_is_reduced(server: OpenAIServer, way: str) -> None:
    small, large = (wire_model(server, "chat-whole", name) for name in ("small", "large"))
    server.answer(refusing(OVERFLOW))
    agent = Created(small, after=[ModelFallbackMiddleware(large)])
    assert agent.run(given(), way)["messages"][-1].text == ANSWER
    assert [request["model"] for request in server.requests] == ["small", "large", "small"]
    assert agent.kinds == ["started", "completed"]


@each_way
def test_a_last_fallback_that_fails_otherwise_ends_the_run(server: OpenAIServer, way: str) -> None:
    """It has the last word: the view may be right for the model that could not be reached."""
    small, large = (wire_model(server, "chat-whole", name) for name in ("small", "large"))
    server.answer(OVERFLOW, rate_limited(0))
    agent = Created(small, after=[ModelFallbackMiddleware(large)])
    with pytest.raises(Exception, match="429"):
        agent.run(given(), way)
    assert (len(server.requests), agent.events) == (2, [])


@each_way
@pytest.mark.parametrize("retry_first", [True, False])
def test_retry_and_fallback_together(server: OpenAIServer, retry_first: bool, way: str) -> None:
    """As docs/how-to/create-agent-middleware.md orders them: one reduction for each model."""
    small, large = (wire_model(server, "chat-whole", name) for name in ("small", "large"))
    stack = [retrying(on_failure="error"), ModelFallbackMiddleware(large)]
    server.answer(OVERFLOW, OVERFLOW, rate_limited(0), text(ANSWER))
    agent = Created(small, before=stack if retry_first else stack[::-1])
    assert agent.run(given(), way)["messages"][-1].text == ANSWER
    names = [request["model"] for request in server.requests]
    # Around the fallback, the retry begins with the small model again.
    assert names == ["small", "small", "large", "small" if retry_first else "large"]


@each_way
def test_a_retry_inside_it_repeats_the_second_call(server: OpenAIServer, way: str) -> None:
    server.answer(OVERFLOW, rate_limited(0), text(ANSWER))
    inside = ModelRetryMiddleware(max_retries=1, on_failure="error", initial_delay=0.01)
    agent = Created(wire_model(server, "chat-whole", "m"), after=[inside])
    state = agent.run(given(), way)
    assert state["messages"][-1].text == ANSWER
    assert len(server.requests) == 3
    assert agent.kinds == ["started", "completed"]


class Shortening(AgentMiddleware[Any, Any]):
    """Takes messages out of the request before the view is made of it."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages[:3], *request.messages[5:]]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(
            request.override(messages=[*request.messages[:3], *request.messages[5:]])
        )


@each_way
def test_a_record_of_other_messages_than_the_states_is_not_committed(
    server: OpenAIServer, way: str
) -> None:
    server.answer(refusing(OVERFLOW))
    agent = Created(wire_model(server, "chat-whole", "m"), before=[Shortening()])
    state = agent.run(given(), way)
    assert state["messages"][-1] == AIMessage(**state["messages"][-1].model_dump())
    assert state["messages"][-1].text == ANSWER
    assert_recovered(agent, server)
    assert state.get("compaction", {}) == {}
