"""The page on events is true: it has each type that the code reports, and each field they carry."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

import langgraph_compaction
from langgraph_compaction import CompactionNode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "events.md").read_text("utf-8")
_TYPE = re.compile(r"\"(compaction\.\w+)\"")
_ROW = re.compile(r"^\| `(compaction\.\w+)` \|.*\| ([^|]+) \|$", re.MULTILINE)
_FIELD = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| [^|]+ \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")

NOT_ALWAYS = {
    "compaction.rejected": {"tokens"},
    "compaction.failed": {
        *("failures", "candidates", "in_a_row", "input_tokens", "output_tokens", "usage")
    },
}
"""Fields that an event may lack, as the page says."""
BESIDE = {"background", "waited"}
"""What the events of a fold beside the agent have, too, as the table of fields says."""
DIGEST = "## Goal\nCheck the pumps.\n## State now\nMost are checked.\n## Next step\nGo on."


def documented() -> dict[str, set[str]]:
    """The fields of each type, as the first table has them."""
    return {kind: set(_NAME.findall(fields)) for kind, fields in _ROW.findall(PAGE)}


def explained() -> set[str]:
    """The fields that the second table explains."""
    _, _, below = PAGE.partition("| field | meaning |")
    table, _, _ = below.partition("\n\n")
    return {name for names in _FIELD.findall(table) for name in _NAME.findall(names)}


def thread() -> list[BaseMessage]:
    """A task, and calls with long results."""
    messages: list[BaseMessage] = [HumanMessage("Check the pumps 1 to 40.", id="h")]
    for number in range(40):
        call = {"name": "check", "args": {"pump": number}, "id": f"c{number}"}
        report = f"Pump {number} runs at {number * 7} rpm. " + "It is clean. " * 80
        messages.append(AIMessage(f"Pump {number}.", tool_calls=[call], id=f"a{number}"))
        messages.append(ToolMessage(report, tool_call_id=f"c{number}", id=f"t{number}"))
    return messages


def events(model: Any, **settings: Any) -> list[dict[str, Any]]:
    """What a visit to that thread reports."""
    heard: list[dict[str, Any]] = []
    values = {"context_window": 12_000, "clear": False, "token_counter": "estimate", **settings}
    node = CompactionNode(model, hook=heard.append, **values)
    node.invoke({"messages": thread(), "compaction": {}})
    return heard


def dropped() -> list[dict[str, Any]]:
    """What visits report whose fold beside the agent covers a message that changes meanwhile."""
    heard: list[dict[str, Any]] = []
    node = CompactionNode(
        lambda _: DIGEST,
        hook=heard.append,
        background=True,
        context_window=200_000,
        trigger=("tokens", 8_000),
        clear=False,
        token_counter="estimate",
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    state: Any = {"messages": thread(), "compaction": {}}
    node.invoke(state, config)
    deadline = time.monotonic() + 10
    while node.explain(state, config).action == "none":
        assert time.monotonic() < deadline
        time.sleep(0.005)
    state["messages"][1] = AIMessage(
        "Pump 0 leaks.", id="a0", tool_calls=state["messages"][1].tool_calls
    )
    node.invoke(state, config)
    return heard


def broken(prompt: Sequence[BaseMessage]) -> str:
    """A summariser that raises."""
    raise ConnectionError


def test_the_page_has_every_type_of_the_code() -> None:
    files = Path(langgraph_compaction.__path__[0]).rglob("*.py")
    code = {kind for path in files for kind in _TYPE.findall(path.read_text("utf-8"))}
    assert len(code) > 7
    assert set(documented()) == code


def test_every_field_is_explained() -> None:
    assert set().union(*documented().values()) <= explained()


def test_events_have_the_fields_of_the_page() -> None:
    heard = [
        *events([lambda _: "I cannot help with that.", lambda _: DIGEST]),
        *events(broken, context_window=200_000, trigger=("tokens", 8_000)),
        *events(lambda _: DIGEST, clear=True, trigger=("tokens", 8_000), context_window=200_000),
        *events(
            lambda _: DIGEST,
            trigger=("messages", 9),
            pinned=[{"type": "ai"}, {"type": "tool"}],
            context_window=200_000,
        ),
        *dropped(),
    ]
    fields = documented()
    assert {event["type"] for event in heard} == set(fields)
    for event in heard:
        kind, has = event["type"], event.keys() - {"type"}
        assert has <= fields[kind] | (BESIDE if "background" in has else set()), event
        assert fields[kind] - has <= NOT_ALWAYS.get(kind, set()), event
