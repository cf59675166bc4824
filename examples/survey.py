"""The agent of the demo: its task, its graph, and an account of what was folded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from notes import Notebook, constants_in
from tools import Workspace, file_tools

from langgraph_compaction import CompactionNode, CompactionRecord, CompactionState

SYSTEM = """\
You survey a folder with read-only tools, and you have a small memory: older messages of this \
conversation are replaced by a record of them. What you read is gone unless you wrote it down.
- Go through the files in the order of list_files, each to its end; short ones together.
- Beside every call, write down what the newest results say. Note once how many files and lines \
the folder has. For each file with constants, number your findings from 1 and name its path in \
backticks, how many constants it defines, and each as NAME = value; of one file no more than 12. \
Say how many findings there are so far. Do not write down again what you wrote before.
- Read no file twice unless your notes lack it."""

TASK = """\
On which numbers is this folder built? Survey the files of `{folder}`: read every file that \
list_files shows, to its end. A constant is a name in capitals that a line sets to a number. \
Then report, in Markdown: how many files and lines there are; a list with an item for each \
file that defines constants, each as NAME = value; which values are set more than once; and for \
the three greatest constants, where they are used."""

DIGEST_INSTRUCTIONS = (
    "Keep every finding of the agent's with its number, path, names and values, word for word, and "
    "how many files and lines there are. Which files were read or listed need not be told."
)
DIGEST_SHARE = 0.28
"""Share of the window that the digest may have: room for all findings of the survey."""
SEGMENT_SHARE = 0.06
"""Tokens of a segment as a share of its span: a note is a small part of a page of source..."""
MIN_SEGMENT_SHARE = 0.025
"""... but a short span may have had much to note. Share of the window that a segment may always
have."""
MIN_KEEP = 4
"""Messages that stay in any case: two pages with their calls. A page is a sixth of the window."""
CLEAR_KEEP = 3
"""Newest pages that are never cleared: the agent goes by what it read last."""
CHARS_PER_TOKEN = 4
"""For the estimate of the system prompt and tool schemas, which no message holds."""

Graph = CompiledStateGraph[Any, Any, Any, Any]


def build(
    model: BaseChatModel,
    summarizer: Any,
    workspace: Workspace,
    *,
    window: int,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> tuple[Graph, CompactionNode]:
    """The graph, and its compaction node.

    Args:
        model: calls the tools.
        summarizer: writes the digests: whatever `CompactionNode` takes.
        workspace: the files.
        window: tokens of the model's context window.
        checkpointer: keeps the thread.
    """
    tools = file_tools(workspace)
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
    compact = CompactionNode(
        summarizer,
        context_window=window,
        overhead_tokens=len(SYSTEM + schemas) // CHARS_PER_TOKEN,
        max_digest_tokens=int(window * DIGEST_SHARE),
        min_keep=MIN_KEEP,
        clear_keep=CLEAR_KEEP,
        segment_share=SEGMENT_SHARE,
        min_segment_tokens=int(window * MIN_SEGMENT_SHARE),
        instructions=DIGEST_INSTRUCTIONS,
    )
    caller = model.bind_tools(tools)

    def agent(state: CompactionState) -> dict[str, list[AnyMessage]]:
        get_stream_writer()({"type": "agent.view", "tokens": compact.measure(state).tokens})
        return {"messages": [caller.invoke(compact.view(state, system=SYSTEM))]}

    def after_agent(state: CompactionState) -> str:
        newest = state["messages"][-1]
        return "tools" if isinstance(newest, AIMessage) and newest.tool_calls else END

    builder = StateGraph(CompactionState)
    builder.add_node("compact", compact)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges("agent", after_agent, ["tools", END])
    builder.add_conditional_edges("tools", compact.route("agent"), ["compact", "agent"])
    return builder.compile(checkpointer=checkpointer), compact


def opening(workspace: Workspace) -> HumanMessage:
    """The task; it carries the folder, so that a thread is not continued over another one."""
    text = TASK.replace("{folder}", workspace.root.name)
    return HumanMessage(content=text, additional_kwargs={"folder": str(workspace.root)})


def has_constants(workspace: Workspace) -> bool:
    """Whether there is anything to find."""
    return any(constants_in("\n".join(workspace.lines(path))) for path in workspace.files)


class Ledger:
    """How often each message was folded, from the records as they come out of the graph.

    Args:
        record: the record that the run starts with.
    """

    def __init__(self, record: CompactionRecord) -> None:
        self._covered = covered(record)
        self._times = Counter(self._covered)
        self._record = record

    def take(self, record: CompactionRecord) -> None:
        """Take in the next record."""
        now = covered(record)
        self._times.update(now - self._covered)
        self._covered, self._record = now, record

    @property
    def folded(self) -> int:
        """Messages that a digest stands for."""
        return len(self._covered)

    def twice(self) -> list[int]:
        """Positions that were folded again, or that two segments of the digest cover."""
        segments = self._record.get("segments", ())
        held = Counter(
            position
            for segment in segments
            for position in range(segment["first_index"], segment["last_index"] + 1)
        )
        again = [position for position, times in self._times.items() if times > 1]
        return sorted({*again, *(position for position, times in held.items() if times > 1)})


def covered(record: CompactionRecord) -> set[int]:
    """Positions of the messages that the digest stands for."""
    end = record.get("last_summarized_index", -1) + 1
    # Nothing is pruned here, so an index into the channel is a position.
    return set(range(end)) - set(record.get("kept_hints", ()))


def rereads(messages: Sequence[AnyMessage]) -> int:
    """Calls that were made again with the same arguments: the agent had to look twice."""
    made = Counter(
        json.dumps([call["name"], call["args"]], sort_keys=True)
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    )
    return made.total() - len(made)


def remembered(messages: Sequence[AnyMessage], record: CompactionRecord) -> int:
    """Files of which the view holds the findings in the digest alone."""
    hidden = covered(record)
    folded, visible = (
        Notebook.read(
            message.text
            for position, message in enumerate(messages)
            if isinstance(message, AIMessage) and (position in hidden) is is_folded
        )
        for is_folded in (True, False)
    )
    return len(folded.files.keys() - visible.files.keys())


def mistakes(answer: str, workspace: Workspace) -> Iterator[str]:
    """Where the answer is not what the files themselves say."""
    lines = {path: workspace.lines(path) for path in workspace.files}
    total = sum(map(len, lines.values()))
    if f"{total:,}" not in answer and str(total) not in answer:
        yield f"there are {total:,} lines"
    items = [line.replace("`", "") for line in answer.splitlines() if "=" in line]
    for path in workspace.files:
        item = next((item for item in items if path in re.split(r"[\s:|*]+", item)), "")
        said = set(re.findall(r"\w+ = -?\d+(?:\.\d+)?", item))
        for name, value in constants_in("\n".join(lines[path])).items():
            if f"{name} = {value}" not in said:
                yield f"{name} = {value} in {path}"
