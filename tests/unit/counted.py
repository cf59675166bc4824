"""Messages to count, and the parts of their counts."""

import base64
import json
from typing import Any

from langchain_core.messages import HumanMessage

from langgraph_compaction.plan.counting import token_counter
from tests.unit.test_estimate import jpeg, png

FRAMING = 4  # three and the role
COUNTER = token_counter("tiktoken")
WORDS = "The nightly export failed for the third time this week."
MEGABYTE = base64.b64encode(bytes(750_000)).decode()
PHOTO = base64.b64encode(jpeg(2048, 4096)).decode()
PICTURE = base64.b64encode(png(1024, 1024)).decode() + "A" * 1_000_000


def tokens(*texts: str) -> int:
    return sum(map(COUNTER.text, texts))


def human(*blocks: Any) -> HumanMessage:
    return HumanMessage(content=list(blocks))


ARGUMENTS = {"path": "/srv/app/tax.py", "lines": [41, 47], "note": WORDS}
CALL: Any = {"name": "read_file", "args": ARGUMENTS, "id": "call_1"}
CALLED = 9 + tokens("read_file", json.dumps(ARGUMENTS))
