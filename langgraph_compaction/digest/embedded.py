"""Data in the middle of text: an image as a data URL, a file as base64 in a tool's JSON.

No model reads it, and a digest that copied it would be nothing else.
"""

from __future__ import annotations

import re

from langgraph_compaction.view.blocks import size_of

LEAST_DATA = 256
"""Characters of base64 from which on it is taken for data: keys and hashes are shorter."""

_DATA_URL = re.compile(
    r"data:(?P<type>[\w.+-]{1,60}/[\w.+-]{1,60})?(?:;[\w.+-]{1,40}=[\w.+-]{1,80}){0,4};base64,"
    r"(?P<data>[A-Za-z0-9+/_%-]{16,}={0,2})",
    re.IGNORECASE,
)
# In one piece, or in lines as mail and certificates have it.
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{60,}(?:\r?\n[A-Za-z0-9+/]{60,})*"
    r"(?:(?:\r?\n[A-Za-z0-9+/]*)?={1,2})?"
)


def without_data(text: str) -> str:
    """``text`` with a marker of type and size in place of data that stands in it as base64."""
    if len(text) < 60:
        return text
    return _BASE64.sub(_marker, _DATA_URL.sub(_marker_of_url, text))


def _marker_of_url(found: re.Match[str]) -> str:
    return f"[{found['type'] or 'data'} {size_of(len(found['data']) * 3 // 4)}]"


def _marker(found: re.Match[str]) -> str:
    """Data has all kinds of characters, and a slash in every 64: a long path has more."""
    run = found.group()
    kinds = (str.isupper, str.islower, str.isdigit)
    varied = all(any(map(kind, run[:LEAST_DATA])) for kind in kinds)
    if len(run) < LEAST_DATA or not varied or run.count("/") > len(run) // 20:
        return run
    return f"[base64 {size_of(len(run) * 3 // 4)}]"
