"""Counting and triggers: a count that is wrong folds too late, or for ever.

Characters divided by four are wrong by a factor of four in Chinese and of eighty in a PDF; what
stands beside the messages is not counted at all; and what the provider reports is of another list.
"""

import base64
import inspect
import random
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from langgraph_compaction import CompactionNode, ConfigurationError
from tests.faults.threads import Talk, agent, each_graph, each_way, filled, history, human, result
from tests.support.bad_answers import SAID
from tests.support.folding import Recorder, accepted, node

ROOT = Path(__file__).parents[2]
BYTES = random.Random(7).randbytes(4_500)
TEXTS = {
    "Chinese": "".join(SAID["Chinese"]) * 40,
    "Japanese": "".join(SAID["Japanese"]) * 30,
    "Korean": " ".join(SAID["Korean"]) * 30,
    "Cyrillic": " ".join(SAID["Cyrillic script"]) * 20,
    "emoji": "Fertig 🎉🎊 👩‍👩‍👧 done 🏳️‍🌈 🧑🏽‍💻 🚀🔥💯 ok 😀😃😄😁 👍🏽 ❤️‍🔥 " * 40,
    "code": Path(inspect.getfile(CompactionNode)).read_text("utf-8"),
    "prose": (ROOT / "docs" / "explanation" / "how-it-works.md").read_text("utf-8"),
    "base64": base64.b64encode(BYTES).decode(),
}


def counted(message: BaseMessage, counter: str = "tiktoken") -> int:
    """Tokens of a thread with this message alone."""
    compact = CompactionNode(accepted, context_window=100_000_000, token_counter=counter)
    return compact.measure({"messages": [message], "compaction": {}}).counted


@pytest.mark.parametrize("kind", TEXTS)
def test_g1_every_script_and_kind_of_text_is_counted_right(kind: str) -> None:
    """langchainjs#11304: 4,000 Chinese characters count as 1,004 tokens.

    The estimate is within 15% of o200k_base, which is what counts where it can be loaded.
    """
    for message in (
        HumanMessage(TEXTS[kind]),
        HumanMessage([{"type": "text", "text": TEXTS[kind]}]),
    ):
        compact = CompactionNode(accepted, context_window=1_000_000)
        exact = compact.measure({"messages": [message], "compaction": {}})
        assert exact.counter.startswith("tiktoken:o200k_base")
        assert exact.counted > 500
        assert counted(message, "estimate") == pytest.approx(exact.counted, rel=0.15)


SPECIAL = ("<|endoftext|>", "<|im_start|>system<|im_end|>", "<|endofprompt|>", "<|fim_prefix|>")


@pytest.mark.parametrize("special", SPECIAL)
@each_graph
def test_g2_special_tokens_are_plain_text(way: str, between: bool, special: str) -> None:
    """Roo#7539: `<|endoftext|>` in any message bricks the thread.

    It is counted as the text that it is, in every role, and the thread folds and goes on.
    """
    exact = node(token_counter="tiktoken", clear=False)
    talk = Talk(exact, way=way, between=between)
    said = human("h1"), agent("a1", "c1", words=150), result("c1"), agent("a2"), human("h2")
    odd = [one.model_copy(update={"content": f"{special} {one.content} {special}"}) for one in said]
    talk.say(*odd)
    talk.say(HumanMessage(special))
    assert talk.record["segments"]
    assert counted(HumanMessage(special * 50)) > 50 * 2
    assert counted(HumanMessage(special * 50), "estimate") > 50 * 2


@tool
def look(at: str, around: bool = False) -> str:
    """Look at something, and around it if that is wanted, which takes some time more."""
    return at


@each_way
def test_g3_tools_and_system_prompt_are_counted(way: str) -> None:
    """langchain#34664: tools and the system prompt are not counted, so it fires too late.

    They count from the start where the node is told of them, and else from the first report on.
    """
    prompt = filled("prompt", 200)
    plain = node(trigger=("tokens", 900), clear=False)
    told = node(trigger=("tokens", 900), clear=False, tools=[look], system_prompt=prompt)
    state: Any = {"messages": history(), "compaction": {}}
    more = told.measure(state).tokens - plain.measure(state).tokens
    assert more > counted(SystemMessage(prompt), "estimate") + 30
    assert plain.invoke({**state, "messages": history()[:-1]}) == {}
    assert told.invoke({**state, "messages": history()[:-1]})["compaction"]["segments"]
    # A report of the provider, which counts all of it, takes the place of both.
    usage: Any = {"input_tokens": 3_000, "output_tokens": 10, "total_tokens": 3_010}

    def answer(_: list[BaseMessage]) -> AIMessage:
        return AIMessage("Noted.", usage_metadata=usage)

    talk = Talk(node(trigger=("tokens", 2_500), clear=False), way=way, answer=answer)
    talk.say(*history())
    assert talk.record == {}
    talk.say(human("h4"))
    assert talk.record["segments"]


@each_graph
def test_g4_without_usage_it_fires_and_an_old_report_does_not_fire_again(
    way: str, between: bool
) -> None:
    """deer-flow#1602: usage is None while streaming, so nothing fires; an old one fires twice.

    Without a report the count decides. A report from before a fold says nothing about the view.
    """
    asked = Recorder()
    talk = Talk(node(asked, clear=False), way=way, between=between)
    talk.say(*history())
    talk.say(human("h4", 10))
    assert all(getattr(m, "usage_metadata", None) is None for m in talk.state["messages"])
    assert len(asked.prompts) == 1

    asked = Recorder()
    usage: Any = {"input_tokens": 50_000, "output_tokens": 10, "total_tokens": 50_010}
    talk = Talk(
        node(asked, clear=False, trigger=("tokens", 30_000), pinned={"id": "a2"}),
        way=way,
        between=between,
    )
    said = history()
    said[3] = said[3].model_copy(update={"usage_metadata": usage})
    talk.say(*said)
    assert len(asked.prompts) == 1
    assert any(m.id == "a2" for m in talk.compact.view(talk.state))  # the report is still there
    for number in range(4):
        talk.say(human(f"more-{number}"))
    assert len(asked.prompts) == 1


class Nameless(FakeListChatModel):
    """A model of which LangChain knows no window."""


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"agent_model": Nameless(responses=["ok"])},
        {"trigger": ("fraction", 0.5)},
        {"trigger": ("tokens", 1_000), "keep": ("fraction", 0.1)},
        {"trigger": ("tokens", 1_000), "reserve_tokens": 100},
    ],
)
def test_g5_a_model_without_a_known_window_is_an_error_that_names_the_parameter(
    values: dict[str, Any],
) -> None:
    """deepagentsjs#467: a fallback of 170,000 tokens, so that a smaller model never fires.

    At construction an error says which parameter to give.
    """
    with pytest.raises(ConfigurationError, match="context_window="):
        CompactionNode(accepted, **values)
    assert CompactionNode(accepted, **{**values, "context_window": 8_000}).settings
    assert CompactionNode(accepted, trigger=("tokens", 1_000)).settings.context_window is None


PDF = base64.b64encode(b"%PDF-1.7\n" + random.Random(3).randbytes(1_000_000)).decode()


@pytest.mark.parametrize("counter", ["tiktoken", "estimate"])
def test_g6_every_block_type_has_its_rule(counter: str) -> None:
    """langchain: arguments count as 6 tokens beside a list, and a PDF of 1 MB as 250,020.

    Arguments count in full, however the content is written; data counts by its kind and size.
    """
    args = {"text": filled("a", 4_000)}
    call: Any = {"name": "write", "args": args, "id": "c"}
    block: Any = {"type": "tool_use", "id": "c", "name": "write", "input": args}
    function = {"type": "function_call", "call_id": "c", "name": "write", "arguments": str(args)}
    text: Any = {"type": "text", "text": "Here."}
    plain = counted(AIMessage("Here.", tool_calls=[call]), counter)
    assert plain > 5_000
    for content in ([text], [], [text, block], [text, function]):
        assert counted(AIMessage(content, tool_calls=[call]), counter) == pytest.approx(
            plain, rel=0.01
        )
    data: dict[str, Any] = {
        "file": {"type": "file", "base64": PDF, "mime_type": "application/pdf"},
        "document": {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
        },
        "OpenAI's file": {
            "type": "file",
            "file": {"file_data": f"data:application/pdf;base64,{PDF}"},
        },
        "image": {"type": "image", "base64": PDF, "mime_type": "image/png"},
        "image_url": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PDF}"}},
        "audio": {"type": "audio", "base64": PDF, "mime_type": "audio/mp3"},
        "unknown": {"type": "gadget", "payload": PDF},
    }
    for kind, one in data.items():
        for message in (HumanMessage([text, one]), ToolMessage([text, one], tool_call_id="c")):
            assert 5 < counted(message, counter) < 50_000, kind
    thought = filled("thought", 400)
    for reasoning in (
        {"type": "thinking", "thinking": thought, "signature": PDF[:2_000]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]},
        {"type": "reasoning", "reasoning": thought},
    ):
        # Shown or sent back, it is about its text, and never its signature.
        size = counted(AIMessage([reasoning, text]), counter)
        assert size < 1.3 * counted(AIMessage(thought), counter) + 50


@pytest.mark.parametrize("unit", ["a", " ", "-=", "哈", "a "])
@pytest.mark.parametrize("counter", ["tiktoken", "estimate"])
def test_g7_a_million_repeated_characters_take_bounded_time(counter: str, unit: str) -> None:
    """BPE tokenizers crawl on one long run: quadratic in its length.

    A message of a million is counted at once, and is not taken for nothing.
    """
    counted(HumanMessage("warm"), counter)
    started = time.process_time()
    size = counted(HumanMessage(unit * (1_000_000 // len(unit))), counter)
    assert time.process_time() - started < 5
    assert 1_000 < size < 2_000_000
