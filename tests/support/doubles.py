"""An agent, its tool and a summariser that stand for real ones, and what they were asked.

The agent works through numbered steps, and reads from its view alone how far it is; so a view that
hid too much would show as a step that is missing or done twice. Every message of the work carries a
marker (`call-0007`, `result-0007`), by which a test finds it in the summariser's prompts.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import Field

from langgraph_compaction import CompactionNode, CompactionState
from tests.support.validity import violations

STEPS: Any = {"recursion_limit": 1_000}
"""Config for runs of many steps."""
THREAD: Any = {"configurable": {"thread_id": "t"}, **STEPS}
"""The config of a run in the one thread that most tests need."""

WINDOW = 2_500
"""Tokens of the agent's window. A step takes about 150, so a fold is due after some twelve."""

DIGEST_WORD = "Logbook"
"""Stands in every digest of `Summaries`, and nowhere else."""

Reply = Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """A chat model that answers with a function of the messages, streaming word by word."""

    reply: Reply
    calls: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedModel":
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self.calls.append(deepcopy(messages))
        return self.reply(messages)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in re.findall(r"\S+\s*", str(answer.content)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        calls = [
            tool_call_chunk(
                name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=n
            )
            for n, call in enumerate(answer.tool_calls)
        ]
        last = AIMessageChunk(content="", tool_call_chunks=calls, chunk_position="last")
        yield ChatGenerationChunk(message=last)


@tool
def work(n: int) -> str:
    """Do step n."""
    return result(n)


def result(n: int) -> str:
    """What the tool says of a step, about 130 tokens."""
    return f"result-{n:04} " + f"The log of step {n} says that the part was made as planned. " * 9


_REQUEST = re.compile(r"Do steps (\d+) to (\d+)")
_RESULT = re.compile(r"result-(\d{4})")


def request(first: int, last: int) -> HumanMessage:
    """Ask the agent for some steps."""
    return HumanMessage(f"Do steps {first} to {last}.")


def requested(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    """The numbers of the first and the last step that the newest request asks for."""
    first, last = next(
        map(int, found.groups())
        for message in reversed(messages)
        if isinstance(message, HumanMessage) and (found := _REQUEST.search(message.text))
    )
    return first, last


def worker(parallel: int = 1) -> ScriptedModel:
    """An agent that does the steps of the newest request, ``parallel`` of them in one message."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        first, last = requested(messages)
        done = first - 1
        if isinstance(messages[-1], ToolMessage):
            done = max(int(n) for n in _RESULT.findall(messages[-1].text))
        if done >= last:
            return AIMessage(f"Finished up to step {done}.")
        steps = range(done + 1, min(done + parallel, last) + 1)
        return AIMessage(
            f"call-{steps[0]:04}",
            tool_calls=[{"name": "work", "args": {"n": n}, "id": f"c{n}"} for n in steps],
        )

    return ScriptedModel(reply=reply)


def loop(
    compact: CompactionNode,
    model: Runnable[Any, Any],
    *,
    state: type[Any] = CompactionState,
    tools: Sequence[Any] = (work,),
    between: bool = False,
    **options: Any,
) -> Any:
    """A compiled graph: tools → compact → agent, or with ``between`` agent → compact → tools.

    Args:
        compact: the node, which knows its name and under which key the messages are.
        model: called with the view.
        state: the graph's state class.
        tools: the agent's tools.
        between: place the node between agent and tools.
        options: for ``compile``.
    """
    key, name = compact.messages_key, str(compact.name)

    def agent(values: Any) -> dict[str, Any]:
        return {key: [model.invoke(compact.view(values))]}

    async def aagent(values: Any) -> dict[str, Any]:
        return {key: [await model.ainvoke(compact.view(values))]}

    def path(values: Any) -> str:
        return tools_condition(values, messages_key=key)

    builder = StateGraph(state)
    builder.add_node(name, compact)
    builder.add_node("agent", RunnableLambda(agent, afunc=aagent))
    builder.add_node("tools", ToolNode(tools, messages_key=key))
    if between:
        builder.add_edge(START, "agent")
        builder.add_edge("agent", name)
        builder.add_conditional_edges(name, path)
        builder.add_edge("tools", "agent")
    else:
        builder.add_edge(START, name)
        builder.add_edge(name, "agent")
        builder.add_conditional_edges("agent", path)
        builder.add_edge("tools", name)
    return builder.compile(**options)


def digest(number: int) -> str:
    """A digest that verification accepts."""
    return (
        f"## Goal\nCarry out the steps.\n## State now\n{DIGEST_WORD} entry {number}: all well.\n"
        "## Next step\nGo on with the step after."
    )


class Summaries:
    """A summariser whose digests are accepted; keeps the prompts it was given."""

    def __init__(self) -> None:
        self.prompts: list[list[BaseMessage]] = []

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.prompts.append(deepcopy(messages))
        return digest(len(self.prompts))

    @property
    def folded(self) -> list[str]:
        """The markers of all messages it was given to fold, in order."""
        return [name for prompt in self.prompts for name in markers(prompt)]


def transcript(prompt: Sequence[BaseMessage]) -> str:
    """The part of a summary prompt that holds the messages to fold."""
    return prompt[-1].text.partition("<transcript>\n")[2].rpartition("\n</transcript>")[0]


def markers(prompt: Sequence[BaseMessage]) -> list[str]:
    """The markers of the messages that a summary prompt holds, in order."""
    return re.findall(r"(?:call|result)-\d{4}", transcript(prompt))


def steps_done(messages: Sequence[BaseMessage]) -> list[int]:
    """The numbers of the steps whose results are in a list of messages, in order."""
    return [int(n) for m in messages if isinstance(m, ToolMessage) for n in _RESULT.findall(m.text)]


def assert_folded_once(folded: Sequence[str]) -> None:
    """No message was given to the summariser twice, and there was something to fold."""
    twice = {name: count for name, count in Counter(folded).items() if count > 1}
    assert folded
    assert twice == {}


def assert_valid(calls: Sequence[Sequence[BaseMessage]]) -> None:
    """A provider would have accepted every call of the agent's model."""
    found = {n: faults for n, call in enumerate(calls) if (faults := violations(call))}
    assert found == {}


def shows_digest(call: Sequence[BaseMessage]) -> bool:
    """Whether a call of the agent's model carried a digest."""
    return any(DIGEST_WORD in message.text for message in call)
