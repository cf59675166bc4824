"""Where the vocabulary comes from, and what is counted by where there is none.

A fault repaired here: an absent network asked for it at every message.
"""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tiktoken
from langchain_core.messages import HumanMessage

from langgraph_compaction.plan import vocabulary
from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.estimate import estimate_tokens
from tests.unit.counted import FRAMING, WORDS, tokens


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_loaded", {})


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, nothing_loaded: None) -> None:
    monkeypatch.setattr(vocabulary, "find_spec", lambda name: None)


def test_nothing_is_loaded_at_import_or_construction() -> None:
    program = """
import sys, tiktoken.registry
from langgraph_compaction.plan import counting, vocabulary
counting.token_counter(), counting.token_counter("tiktoken", model_name="gpt-4")
assert not vocabulary._loaded, vocabulary._loaded
assert not tiktoken.registry.ENCODINGS and "bpe_openai" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.usefixtures("nothing_loaded")
def test_the_wheel_is_read_before_any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> tiktoken.Encoding:
        raise AssertionError(f"{name} was asked of tiktoken")

    monkeypatch.setattr(tiktoken, "get_encoding", refuse)
    counter = token_counter()
    assert counter.text(WORDS) == tokens(WORDS)
    assert (counter.name, counter.exact, counter.notice()) == ("tiktoken:o200k_base", True, None)


@pytest.mark.usefixtures("no_wheel")
def test_without_the_wheel_tiktoken_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    other = tiktoken.Encoding(
        "bytes", pat_str=".", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: other)
    counter = token_counter()
    assert counter.text("abc") == 3
    assert counter.exact


@pytest.mark.usefixtures("no_wheel")
def test_without_a_vocabulary_the_estimate_counts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def fail(name: str) -> tiktoken.Encoding:
        asked.append(name)
        raise ConnectionError("no route to the vocabulary's host")

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    counters = [token_counter(), token_counter()]
    assert counters[0].notice() is None
    with caplog.at_level(logging.WARNING, "langgraph_compaction"):
        for counter in counters:
            assert counter.message(HumanMessage(WORDS)) == FRAMING + estimate_tokens(WORDS)
            assert counter.text(WORDS) == estimate_tokens(WORDS)
            assert (counter.name, counter.exact) == ("estimate", False)
    assert asked == ["o200k_base"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    notice = counters[1].notice()
    assert notice is not None
    assert caplog.records[0].getMessage() == notice
    for part in ("o200k_base", "no route", "langgraph-compaction[offline]", "TIKTOKEN_CACHE_DIR"):
        assert part in notice


@pytest.fixture
def hanging_download(monkeypatch: pytest.MonkeyPatch, no_wheel: None) -> Iterator[None]:
    go_on = threading.Event()

    def hang(name: str) -> tiktoken.Encoding:
        go_on.wait(30)
        raise ConnectionError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", hang)
    monkeypatch.setattr(vocabulary, "LOAD_SECONDS", 0.05)
    yield
    go_on.set()


@pytest.mark.usefixtures("hanging_download")
def test_a_download_that_hangs_is_given_up() -> None:
    counter = token_counter()
    start = time.monotonic()
    assert counter.text(WORDS) == estimate_tokens(WORDS)
    assert time.monotonic() - start < 10
    assert "no answer" in str(counter.notice())


@pytest.mark.usefixtures("nothing_loaded")
def test_threads_that_count_first_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    from_wheel = vocabulary._from_wheel

    def slow(name: str) -> tiktoken.Encoding | None:
        loads.append(name)
        time.sleep(0.05)
        return from_wheel(name)

    monkeypatch.setattr(vocabulary, "_from_wheel", slow)
    counter = token_counter()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: counter.text(WORDS), range(8))) == {tokens(WORDS)}
    assert loads == ["o200k_base"]


@pytest.mark.parametrize("damage", ["checksum", "no file", "no gzip"])
@pytest.mark.usefixtures("nothing_loaded")
def test_a_damaged_wheel_is_passed_over(
    damage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    if damage == "checksum":
        pattern, _ = vocabulary._WHEEL["cl100k_base"]
        monkeypatch.setitem(vocabulary._WHEEL, "cl100k_base", (pattern, "0" * 64))
    else:
        (tmp_path / "data").mkdir()
        if damage == "no gzip":
            (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(b"damaged")
        place = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
        monkeypatch.setattr(vocabulary, "find_spec", lambda name: place)
    assert vocabulary._from_wheel("cl100k_base") is None
