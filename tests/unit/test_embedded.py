"""Base64 in the middle of text becomes a marker, and nothing that is no data does."""

import base64
import time

import pytest

from langgraph_compaction.digest.embedded import LEAST_DATA, without_data

DATA = bytes(n * n % 256 for n in range(3_000))
PLAIN = base64.b64encode(DATA).decode()
LINES = base64.encodebytes(DATA).decode()
URL_SAFE = base64.urlsafe_b64encode(DATA).decode()

EMBEDDED = {
    f"See data:image/png;base64,{PLAIN} there": "See [image/png 3,000 bytes] there",
    f'{{"shot": "data:image/svg+xml;charset=utf-8;base64,{PLAIN}"}}': (
        '{"shot": "[image/svg+xml 3,000 bytes]"}'
    ),
    f"![a](DATA:image/jpeg;base64,{URL_SAFE})": "![a]([image/jpeg 3,000 bytes])",
    f"data:;base64,{PLAIN}.": "[data 3,000 bytes].",
    f"b64={PLAIN}\nNext": "b64=[base64 3,000 bytes]\nNext",
    f'"{PLAIN}", "{PLAIN}"': '"[base64 3,000 bytes]", "[base64 3,000 bytes]"',
}


@pytest.mark.parametrize("text", EMBEDDED)
def test_data_becomes_a_marker(text: str) -> None:
    assert without_data(text) == EMBEDDED[text]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_data_in_lines_becomes_one_marker(newline: str) -> None:
    text = f"-----BEGIN FILE-----\n{LINES}-----END FILE-----".replace("\n", newline)
    assert without_data(text).count("[base64 ") == 1
    left = without_data(text).replace("-----BEGIN FILE-----", "").replace("-----END FILE-----", "")
    assert len(left) < 60 + LEAST_DATA / 4  # a last line without padding stays


@pytest.mark.parametrize(
    "text",
    [
        "",
        "data:text/plain,Hello",
        "The data:image/png;base64, prefix alone.",
        "z" * 9_000,
        "0123456789abcdef" * 200,
        "/srv/" + "node_modules/package/" * 60,
        "A" * 300 + "/" + "b" * 300,
        PLAIN[: LEAST_DATA - 1],
        "Ab1 " * 500,
        "\n".join(f"Word{number}" for number in range(900)),
        "/home/Ann/work2/" + "releases/Build7/" * 40,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ],
)
def test_what_is_no_data_stays(text: str) -> None:
    assert without_data(text) == text


def test_long_texts_take_time_with_their_length_alone() -> None:
    def seconds(size: int) -> float:
        texts = [PLAIN * size, "z" * 4_000 * size, ("Ab1+" * 15 + "\n") * 60 * size, "data:" * size]
        started = time.process_time()
        for text in texts:
            without_data(text)
        return time.process_time() - started

    seconds(1)
    assert seconds(800) < 20 * seconds(200) + 0.05
