"""A node that clears soon, and threads of long tool results."""

import asyncio
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import CompactionNode, merge_compaction
from tests.support import folding
from tests.support.folding import Recorder, State

BIG = 3_200
"""Characters of a result: about 1,000 tokens."""


def node(model: Any = None, **values: Any) -> CompactionNode:
    settings = {"trigger": ("tokens", 8_000), "target": 6_000, "keep": ("tokens", 1_000)}
    return folding.node(Recorder() if model is None else model, **(settings | values))


def text_of(n: int, size: int = BIG) -> str:
    line = f"result {n} line of text that says {n * 7919}; "
    return (line * (size // len(line) + 1))[:size]


def read(n: int, *, path: str = "", text: str = "", **more: Any) -> list[BaseMessage]:
    """A call with its result of about 1,000 tokens."""
    call: Any = {"name": "read_file", "args": {"path": path or f"/src/{n}.py"}, "id": f"c{n}"}
    return [
        AIMessage("", id=f"a{n}", tool_calls=[call]),
        ToolMessage(text or text_of(n), tool_call_id=f"c{n}", name="read_file", id=f"t{n}", **more),
    ]


def talk(count: int = 12) -> list[BaseMessage]:
    """What no clearing takes: about 600 tokens each."""
    return [HumanMessage(f"word{n} " * 200, id=f"w{n}") for n in range(count)]


def history(length: int = 10, *odd: BaseMessage) -> list[BaseMessage]:
    return [
        HumanMessage("Fix it.", id="h"),
        *odd,
        *[message for n in range(length) for message in read(n)],
    ]


def visited(compact: CompactionNode, state: State) -> State:
    before = deepcopy(state)
    update = compact.invoke(state)
    assert state == before
    assert asyncio.run(compact.ainvoke(deepcopy(state))).keys() == update.keys()
    return {**state, "compaction": merge_compaction(state["compaction"], update.get("compaction"))}


def cleared(view: Sequence[BaseMessage]) -> list[str]:
    return [str(one.id) for one in view if str(one.content).startswith("[Cleared: result of ")]
