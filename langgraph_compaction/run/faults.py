"""What a failed call means for the calls after it, by the error that it raised."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from langchain_core.exceptions import (
    ModelAuthenticationError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
)

from langgraph_compaction.errors import ConfigurationError

REFUSING = frozenset({401, 403, 404})
"""HTTP: not authenticated, not permitted, no such model. Asking again brings the same answer."""
_REFUSING_ERRORS = (ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError)
_REFUSING_NAMES = frozenset({"AuthenticationError", "PermissionDeniedError", "NotFoundError"})
_REFUSING_TEXT = re.compile(
    "api key not valid"  # Google, with status 400
    "|could not resolve authentication|authentication failed: no api key"  # Anthropic's client
    "|missing credentials|api_key client option must be set",  # OpenAI's client
    re.IGNORECASE,
)

_PROGRAMMING = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    NotImplementedError,
    ConfigurationError,
)
_CLIENTS = frozenset(
    "openai langchain_openai anthropic langchain_anthropic google langchain_google_genai "
    "httpx httpx2 httpcore requests urllib3 aiohttp".split()
)
"""Packages in which such an error says that an answer had a shape they did not expect: openai's
client raises AttributeError where a proxy answers with a page of HTML."""


def is_refused(error: BaseException) -> bool:
    """Whether the provider refuses this caller or this model: no retry helps."""
    if isinstance(error, _REFUSING_ERRORS):
        return True
    if any(kind.__name__ in _REFUSING_NAMES for kind in type(error).__mro__):
        return True
    status = _field(error, "status_code"), _field(error, "code")  # google.genai has a code alone
    if any(isinstance(number, int) and number in REFUSING for number in status):
        return True
    return _REFUSING_TEXT.search(said_by(error)) is not None


def is_programming_error(error: BaseException) -> bool:
    """Whether the error is of the program or its configuration, not of network or provider."""
    if not isinstance(error, _PROGRAMMING):
        return False
    return isinstance(error, ConfigurationError) or _raised_in(error.__traceback__) not in _CLIENTS


def is_of_client(error: BaseException) -> bool:
    """Whether the error tells how a call over the network ended: raised by a provider's client."""
    if isinstance(error, OSError) or _field(error, "status_code") is not None:
        return True
    return type(error).__module__.partition(".")[0] in _CLIENTS


def said_by(error: BaseException) -> str:
    """The error's text, "" where it cannot even say what it is."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # of a class of anybody's
        return ""


def _field(error: BaseException, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001  # a property of anybody's
        return None


def _raised_in(trace: TracebackType | None) -> str:
    """The top-level package of the frame that raised."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
