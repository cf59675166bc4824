"""tiktoken's vocabularies: loaded at the first count, replaced by the estimate where missing.

Nothing is loaded, and no network is touched, when this module is imported or a `Vocabulary` made.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread

import tiktoken

from langgraph_compaction.plan.estimate import estimate_tokens

DEFAULT_ENCODING = "o200k_base"
"""For models that tiktoken does not know, and where no model is named."""

CHUNK_CHARACTERS = 20_000
"""Longer texts are counted in chunks: tiktoken's time grows faster than the length of one
unbroken run, and about a million spaces in a row overflow its regular expression's stack."""

LOAD_SECONDS = 15.0
"""How long the first count waits for a download, in seconds. tiktoken itself waits for ever where
a firewall drops packets."""

_log = logging.getLogger("langgraph_compaction")

# Patterns and checksums from tiktoken (tiktoken_ext/openai_public.py, MIT): the wheel of bpe-openai
# holds the vocabularies' files, not these.
_O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_WHEEL = {
    "o200k_base": (
        _O200K_PATTERN,
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        _CL100K_PATTERN,
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
# Where o200k_base and cl100k_base begin a new piece anyway, so that a cut there changes no count.
_SEAM = re.compile(r"(?<=[a-z0-9])(?= [A-Za-z])|(?<=\n)(?=[ \t]*[^\s/])")
_SEAM_SEARCH = 1_000  # characters before a chunk's end

_lock = Lock()
_loaded: dict[
    str, tiktoken.Encoding | str
] = {}  # by name; a string is the notice that it could not be


def encoding_name(model_name: str | None) -> str:
    """The encoding of a model, by tiktoken's own table.

    Args:
        model_name: a model's name, with or without its provider ("openai:gpt-5", "openai/gpt-5").
            None and unknown names have `DEFAULT_ENCODING`.
    """
    name = model_name or ""
    for candidate in (name, re.split("[:/]", name, maxsplit=1)[-1]):
        try:
            found = tiktoken.encoding_name_for_model(candidate)
        except KeyError:
            continue
        # They differ in special tokens only, and these are counted as plain text.
        return "o200k_base" if found == "o200k_harmony" else found
    return DEFAULT_ENCODING


class Vocabulary:
    """Counts text in one of tiktoken's encodings, or by the estimate where that cannot be loaded.

    Args:
        name: tiktoken's name of the encoding. Each is tried once per process.
    """

    def __init__(self, name: str = DEFAULT_ENCODING) -> None:
        self.name = name

    def notice(self) -> str | None:
        """One sentence where the encoding could not be loaded; None also while it was not tried."""
        found = _loaded.get(self.name)
        return found if isinstance(found, str) else None

    def count(self, text: str) -> int:
        """Tokens of a text; the names of special tokens in it are plain text."""
        encoding = _loaded.get(self.name) or _load(self.name)
        if isinstance(encoding, str):
            return estimate_tokens(text)
        if len(text) <= CHUNK_CHARACTERS:
            return _count(encoding, text)
        return sum(_count(encoding, chunk) for chunk in _chunks(text))


def _count(encoding: tiktoken.Encoding, text: str) -> int:
    try:
        return len(encoding.encode_ordinary(text))
    except ValueError:  # its regular expression gave up
        return estimate_tokens(text)


def _chunks(text: str) -> Iterator[str]:
    """The text in chunks of at most `CHUNK_CHARACTERS`, cut at seams where there are any."""
    start = 0
    while len(text) - start > CHUNK_CHARACTERS:
        end = start + CHUNK_CHARACTERS
        for seam in _SEAM.finditer(text, end - _SEAM_SEARCH, end):
            end = seam.start()
        yield text[start:end]
        start = end
    yield text[start:]


def _load(name: str) -> tiktoken.Encoding | str:
    """The encoding or, logged once, the notice that there is none."""
    with _lock:
        if name not in _loaded:
            found = _from_wheel(name) or _from_tiktoken(name)
            if isinstance(found, str):
                found = (
                    f"Tokens are estimated, not counted, because the vocabulary {name} could not "
                    f"be loaded ({found}): install langgraph-compaction[offline], or let tiktoken "
                    "reach the network or a filled TIKTOKEN_CACHE_DIR."
                )
                _log.warning("%s", found)
            _loaded[name] = found
        return _loaded[name]


def _from_wheel(name: str) -> tiktoken.Encoding | None:
    """From the files of bpe-openai (the extra ``offline``): no network, not even an attempt."""
    wheel = find_spec("bpe_openai")
    if name not in _WHEEL or wheel is None or not wheel.submodule_search_locations:
        return None
    pattern, checksum = _WHEEL[name]
    file = Path(wheel.submodule_search_locations[0], "data", f"{name}.tiktoken.gz")
    try:
        data = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error):
        return None
    if sha256(data).hexdigest() != checksum:
        return None
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _from_tiktoken(name: str) -> tiktoken.Encoding | str:
    """From tiktoken's cache or the network, within `LOAD_SECONDS`; else what went wrong."""
    found: list[tiktoken.Encoding | str] = []

    def load() -> None:
        try:
            found.append(tiktoken.get_encoding(name))
        except (OSError, ValueError) as error:  # every error of requests is an OSError
            found.append(f"{type(error).__name__}: {error}"[:200])

    # A daemon: a download that hangs must not keep the process from ending.
    loader = Thread(target=load, name=f"load {name}", daemon=True)
    loader.start()
    loader.join(LOAD_SECONDS)
    return found[0] if found else f"no answer within {LOAD_SECONDS:.0f} seconds"
