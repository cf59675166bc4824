"""In deepagents: under the name of its summarization middleware ours takes that one's place.

So docs/how-to/migrate.md has it. Their agents keep the messages in a delta channel, pass their
state on to subagents in a tool, and give a middleware of theirs that was replaced to the subagent
for general purposes as well.
"""

import asyncio
import warnings
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langgraph_compaction import create_recall_tool
from langgraph_compaction.middleware import CompactionMiddleware
from tests.support.beside import steady
from tests.support.doubles import (
    DIGEST_WORD,
    THREAD,
    WINDOW,
    ScriptedModel,
    Summaries,
    assert_folded_once,
    assert_valid,
    request,
    shows_digest,
    steps_done,
    work,
)
from tests.support.logs import warnings_in
from tests.support.migrating import backs

THEIRS = "SummarizationMiddleware"
ALL = list(range(1, 37))


def ours(summariser: Any, *, name: str = THEIRS, **options: Any) -> Any:
    """The middleware as the how-to guide has it."""
    rules = {"context_window": WINDOW, "clear": False, **options}
    return CompactionMiddleware(summariser, name=name, **rules)


class Deep:
    """A deep agent with the middleware, and what its models saw."""

    def __init__(
        self,
        *others: Any,
        model: Any = None,
        tools: Any = (work,),
        options: dict[str, Any] | None = None,
        **agent: Any,
    ) -> None:
        self.summaries = Summaries()
        self.events: list[dict[str, Any]] = []
        self.model = model or steady()
        rules = {"hook": self.events.append, **(options or {})}
        self.compaction = ours(self.summaries, **rules)
        self.agent: Any = create_deep_agent(
            self.model,
            list(tools),
            middleware=[*others, self.compaction],
            **{"checkpointer": InMemorySaver(), "system_prompt": "You are a worker.", **agent},
        )

    def run(self, given: Any, way: str = "invoke") -> dict[str, Any]:
        asked = {"messages": [request(*given)]} if isinstance(given, tuple) else given
        call = self.agent.invoke if way == "invoke" else self._later
        found: dict[str, Any] = call(asked, THREAD)
        return found

    def _later(self, given: Any, config: Any) -> Any:
        return asyncio.run(self.agent.ainvoke(given, config))

    def work(self, last: int = 36, way: str = "invoke") -> None:
        for step in range(1, last + 1, 12):
            self.run((step, min(step + 11, last)), way)

    @property
    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = self.agent.get_state(THREAD).values
        return values

    def answer(self, step: int) -> ToolMessage:
        found: ToolMessage = next(
            m
            for m in self.values["messages"]
            if isinstance(m, ToolMessage) and m.tool_call_id == f"c{step}"
        )
        return found

    def assert_sound(self, steps: list[int]) -> None:
        assert steps_done(self.values["messages"]) == steps
        assert len(self.values["compaction"]["segments"]) > 0
        assert_folded_once(self.summaries.folded)
        assert_valid(self.model.calls)
        assert any(shows_digest(call) for call in self.model.calls)
        assert not any(event["type"] == "compaction.failed" for event in self.events)


each_way = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


@each_way
def test_the_middleware_takes_the_place_of_deepagents_own(way: str) -> None:
    deep = Deep()
    deep.work(way=way)
    deep.assert_sound(ALL)
    assert [node for node in deep.agent.nodes if THEIRS in node] == [f"{THEIRS}.before_model"]
    assert "_summarization_event" not in deep.values
    assert len(deep.summaries.prompts) > 1


def test_streams_have_the_agents_words_alone() -> None:
    deep = Deep()
    parts: list[Any] = list(
        deep.agent.stream(
            {"messages": [request(1, 36)]},
            THREAD,
            stream_mode=["messages", "updates"],
            version="v2",
        )
    )
    assert len(deep.summaries.prompts) > 1
    said = [part["data"][0].text for part in parts if part["type"] == "messages"]
    assert said
    assert not any(DIGEST_WORD in text for text in said)
    written = [p["data"][f"{THEIRS}.before_model"] for p in parts if p["type"] == "updates"
                  and f"{THEIRS}.before_model" in p["data"]]  # fmt: skip
    assert {key for update in written for key in update or {}} == {"compaction"}


@each_way
def test_file_tools_of_deepagents_work_on(way: str) -> None:
    text = "The pump runs at 10 rpm."
    said = {
        2: ("write_file", {"file_path": "/pump.txt", "content": text}),
        20: ("edit_file", {"file_path": "/pump.txt", "old_string": "10", "new_string": "12"}),
        30: ("read_file", {"file_path": "/pump.txt"}),
    }
    deep = Deep(model=steady(said))
    deep.work(way=way)
    deep.assert_sound([step for step in ALL if step not in said])
    assert "12 rpm" in deep.answer(30).text
    assert list(deep.values["files"]) == ["/pump.txt"]
    # What it did to files is told by the digest.
    assert any("/pump.txt" in one["text"] for one in deep.values["compaction"]["segments"])


@backs("deepagents", theirs="todos", here="live_state")
def test_to_dos_are_shown_by_live_state() -> None:
    todos = [{"content": "paint the part", "status": "in_progress"}]
    deep = Deep(
        TodoListMiddleware(),
        model=steady({3: ("write_todos", {"todos": todos})}),
        options={"live_state": "todos"},
    )
    deep.work()
    deep.assert_sound([step for step in ALL if step != 3])
    assert deep.values["todos"] == todos
    last = deep.model.calls[-1]
    assert sum("paint the part" in m.text for m in last if isinstance(m, HumanMessage)) == 1


@each_way
def test_a_person_decides_by_interrupt_on(way: str) -> None:
    deep = Deep(interrupt_on={"work": True})
    for step in (1, 13, 25):
        deep.run((step, step + 11), way)
        while waiting := deep.agent.get_state(THREAD).interrupts:
            answers = [{"type": "approve"} for _ in waiting[0].value["action_requests"]]
            deep.run(Command(resume={"decisions": answers}), way)
    deep.assert_sound(ALL)


@backs("deepagents", theirs="backend", here="create_recall_tool")
def test_what_was_pruned_is_in_the_store_and_can_be_looked_up() -> None:
    said = {34: ("recall", {"first": 1, "last": 2})}
    deep = Deep(
        model=steady(said),
        tools=[work, create_recall_tool()],
        options={"history": "prune", "recall_tool": "recall"},
        store=InMemoryStore(),
    )
    deep.work()
    values = deep.values
    assert values["compaction"]["pruned"]
    assert len(values["messages"]) < 40
    assert "result-0001" in deep.answer(34).text
    assert_folded_once(deep.summaries.folded)
    assert_valid(deep.model.calls)


# ---- subagents


def delegating(subagent: str, at: tuple[int, ...] = (3, 20, 30)) -> tuple[Any, dict[int, Any]]:
    """An agent that lets another one do forty steps, at each of these steps."""
    task = {"description": "Do steps 101 to 140.", "subagent_type": subagent}
    said = dict.fromkeys(at, ("task", task))
    return steady(said), said


def asked_of_it(summaries: Summaries) -> list[str]:
    """Markers that a summariser read of the work of subagents."""
    return [name for name in summaries.folded if name[-4:] > "0100"]


@each_way
def test_the_general_purpose_subagent_has_it_too_with_a_record_of_its_own(way: str) -> None:
    model, said = delegating("general-purpose")
    deep = Deep(model=model)
    deep.work(way=way)
    steps = [step for step in ALL if step not in said]
    assert steps_done(deep.values["messages"]) == steps
    # Each of its runs folds its own messages; none of that comes into the thread.
    assert len(asked_of_it(deep.summaries)) == 3 * len(set(asked_of_it(deep.summaries))) > 0
    assert_folded_once([name for name in deep.summaries.folded if name[-4:] < "0100"])
    assert deep.values["compaction"]["last_summarized_index"] < len(deep.values["messages"])
    assert not any(event["type"] == "compaction.failed" for event in deep.events)
    assert_valid(model.calls)


@each_way
def test_a_declared_subagent_keeps_deepagents_own(way: str) -> None:
    model, said = delegating("fitter")
    fitter: Any = {"name": "fitter", "description": "Fits.", "system_prompt": "You fit."}
    deep = Deep(model=model, subagents=[fitter])
    deep.work(way=way)
    deep.assert_sound([step for step in ALL if step not in said])
    assert asked_of_it(deep.summaries) == []


@each_way
def test_a_declared_subagent_may_have_the_middleware(way: str) -> None:
    model, said = delegating("fitter")
    its = Summaries()
    fitter: Any = {
        "name": "fitter",
        "description": "Fits.",
        "system_prompt": "You fit.",
        "middleware": [ours(its)],
    }
    deep = Deep(model=model, subagents=[fitter])
    deep.work(way=way)
    deep.assert_sound([step for step in ALL if step not in said])
    assert asked_of_it(deep.summaries) == []
    assert len(asked_of_it(its)) == 3 * len(set(asked_of_it(its))) > 0


def test_a_subagent_alone_may_have_the_middleware() -> None:
    model, _ = delegating("fitter")
    its = Summaries()
    fitter: Any = {
        "name": "fitter",
        "description": "Fits.",
        "system_prompt": "You fit.",
        "middleware": [ours(its)],
    }
    agent: Any = create_deep_agent(model, [work], subagents=[fitter], checkpointer=InMemorySaver())
    state = agent.invoke({"messages": [request(1, 6)]}, THREAD)
    assert "compaction" not in state
    assert_folded_once(its.folded)
    assert_valid(model.calls)


def test_a_fork_goes_on_with_the_digest_and_leaves_the_threads_record_alone() -> None:
    model, said = delegating("fitter", at=(30,))
    fitter: Any = {"name": "fitter", "description": "Fits.", "mode": "fork"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: forks are in beta
        deep = Deep(model=model, subagents=[fitter])
    deep.work(24)
    before = list(deep.summaries.folded)
    deep.run((25, 36))
    values = deep.values
    assert steps_done(values["messages"]) == [step for step in ALL if step not in said]
    assert_valid(model.calls)
    forked = [call for call in model.calls if "101 to 140" in call[-1].text]
    assert forked
    assert shows_digest(forked[0])
    # What the digest had covered is not folded again by either; the rest each folds for itself.
    assert_folded_once(before)
    assert set(before).isdisjoint(deep.summaries.folded[len(before) :])
    assert asked_of_it(deep.summaries)
    assert values["compaction"]["last_summarized_index"] < len(values["messages"])
    covered = {message.id for message in values["messages"]}
    assert values["compaction"]["last_summarized_id"] in covered


# ---- beside theirs


def summarising(model: Any) -> Any:
    """A model of a small window, which deepagents' middleware lets write its summaries."""
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if len(messages) == 1 and "<messages>" in messages[0].text:
            return AIMessage("SUMMARY-BY-THEM")
        answer: AIMessage = working(messages)
        return answer

    return ScriptedModel(reply=reply, profile={"max_input_tokens": 6_000})


@each_way
def test_under_a_name_of_its_own_both_summarise_and_that_is_told(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    deep = Deep(
        model=summarising(steady()),
        options={"name": "compaction", "context_window": 100_000},
    )
    for step in range(1, 90, 2):
        deep.run((step, step + 1), way)
    assert deep.values["_summarization_event"]
    told = warnings_in(caplog, "summarises the thread, too")
    assert len(told) == 1
    assert 'name="SummarizationMiddleware"' in told[0]
