"""Other systems that compact a LangGraph agent's thread, through their own code.

Their summaries are limited by the summariser's own budget, since none of them has a setting for
it: langmem's ``max_summary_tokens`` only plans, and its documentation advises to bind the model's
``max_tokens``; langchain's and deepagents' middleware have none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware import summarization as deep
from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import add_messages
from langmem.short_term import SummarizationNode  # type: ignore[import-untyped]

from tests.benchmarks.survival.counting import tokens
from tests.benchmarks.survival.systems import Limits, System

OVERSHOOT = 200
"""Tokens that langmem folds beyond ``max_tokens_before_summary`` on the average: it takes the
message that reaches them, too. As much less is asked for, or its tail would soon be empty."""


class Langmem:
    """langmem's SummarizationNode with its RunningSummary.

    It folds the oldest messages, up to where ``max_tokens_before_summary`` are reached. Its
    ``max_tokens`` also limits what its summariser reads: wide enough here to read all of it.
    """

    def __init__(self, model: Any, limits: Limits) -> None:
        self.refused: list[str] = []
        self._messages: list[BaseMessage] = []
        self._context: dict[str, Any] = {}
        self._node = SummarizationNode(
            model=model,
            max_tokens=limits.window,
            max_tokens_before_summary=limits.trigger - OVERSHOOT,
            max_summary_tokens=limits.digest,
            token_counter=tokens,
        )

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._messages += arrived
        update = self._node.invoke({"messages": list(self._messages), "context": self._context})
        self._context = update.get("context", self._context)
        view: list[BaseMessage] = update["summarized_messages"]
        return view


class Langchain:
    """langchain's SummarizationMiddleware: its hook before the model, and the reducer."""

    def __init__(self, model: Any, limits: Limits, **settings: Any) -> None:
        self.refused: list[str] = []
        self._messages: Any = []
        self._middleware = SummarizationMiddleware(
            model,
            trigger=("tokens", limits.trigger),
            keep=("tokens", limits.keep),
            token_counter=tokens,
            **settings,
        )

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._messages = add_messages(self._messages, list[Any](arrived))
        runtime: Any = None
        update = self._middleware.before_model({"messages": self._messages}, runtime)
        if update:
            self._messages = add_messages(self._messages, update["messages"])
        return list(self._messages)


class Deepagents:
    """deepagents' summarization middleware around a model call, with its archive in files.

    ``trim_tokens_to_summarize=None`` as in its own factory. That the agent could read the archive
    again is not counted.
    """

    def __init__(self, model: Any, limits: Limits, **settings: Any) -> None:
        self.refused: list[str] = []
        self._model = model
        # The archive's name stands in the view; a random one would make each run another.
        self._state: dict[str, Any] = {"messages": [], deep.SUMMARIZATION_SESSION_ID_KEY: "thread"}
        self._folder = tempfile.TemporaryDirectory()  # removed with the thread
        self._middleware = deep.SummarizationMiddleware(
            model,
            backend=FilesystemBackend(root_dir=self._folder.name, virtual_mode=True),
            trigger=("tokens", limits.trigger),
            keep=("tokens", limits.keep),
            token_counter=tokens,
            trim_tokens_to_summarize=None,
            **settings,
        )

    def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
        self._state["messages"] = [*self._state["messages"], *arrived]
        seen: list[BaseMessage] = []

        def handler(request: Any) -> Any:
            seen[:] = request.messages
            return ModelResponse(result=[AIMessage("ok")])

        request: Any = ModelRequest(
            model=self._model,
            messages=self._state["messages"],
            state=self._state,  # type: ignore[arg-type]
        )
        response: Any = self._middleware.wrap_model_call(request, handler)
        command = getattr(response, "command", None)
        if command is not None:
            update = dict(command.update)
            changed = update.pop("messages", [])
            self._state.update(update)
            self._state["messages"] = add_messages(self._state["messages"], changed)
        return seen


def _untrimmed(model: Any, limits: Limits) -> System:
    return Langchain(model, limits, trim_tokens_to_summarize=None)


PEERS: dict[str, Callable[[Any, Limits], System]] = {
    "langmem": Langmem,
    "langchain": Langchain,
    "langchain (untrimmed)": _untrimmed,
    "deepagents": Deepagents,
}
"""By name."""
