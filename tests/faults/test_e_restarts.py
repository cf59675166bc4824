"""Forks, resumed runs, edited and missing messages: what graphs do to a thread between two visits.

Messages are removed, repeated, forked and stored again; branches write at once; ids are missing. A
compaction that counts on none of it may at worst show more than it has to, and never raises.
"""

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langgraph_compaction import (
    CompactionNode,
    CompactionRecord,
    CompactionState,
    MissingChannelError,
    ModelTier,
    merge_compaction,
    model_view,
)
from langgraph_compaction.delta import DeltaCompactionState
from tests.faults.threads import Talk, agent, each_graph, each_way, history, human
from tests.faults.turns import covered, turn
from tests.support.doubles import (
    THREAD,
    WINDOW,
    Summaries,
    assert_folded_once,
    loop,
    request,
    transcript,
    worker,
)
from tests.support.doubles import result as result_of
from tests.support.folding import DIGEST, Recorder, node

# ---- E8


@pytest.mark.parametrize("state", [DeltaCompactionState, CompactionState])
@pytest.mark.parametrize("saver", ["memory", "sqlite"])
def test_e8_each_fork_sees_its_own_record(saver: str, state: Any, tmp_path: Path) -> None:
    """langgraph#8551: an update on an old checkpoint of a delta channel leaks across forks.

    Compact, fork before it, continue both: messages, record and view are each fork's own.
    """
    number = iter(range(100))

    def summarise(_: list[BaseMessage]) -> str:
        return DIGEST + f"\n## Findings\nFold {next(number)}."

    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as on_disk:
        keeper = on_disk if saver == "sqlite" else InMemorySaver()
        talk = Talk(node(summarise, clear=False), state=state, saver=keeper)
        talk.say(human("h"))
        before = talk.graph.get_state(talk.config).config
        for one in range(3):
            talk.say(*turn(one))
        main, main_end = talk.state, talk.graph.get_state(talk.config).config
        assert len(main["compaction"]["segments"]) == 3

        fork = talk.graph.update_state(before, {"messages": [human("other")]}, as_node="agent")
        forked = talk.graph.get_state(fork).values
        assert not forked["compaction"].get("segments")
        assert [m.id for m in forked["messages"] if m.text != "Noted."] == ["h", "other"]
        talk.say(*turn(7), config=fork)
        other = talk.state  # the newest checkpoint is the fork's
        assert len(other["compaction"]["segments"]) == 1
        assert "Fold 3." in str(other["compaction"])
        assert "a0" not in {m.id for m in other["messages"]}

        assert talk.graph.get_state(main_end).values == main
        talk.say(*turn(8), config=main_end)
        texts = [one["text"] for one in talk.record["segments"]]
        assert texts[:3] == [one["text"] for one in main["compaction"]["segments"]]
        assert len(texts) == 4
        assert not any(m.id in {"a7", "other"} for m in talk.state["messages"])


# ---- E9


class Bare(TypedDict):
    """Messages without ids, and repeated ones: a list that no reducer of messages passes."""

    messages: Annotated[list[AnyMessage], operator.add]
    compaction: Annotated[CompactionRecord, merge_compaction]


@pytest.mark.parametrize("ids", ["none", "reused"])
@each_graph
def test_e9_messages_without_ids_or_with_reused_ones_go_on(
    way: str, between: bool, ids: str
) -> None:
    """langmem: both raise on the second pass, and the thread is stuck.

    `H(1), AI(2), H(1), AI(4)…`: every message is folded once or shown, turn after turn.
    """
    asked = Recorder()
    talk = Talk(
        node(asked, clear=False, task=None), way=way, between=between, state=Bare,
        answer=lambda _: AIMessage("Noted.", id=None if ids == "none" else "2"),
    )  # fmt: skip
    for number in range(6):
        said = [human(f"first-{number}", 80), agent(f"second-{number}", words=80)]
        said.append(human(f"third-{number}", 80))
        for place, message in enumerate(said):
            message.id = None if ids == "none" else str(place % 2 + 1)
        talk.say(*said)
    assert len(asked.prompts) >= 3
    last = talk.record["last_summarized_index"]
    shown = [message.text for message in talk.compact.view(talk.state)]
    for index, message in enumerate(talk.state["messages"]):
        if message.text == "Noted.":
            continue
        folds = sum(message.text in prompt for prompt in asked.prompts)
        assert folds == int(message.text not in shown)
        assert index <= last or message.text in shown


# ---- E10


def test_e10_a_run_that_is_resumed_pays_for_no_second_summary() -> None:
    """langgraph#7780: a node runs again when the run is resumed, and the summary is billed again.

    The digest is committed with the visit, so that interrupts in later nodes cost nothing.
    """

    @tool
    def work(n: int) -> str:
        """Do step n."""
        return f"{result_of(n)} {interrupt(n)}"

    summaries = Summaries()
    compact = CompactionNode(summaries, context_window=WINDOW, clear=False)
    graph = loop(compact, worker(2), tools=[work], checkpointer=InMemorySaver())
    graph.invoke({"messages": [request(1, 24)]}, THREAD)
    while graph.get_state(THREAD).next:
        waiting = graph.get_state(THREAD).interrupts
        graph.invoke(Command(resume={one.id: "approved" for one in waiting}), THREAD)
    assert len(summaries.prompts) >= 2
    assert_folded_once(summaries.folded)


@each_way
def test_e10_within_one_visit_a_finished_summary_is_not_asked_for_twice(way: str) -> None:
    """langgraph#7780: as above, within the node: after a failing part, a veto, or a failing tier.

    The next visit goes on behind the parts that were finished.
    """
    prompts: list[list[BaseMessage]] = []

    def summarise(messages: list[BaseMessage]) -> str:
        prompts.append(messages)
        if len(prompts) in (3, 4, 5):
            raise ConnectionError("429")
        return DIGEST

    compact = node(
        [ModelTier(summarise, window=1_500), ModelTier(summarise, window=1_500)], clear=False
    )
    talk = Talk(compact, way=way)
    talk.say(
        *(m for n in range(8) for m in (human(f"h{n}", 60), agent(f"a{n}", words=60))), human("g")
    )
    assert talk.kinds[-2:] == ["failed", "completed"]
    for number in range(6):
        talk.say(human(f"later-{number}", 60))
    good = [transcript(one) for n, one in enumerate(prompts, 1) if n not in (3, 4, 5)]
    read = "\n".join(good)
    assert all(read.count(message.text) <= 1 for message in talk.state["messages"][1:-1:2])
    assert all(message.text in read for message in covered(talk)[1:])


@pytest.mark.parametrize("answer", [True, False])
def test_e10_a_hook_asks_a_person_before_the_summary_is_paid_for(
    answer: bool,
) -> None:
    """langgraph#7780: as above, where the node itself is interrupted, by its hook.

    It is asked before the summary, so that the second run of the node makes the only call.
    """
    asked = Recorder()

    def hook(event: dict[str, Any]) -> bool | None:
        return bool(interrupt("Fold?")) if event["type"] == "compaction.started" else None

    builder = StateGraph(CompactionState)
    builder.add_node("compact", node(asked, clear=False, hook=hook))
    builder.add_edge(START, "compact")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": history()}, THREAD)
    assert asked.prompts == []
    values = graph.invoke(Command(resume=answer), THREAD)
    assert bool(values["compaction"].get("segments")) is answer
    assert len(asked.prompts) == int(answer)


# ---- E11


@pytest.mark.parametrize(
    ("gone", "way"),
    [(place, ("invoke", "ainvoke")[n % 2]) for n, place in enumerate((0, 1, 4, 9, 13, 14, 15))],
)
def test_e11_a_message_may_be_deleted_after_a_fold(way: str, gone: int) -> None:
    """langmem, deepagents: it raises for ever, or the newest question is hidden.

    The position is found again; what is not covered is shown, and nothing is folded twice. Where
    all that was not covered is gone, it is the request before it that counts, and shows again.
    """
    asked = Recorder()
    talk = Talk(node(asked, clear=False, task=None), way=way)
    talk.say(*turn(0), *turn(1))
    talk.say(*turn(2))
    hidden = talk.hidden
    assert hidden >= {"h0", "a0", "r-c0", "b0"}
    name = talk.state["messages"][gone].id
    talk.graph.update_state(talk.config, {"messages": [RemoveMessage(id=name)]}, as_node="agent")
    again = {"h2", "a2", "r-c2", "b2"} if name == "g2" else set()
    assert talk.hidden == hidden - {name} - again
    view = talk.say(human("newest"))
    assert view[-1].id == "newest"
    for number in range(3, 6):
        assert talk.say(*turn(number))[-1].id == f"g{number}"
    for message in talk.state["messages"]:
        if message.text != "Noted.":
            assert asked.read.count(message.text) == int(message.id in talk.hidden)


@each_way
def test_e11_where_nothing_proves_what_is_covered_everything_is_shown(way: str) -> None:
    """deepagents: a cleared chat, or one that was rewritten under new ids.

    Nothing that is not provably covered is hidden, and nothing raises.
    """
    for others in ([human("fresh")], [human(f"new-{n}") for n in range(12)]):
        talk = Talk(node(clear=False), way=way)
        talk.say(*turn(0), *turn(1))
        assert talk.hidden
        every = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *others]
        talk.graph.update_state(talk.config, {"messages": every}, as_node="agent")
        assert talk.compact.view(talk.state) == others
        assert talk.say(human("newest"))[-1].id == "newest"


# ---- E12


class NoRecord(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class OptionalRecord(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    compaction: Annotated[CompactionRecord | None, merge_compaction]


@pytest.mark.parametrize("state", [NoRecord, OptionalRecord])
@each_graph
def test_e12_a_missing_channel_is_an_error_on_the_first_run(
    way: str, between: bool, state: Any
) -> None:
    """langmem: without the `context` key the same message is summarised 41 times, silently.

    The first run raises an error that names the annotation to write; no model is asked.
    """
    asked = Recorder()
    talk = Talk(node(asked), way=way, between=between, state=state)
    with pytest.raises(MissingChannelError, match="CompactionRecord, merge_compaction"):
        talk.say(HumanMessage("hi"))
    with pytest.raises(MissingChannelError, match="compaction"):
        model_view({"messages": [HumanMessage("hi")]})
    assert asked.prompts == []
    assert talk.views == []
