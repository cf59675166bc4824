"""The agent of the short examples: it inspects pumps one by one and names the hottest.

What it knows stands in its messages alone, as with a real model: it notes each reading beside its
next call, and reads its notes back from the view it is called with, be it a message or the digest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langgraph_compaction import CompactionNode, CompactionState

WINDOW = 4_000
"""Tokens: what about ten readings fill."""

REQUEST = "Inspect the pumps 1 to 40."
"""What the agent understands, with any two numbers."""

_REQUEST = re.compile(r"[Ii]nspect the pumps (\d+) to (\d+)")
_READING = re.compile(r"[Pp]ump (\d+) runs at (\d+) degrees")


def read_pump(number: int) -> str:
    """Read the gauges of a pump, and look at its log."""
    lines = [f"Pump {number} runs at {heat(number)} degrees."]
    lines += [f"{hour:02}:00 no fault, the filter is clean, the seal is dry" for hour in range(24)]
    return "\n".join(lines)


def heat(number: int) -> int:
    """Degrees of a pump: what the agent has to find out."""
    return 20 + number * 37 % 61


def readings(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Degrees by pump, as far as the messages tell."""
    found = _READING.findall("\n".join(message.text for message in messages))
    return {int(number): int(degrees) for number, degrees in found}


def hottest(first: int, last: int) -> int:
    """The right answer for these pumps."""
    return max(range(first, last + 1), key=heat)


class Inspector(BaseChatModel):
    """A chat model without a network that decides each step from the messages it is given."""

    @property
    def _llm_type(self) -> str:
        return "inspector"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """The model itself: it knows the one tool that there is."""
        del tools, kwargs
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        return ChatResult(generations=[ChatGeneration(message=_next(messages))])


def agent_loop(compact: CompactionNode, seconds: float = 0.0) -> Any:
    """The agent's graph, to be compiled: compact, call the model with the view, call the tool.

    Args:
        compact: the compaction node.
        seconds: how long a call of the model takes.
    """
    model = Inspector()

    def agent(state: CompactionState) -> dict[str, Any]:
        time.sleep(seconds)
        return {"messages": [model.invoke(compact.view(state))]}

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([read_pump]))
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "compact")
    return builder


def _next(messages: Sequence[BaseMessage]) -> AIMessage:
    asked = [_REQUEST.search(one.text) for one in messages if isinstance(one, HumanMessage)]
    found = next((one for one in reversed(asked) if one), None)
    if found is None:
        return AIMessage(f'I read gauges. Ask me to "{REQUEST}"')
    first, last = map(int, found.groups())
    known = readings(messages)
    newest = _READING.search(messages[-1].text)
    noted = f"Noted: pump {newest[1]} runs at {newest[2]} degrees." if newest else ""
    unknown = [number for number in range(first, last + 1) if number not in known]
    if unknown:
        call: Any = {"name": "read_pump", "args": {"number": unknown[0]}, "id": f"c{unknown[0]}"}
        return AIMessage(noted, tool_calls=[call])
    number = max(range(first, last + 1), key=lambda one: known[one])
    return AIMessage(f"{noted} The hottest is pump {number}, at {known[number]} degrees.".strip())
