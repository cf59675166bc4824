"""The errors a user of this package can meet.

    CompactionError
    ├── ConfigurationError      a setting is wrong or missing (also a ValueError)
    │   └── RedactionError      ... or the hook ``redact`` failed; caught as the one above
    ├── MissingChannelError     the graph's state lacks a channel (also a KeyError)
    ├── RecordError             the record in the state cannot be read
    │   └── RecordVersionError  ... because a newer version of this package wrote it
    ├── BudgetError             what must stay does not fit the window (also LangChain's
    │                           ContextOverflowError)
    └── CascadeExhaustedError   no summariser wrote an acceptable digest (with on_error="raise")

Each message says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.exceptions import ContextOverflowError

__all__ = [
    "BudgetError",
    "CascadeExhaustedError",
    "CompactionError",
    "ConfigurationError",
    "MissingChannelError",
    "RecordError",
    "RecordVersionError",
]


class CompactionError(Exception):
    """Base class of every error this package raises."""


class ConfigurationError(CompactionError, ValueError):
    """A parameter or setting has a value that cannot work.

    The message names the parameter, the value and the remedy.
    """


class RedactionError(ConfigurationError):
    """The hook ``redact`` raised, or returned something else than text.

    Its message never contains the text that was to be redacted, nor what the hook said of it. Not
    public: who calls the package catches `ConfigurationError`, the engine has to tell it apart.
    """


class MissingChannelError(CompactionError, KeyError):
    """The state a node received lacks a channel that compaction needs.

    LangGraph drops undeclared keys silently, on the way in and on the way out. Without this
    error a fold would be computed, billed and lost at every visit.

    Attributes:
        key: the missing state key.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, str(self))

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; this message is a sentence.
        return str(self.args[0])


class RecordError(CompactionError, ValueError):
    """The compaction record in the state has a shape that this package cannot read.

    Raised instead of guessing: a record that is read wrongly could hide messages.
    """


class RecordVersionError(RecordError):
    """The compaction record was written by a newer version of this package.

    Attributes:
        found: the version number in the record.
        supported: the newest version number that this package reads.
    """

    def __init__(self, found: int, supported: int) -> None:
        super().__init__(
            f"The compaction record in the state has version {found!r}, but this version of "
            f"langgraph_compaction reads versions up to {supported}. Upgrade langgraph_compaction "
            "wherever this thread runs; nothing was written."
        )
        self.found = found
        self.supported = supported

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found, self.supported)


class BudgetError(CompactionError, ContextOverflowError):
    """What must stay in the view (system messages, task, pins, newest group) exceeds the window.

    LangChain's middlewares know it as an overflow, which no retry of the same request helps.

    Attributes:
        sizes: tokens by part of the view, after everything that may be clipped was clipped.
        limit: tokens that the view may take.
    """

    def __init__(self, message: str, *, sizes: Mapping[str, int], limit: int) -> None:
        super().__init__(message)
        self.sizes = dict(sizes)
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), sizes=self.sizes, limit=self.limit), (str(self),)


class CascadeExhaustedError(CompactionError):
    """No tier of the cascade wrote an acceptable digest; raised only with ``on_error="raise"``.

    Attributes:
        failures: one line for each call: the tier, and what was wrong.
    """

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__(
            f"No summariser wrote an acceptable digest ({'; '.join(failures)}). Nothing was "
            "changed. Repair or replace the summarisers, add ExtractiveSummarizer() as the last "
            'one, or set on_error="continue", with which the run goes on.'
        )
        self.failures = list(failures)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failures,)


def shortened(value: Any) -> str:
    """A value as an error shows it: a megabyte of it would help nobody."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # of a class of anybody's, or an integer of 4,300 digits
        return f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}..."
