"""Loops and cost: a compaction that does not end, or that costs more than it saves.

Each fold is a model call, and breaks the provider's cached prefix. So one that brings nothing is
not made, one that was paid for is not lost, and where nothing can be done it is said once.
"""

import json
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ConfigurationError,
    overflow_handler,
    request_compaction,
    with_overflow_recovery,
)
from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import (
    Talk,
    agent,
    each_graph,
    each_way,
    history,
    human,
    result,
    system,
)
from tests.support.doubles import (
    STEPS,
    WINDOW,
    ScriptedModel,
    Summaries,
    loop,
    request,
    transcript,
    work,
    worker,
)
from tests.support.folding import DIGEST, Recorder, accepted, node
from tests.support.openai_server import OpenAIServer, text
from tests.support.openai_server.clients import wire_model
from tests.support.openai_server.runs import run
from tests.support.payloads import openai_chat_payload

LIMITS_PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "limits.md"
each_digest = pytest.mark.parametrize("digest_mode", ["chain", "rolling"])
OFF = (None, 0, [], ("steps", 0), ("tokens", -5), ("messages", None), {"steps": 0})


@each_graph
def test_d1_a_digest_larger_than_what_it_replaces_is_rejected(way: str, between: bool) -> None:
    """gemini-cli#3574, kilocode#2037: 661 tokens become 1,752.

    A text that is no smaller than its span is rejected, whatever it says.
    """
    more = f"{DIGEST}\n## Findings\n" + "\n".join(f"- Finding {n}: {7**n}" for n in range(60))
    compact = node(lambda _: more, clear=False)
    talk = Talk(compact, way=way, between=between)
    talk.say(*history())
    assert talk.kinds == ["started", "rejected", "failed"]
    assert talk.events[1]["reason"].startswith(("larger than what it replaces", "over its cap"))
    assert "segments" not in talk.record
    assert (
        compact.measure(talk.state).counted
        <= compact.measure({"messages": talk.state["messages"], "compaction": {}}).counted
    )


@each_way
def test_d1_a_tiny_span_is_not_folded_at_all(way: str) -> None:
    """gemini-cli#3574: as above, where a call could bring nothing.

    The summariser is not asked, at no turn, although the trigger fires at each.
    """
    asked = Recorder()
    compact = CompactionNode(
        asked, context_window=60_000, trigger=("tokens", 600), keep=("messages", 2),
        token_counter="estimate", clear=False,
    )  # fmt: skip
    talk = Talk(compact, way=way)
    talk.say(human("h1", 500), agent("a1", words=20), human("h2", 10), agent("a2"), human("h3"))
    talk.say(human("h4", 10))
    assert asked.prompts == []
    assert talk.kinds == ["skipped", "skipped"]
    assert talk.hidden == set()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"context_window": 0}, "context_window"),
        ({"context_window": -1}, "context_window"),
        ({"context_window": None}, "context_window"),
        ({"context_window": 8_000, "reserve_tokens": 8_000}, "reserve_tokens"),
        ({"context_window": 8_000, "reserve_tokens": 9_000}, "reserve_tokens"),
        ({"context_window": 8_000, "overhead_tokens": 8_000}, "overhead_tokens"),
        ({"context_window": 8_000, "trigger": ("tokens", 9_000)}, "trigger"),
        ({"context_window": 8_000, "keep": ("fraction", 0.9)}, "keep"),
    ],
)
def test_d2_a_window_that_cannot_work_is_an_error_at_construction(
    values: dict[str, Any], named: str
) -> None:
    """opencode#28543, OpenHands#10873: a window of 0 or None, or one below the reserve.

    Where it is knowable before a run, a clear error names the parameter.
    """
    with pytest.raises(ConfigurationError, match=named):
        CompactionNode(accepted, **values)


@pytest.mark.parametrize("wrong", [0, -1, "small", 100])
@each_way
def test_d2_a_wrong_window_of_a_thread_is_said_and_does_not_loop(way: str, wrong: Any) -> None:
    """opencode#28543: the window changes to nonsense in mid-thread, and "hi" loops.

    The node's own window counts on, one event at the visit says why, and no model is asked.
    """
    asked = Recorder()
    talk = Talk(node(asked, reserve_tokens=200), way=way)
    talk.say(HumanMessage("hi"))
    talk.graph.update_state(talk.config, {"compaction_settings": {"context_window": wrong}})
    view = talk.say(HumanMessage("hi"))
    assert [message.text for message in view] == ["hi", "Noted.", "hi"]
    assert talk.kinds == ["failed"]
    assert any(name in talk.events[0]["reason"] for name in ("context_window", "reserve_tokens"))
    assert asked.prompts == []


@each_way
def test_d2_a_smaller_model_in_mid_thread_folds_once_and_goes_on(way: str) -> None:
    """OpenHands#10873: a thread that was made with a large window goes on with a small one.

    One visit brings the view below the new limit; the next "hi" costs nothing.
    """
    large, small, saver = Recorder(), Recorder(), InMemorySaver()
    first = Talk(node(large, trigger=("tokens", 50_000)), way=way, saver=saver)
    first.say(*(m for n in range(30) for m in (human(f"h{n}"), agent(f"a{n}"))), human("last"))
    assert large.prompts == []
    compact = CompactionNode(small, context_window=2_000, token_counter="estimate")
    talk = Talk(compact, way=way, saver=saver)
    talk.say(HumanMessage("hi"))
    assert 1 <= len(small.prompts) <= 3
    assert compact.measure(talk.state).tokens < 2_000
    made = len(small.prompts)
    talk.say(HumanMessage("hi"))
    assert len(small.prompts) == made
    assert talk.kinds[-1] == "completed"


@each_way
def test_d2_where_nothing_fits_it_is_an_error_and_no_loop(way: str) -> None:
    """opencode#28543: what must stay exceeds the window, so that compacting cannot help.

    The visit says so with the sizes, and asks no model, however often it is tried.
    """
    asked = Recorder()
    talk = Talk(CompactionNode(asked, context_window=500, token_counter="estimate"), way=way)
    given = [system("s", 600), HumanMessage("hi")]
    for said in (given, [HumanMessage("hi")], [HumanMessage("hi")]):
        with pytest.raises(BudgetError, match="system") as raised:
            talk.say(*said)
        assert raised.value.sizes["system messages"] > raised.value.limit - 100
    assert asked.prompts == []


@pytest.mark.parametrize("off", OFF, ids=repr)
@each_way
def test_d3_zero_and_none_are_off(way: str, off: Any) -> None:
    """adk-python#6397, langchain#33701: an interval of 0 always fires, and None still summarises.

    In the node's settings, the thread's and the run's alike; and beyond the window, too.
    """
    asked = Recorder()
    for level in ("node", "thread", "run"):
        own: Any = {"trigger": off} if level == "node" else {}
        talk = Talk(node(asked, context_window=2_000, **own), way=way)
        where = talk.config
        if level == "thread":
            changed = {"compaction_settings": {"trigger": off}}
            talk.graph.update_state(talk.config, changed, as_node="agent")
        elif level == "run":
            inside = {**talk.config["configurable"], "compaction_settings": {"trigger": off}}
            where = {"configurable": inside}
        view = talk.say(*history(), human("long", 2_000), config=where)
        assert view == talk.state["messages"][:-1]
        assert talk.record == {}
        assert talk.events == []
    assert asked.prompts == []


@pytest.mark.parametrize("background", [False, True])
def test_d4_two_runs_of_one_thread_end_in_one_digest(background: bool) -> None:
    """pi#4203: two concurrent runs make two summary calls and duplicate digests.

    In the end there is one digest in which nothing is covered twice, and later folds go on from it.
    """
    both = threading.Barrier(2)
    prompts: list[str] = []

    def summarise(messages: list[BaseMessage]) -> str:
        prompts.append(transcript(messages))
        if len(prompts) <= 2 and not background:
            both.wait(10)  # neither is done before both have begun
        return DIGEST

    talk = Talk(node(summarise, clear=False, background=background))
    talk.graph.update_state(talk.config, {"messages": history()[:-1]}, as_node="agent")
    runs = [
        threading.Thread(target=talk.graph.invoke, args=({"messages": [human(name)]}, talk.config))
        for name in ("left", "right")
    ]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    for turn in range(100):
        talk.say(human(f"later-{turn}", 150))
        assert_no_overlap(talk.record, talk.compact.view(talk.state))
        if len(prompts) >= 4 and len(talk.record.get("segments", ())) >= 2:
            break
        time.sleep(0.01)  # for what is folded beside the agent
    covered = talk.record["last_summarized_index"]
    assert talk.hidden == {m.id for m in talk.state["messages"][1 : covered + 1]}
    assert len(prompts) >= 4
    assert 1 <= sum("This is a1." in prompt for prompt in prompts) <= 2  # one for each run


def test_d4_parallel_branches_end_in_one_digest() -> None:
    """pi#4203: the same within one run, where two branches visit the node in one step."""
    summaries = Summaries()
    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(summaries, clear=False))

    def branches(state: Any) -> list[Send]:
        # The last one to write has seen less, so that it folds less.
        return [Send("compact", state), Send("compact", {**state, "messages": shorter(state)})]

    def shorter(state: Any) -> list[BaseMessage]:
        return list(state["messages"][:-2])

    builder.add_conditional_edges(START, branches, ["compact"])
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(3):
        said = [human(f"h{turn}", 90), agent(f"a{turn}", words=200), human(f"g{turn}", 90)]
        said += [agent(f"b{turn}"), human(f"i{turn}")]
        graph.invoke({"messages": said}, config)
        state = graph.get_state(config).values
        assert_no_overlap(state["compaction"], node().view(state))
        assert len(state["compaction"]["segments"]) == turn + 1
        assert state["compaction"]["last_summarized_id"] == f"b{turn}"
    assert len(summaries.prompts) == 6


def assert_no_overlap(record: Any, view: list[BaseMessage]) -> None:
    """The segments cover one range after the other, and one message of the view is the digest."""
    ranges = [(one["first_index"], one["last_index"]) for one in record.get("segments", ())]
    assert all(one[1] < other[0] for one, other in pairwise(ranges))
    assert sum(message.id == "summarization" for message in view) == bool(ranges)


@pytest.mark.parametrize("kind", ["everything", "the record so far", "the newest messages"])
@each_digest
def test_d5_the_digest_keeps_to_its_budget_whatever_the_summariser_returns(
    digest_mode: str, kind: str
) -> None:
    """opencrabs#1649: each digest embeds the last one, 14 to 122 KB in five rounds.

    The digest is bounded by its budget.
    """
    budget = 800

    def echo(messages: list[BaseMessage]) -> str:
        asked = messages[-1].text
        if kind == "everything":
            return asked
        inside = transcript(messages).splitlines()
        earlier = asked.partition("<earlier_digest>\n")[2].partition("</earlier_digest>")[0]
        earlier = earlier or asked.partition("<record")[2].partition("</record>")[0]
        return f"{DIGEST}\n{earlier if kind == 'the record so far' else chr(10).join(inside[:9])}"

    compact = node(
        echo, clear=False, digest=digest_mode, max_digest_tokens=budget, context_window=3_000
    )
    talk, sizes = Talk(compact), []
    for turn in range(8):
        talk.say(human(f"h{turn}", 60), agent(f"a{turn}", words=300), human(f"g{turn}", 60))
        sizes.append(sum(one["tokens"] for one in talk.record.get("segments", ())))
        assert compact.measure(talk.state).tokens <= 3_000
        # Of its texts, not only of what the record says.
        texts = [HumanMessage(one["text"]) for one in talk.record.get("segments", ())]
        assert compact.measure({"messages": texts, "compaction": {}}).counted <= budget * 1.25
    assert max(sizes) <= budget * 1.25
    assert sizes[-1] > 0


FACTS = (
    "Never restart the ledger while a backup is running.",
    "Amounts must be in euros, not in dollars.",
    "/srv/ledger/conf/prod.yaml",
    "https://tickets.example.com/LEDG-4711",
    "9f86d081884c7d65",
    "v3.14.159",
    "backup-node-17.example.com",
    "ACCT-0042-7781",
)


@each_digest
def test_d6_early_facts_survive_many_turns_and_a_summariser_that_forgets(digest_mode: str) -> None:
    """adk-go PR#1431: rolling summaries lose all early facts at once.

    Eight facts, 48 turns of filler, and a summariser that says nothing of what it read: what is
    quoted of the user and listed of names does not depend on it.
    """
    compact = node(accepted, digest=digest_mode, context_window=16_000, trigger=("tokens", 1_500))
    talk = Talk(compact)
    rules, names = FACTS[:2], FACTS[2:]
    talk.say(human("task"), agent("a"), HumanMessage(" ".join(rules)), agent("b"))
    asked = [f"Look at {name} first." for name in names[:3]]
    found = [f"It is {name}." for name in names[3:]]
    talk.say(HumanMessage(" ".join(asked)), AIMessage(" ".join(found)), human("next"))
    for turn in range(48):
        talk.say(human(f"filler-{turn}", 60))
    assert len(talk.record["segments"]) >= 1
    assert talk.kinds.count("completed") >= 4
    view = "\n".join(message.text for message in talk.compact.view(talk.state))
    assert [fact for fact in FACTS if fact not in view] == []


@each_way
def test_d7_off_is_off_everywhere(way: str) -> None:
    """opencode#16882: `auto: false` is ignored on the overflow path.

    With `enabled=False` no path does anything: no fold, no clip, no request. With `trigger=None`
    only what is asked for is done.
    """
    asked = Recorder()
    giant = [*history()[:-1], human("read it"), agent("a3", "1"), result("1", 9_000)]
    talk = Talk(node(asked, enabled=False, context_window=2_000), way=way)
    talk.graph.update_state(talk.config, request_compaction(), as_node="agent")
    assert talk.say(*giant) == giant
    assert talk.compact.view(talk.state) == talk.state["messages"]
    assert talk.compact.route("agent")(talk.state) == "agent"
    assert talk.compact.explain(talk.state).action == "none"
    assert (talk.record, talk.events, asked.prompts) == ({}, [], [])

    talk = Talk(node(asked, trigger=None, context_window=2_000), way=way)
    assert talk.say(*giant) == giant
    assert (talk.record, talk.events, asked.prompts) == ({}, [], [])
    talk.graph.update_state(talk.config, request_compaction(), as_node="agent")
    talk.say(human("h9"))
    assert talk.record["segments"]


@pytest.mark.parametrize("settings", [{"enabled": False}, {"trigger": None}])
def test_d7_off_is_off_in_create_agent(settings: dict[str, Any]) -> None:
    """opencode#16882: as above, as a middleware, and for one thread or run alone."""
    for level in ("code", "thread", "run"):
        asked, model = Recorder(), worker()
        compaction = CompactionMiddleware(
            asked, context_window=WINDOW, **(settings if level == "code" else {})
        )
        app = create_agent(model, [work], middleware=[compaction])
        given: Any = {"messages": [request(1, 20)]}
        given |= {"compaction_settings": settings} if level == "thread" else {}
        own = {"compaction_settings": settings} if level == "run" else {}
        state = app.invoke(given, {"configurable": own, **STEPS})
        assert state.get("compaction", {}) == {}
        assert asked.prompts == []
        assert len(model.calls[-1]) == len(state["messages"]) - 1


@pytest.mark.parametrize("settings", [{"enabled": False}, {"trigger": None}])
@pytest.mark.parametrize("door", ["handler", "around a model", "create_agent"])
def test_d7_off_is_off_where_the_provider_refuses_the_call(
    settings: dict[str, Any], door: str
) -> None:
    """opencode#16882: as reported, on the overflow path.

    The provider's error ends the run as it would without compaction: one call, nothing changed.
    """

    def reply(_: list[BaseMessage]) -> AIMessage:
        raise ContextOverflowError("This model's maximum context length is 8192 tokens.")

    asked, model = Recorder(), ScriptedModel(reply=reply)
    compact = node(asked, **settings)
    given: Any = {"messages": history()}
    config: Any = {"configurable": {"thread_id": "t"}}
    builder = StateGraph(CompactionState)
    if door == "around a model":
        answering = with_overflow_recovery(model, compact)
        builder.add_node("agent", lambda state: {"messages": [answering.invoke(state)]})
    else:
        builder.add_node(
            "agent",
            lambda state: {"messages": [model.invoke(compact.view(state))]},
            error_handler=overflow_handler(compact),
        )
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    if door == "create_agent":
        compaction = CompactionMiddleware(asked, context_window=WINDOW, **settings)
        graph = create_agent(model, middleware=[compaction], checkpointer=InMemorySaver())
    with pytest.raises(ContextOverflowError, match="maximum context length"):
        graph.invoke(given, config)
    assert len(model.calls) == 1
    assert model.calls[0] == given["messages"]
    assert asked.prompts == []
    assert graph.get_state(config).values.get("compaction", {}) == {}


def test_d8_the_summary_call_misses_the_agents_cache_and_the_page_says_so(
    server: OpenAIServer,
) -> None:
    """zed#59528: the summary call drops the tool definitions, and misses the prompt cache.

    It is so here, and documented: no tools are bound, the span is read uncached.
    """
    server.answer(text(DIGEST))
    run("invoke", wire_model(server, "chat-whole", "house-model"), clear=False)
    (sent,) = server.requests
    assert "tools" not in sent
    page = " ".join(LIMITS_PAGE.read_text("utf-8").split())
    assert "zed#59528" in page
    assert "The call does not share the agent's prefix" in page


@pytest.mark.parametrize("role", ["human", "system"])
def test_d8_a_fold_leaves_the_agents_cached_prefix_up_to_the_older_segments(role: str) -> None:
    """zed#59528: what can be kept of the cache is: up to the new segment no byte changes."""
    talk = Talk(node(clear=False, digest_role=role, keep=("messages", 2)))
    texts: list[str] = []
    for turn in range(6):
        talk.say(human(f"h{turn}", 150), agent(f"a{turn}", words=150), human(f"g{turn}"))
        view = talk.compact.view(talk.state, system="You are an inspector.")
        sent = json.dumps(openai_chat_payload(view)["messages"], ensure_ascii=False)
        if len(talk.record.get("segments", ())) > len(texts):
            texts.append(sent)
    assert len(texts) >= 4
    last = talk.record["segments"]
    for number, (before, after) in enumerate(pairwise(texts)):
        stays = before.index("[End of the record.")
        assert after[:stays] == before[:stays]
        assert json.dumps(last[number]["text"], ensure_ascii=False)[1:-1] in after[:stays]


@each_way
@pytest.mark.parametrize("saver", ["memory", "sqlite"])
def test_d9_a_digest_stands_although_the_agent_fails(way: str, saver: str, tmp_path: Path) -> None:
    """deepagents: three 429s of the agent's model, and the same span is summarised four times.

    The digest commits in its own step, before the agent is called.
    """
    broken = [True, True, True]

    def answer(view: list[BaseMessage]) -> AIMessage:
        if broken and len(view) > 1:
            broken.pop()
            raise RuntimeError("429")
        return AIMessage("Noted.")

    asked = Recorder()
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as on_disk:
        keeper = on_disk if saver == "sqlite" and way == "invoke" else InMemorySaver()
        talk = Talk(node(asked, clear=False), way=way, saver=keeper, answer=answer)
        for attempt in range(4):
            try:
                talk.say(*(history() if attempt == 0 else [HumanMessage("Go on.")]))
            except RuntimeError:
                assert talk.record["segments"]
        assert broken == []
        assert talk.state["messages"][-1].text == "Noted."
        assert len(asked.prompts) == 1


def test_d9_a_digest_stands_although_the_model_of_create_agent_fails() -> None:
    """deepagents: as above, as a middleware."""
    broken = [True, True, True]

    def reply(_: list[BaseMessage]) -> AIMessage:
        if broken:
            broken.pop()
            raise RuntimeError("429")
        return AIMessage("Noted.")

    asked = Recorder()
    compaction = CompactionMiddleware(
        asked, context_window=60_000, trigger=("tokens", 600), keep=("messages", 2),
        min_fold_tokens=0, min_fold_share=0.0, token_counter="estimate",
    )  # fmt: skip
    app = create_agent(
        ScriptedModel(reply=reply), middleware=[compaction], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    for attempt in range(4):
        try:
            given = {"messages": history()} if attempt == 0 else None
            app.invoke(given, config)
        except RuntimeError:
            assert app.get_state(config).values["compaction"]["segments"]
    assert app.get_state(config).values["messages"][-1].text == "Noted."
    assert len(asked.prompts) == 1


@pytest.mark.parametrize("clear", [False, True])
@each_digest
def test_d10_each_view_extends_the_one_before_it(digest_mode: str, clear: bool) -> None:
    """deepagents: truncation slides at every step, and breaks the cached prefix on 390 of 400.

    While the record stays the same, the request begins with the bytes of the one before it.
    """
    model = worker()
    compact = CompactionNode(
        Summaries(), context_window=WINDOW, digest=digest_mode, clear=clear, clear_min_chars=100
    )
    graph = loop(compact, model)
    changed, breaks, sent = False, 0, []
    for update in graph.stream({"messages": [request(1, 60)]}, STEPS, stream_mode="updates"):
        changed |= bool((update.get("compact") or {}).get("compaction"))
        if "agent" not in update:
            continue
        built = [json.dumps(m) for m in openai_chat_payload(model.calls[-1])["messages"]]
        if sent and built[: len(sent)] != sent:
            assert changed
            breaks += 1
        sent, changed = built, False
    assert len(model.calls) == 61
    assert 2 <= breaks <= 12
