"""One run of a graph whose summariser is a model at the server, and what is to be seen of it."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_compaction import CompactionNode, CompactionState, model_view
from tests.support.openai_server.cases import text
from tests.support.openai_server.server import Case, Exchange
from tests.support.openai_server.wire import Json

DIGEST = (
    "## Goal\nMeasure every part.\n## State now\nLogbook entry: all parts are as drawn so far.\n"
    "## Next step\nGo on with the part after."
)
"""A digest that is accepted."""
LIMITS: dict[str, dict[str, Any]] = {
    "soft": {"context_window": 50_000},  # tokens
    "hard": {"context_window": 1_000},
}
"""Settings with which the transcript is over the trigger, or over the hard limit, too."""
DONE = AIMessage("Done.", id="done")
"""What the agent says after the compaction."""
BAD, GOOD = "bad-model", "good-model"
"""Names of two models of which LangChain knows no profile."""
_MODES: Any = ["messages", "custom", "values"]


def transcript(steps: int = 12) -> list[BaseMessage]:
    """A task and some steps of about 200 tokens, each message with a marker, no two lines alike."""
    found: list[BaseMessage] = [HumanMessage("Measure every part.", id="task")]
    for n in range(1, steps + 1):
        calls = [tool_call(name="measure", args={"part": n}, id=f"c{n}")]
        found.append(AIMessage(f"call-{n:04}", tool_calls=calls, id=f"a{n}"))
        lines = [
            f"Dimension {n}.{i} is {7 * n + i} mm, which is within {i} percent of its drawing."
            for i in range(1, 7)
        ]
        result = "\n".join([f"result-{n:04}", *lines])
        found.append(ToolMessage(result, tool_call_id=f"c{n}", id=f"t{n}"))
    return found


def messages_of(request: Json) -> list[Json]:
    """The messages of a request to either API, each with its text in one piece."""
    return [
        {**message, "content": _text(message["content"])}
        for message in request.get("messages") or request["input"]
    ]


def prompt_of(request: Json) -> str:
    """The text of a request's last message."""
    return str(messages_of(request)[-1]["content"])


def markers_of(request: Json) -> list[str]:
    """The markers of the messages that a request for a summary holds, in order."""
    inside = prompt_of(request).partition("<transcript>\n")[2].rpartition("\n</transcript>")[0]
    return re.findall(r"(?:call|result|line)-\d{4}", inside)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content)


def bad_but_good(case: Case) -> Case:
    """The case for the model `BAD`, a digest for `GOOD`."""
    good = text(DIGEST)

    def chosen(exchange: Exchange) -> None:
        (good if exchange.body["model"] == GOOD else case)(exchange)

    return chosen


@dataclass(repr=False)  # asyncio.run() writes down what a coroutine returns
class Run:
    """What one run of the graph showed.

    Attributes:
        given: the messages with which it began.
        state: its last state.
        events: what the node sent to the custom stream, in order.
        shown: texts in ``stream_mode="messages"``.
        seconds: what it took.
    """

    given: list[BaseMessage]
    state: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, mode: str, part: Any) -> None:
        """Take one part of the stream."""
        if mode == "custom":
            self.events.append(part)
        elif mode == "messages":
            self.shown.append(part[0].text)
        else:
            self.state = part

    @property
    def kinds(self) -> list[str]:
        """The types of the events, without what they have in common."""
        return [event["type"].removeprefix("compaction.") for event in self.events]

    @property
    def problems(self) -> list[tuple[str, str, str]]:
        """Type, tier and reason of the events that say why a call brought no digest."""
        return [
            (kind, event["tier"], event["reason"])
            for kind, event in zip(self.kinds, self.events, strict=True)
            if "tier" in event
        ]

    @property
    def hidden(self) -> list[str]:
        """The markers of the messages that the view hides, in order."""
        shown = {message.id for message in model_view(self.state)}
        messages = [message for message in self.state["messages"] if message.id not in shown]
        return [message.text.partition("\n")[0] for message in messages]

    @property
    def writers(self) -> list[str]:
        """Who wrote the segments of the digest."""
        return [segment["model"] for segment in self.state["compaction"].get("segments", [])]


def run(
    way: str,
    tiers: Any,
    *,
    need: str = "soft",
    messages: Sequence[BaseMessage] | None = None,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> Run:
    """Run the graph once, by "invoke" or "ainvoke".

    Args:
        way: how it is run, and so how the summariser is called.
        tiers: the cascade.
        need: "soft" or "hard".
        messages: what the thread holds; None: the `transcript`.
        config: of the run.
        settings: of the node.
    """
    if way == "ainvoke":
        return asyncio.run(arun(tiers, need=need, messages=messages, config=config, **settings))
    graph, given, config = _prepared(tiers, need, messages, config, settings)
    found, started = Run(given), time.monotonic()
    for mode, part in graph.stream({"messages": given}, config, stream_mode=_MODES):
        found.take(mode, part)
    found.seconds = time.monotonic() - started
    return found


async def arun(
    tiers: Any,
    *,
    need: str = "soft",
    messages: Sequence[BaseMessage] | None = None,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> Run:
    """Run the graph once, asynchronously; see `run`."""
    graph, given, config = _prepared(tiers, need, messages, config, settings)
    found, started = Run(given), time.monotonic()
    async for mode, part in graph.astream({"messages": given}, config, stream_mode=_MODES):
        found.take(mode, part)
    found.seconds = time.monotonic() - started
    return found


def _prepared(
    tiers: Any,
    need: str,
    messages: Sequence[BaseMessage] | None,
    config: RunnableConfig | None,
    settings: dict[str, Any],
) -> tuple[Any, list[BaseMessage], RunnableConfig]:
    values = {
        "trigger": ("tokens", 600),
        "keep": ("tokens", 150),
        "min_keep": 1,
        "token_counter": "estimate",
        **LIMITS[need],
        **settings,
    }
    builder = StateGraph(CompactionState)
    builder.add_node("compact", CompactionNode(tiers, **values))
    builder.add_node("agent", lambda _: {"messages": [DONE]})
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}, **(config or {})}
    return graph, transcript() if messages is None else list(messages), thread


def assert_run_is_well(found: Run) -> None:
    """It ended as it should, and nobody saw anything of the summary."""
    assert found.shown == ["Done."]
    assert found.state["messages"] == [*found.given, DONE]


def assert_unchanged(found: Run) -> None:
    """No tier wrote a digest, and there was room."""
    assert_run_is_well(found)
    assert found.kinds[0] == "started"
    assert found.events[0]["need"] == "soft"
    assert found.kinds[-1] == "failed"
    assert set(found.state["compaction"]) == {"version", "revision", "failures"}
    assert found.state["compaction"]["failures"]["count"] == 1
    assert model_view(found.state) == found.state["messages"]


def assert_extracts(found: Run) -> None:
    """No tier wrote a digest, and there was no room."""
    assert_run_is_well(found)
    assert found.events[0]["need"] == "hard"
    assert found.kinds[-2:] == ["failed", "completed"]
    assert set(found.writers) == {"extractive"}
    assert found.state["compaction"]["failures"]["count"] == 1
    assert found.events[-1]["tokens_after"] <= 900  # of 1,000, less a tenth


def assert_digest(found: Run, writer: str) -> None:
    """A tier's digest was accepted."""
    assert_run_is_well(found)
    assert found.kinds[-1] == "completed"
    assert "failed" not in found.kinds
    assert set(found.writers) == {writer}
    assert "Logbook entry" in found.state["compaction"]["segments"][0]["text"]
    assert "failures" not in found.state["compaction"]
