"""Beside middlewares before ours that change the messages of a request.

LangChain's own example puts what an agent should know into each request, as a dict. The state never
has it. So the record, which knows the state alone, must find its place all the same: else the
digest that was paid for is not shown, and calls are refused that would have fitted.
"""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraph_compaction.plan.counting import token_counter
from tests.support.beside import WAYS, Beside, human_texts, steady
from tests.support.doubles import WINDOW, ScriptedModel, shows_digest
from tests.support.logs import warnings_in

ALL = list(range(1, 37))
Change = Callable[[list[Any]], list[Any]]


class Changes(AgentMiddleware[Any, Any]):
    """Makes something else of the messages of each request."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=self.change(list(request.messages))))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=self.change(list(request.messages))))


def noted(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def at(place: int, note: Any) -> Change:
    """One note before the message of that index, or before the newest at most."""
    return lambda messages: [*messages[:place], note, *messages[place:]]


CHANGES: dict[str, Change] = {
    "in front": at(0, HumanMessage("NOTE")),
    "in front, with an id": at(0, HumanMessage("NOTE", id="note")),
    "in front, another each time": lambda messages: [
        HumanMessage(f"NOTE {len(messages)}"),
        *messages,
    ],
    "a system message in front": at(0, SystemMessage("NOTE")),
    "a dict in front": at(0, noted("NOTE")),
    "a tuple in front": at(0, ("user", "NOTE")),
    "a dict behind the first": at(1, noted("NOTE")),
    "a dict at the end": lambda messages: [*messages, noted("NOTE")],
    "without ids": lambda messages: [
        HumanMessage("NOTE"),
        *(message.model_copy(update={"id": None}) for message in messages),
    ],
    "users as dicts": lambda messages: [
        noted("NOTE"),
        *(noted(m.text) if isinstance(m, HumanMessage) else m for m in messages),
    ],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_note_in_each_request_leaves_the_digest_where_it_is(change: str, way: str) -> None:
    run = Beside(Changes(CHANGES[change]), first=True)
    run.work(way=way)
    run.assert_sound(ALL)
    count = token_counter("estimate").messages
    assert max(map(count, run.calls)) < WINDOW
    for call in run.calls:
        assert sum(message.text.startswith("NOTE") for message in call) == 1
    assert not any("NOTE" in text for text in human_texts(run.messages))
    assert not any("NOTE" in prompt[-1].text for prompt in run.summaries.prompts)


@pytest.mark.parametrize("roles", ["any", "alternating"])
@pytest.mark.parametrize("live", [None, "todos"])
def test_dicts_are_messages_to_every_setting(roles: str, live: str | None) -> None:
    calls = ("a dict in front", "a dict behind the first", "a tuple in front")
    for change in calls:
        run = Beside(
            Changes(CHANGES[change]), first=True, options={"roles": roles, "live_state": live}
        )
        run.work()
        assert all(isinstance(m, BaseMessage) for call in run.calls for m in call)
        assert shows_digest(run.calls[-1])


def refusing(limit: int) -> ScriptedModel:
    """A model whose window is smaller than the node was told."""
    model, count = steady(), token_counter("estimate").messages
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        size = count(messages)
        if size > limit:
            raise ContextOverflowError(
                f"This model's maximum context length is {limit} tokens. However, you requested "
                f"{size} tokens."
            )
        answer: AIMessage = working(messages)
        return answer

    model.reply = reply
    scripted: ScriptedModel = model
    return scripted


@pytest.mark.parametrize("way", WAYS)
def test_a_reduction_commits_although_a_note_stands_in_the_request(way: str) -> None:
    note = at(0, HumanMessage("NOTE"))
    run = Beside(
        Changes(note),
        first=True,
        model=refusing(1_500),
        options={"trigger": ("tokens", 5_000), "context_window": 9_000},
    )
    run.work(24, way)
    refused = [e for e in run.events if e["type"] == "compaction.started"]
    assert refused
    # One refusal, one reduction: the next call begins with what it left.
    assert len(run.calls) - 26 == len(refused) < 6
    assert run.values["compaction"]["overflow"]["node"] == "model"
    assert all(sum(m.text == "NOTE" for m in call) == 1 for call in run.calls)


@pytest.mark.parametrize("way", WAYS)
def test_a_request_of_other_messages_is_told_once_and_shown(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Rewritten without their ids, they are not the state's any more, whatever they are made of."""

    def rewritten(messages: list[Any]) -> list[Any]:
        return [HumanMessage(f"Rewritten: {message.text}") for message in messages]

    model = ScriptedModel(reply=lambda messages: AIMessage("Seen. " + "well " * 40))
    run = Beside(Changes(rewritten), first=True, model=model)
    for number in range(40):
        run.run({"messages": [HumanMessage(f"Look at {number}. " + "now " * 40)]}, way)
    assert run.values["compaction"]["segments"]
    (told,) = warnings_in(caplog, "keep the ids")
    assert "before this one" in told
    last = [message.text for message in run.calls[-1][1:]]
    assert last == [f"Rewritten: {message.text}" for message in run.messages[:-1]]
