"""The summary call goes wrong: what comes back is no summary, or the call does not fit.

A bad summary is worse than none: it stands in place of all that the agent knew. So whatever a
summariser does, the digest is a digest, or nothing has changed and the run goes on.
"""

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_compaction import CompactionNode, ModelTier
from tests.faults.threads import Talk, agent, each_graph, each_way, filled, history, human, result
from tests.support.doubles import (
    STEPS,
    WINDOW,
    Summaries,
    assert_folded_once,
    loop,
    request,
    transcript,
    worker,
)
from tests.support.folding import DIGEST, Recorder, node
from tests.support.openai_server import (
    OVERFLOWS,
    Case,
    Exchange,
    OpenAIServer,
    rate_limited,
    status,
    text,
    unavailable,
)
from tests.support.openai_server.clients import HALF, wire_model
from tests.support.openai_server.runs import assert_unchanged, markers_of, prompt_of, run

each_digest = pytest.mark.parametrize("digest", ["chain", "rolling"])
every_second = pytest.mark.parametrize(("wire", "way"), HALF)

ERRORS = (
    "Error generating summary: Connection error.",
    "Error: Request timed out. Please try again later.",
    "An error occurred while generating the summary: 'NoneType' object is not subscriptable",
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    "Previous conversation was too long to summarize.",
)
REFUSALS = (
    "I'm sorry, but I can't assist with that request.",
    "I cannot help with summarising this conversation, as it may violate the policy.",
    "Please provide the conversation that you would like me to summarise.",
    "It looks like the conversation is empty. Could you share the messages with me?",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "请提供您想要我总结的对话内容。",
)
PROTOCOL = (
    '<tool_call>\n{"name": "look", "arguments": {"at": "the file"}}\n</tool_call>',
    '<function_calls>\n<invoke name="look">\n<parameter name="at">the file</parameter>\n</invoke>',
    '<function=look>{"at": "the whole of the file"}</function>',
    "<|tool_calls_section_begin|><|tool_call_begin|>look:0<|tool_call_end|>",
    '[TOOL_CALLS] [{"name": "look", "arguments": {"at": "the file"}}]',
)


def assert_nothing_changed(talk: Talk) -> None:
    """No digest, no message hidden, an event that says so, and the agent was called."""
    assert "segments" not in talk.record
    assert talk.hidden == set()
    assert talk.views[-1] == talk.state["messages"][:-1]
    assert talk.state["messages"][-1].text == "Noted."
    assert talk.kinds[0] == "started"
    assert talk.kinds[-1] == "failed"


@pytest.mark.parametrize("said", ERRORS)
@each_graph
def test_c1_an_error_text_never_becomes_the_digest(way: str, between: bool, said: str) -> None:
    """langchain#38867, claude-code#57636: an error text is stored as the summary.

    A failed call changes nothing, an event says so, and the turn goes on.
    """
    talk = Talk(node(lambda _: said, clear=False), way=way, between=between)
    talk.say(*history())
    assert_nothing_changed(talk)


@pytest.mark.parametrize(
    "case", [rate_limited(0.01), unavailable(), status(400), status(200, "Bad gateway")]
)
@every_second
def test_c1_a_provider_that_fails_ends_no_run(
    server: OpenAIServer, case: Case, wire: str, way: str
) -> None:
    """langchain#38867: since it raises instead, the run dies.

    As above, with the errors of a real client.
    """
    server.answer(case)
    assert_unchanged(run(way, wire_model(server, wire, "house-model"), clear=False))


@pytest.mark.parametrize("window", [None, 1_200])
@each_digest
def test_c2_every_folded_message_of_a_single_task_agent_is_read(
    digest: str, window: int | None
) -> None:
    """langchain#39261: in `H, (AI(i), T(i))×n` nothing fits the trim, and no model is asked.

    Every folded message reaches the summariser, in as many calls as it takes.
    """
    summaries, model = Summaries(), worker()
    compact = CompactionNode(
        ModelTier(summaries, window=window), context_window=WINDOW, digest=digest, clear=False
    )
    state = loop(compact, model).invoke({"messages": [request(1, 30)]}, STEPS)
    last = state["compaction"]["last_summarized_index"]
    covered = [m.text.split()[0] for m in state["messages"][1 : last + 1]]
    assert len(covered) > 30
    assert_folded_once(summaries.folded)
    # Condensing reads digests, which have no markers.
    assert summaries.folded == covered
    assert "too long to summarize" not in str(state["compaction"])
    assert window is None or len(summaries.prompts) > 10


@each_digest
@each_way
def test_c3_a_span_beyond_the_summarisers_window_is_folded_in_order(way: str, digest: str) -> None:
    """gemini-cli#16516, codex#8632, deepagents#5913: the span is three times the window.

    It is split, and folded in order; no request is larger than the window.
    """
    summaries, window = Summaries(), 2_500
    compact = node(ModelTier(summaries, window=window), digest=digest, keep=("messages", 2))
    talk = Talk(compact, way=way)
    asked = [human(f"message-{n:04}", 150) for n in range(20)]
    talk.say(*(m for n in asked for m in (n, agent(f"a-{n.id}"))), human("h"))
    sizes = [
        compact.measure({"messages": prompt, "compaction": {}}).counted
        for prompt in summaries.prompts
    ]
    assert len(sizes) >= 3
    assert max(sizes) <= window
    assert talk.hidden == {m.id for m in talk.state["messages"][1:40]}
    read = "\n".join(transcript(prompt) for prompt in summaries.prompts)
    for message in talk.state["messages"][1:40]:
        assert read.count(f"This is {message.id}.") == 1
        assert message.text in read
    order = [read.index(f"This is {message.id}.") for message in talk.state["messages"][1:40]]
    assert order == sorted(order)
    ranges = [(one["first_index"], one["last_index"]) for one in talk.record["segments"]]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 39
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ranges))


@pytest.mark.parametrize("shape", ["openai", "anthropic", "gemini"])
@every_second
def test_c3_a_window_that_nobody_knew_is_found_out(
    server: OpenAIServer, shape: str, wire: str, way: str
) -> None:
    """codex#8632: as above, and the provider's error is the first to tell of the window."""

    def small(exchange: Exchange) -> None:
        fits = len(prompt_of(exchange.body)) < 3_000
        (text(DIGEST) if fits else OVERFLOWS[shape])(exchange)

    server.answer(small)
    found = run(way, wire_model(server, wire, "house-model"), clear=False)
    assert found.writers == ["house-model"]
    read = [m for sent in server.requests if len(prompt_of(sent)) < 3_000 for m in markers_of(sent)]
    assert read == found.hidden
    assert len(read) > 15


@each_way
def test_c4_metadata_of_messages_is_not_in_the_request(way: str) -> None:
    """langchain#34517: stringified metadata makes 2.5 times the tokens.

    Only role, name, text, call name and arguments, and result text are sent.
    """
    noise: Any = {
        "response_metadata": {"model_name": "gpt-noise", "logprobs": ["noise"] * 50},
        "additional_kwargs": {"parsed": "noise " * 50, "function_call": {"noise": "noise"}},
    }
    usage: Any = {"input_tokens": 424_242, "output_tokens": 7, "total_tokens": 424_249}
    plain = [
        HumanMessage(filled("h1", 40), id="id-h1", name="olga"),
        agent("a1", "call-1", words=80), result("call-1", 80), human("h2"), agent("a2", words=60),
    ]  # fmt: skip
    noisy = [message.model_copy(update=noise) for message in plain]
    noisy[1] = noisy[1].model_copy(update={"usage_metadata": usage})
    noisy[2] = noisy[2].model_copy(update={"artifact": {"noise": "noise" * 500}})
    asked = []
    for messages in (plain, noisy):
        recorder = Recorder()
        compact = node(recorder, clear=False, task=None, keep=("messages", 1), calibrate=False)
        Talk(compact, way=way).say(*messages, human("h3"))
        (prompt,) = recorder.prompts
        asked.append(prompt)
    assert asked[0] == asked[1]
    assert "noise" not in asked[1]
    for shown in ("olga", 'look {"at": "call-1"}', *(message.text for message in plain)):
        assert shown in asked[1]
    texts = sum(len(message.text) for message in plain)
    assert len(transcript([HumanMessage(asked[1])])) < 1.3 * texts


BRACES = ('{"goal": ""}', "{", "{messages} {0} {} {{x}}", "{y!r:>{width}}", "%s %(n)s $n \\1 \\")


@pytest.mark.parametrize("odd", BRACES)
@each_digest
def test_c5_braces_are_safe_in_prompts_and_in_the_history(digest: str, odd: str) -> None:
    """inspect_ai PR#3921: literal JSON in a user's own prompt raises a KeyError.

    Text of users is never formatted: not the prompt, not the instructions, not the history.
    """
    for own in ({}, {"prompt": f"Answer as {odd} for all that is done."}):
        summaries = Summaries()
        compact = node(
            summaries, digest=digest, clear=False, instructions=f"Keep each {odd} there is.",
            digest_header=f"Record {odd} of earlier work:", digest_footer=f"End {odd} of it.",
            **own,
        )  # fmt: skip
        talk = Talk(compact)
        for turn in range(3):
            told = [human(f"h{turn}"), agent(f"a{turn}", f"c{turn}", words=200), result(f"c{turn}")]
            told[0].content = f"{told[0].content} Give me {odd} now."
            told[1].tool_calls[0]["args"] = {odd: [odd]}
            told[2].content = f"{told[2].content} {odd}"
            talk.say(*told, human(f"g{turn}"))
        assert len(summaries.prompts) >= 2
        for prompt in summaries.prompts:
            assert f"Keep each {odd} there is." in prompt[0].text
            assert not own or f"Answer as {odd} for all" in prompt[0].text
        assert f"Give me {odd} now." in "".join(map(transcript, summaries.prompts))
        assert json.dumps({odd: [odd]}, ensure_ascii=False) in transcript(summaries.prompts[0])
        digest_text = next(m.text for m in talk.views[-1] if m.id == "summarization")
        assert digest_text.startswith(f"Record {odd} of earlier work:")
        assert digest_text.endswith(f"End {odd} of it.")


@pytest.mark.parametrize("said", REFUSALS)
@each_graph
def test_c6_a_refusal_or_a_question_back_never_becomes_the_digest(
    way: str, between: bool, said: str
) -> None:
    """codex#5573, langmem#69: "please provide the conversation" replaces the conversation.

    It is rejected: the required sections are missing, and it is a refusal or a question in itself.
    """
    answers = [said, f"# Summary\n\n{said}", f"Sure! {said}"]
    if "sorry" in said:  # below its headings a question may be the user's own
        answers.append(f"## Goal\n{said}\n## State now\n{said}\n## Next step\n{said}")
    for answer in answers:
        talk = Talk(node(lambda _, answer=answer: answer, clear=False), way=way, between=between)
        talk.say(*history())
        assert_nothing_changed(talk)
        assert "rejected" in talk.kinds


@each_way
def test_c6_after_a_refusal_the_next_tier_is_asked(way: str) -> None:
    """codex#5573: as above, with a second summariser, whose digest counts."""
    other = Recorder()
    talk = Talk(node([lambda _: REFUSALS[0], other], clear=False), way=way)
    talk.say(*history())
    assert talk.kinds == ["started", "rejected", "completed"]
    assert talk.record["segments"][0]["model"] == "Recorder"


@pytest.mark.parametrize("said", PROTOCOL)
@each_graph
def test_c7_tool_protocol_text_never_becomes_the_digest(way: str, between: bool, said: str) -> None:
    """open-webui#29308, gsv PR#319: `<tool_call>…` is stored, and the agent carries it out.

    It is rejected, alone and behind a good digest, and so is a message that calls a tool.
    """
    call: Any = {"name": "look", "args": {"at": "x"}, "id": "c1"}
    for answer in (said, f"{DIGEST}\n{said}", AIMessage(DIGEST, tool_calls=[call])):
        talk = Talk(node(lambda _, answer=answer: answer, clear=False), way=way, between=between)
        talk.say(*history())
        assert_nothing_changed(talk)
        assert "rejected" in talk.kinds
