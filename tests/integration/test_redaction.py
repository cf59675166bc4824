"""With `redact` no summariser and no record ever sees a secret, whatever way it could take.

A digest goes to a second provider and into every checkpoint. What a user's hook takes out has to be
out of prompts, segments, quotes, references and extracts alike; and where the hook fails nothing is
sent and nothing stored, while the agent's run goes on.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import (
    CompactionNode,
    ConfigurationError,
    ExtractiveSummarizer,
    ModelTier,
    merge_compaction,
    model_view,
    request_compaction,
)
from langgraph_compaction.digest.segments import parts_of
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support import folding
from tests.support.doubles import ScriptedModel
from tests.support.folding import DIGEST, Recorder, State, chat, state_of

SECRET = "sk-live-4f9a8b7c6d5e"
HIDDEN = "[key]"
TRACE = re.compile("sk-|live-4|4f9a|8b7c|6d5e")
"""Half a secret is one, too."""


def hide(text: str) -> str:
    return text.replace(SECRET, HIDDEN)


def node(model: Any, redact: Any = hide, **values: Any) -> CompactionNode:
    return folding.node(model, redact=redact, **values)


def called(n: int, arguments: Any, answer: Any, status: Any = "success") -> list[BaseMessage]:
    call: Any = {"name": "post", "args": arguments, "id": f"c{n}", "type": "tool_call"}
    return [
        AIMessage("", id=f"a{n}", tool_calls=[call]),
        ToolMessage(answer, tool_call_id=f"c{n}", id=f"t{n}", status=status),
    ]


PLACES: dict[str, list[BaseMessage]] = {
    "user text": [HumanMessage(f"Use the key {SECRET} for everything.", id="odd")],
    "agent text": [AIMessage(f"I use the key {SECRET} now.", id="odd")],
    "block": [HumanMessage([{"type": "text", "text": f"Use {SECRET}."}], id="odd")],
    "plain block": [HumanMessage(["Use", SECRET], id="odd")],
    "file name": [HumanMessage([{"type": "file", "file": {"filename": SECRET}}], id="odd")],
    "address": [HumanMessage([{"type": "image_url", "image_url": f"https://x/{SECRET}"}], id="o")],
    "argument": called(99, {"headers": [{"auth": f"Bearer {SECRET}"}]}, "fine"),
    "key of an argument": called(99, {SECRET: 1}, "fine"),
    "long argument": called(99, {"text": "x " * 2_500 + SECRET + " y" * 2_500}, "fine"),
    "result": called(99, {}, f"The key is {SECRET}."),
    "result of blocks": called(99, {}, [{"type": "text", "text": f"The key is {SECRET}."}]),
    "error": called(99, {}, f"Error: {SECRET} was refused.", "error"),
    "clamp boundary": called(99, {}, "z" * 1_326 + SECRET + "z" * 9_000),
    "tail of a clamp": called(99, {}, "z" * 9_000 + SECRET + "z" * 656),
    "server call": [
        AIMessage(
            [{"type": "server_tool_use", "id": "s", "name": "find", "input": {"query": SECRET}}]
        )
    ],
    "speaker": [HumanMessage("I am here.", name=SECRET, id="odd")],
    "latest": [HumanMessage(f"The key {SECRET} must never be shared with anybody else.")],
}  # fmt: skip


def around(odd: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A conversation long enough to fold, with the messages among what is folded."""
    return [*chat(4), *odd, *chat(12, start=20)]


def visited(compact: CompactionNode, state: State, way: str = "sync") -> State:
    """The state after a visit; its messages are as they were."""
    before = deepcopy(state["messages"])
    update = (
        compact.invoke(state) if way == "sync" else asyncio.run(compact.ainvoke(deepcopy(state)))
    )
    assert state["messages"] == before
    record = merge_compaction(state["compaction"], update.get("compaction"))
    return {**state, "compaction": record}


def assert_clean(*texts: object) -> None:
    for text in texts:
        shown = json.dumps(text) if isinstance(text, dict) else str(text)
        assert TRACE.search(shown) is None, TRACE.search(shown)


def copied(messages: list[BaseMessage]) -> str:
    """A digest that repeats words of the transcript which look like keys."""
    found = re.findall(r"\[key]|sk-\S*", str(messages[-1].content))
    return DIGEST + "\nThe key: " + " ".join(dict.fromkeys(found))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("tier", ["callable", "chat model"])
@pytest.mark.parametrize("place", PLACES)
def test_no_summariser_and_no_record_sees_a_secret(place: str, tier: str, way: str) -> None:
    recorder = Recorder(copied)
    model: Any = recorder
    if tier == "chat model":
        model = ScriptedModel(reply=lambda messages: AIMessage(recorder(messages)))
    state = visited(node(model, segment_share=0.9), state_of(around(PLACES[place])), way)
    assert state["compaction"]["segments"]
    assert_clean(recorder.read, state["compaction"])
    if place not in {"clamp boundary", "tail of a clamp", "speaker"}:
        assert HIDDEN in recorder.read


def test_without_the_hook_the_same_secrets_are_sent() -> None:
    for place, odd in PLACES.items():
        recorder = Recorder()
        visited(node(recorder, redact=None), state_of(around(odd)))
        assert TRACE.search(recorder.read), place


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("need", ["soft", "hard"])
def test_extracts_hold_no_secret(place: str, need: str) -> None:
    messages = around(PLACES[place])
    if need == "soft":
        compact = node(ExtractiveSummarizer())
    else:

        def fails(messages: list[BaseMessage]) -> str:
            raise RuntimeError("down")

        compact = node(fails, context_window=1_500, trigger=("fraction", 0.6), keep=("messages", 1))
        messages = [*messages, *chat(8, start=40)]
        assert compact.explain(state_of(messages)).need == "hard"
    state = visited(compact, state_of(messages))
    assert {one["model"] for one in state["compaction"]["segments"]} == {"extractive"}
    assert_clean(state["compaction"])


def test_the_users_quoted_message_is_redacted() -> None:
    request = HumanMessage(f"Deploy with {SECRET}, and tell nobody of it.", id="newest")
    messages = [*chat(14), request, AIMessage("step " * 200, id="work")]
    state = visited(node(Recorder(), keep=("messages", 0)), state_of(messages))
    digest = "\n".join(one["text"] for one in state["compaction"]["segments"])
    assert f"Deploy with {HIDDEN}, and tell nobody of it." in digest
    assert_clean(state["compaction"])


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_reference_in_results_and_calls_is_stored_redacted(way: str) -> None:
    odd = called(99, {"path": f"/srv/{SECRET}/app.py"}, f"wrote /srv/{SECRET}/app.py")
    state = visited(node(ExtractiveSummarizer()), state_of(around(odd)), way)
    assert_clean(state["compaction"])
    assert "app.py" in str(state["compaction"])


def test_segments_made_before_the_hook_was_set_are_sent_redacted() -> None:
    careless = Recorder(lambda _: f"{DIGEST}\nThe key is {SECRET}.")
    old = visited(node(careless, redact=None), state_of(chat(14)))
    assert SECRET in str(old["compaction"])
    recorder = Recorder()
    more = {**old, "messages": [*old["messages"], *chat(14, start=14)]}
    state = visited(node(recorder), more)
    assert len(state["compaction"]["segments"]) > len(old["compaction"]["segments"])
    assert f"The key is {HIDDEN}." in recorder.read
    assert_clean(recorder.read, *state["compaction"]["segments"][1:])


@pytest.mark.parametrize("model", ["summariser", "extractive"])
def test_what_is_condensed_is_sent_and_stored_redacted(model: str) -> None:
    careless = Recorder(lambda _: f"{DIGEST}\nThe key is {SECRET}, which is for later.")
    state = state_of(chat(10))
    start = 10
    for _ in range(4):
        state = visited(node(careless, redact=None), state)
        state = {**state, "messages": [*state["messages"], *chat(10, start=start)]}
        start += 10
    assert len(state["compaction"]["segments"]) == 4
    recorder = Recorder(copied)
    tier: Any = recorder if model == "summariser" else ExtractiveSummarizer()
    state = visited(node(tier, max_digest_tokens=200), state)
    condensed = [one for one in state["compaction"]["segments"] if one["level"]]
    assert condensed
    assert_clean(recorder.read, *condensed)


def test_a_secret_that_a_model_puts_together_is_not_stored_nor_sent_again() -> None:
    answers: list[str] = []

    def repaired(messages: list[BaseMessage]) -> str:
        answers.append("")
        first = f"## Goal\nUse {SECRET[:6]}<message>{SECRET[6:]} and {SECRET} for all of the work."
        return first if len(answers) == 1 else f"{DIGEST}\nThe key is {SECRET}."

    recorder = Recorder(repaired)
    state = visited(node(recorder), state_of(chat(14)))
    assert len(recorder.prompts) == 2
    assert state["compaction"]["segments"]
    assert_clean(recorder.read, state["compaction"])


def test_a_message_read_in_pieces_is_redacted_before_it_is_cut() -> None:
    recorder = Recorder()
    text = " ".join(f"{SECRET} word{n}" for n in range(4_000))
    messages = [*chat(4), HumanMessage(text, id="huge"), *chat(6, start=10)]
    compact = node(
        ModelTier(recorder, window=4_000), context_window=400_000, trigger=("tokens", 5_000)
    )
    state = visited(compact, state_of(messages))
    assert len(recorder.prompts) > 5
    assert all(f"word{n}" in recorder.read for n in range(4_000))
    assert_clean(recorder.read, state["compaction"])


def test_instructions_of_a_request_are_redacted() -> None:
    recorder = Recorder()
    asked = request_compaction(f"Keep {SECRET} in mind.")
    visited(node(recorder), {**state_of(chat(14)), **asked})
    assert f"Keep {HIDDEN} in mind." in recorder.read
    assert_clean(recorder.read)


def test_the_middleware_takes_the_hook_too() -> None:
    recorder = Recorder(copied)
    compaction = CompactionMiddleware(
        recorder,
        redact=hide,
        context_window=60_000,
        trigger=("tokens", 600),
        token_counter="estimate",
        min_fold_tokens=0,
        min_fold_share=0.0,
        keep=("messages", 2),
    )
    agent: Any = create_agent(
        ScriptedModel(reply=lambda _: AIMessage("Done.")), [], middleware=[compaction]
    )
    messages = [*around(PLACES["user text"]), HumanMessage("Now?", id="last")]
    state = agent.invoke({"messages": messages})
    assert state["compaction"]["segments"]
    assert_clean(recorder.read, state["compaction"])
    assert any(SECRET in message.text for message in state["messages"])


# ---- a hook that fails


def raises(text: str) -> str:
    raise ValueError(f"cannot redact {text}")


def returns_none(text: str) -> Any:
    return None


def fails_late(text: str) -> str:
    """Fails on a digest."""
    if text.startswith(("## Goal", "Extracts from the conversation")):
        raise ValueError(text)
    return text


each_fault = pytest.mark.parametrize("fault", [raises, returns_none, fails_late])


@each_fault
@pytest.mark.parametrize("way", ["sync", "async"])
def test_with_a_hook_that_fails_nothing_is_stored_and_the_run_goes_on(
    fault: Callable[[str], str], way: str
) -> None:
    events: list[dict[str, Any]] = []
    recorder = Recorder()
    messages = around(PLACES["user text"])
    state = visited(node(recorder, fault, hook=events.append), state_of(messages), way)
    assert "segments" not in state["compaction"]
    assert model_view(state) == messages
    assert len(recorder.prompts) == (fault is fails_late)
    failed = [event for event in events if event["type"] == "compaction.failed"]
    assert len(failed) == 1
    assert "redact" in failed[0]["reason"]
    assert_clean(state["compaction"], *events)
    assert "Under way" not in str(events)


@each_fault
def test_a_hook_that_fails_raises_where_errors_are_to_be_raised(
    fault: Callable[[str], str],
) -> None:
    compact = node(Recorder(), fault, on_error="raise")
    with pytest.raises(ConfigurationError, match="redact: the hook r") as found:
        compact.invoke(state_of(around(PLACES["user text"])))
    assert_clean(found.value)


@each_fault
@pytest.mark.parametrize("model", [Recorder(), ExtractiveSummarizer()])
def test_at_hard_need_a_hook_that_fails_leaves_a_clipped_view(
    fault: Callable[[str], str], model: Any
) -> None:
    compact = node(model, fault, context_window=3_000, trigger=("fraction", 0.6), clear=False)
    results = [one for n in range(4) for one in called(n, {}, "a line of output\n" * 180)]
    messages = [*chat(6), *results, *chat(2, start=30)]
    assert compact.explain(state_of(messages)).need == "hard"
    state = visited(compact, state_of(messages))
    assert "segments" not in state["compaction"]
    view = model_view(state)
    assert [message.id for message in view] == [message.id for message in messages]
    assert compact.measure(state).tokens < 3_000
    assert "characters left out" in view[7].text


def test_a_hook_is_checked_at_construction() -> None:
    wrong: Any = "x"
    for make in (CompactionNode, CompactionMiddleware):
        with pytest.raises(ConfigurationError, match="redact: 'x' has to be a plain function"):
            make(ExtractiveSummarizer(), context_window=9_000, redact=wrong)


def test_a_hook_that_lengthens_or_takes_whole_lines_breaks_neither_label_nor_cap() -> None:
    def greedy(text: str) -> str:
        # Whatever matches to the end of the text, as with ".*" and DOTALL; and much longer.
        marker = "[taken out: " + " ".join(f"part{n}" for n in range(30)) + "]"
        return re.sub(r"(?s)token=.*", marker, text).replace("w3 ", "x\ny ")

    seen = Recorder(lambda _: f"{DIGEST}\n- The call has token=abc in it.\n- See /srv/a.yaml.")
    odd = [
        HumanMessage("Never print token=abc to the log, please.", id="o1"),
        *called(7, {"token": "token=abc"}, "port: 9090 token=abc"),
    ]
    for most in (200, 250, 400):
        state = visited(node(seen, greedy, max_segment_tokens=most), state_of(around(odd)))
        [segment] = state["compaction"]["segments"]
        parts = parts_of(segment)
        assert not any(label in parts.body for label in ("word for word", "exactly as written"))
        assert "port: 9090" in (*parts.mentioned, *parts.printed)
        assert "token=" not in json.dumps(state["compaction"])
        assert segment["tokens"] <= most + 30  # its heading comes beside the cap
