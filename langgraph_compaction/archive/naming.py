"""Where in a store an archive lives: one namespace for each graph of each thread.

Stores refuse labels that are empty or hold a dot or NUL, and some match a namespace as a text
pattern. So labels consist of letters, digits, ``_``, ``-``, ``~`` and ``+`` only. Plain ids stay
as they are.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

ROOT = "langgraph_compaction"
"""The first label of every archive's namespace."""
TOP_GRAPH = "~top"
"""The label of a thread's outermost graph; no name of a node is written like this."""
LABEL_CHARS = 120
"""Characters of a label; a longer one is cut and ends in a hash of the whole."""

_HANDLERS = ("__error_handler__", "__default_error_handler__")
"""How the names begin that LangGraph gives to error handlers of nodes."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_EMPTY = "~"


def label(text: str) -> str:
    """``text`` as a label of a namespace. Different texts never have the same label.

    A character that is not safe is written as ``~`` and two hexadecimal digits for each byte of
    its UTF-8 form; what gets longer than `LABEL_CHARS` ends in ``~~`` and its SHA-256 instead.
    """
    safe = _UNSAFE.sub(_escaped, text) or _EMPTY
    return safe if len(safe) <= LABEL_CHARS else _shortened(safe)


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in match.group().encode("utf-8", "surrogatepass"))


def _shortened(safe: str) -> str:
    # "~~" stands in no other label: every "~" of those is followed by a digit.
    digest = hashlib.sha256(safe.encode()).hexdigest()
    return f"{safe[: LABEL_CHARS - 66].rstrip('~')}~~{digest}"


def graphs_of(checkpoint_ns: str, *, in_node: bool = True) -> list[str]:
    """The parts of a checkpoint's namespace that name graphs, the outermost left out.

    Args:
        checkpoint_ns: as for `namespace_of`.
        in_node: as for `namespace_of`.
    """
    parts = checkpoint_ns.split("|") if checkpoint_ns else []
    if parts and parts[-1].startswith(_HANDLERS):
        del parts[-1]  # LangGraph runs the error handler of a node as if within that node
    return parts[:-1] if in_node else parts


def namespace_of(
    thread_id: Any, checkpoint_ns: str = "", *, in_node: bool = True
) -> tuple[str, ...]:
    """The namespace of a graph's archive.

    Args:
        thread_id: the thread's id. Its text counts: 1 and "1" are the same thread, as they are to
            the checkpointers.
        checkpoint_ns: where LangGraph says the caller runs, such as "sub:<task>|compact:<task>".
            The ids of tasks differ from run to run and are left out.
        in_node: whether the last part of ``checkpoint_ns`` is the node that asks. Then it is left
            out, too, so that all nodes of one graph have one archive. False for the namespace of a
            graph itself, as `get_state` has it.
    """
    graphs = [part.partition(":")[0] for part in graphs_of(checkpoint_ns, in_node=in_node)]
    graph = "+".join(map(label, graphs)) or TOP_GRAPH
    return ROOT, label(str(thread_id)), graph if len(graph) <= LABEL_CHARS else _shortened(graph)
