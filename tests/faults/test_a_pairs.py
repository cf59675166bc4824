"""Pairs and order: a provider refuses a call without its result, and a result without its call.

The refusal comes at every later call, too, so that a thread whose view is broken once is lost. A
fold may not make such a view, and an abandoned call of the transcript's own must not stay in it.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from langgraph_compaction import CompactionNode, ModelTier
from tests.faults.threads import (
    Talk,
    agent,
    assert_sound,
    each_graph,
    each_role,
    each_way,
    filled,
    human,
    result,
    system,
)
from tests.support.doubles import ScriptedModel, loop
from tests.support.folding import accepted, node
from tests.support.openai_server import OpenAIServer, text
from tests.support.openai_server.clients import HALF, wire_model
from tests.support.openai_server.runs import DIGEST, messages_of, prompt_of, run

KEEPS = [*(("messages", n) for n in (0, 2, 4, 7)), ("tokens", 450)]
"""From "fold everything" to "keep nearly all"; the tail's end falls on every message."""


def folding_node(model: Any = accepted, **values: Any) -> CompactionNode:
    """Folds at 600 tokens, clears nothing, and comes down to whatever ``keep`` leaves."""
    return node(model, **{"clear": False, "target": None, "min_keep": 1, **values})


@each_graph
def test_a1_parallel_results_are_folded_or_kept_together(way: str, between: bool) -> None:
    """langmem#126: with its threshold inside of T1, one result is cut off from its call.

    A call and all its results are one unit.
    """
    group, fates = {"a1", "r-1", "r-2"}, set()
    for number, keep in enumerate(KEEPS):
        results = [result("1", 90), result("2")][:: -1 if number % 2 else 1]
        history = [human("h1"), agent("a1", "1", "2"), *results, agent("a2"), human("h2")]
        talk = Talk(folding_node(keep=keep, task=None), way=way, between=between)
        for said in (history, [human("h3")]):
            talk.say(*said)
            assert talk.hidden & group in (set(), group), keep
            fates.add(len(talk.hidden & group))
        assert_sound(talk.views)
    assert fates == {0, 3}


@each_graph
def test_a2_the_late_result_of_a_folded_call_is_labelled_text(way: str, between: bool) -> None:
    """adk-python#4740: an open call is folded, and its result arrives later, alone.

    The open call does not block folding, and the model reads its result as labelled text.
    """
    talk = Talk(folding_node(keep=("messages", 2), task=None), way=way, between=between)
    abandoned = [human("h1", 200), agent("a1", "a", words=200), human("never mind")]
    talk.say(*abandoned, agent("a2", words=200), human("h2"))
    assert "a1" in talk.hidden
    for late in (result("a"), result("a").model_copy(update={"id": "again", "status": "error"})):
        view = talk.say(late)
        assert not any(isinstance(message, ToolMessage) for message in view)
        (shown,) = (message for message in view if message.id == late.id)
        assert isinstance(shown, HumanMessage)
        assert late.text in shown.text
        assert shown.text.startswith("[")
    talk.say(human("h3"))
    assert_sound(talk.views)


@each_way
def test_a3_the_whole_view_is_valid_not_only_the_head_of_the_tail(way: str) -> None:
    """autogen#7955: pairs further back in the kept tail are not checked.

    Every pair of the view is whole, whatever the limit.
    """
    history = [
        system("s"), human("h1"), agent("a1", "1"), result("1", 100),
        agent("a2", "2"), result("2", 100), human("h2"),
    ]  # fmt: skip
    limits: list[dict[str, Any]] = [
        {"trigger": ("tokens", 100)},
        {"trigger": ("tokens", 500)},
        {"trigger": ("messages", 7)},
        {"trigger": ("steps", 1), "context_window": 700},  # so small that results are clipped, too
    ]
    for limit in limits:
        folds = 0
        for keep in (0, 1, 2, 4, 6):
            talk = Talk(folding_node(keep=("messages", keep), task=None, **limit), way=way)
            talk.say(*history)
            talk.say(human("h3"))
            assert_sound(talk.views)
            folds += "segments" in talk.record
        assert folds >= 3, limit


@each_graph
def test_a4_a_rejected_parallel_call_gets_its_answer_in_the_view(way: str, between: bool) -> None:
    """deepagentsjs PR#173: one of two calls is held back by a person, then a request comes instead.

    Neither result reaches the state. The view answers both calls, and the state is left alone.
    """

    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"Seen: {at}{interrupt(at) if at == 'c2' else ''}"

    def reply(view: list[BaseMessage]) -> AIMessage:
        return agent("a1", "c1", "c2") if view[-1].id == "h1" else AIMessage("Noted.")

    model, config = ScriptedModel(reply=reply), {"configurable": {"thread_id": "t"}}
    compact = folding_node()
    graph = loop(compact, model, tools=[look], between=between, checkpointer=InMemorySaver())
    graph.invoke({"messages": [human("h1")]}, config)
    assert graph.get_state(config).next == ("tools",)
    graph.invoke({"messages": [human("h2")]}, config)
    assert_sound(model.calls)
    answers = [m.tool_call_id for m in model.calls[-1] if isinstance(m, ToolMessage)]
    assert answers == ["c1", "c2"]
    messages = graph.get_state(config).values["messages"]
    assert [message.type for message in messages] == ["human", "ai", "human", "ai"]
    # The same with the answer of one call in the state, folded or not.
    for keep in (("messages", 0), ("messages", 9)):
        talk = Talk(folding_node(keep=keep), way=way, between=between)
        talk.say(human("h1", 300), agent("a1", "c1", "c2", words=300), result("c1"), human("h2"))
        talk.say(human("h3"))
        assert_sound(talk.views)


@each_graph
def test_a5_a_call_whose_stream_died_is_answered_in_the_view(way: str, between: bool) -> None:
    """pydantic-ai#4728: after `H, AI(x), H` every later run of the thread is refused.

    As A4; also where the call could not be parsed.
    """
    broken: Any = {"type": "invalid_tool_call", "name": "look", "args": '{"at', "id": "x"}
    for died in (
        agent("a1", "x"),
        AIMessage("", id="a1", invalid_tool_calls=[{**broken, "error": ""}]),
    ):
        talk = Talk(folding_node(), way=way, between=between)
        for name in ("h2", "h3"):
            talk.say(*([human("h1"), died] if name == "h2" else []), human(name))
        talk.say(human("h4", 600))  # folds
        talk.say(human("h5"))
        assert_sound(talk.views)
        assert not any(isinstance(message, ToolMessage) for message in talk.state["messages"])
        assert "segments" in talk.record


@each_role
@each_graph
def test_a6_the_first_message_after_the_system_text_is_a_human_one(
    way: str, between: bool, role: str
) -> None:
    """gemini-cli#11814: with the digest in the system prompt alone a view opens with a call.

    The first non-system message of a view is a human one.
    """
    folds = 0
    for keep in KEEPS:
        for task, opening in (("first", [system("s")]), (None, [])):
            compact = folding_node(keep=keep, task=task, digest_role=role)
            asked = iter([agent(f"a{n}", f"{n}", words=200) for n in (2, 3, 4)])
            talk = Talk(compact, way=way, between=between, answer=lambda _, a=asked: next(a))
            talk.say(*opening, human("h1", 100), agent("a1", "1", words=200), result("1", 200))
            talk.say(result("2", 100))
            talk.say(result("3"))
            for view in talk.views:
                turns = [message for message in view if not isinstance(message, SystemMessage)]
                assert isinstance(turns[0], HumanMessage)
            assert_sound(talk.views[-1:])
            folds += "segments" in talk.record
    assert folds > len(KEEPS)


@pytest.mark.parametrize("digest", ["chain", "rolling"])
@each_way
def test_a7_a_summary_request_is_one_system_and_one_human_message(way: str, digest: str) -> None:
    """code_puppy#779, goose#12164: a request opens or ends with an AI message ("prefill").

    Of folds, pieces, repairs and condensing alike; and a view ends with an AI message only if the
    state does.
    """
    prompts: list[list[BaseMessage]] = []

    def summarise(messages: list[BaseMessage]) -> str:
        prompts.append(messages)
        first = "## Goal\nGo on." if len(prompts) % 3 else "## Findings\nNothing."  # to be mended
        return f"{first}\n## State now\nAll is well at entry {len(prompts)}.\n## Next step\nGo on."

    compact = folding_node(
        ModelTier(summarise, window=1_500),
        digest=digest,
        max_digest_tokens=200,
        keep=("messages", 2),
    )
    talk = Talk(compact, way=way)
    for n in range(12):
        talk.say(agent(f"a{n}", words=400), human(f"h{n}", 60))
    assert all(not isinstance(view[-1], AIMessage) for view in talk.views)
    assert [message.type for prompt in prompts for message in prompt] == ["system", "human"] * len(
        prompts
    )
    told = "\n".join(prompt[-1].text for prompt in prompts)
    assert "<draft>" in told  # a repair
    assert "This is piece 2 of" in told
    assert "<earlier_digest>" in told if digest == "chain" else "<record" in told


@each_graph
def test_a7_a_view_ends_with_an_ai_message_only_if_the_state_does(way: str, between: bool) -> None:
    """goose#12164: the compacted list ends with an AI message, which newer models refuse.

    Also where everything folds but a pinned AI message.
    """
    for keep in KEEPS:
        for pinned in ({"id": "a1"}, {"contains": "Noted"}):
            talk = Talk(folding_node(keep=keep, pinned=pinned), way=way, between=between)
            talk.say(human("h1", 200), agent("a1", "1", words=200), result("1", 200))
            talk.say(human("h2"))
            talk.say(human("h3"))
            assert all(not isinstance(view[-1], AIMessage) for view in talk.views)
            assert_sound(talk.views)


@pytest.mark.parametrize(("wire", "way"), HALF)
def test_a8_the_summariser_gets_text_and_no_tool_blocks(
    server: OpenAIServer, wire: str, way: str
) -> None:
    """harness-sdk#998, apache/maka#3030: raw tool blocks reach a model without tools bound.

    What goes over the wire is one system and one user message of text, no tools, and in it every
    call with its arguments and every result, parallel ones together.
    """
    server.answer(text(DIGEST))
    calls = [f"c{n}" for n in range(3)]
    history = [
        human("h1"), agent("a1", *calls, words=200), *(result(call, 200) for call in calls),
        agent("a2", words=60), human("h2"),
    ]  # fmt: skip
    found = run(way, wire_model(server, wire, "house-model"), messages=history, clear=False)
    assert found.writers == ["house-model"]
    (sent,) = server.requests
    assert [message["role"] for message in messages_of(sent)] == ["system", "user"]
    assert not sent.keys() & {"tools", "tool_choice", "functions", "parallel_tool_calls"}
    assert not keys_of(sent) & {"tool_calls", "tool_call_id", "call_id"}
    prompt = prompt_of(sent)
    places = [prompt.index(f'look {{"at": "{call}"}}') for call in calls]
    places += [prompt.index(filled(f"r-{call}", 200)) for call in calls]
    assert places == sorted(places)


def keys_of(value: Any) -> set[str]:
    """All keys of a JSON value, at any depth."""
    if isinstance(value, dict):
        return {*value, *(key for one in value.values() for key in keys_of(one))}
    return {key for one in value for key in keys_of(one)} if isinstance(value, list) else set()
