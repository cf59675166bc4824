"""Provider blocks: what a provider's own content blocks need, and where they must not go.

A server-side call without its result is refused. A thinking block belongs to one model and one
turn: sent to a summariser it makes the call fail, or leaks what was not meant to be read.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import (
    Talk,
    agent,
    assert_sound,
    each_graph,
    each_role,
    each_way,
    filled,
    history,
    human,
    result,
    system,
)
from tests.support.doubles import ScriptedModel
from tests.support.folding import DIGEST, Recorder, node
from tests.support.validity import violations

Blocks = list[dict[str, Any]]

SERVER_TOOLS: dict[str, tuple[Blocks, Blocks]] = {
    "Anthropic, web search": (
        [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}],
        [{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}],
    ),
    "Anthropic, code": (
        [{"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}],
        [{"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}],
    ),
    "Anthropic, MCP": (
        [{"type": "mcp_tool_use", "id": "s1", "name": "find", "input": {}, "server_name": "m"}],
        [{"type": "mcp_tool_result", "tool_use_id": "s1", "content": []}],
    ),
    "LangChain's standard": (
        [{"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {}}],
        [{"type": "server_tool_result", "tool_call_id": "s1", "status": "success"}],
    ),
    "wrapped as non-standard": (
        [{"type": "non_standard", "value": {"type": "server_tool_use", "id": "s1", "name": "x"}}],
        [{"type": "non_standard", "value": {"type": "x_tool_result", "tool_use_id": "s1"}}],
    ),
}


@pytest.mark.parametrize("layout", ["whole", "paused", "beside a call"])
@pytest.mark.parametrize("shape", SERVER_TOOLS)
def test_b1_a_server_side_call_and_its_result_stay_or_go_together(shape: str, layout: str) -> None:
    """claude-code#56515: of `AI([server_tool_use, web_search_tool_result, text])` one half is kept.

    A kept message keeps all its content, and two halves in two messages are folded together.
    """
    call, answer = SERVER_TOOLS[shape]
    text: Any = [{"type": "text", "text": filled("found", 60)}]
    pair: list[BaseMessage] = [
        AIMessage([*text, *call], id="p1"),
        AIMessage([*answer, *text], id="p2"),
    ]
    if layout == "whole":
        pair = [AIMessage([*call, *answer, *text], id="p1")]
    elif layout == "beside a call":
        made: Any = [{"name": "look", "args": {}, "id": "c"}]
        pair = [AIMessage([*text, *call], id="p1", tool_calls=made), result("c", 100), pair[1]]
    ids, fates = {message.id for message in pair}, set()
    for keep in (0, 2, 3, 4, 5, 7):
        talk = Talk(node(keep=("messages", keep), clear=False, target=None))
        after = [human("h2", 100), agent("a2", words=100), human("h3")]
        view = talk.say(human("h1", 100), *pair, *after)
        assert violations(view) == []
        shown = [message for message in view if message.id in ids]
        assert shown in ([], pair), keep
        fates.add(len(shown))
    assert fates == {0, len(pair)}


THOUGHT = "an-idea-of-the-model"
REASONING: dict[str, AIMessage] = {
    name: AIMessage([block, {"type": "text", "text": filled("a1", 80)}], id="a1")
    for name, block in {
        "unsigned": {"type": "thinking", "thinking": THOUGHT},
        "signed": {"type": "thinking", "thinking": THOUGHT, "signature": THOUGHT},
        "redacted": {"type": "redacted_thinking", "data": THOUGHT},
        "OpenAI": {
            "type": "reasoning", "id": "rs_1", "encrypted_content": THOUGHT,
            "summary": [{"type": "summary_text", "text": THOUGHT}],
        },
        "standard": {"type": "reasoning", "reasoning": THOUGHT, "extras": {"signature": THOUGHT}},
        "Bedrock": {"type": "reasoning_content", "reasoning_content": {"text": THOUGHT}},
        "Gemini": {"type": "text", "text": "Here.", "extras": {"signature": THOUGHT}},
        "wrapped": {"type": "non_standard", "value": {"type": "thinking", "thinking": THOUGHT}},
    }.items()
}  # fmt: skip
REASONING["DeepSeek"] = AIMessage(
    filled("a1", 80), id="a1", additional_kwargs={"reasoning_content": THOUGHT}
)


@pytest.mark.parametrize("shape", REASONING)
@each_way
def test_b2_reasoning_never_reaches_the_summariser(way: str, shape: str) -> None:
    """connectome-host#57: one unsigned thinking block makes every summary fail.

    No shape of reasoning, and no signature, is in a request; what the agent said is.
    """
    asked = Recorder()
    talk = Talk(node(asked, clear=False), way=way)
    talk.say(human("h1", 300), REASONING[shape], human("h2"), agent("a2"), human("h3"))
    assert "a1" in talk.hidden
    assert talk.kinds == ["started", "completed"]
    assert THOUGHT not in asked.read
    assert THOUGHT not in str(talk.record)
    assert filled("a1", 80) in asked.read


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "reasoning": THOUGHT, "signature": THOUGHT * 3_000},
        {"type": "thinking", "thinking": THOUGHT, "signature": THOUGHT},
        {"type": "redacted_thinking", "data": THOUGHT},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {"type": "gadget", "text_of_its_own": THOUGHT},
        {"type": "non_standard", "value": {"type": "thinking", "thinking": THOUGHT}},
    ],
)
@each_way
def test_b3_only_the_text_blocks_of_an_answer_form_the_digest(
    way: str, block: dict[str, Any]
) -> None:
    """deepagentsjs PR#739: `[{reasoning, signature}, {text}]` becomes a digest of 56 KB of JSON.

    Only text blocks form the digest, and an answer without any is rejected.
    """
    content: list[Any] = [block, {"type": "text", "text": DIGEST}]
    for said, kept in ((content, True), (content[:1], False)):
        model = ScriptedModel(reply=lambda _, said=said: AIMessage(said))
        talk = Talk(node(model, clear=False), way=way)
        talk.say(*history())
        assert ("segments" in talk.record) is kept
        assert talk.kinds[-1] == ("completed" if kept else "failed")
        assert THOUGHT not in str(talk.record)
        if kept:
            assert DIGEST in talk.record["segments"][0]["text"]
            assert "{" not in talk.record["segments"][0]["text"]


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (f"<think>\n{THOUGHT}\n</think>\n", True),
        (f"<thinking>{THOUGHT}</thinking>", True),
        (f"◁think▷{THOUGHT}◁/think▷", True),
        (f"{THOUGHT}\n## Goal\nA draft.\n</think>\n\n", True),
        (f"<think>\n{THOUGHT} and the record is: ", False),
    ],
)
def test_b3_a_thought_in_the_text_is_no_part_of_the_digest(before: str, kept: bool) -> None:
    """deepagentsjs PR#739: as above, from servers that leave reasoning in the text.

    An answer that ends within its thought has no text, and is rejected.
    """
    talk = Talk(node(lambda _: before + DIGEST, clear=False))
    talk.say(*history())
    assert ("segments" in talk.record) is kept
    assert THOUGHT not in str(talk.record)
    assert not kept or f"(folded after step 2)\n{DIGEST}" in talk.record["segments"][0]["text"]


def test_b3_a_digest_may_speak_of_thoughts() -> None:
    """deepagentsjs PR#739: the nearest sound answer, of which nothing is taken."""
    said = DIGEST + "\n## Findings\nThe template ends with </think> alone.\n<think> opens it."
    talk = Talk(node(lambda _: said, clear=False))
    talk.say(*history())
    assert said in talk.record["segments"][0]["text"]


@each_role
@each_graph
def test_b4_the_digest_makes_no_second_run_of_system_messages(
    way: str, between: bool, role: str
) -> None:
    """CopilotKit#5610, langgraph#2441: "multiple non-consecutive system messages".

    The digest is a human message by default. As system text it joins the leading run, and a later
    system message does so, too, once its place is folded.
    """
    assert node().settings.digest_role == "human"
    for opening in ([], [system("s1")]):
        talk = Talk(node(digest_role=role, clear=False), way=way, between=between)
        talk.say(*opening, human("h1", 200), agent("a1"), system("s2"), human("h2", 200))
        talk.say(human("h3", 100))
        talk.say(human("h4"))
        assert "segments" in talk.record
        view = talk.views[-1]
        assert_sound([view])
        kinds = [isinstance(message, SystemMessage) for message in view]
        assert kinds == sorted(kinds, reverse=True)
        digest = next(m for m in view if "[Record of" in m.text)
        assert isinstance(digest, HumanMessage if role == "human" else SystemMessage)
        # The agent's own prompt is merged with it, so that there is one system message.
        own = talk.compact.view(talk.state, system="You are an inspector.")
        systems = [m for m in own if isinstance(m, SystemMessage)]
        assert own[: len(systems)] == systems
        assert systems[0].text.startswith("You are an inspector.")
        assert role == "human" or len(systems) == 1


@each_role
def test_b4_the_digest_stands_beside_the_system_prompt_of_create_agent(role: str) -> None:
    """CopilotKit#5610: as above, where `create_agent` adds the system prompt."""
    model = ScriptedModel(reply=lambda _: AIMessage("Noted."))
    compaction = CompactionMiddleware(
        lambda _: DIGEST, context_window=60_000, trigger=("tokens", 600), keep=("messages", 2),
        min_fold_tokens=0, min_fold_share=0.0, token_counter="estimate", digest_role=role,
    )  # fmt: skip
    app = create_agent(model, middleware=[compaction], system_prompt="You are an inspector.")
    state = app.invoke({"messages": history()})
    assert state["compaction"]["segments"]
    assert_sound(model.calls)
