"""The systems side by side: each driven through its own code, visited where an agent would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from langgraph_compaction import (
    CompactionNode,
    CompactionSettings,
    ConfigurationError,
    ExtractiveSummarizer,
    merge_compaction,
)
from tests.benchmarks.survival.counting import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The numbers that all systems get, in tokens by the same count.

    Attributes:
        trigger: of the view, from which on a system compacts.
        keep: of the newest messages, which stay word for word.
        digest: of the whole digest.
        window: of the agent's model.
    """

    trigger: int
    keep: int
    digest: int
    window: int


class System(Protocol):
    """One thread under one system.

    Attributes:
        refused: why texts of the summariser were not accepted.
    """

    refused: list[str]

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Add messages to the thread; what the agent's model would be called with now."""


class Ours:
    """CompactionNode.

    Args:
        model: writes the digests.
        limits: as for the others.
        settings: more settings.
    """

    def __init__(self, model: Any, limits: Limits, **settings: Any) -> None:
        self.refused: list[str] = []
        self._state: dict[str, Any] = {"messages": [], "compaction": {}}
        self._node = CompactionNode(
            model,
            clear=False,  # every span is digested, as the others do it
            token_counter=tokens,
            trigger=("tokens", limits.trigger),
            keep=("tokens", limits.keep),
            max_digest_tokens=limits.digest,
            context_window=limits.window,
            hook=self._event,
            **settings,
        )

    def _event(self, event: dict[str, Any]) -> None:
        if event["type"] in {"compaction.rejected", "compaction.tier_failed"}:
            self.refused.append(str(event.get("reason")))

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._state["messages"] = [*self._state["messages"], *arrived]
        update = self._node.invoke(self._state)
        if update:
            record = merge_compaction(self._state["compaction"], update["compaction"])
            self._state["compaction"] = record
        return self._node.view(self._state)


class SeesEverything:
    """No compaction at all: what would survive if nothing were lost."""

    def __init__(self, model: Any, limits: Limits) -> None:
        self.refused: list[str] = []
        self._messages: list[BaseMessage] = []

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._messages += arrived
        return list(self._messages)


Factory = Callable[[Any, Limits], System]


def _rolling(model: Any, limits: Limits) -> System:
    return Ours(model, limits, digest="rolling")


def _extractive(model: Any, limits: Limits) -> System:
    return Ours(ExtractiveSummarizer(), limits)


def ours() -> dict[str, Factory]:
    """The package's own modes, as far as the installed version has them."""
    found: dict[str, Factory] = {"ours": Ours}
    try:
        CompactionSettings.of({"digest": "rolling"})
    except ConfigurationError:
        pass
    else:
        found["ours (rolling)"] = _rolling
    found["ours (no model)"] = _extractive
    return found


def systems(wanted: str) -> dict[str, Factory]:
    """The systems to run, by name.

    Args:
        wanted: "all", or beginnings of names, separated by commas.

    Raises:
        SystemExit: no system has such a name, or a peer is not installed.
    """
    names = [name.strip() for name in wanted.split(",")]
    own = {**ours(), "sees everything": SeesEverything}
    if wanted != "all" and all(any(known.startswith(name) for known in own) for name in names):
        every: dict[str, Factory] = own
    else:
        try:
            from tests.benchmarks.survival.peers import PEERS
        except ImportError as error:
            raise SystemExit(
                f"{error}: a peer is missing. Install the peers (pip install -e '.[dev]'), or "
                "measure this package alone: --systems ours"
            ) from error
        every = {**ours(), **PEERS, "sees everything": SeesEverything}
    if wanted == "all":
        return every
    found = {
        known: factory
        for known, factory in every.items()
        if any(known.startswith(name) for name in names)
    }
    if not found:
        raise SystemExit(f"--systems {wanted}: none of {', '.join(every)}")
    return found
