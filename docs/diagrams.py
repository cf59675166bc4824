"""Draws the pictures of the pages: `python docs/diagrams.py` writes them into docs/assets.

Nothing in them is made up: the edges are those of a compiled graph, and what is hidden, covered
and shown is what a fold of a small thread came to. They are SVG files of their own, so that they
show in a checkout as on the site, and follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import tools_condition

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    ExtractiveSummarizer,
    model_view,
)

ASSETS = Path(__file__).parent / "assets"
WIDTH = 680
"""Of a picture, in its own units; the pages scale it to their column."""
ROW = 26
"""From one message to the next."""
STYLE = """
  .card { fill: #ffffff; stroke: #d5dbdb; }
  text { font: 13px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; fill: #263238; }
  .title { font-weight: 600; font-size: 14px; }
  .code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12px; }
  .soft { fill: #5f6f76; font-size: 12px; }
  .box { fill: #eceff1; stroke: #90a4ae; }
  .ours { fill: #d5f0ec; stroke: #00897b; }
  .gone { fill: none; stroke: #b0bec5; stroke-dasharray: 4 3; }
  text.gone { fill: #78909c; stroke: none; }
  .line { fill: none; stroke: #607d8b; stroke-width: 1.5; }
  .tip { fill: #607d8b; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #1b2126; stroke: #37474f; }
    text { fill: #dfe6e9; }
    .soft { fill: #a3b3ba; }
    .box { fill: #2a343a; stroke: #607d8b; }
    .ours { fill: #0f4740; stroke: #26a69a; }
    .gone { stroke: #546e7a; }
    text.gone { fill: #8fa3ac; }
    .line { stroke: #90a4ae; }
    .tip { fill: #90a4ae; }
  }
"""
ARROWHEAD = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>'
)


def picture(height: int, told: str, parts: Sequence[str]) -> str:
    """An SVG document.

    Args:
        height: in its own units.
        told: what it shows, for those who do not see it.
        parts: its elements.
    """
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(told)}</title>",
            f"<style>{STYLE}</style>",
            ARROWHEAD,
            box(0.5, 0.5, WIDTH - 1, height - 1, "card"),
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text; ``kind`` names its classes, ``anchor`` says which end ``x`` is."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A rectangle with round corners."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>'


def arrow(path: str) -> str:
    """A line with a head at its end; ``path`` is SVG's."""
    return f'<path class="line" d="{path}" marker-end="url(#tip)"/>'


# The graph of an agent.

PLACES = {
    "__start__": (24, 54, 62),
    "compact": (134, 54, 116),
    "agent": (330, 54, 100),
    "__end__": (594, 54, 62),
    "tools": (330, 156, 100),
}
"""Left edge, top and width of every node's box."""
TALL = 40
EDGES = {
    ("__start__", "compact"): "M86 74H132",
    ("compact", "agent"): "M250 74H328",
    ("agent", "__end__"): "M430 74H592",
    ("agent", "tools"): "M380 94V154",
    ("tools", "compact"): "M330 176H192V96",
}
"""The line of every edge."""
NAMES = {"__start__": "START", "__end__": "END"}


def agent_graph() -> Any:
    """An agent as the README builds it, with tools."""
    builder = StateGraph(CompactionState)
    builder.add_node("compact", CompactionNode(ExtractiveSummarizer(), context_window=8_000))
    builder.add_node("agent", lambda _: {})
    builder.add_node("tools", lambda _: {})
    builder.add_edge(START, "compact")
    builder.add_edge("compact", "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "compact")
    return builder.compile()


def graph_picture() -> str:
    """The agent's graph: every node and edge that it has, and no other."""
    drawn = agent_graph().get_graph()
    parts = [arrow(EDGES[edge.source, edge.target]) for edge in drawn.edges]
    for name in drawn.nodes:
        x, y, width = PLACES[name]
        parts.append(box(x, y, width, TALL, "ours" if name == "compact" else "box"))
        parts.append(text(x + width / 2, y + 25, NAMES.get(name, name), "title", "middle"))
    parts += [
        text(134, 28, 'writes state["compaction"]', "soft"),
        text(134, 44, "when something is due", "soft"),
        text(330, 44, "called with compact.view(state)", "soft"),
        text(442, 92, "no call left", "soft"),
        text(390, 128, "calls", "soft"),
        text(204, 168, "results", "soft"),
    ]
    told = "START leads to compact, compact to agent, agent to tools or END, tools back to compact."
    return picture(216, told, parts)


# A thread before and after a fold.

LEFT, MIDDLE, RIGHT = 20, 260, 450
COLUMN = 210


def thread() -> list[AnyMessage]:
    """An inspector's thread: five pumps were measured."""
    messages: list[AnyMessage] = [
        SystemMessage("You inspect pumps.", id="0"),
        HumanMessage("Check 1 to 5.", id="1"),
    ]
    note = " It was opened, cleaned, closed and run for an hour without a fault." * 20
    for number in range(1, 6):
        call = {"name": "check", "args": {"pump": number}, "id": f"c{number}"}
        messages.append(AIMessage(f"check({number})", tool_calls=[call], id=f"{number * 2}"))
        result = f"Pump {number}: {number * 10} rpm.{note}"
        messages.append(ToolMessage(result, tool_call_id=f"c{number}", id=f"{number * 2 + 1}"))
    return messages


def folded(messages: list[AnyMessage]) -> CompactionRecord:
    """The record after one fold of these messages."""
    compact = CompactionNode(
        ExtractiveSummarizer(),
        context_window=8_000,
        trigger=("messages", 12),
        keep=("messages", 4),
        clear=False,
        token_counter="approximate",  # noqa: S106  # no password
    )
    record: CompactionRecord = compact.invoke({"messages": messages, "compaction": {}})[
        "compaction"
    ]
    return record


def shown(message: Any) -> str:
    """The beginning of a message, as its row shows it."""
    start = message.text.split(".")[0]
    return start if message.type in {"ai", "tool"} else f"{start}."


def rows(x: int, top: int, messages: Sequence[Any], hidden: set[str]) -> Iterator[str]:
    """A column of messages."""
    for place, message in enumerate(messages):
        y = top + place * ROW
        digest = message.id == "summarization"
        gone = message.id in hidden
        yield box(x, y, COLUMN, ROW - 4, "gone" if gone else "ours" if digest else "box")
        kind = "gone" if gone else ""
        if digest:
            yield text(x + 26, y + 15, "[Record of earlier work ...]", kind)
            continue
        yield text(x + 20, y + 15, message.id, f"code {kind}", "end")
        yield text(x + 28, y + 15, message.type, f"code {kind}")
        yield text(x + 78, y + 15, shown(message), kind)


def panel(
    top: int, title: str, messages: list[AnyMessage], record: CompactionRecord
) -> Iterator[str]:
    """Transcript, record and view side by side."""
    view = model_view({"messages": messages, "compaction": record})
    seen = {message.id for message in view}
    hidden = {str(message.id) for message in messages} - {str(name) for name in seen}
    yield text(LEFT, top, title, "title")
    yield text(LEFT, top + 24, 'state["messages"]', "code soft")
    yield text(MIDDLE, top + 24, 'state["compaction"]', "code soft")
    yield text(RIGHT, top + 24, "compact.view(state)", "code soft")
    first = top + 34
    yield from rows(LEFT, first, messages, hidden)
    yield from rows(RIGHT, first, view, set())
    if not record:
        yield box(MIDDLE, first, 160, 2 * ROW, "gone")
        yield text(MIDDLE + 80, first + 31, "{}", "code soft", "middle")
        return
    covered = [place for place, message in enumerate(messages) if message.id in hidden]
    above, below = first + covered[0] * ROW, first + covered[-1] * ROW + ROW - 4
    middle = (above + below) / 2
    digest = first + [message.id for message in view].index("summarization") * ROW + 11
    segment = record["segments"][0]
    heading = next(line for line in segment["text"].splitlines() if line.startswith("## "))
    span = f"messages {segment['first_index']} to {segment['last_index']}"
    yield f'<path class="line" d="M{LEFT + COLUMN + 4} {above}h6V{below}h-6"/>'
    yield arrow(f"M{LEFT + COLUMN + 10} {middle}H{MIDDLE - 2}")
    yield box(MIDDLE, middle - 50, 160, 100, "ours")
    yield text(MIDDLE + 12, middle - 28, "one segment", "title")
    yield text(MIDDLE + 12, middle - 8, span)
    yield text(MIDDLE + 12, middle + 12, f"kept: {', '.join(record['kept_ids'])}")
    yield text(MIDDLE + 12, middle + 32, f"{heading} ...", "code")
    yield arrow(f"M{MIDDLE + 160} {middle}h12V{digest}H{RIGHT - 2}")


def view_picture() -> str:
    """A thread before and after a fold: the transcript is the same, record and view are not."""
    messages = thread()
    height = 34 + len(messages) * ROW
    told = (
        "Before the fold the record is empty and the view has all messages. After it the "
        "transcript is the same, the record has a segment, and the view has the digest in place "
        "of what it covers."
    )
    second = 30 + height + 40
    parts = [
        *panel(30, "Before the fold", messages, {}),
        *panel(second, "After the fold", messages, folded(messages)),
        text(
            LEFT,
            second + height + 18,
            "Dashed: covered by the digest, and still in the state.",
            "soft",
        ),
    ]
    return picture(second + height + 36, told, parts)


PICTURES = {"agent-graph.svg": graph_picture, "before-and-after.svg": view_picture}
"""What is drawn, by the name of its file."""

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (ASSETS / name).write_text(draw(), "utf-8")
