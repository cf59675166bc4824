"""A call and its result as one line of the user's own making, for the summariser.

The line is made by a template such as ``[shell: {label} → {outcome}]``. Only the slots of the
template itself are filled, in one pass: braces in a command or a path mean nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest.actions import Action, main_argument
from langgraph_compaction.digest.outcomes import answer_of, said
from langgraph_compaction.digest.rendering import Call, Marked, calls_in, message_text
from langgraph_compaction.digest.sentences import Sentence, clean, clipped, sampled, sentences
from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.view.blocks import blocks_of, server_result_id
from langgraph_compaction.view.effects import has_effect
from langgraph_compaction.view.pairing import Group, answered

Markers = Mapping[str, str | None]
"""Templates by the tool's name. None: calls of this tool are shown in full."""

OTHERS = "*"
"""Stands for all tools that are not named."""
SLOTS = ("name", "label", "arguments", "outcome")
"""What a template may ask for."""
FAILED = "✗"
"""Stands before what a failed call reported."""
NO_OUTCOME = "no answer"
"""Outcome of a call that was never answered."""
ERROR_CHARS = 80
"""Characters shown of what a failed call reported (stagewise's number), or one that may have."""
READ_CHARS = 2_000
"""Characters of such a result, at its head and its tail, in which that is looked for."""

_SLOT = re.compile(r"\{([^{}]*)\}")


def check_markers(value: Any) -> None:
    """Check the setting ``tool_markers``.

    Raises:
        ConfigurationError: it is no mapping, or a template is no line or has an unknown slot.
    """
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigurationError(
            f"tool_markers: {value!r:.200} has to be a mapping from names of tools to templates, "
            'such as {"shell": "[shell: {label} → {outcome}]"}, or None for none.'
        )
    for name, template in value.items():
        if template is not None:
            _check_template(name, template)


def _check_template(name: str, template: Any) -> None:
    if not isinstance(template, str) or not template.strip() or len(template.splitlines()) > 1:
        raise ConfigurationError(
            f"tool_markers: the template of {name!r:.100} is {template!r:.200}; it has to be one "
            'line of text, such as "[shell: {label} → {outcome}]", or None where calls of the '
            "tool are to be shown in full."
        )
    for slot in _SLOT.findall(template):
        if slot not in SLOTS:
            near = get_close_matches(slot[:80], SLOTS, n=1)
            hint = f"; did you mean {{{near[0]}}}?" if near else "."
            known = ", ".join(f"{{{one}}}" for one in SLOTS)
            raise ConfigurationError(
                f"tool_markers: the template of {name!r:.100} asks for {{{slot[:80]}}}, which is "
                f"not known{hint} A template may have {known}."
            )


class Lines(NamedTuple):
    """What of a group is told by lines of the user's making.

    Attributes:
        calls: lines by the index of the message, and in it by the number of the call.
        results: indexes of the results that are told by one, and no longer stand by themselves.
    """

    calls: dict[int, dict[int, Marked]]
    results: set[int]


def lines_of(
    messages: Sequence[BaseMessage], group: Group, positions: Sequence[int], markers: Markers
) -> Lines:
    """The calls of a group that have a marker, each with its result as one line.

    Args:
        messages: the list that ``group`` refers to.
        group: an AI message and the results of its calls.
        positions: position in the thread of every message of the list.
        markers: templates by the tool's name.
    """
    lines = Lines({}, set())
    if not markers:
        return lines
    served = _served(messages[group.start : group.stop])
    for run in group.runs:
        results: dict[str, deque[int]] = {}
        for index, one in answered(messages[run.start : run.stop]).items():
            results.setdefault(str(one.get("id") or ""), deque()).append(run.start + index)
        for number, call in enumerate(calls_in(messages[run.start])):
            waiting = results.get(call.id)
            answer = waiting.popleft() if waiting else None  # also where it has no marker: in order
            template = markers.get(call.name, markers.get(OTHERS))
            if template is None:
                continue
            outcome = "ok" if call.id in served else NO_OUTCOME
            if answer is not None:
                lines.results.add(answer)
                effect = has_effect(call.name, call.arguments)
                outcome = _outcome(messages[answer], effect=effect)
            line = _filled(template, call, outcome)
            position = None if answer is None else positions[answer]
            lines.calls.setdefault(run.start, {})[number] = Marked(line, position)
    return lines


def _served(members: Sequence[BaseMessage]) -> set[str]:
    """Ids of the server-side calls that have a result."""
    blocks = (block for one in members for block in blocks_of(one.content))
    return set(filter(None, map(server_result_id, blocks)))


def _filled(template: str, call: Call, outcome: str) -> str:
    arguments = Action.of("t", call.arguments, 0).line  # "t(...)"
    slots = {
        "name": clean(call.name) or "tool",
        "label": main_argument(call.arguments),
        "arguments": arguments[2:-1],
        "outcome": outcome,
    }
    return " ".join(_SLOT.sub(lambda slot: slots[slot[1]], template).split())


def _outcome(result: BaseMessage, *, effect: bool) -> str:
    """The word "ok", or what a call reported that failed, or that may have failed."""
    text = message_text(result)
    answer = answer_of(result, text, effect=effect)
    if answer.outcome == "ok":
        return "ok"
    told = clipped(said(list(_sentences(sampled(text, READ_CHARS))), answer), ERROR_CHARS)
    if answer.outcome == "error":
        return f"{FAILED} {told}".rstrip()
    return f"answered: {told}" if told else "answered"


def _sentences(text: str) -> Iterator[Sentence]:
    return (Sentence.of(part) for part in sentences(text, READ_CHARS))
