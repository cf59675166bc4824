"""Beside middlewares that stand around the call of the agent's model.

Those before ours in the list get all messages; those after it get the view.
"""

import warnings
from typing import Any

import pytest
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallResult,
    ModelChoice,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    ModelRouterMiddleware,
    ProviderToolSearchMiddleware,
    dynamic_prompt,
    wrap_model_call,
)
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from pydantic import Field

from langgraph_compaction import create_recall_tool
from tests.support.beside import Beside, Decides, beside, human_texts, steady
from tests.support.doubles import DIGEST_WORD, ScriptedModel, shows_digest, work
from tests.support.logs import warnings_in

ALL = list(range(1, 37))


@beside(ContextEditingMiddleware, ClearToolUsesEdit)
def test_results_are_cleared_in_what_ours_reads_or_in_the_view(first: bool, way: str) -> None:
    edit = ClearToolUsesEdit(trigger=300, keep=1, placeholder="[cleared]")
    run = Beside(ContextEditingMiddleware(edits=[edit]), first=first, options={"clear": False})
    run.work(way=way)
    run.assert_sound(ALL)
    last = run.calls[-1]
    assert shows_digest(last)
    assert sum(m.text == "[cleared]" for m in last if isinstance(m, ToolMessage)) > 1
    # The summariser reads the originals either way: it works on the state.
    assert not any("[cleared]" in prompt[-1].text for prompt in run.summaries.prompts)


def failing(model: Any, *, every: int = 1) -> Any:
    """A model whose calls fail, all of them or each n-th."""
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if len(model.calls) % every == 0:
            raise ConnectionError("The provider is down.")
        answer: AIMessage = working(messages)
        return answer

    model.reply = reply
    return model


@beside(ModelFallbackMiddleware)
def test_a_fallback_gets_the_view(first: bool, way: str) -> None:
    other = steady()
    run = Beside(ModelFallbackMiddleware(other), first=first, model=failing(steady()))
    run.work(way=way)
    run.assert_sound(ALL, calls=other.calls)
    assert len(other.calls) == len(run.calls)
    assert [list(map(repr, call)) for call in other.calls] == [
        list(map(repr, call)) for call in run.calls
    ]


@beside(ModelRetryMiddleware)
def test_a_retry_makes_the_same_call(first: bool, way: str) -> None:
    again = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    run = Beside(again, first=first, model=failing(steady(), every=2))
    run.work(way=way)
    run.assert_sound(ALL)
    tried = [[message.id for message in call] for call in run.calls]
    # The first call succeeds, and so does each that was made again.
    pairs = list(zip(tried[1::2], tried[2::2], strict=False))
    assert len(pairs) > 30
    assert all(failed == made_again for failed, made_again in pairs)


@beside(ModelRefusalMiddleware)
def test_a_refusal_is_an_error_that_the_thread_survives(first: bool, way: str) -> None:
    model, refuses = steady(), [False]
    working = model.reply

    def reply(messages: list[BaseMessage]) -> AIMessage:
        if refuses[0]:
            # Its words are the model's: they must not be taken for a provider's overflow.
            said = "I must not: the prompt is too long for the model's maximum context length."
            return AIMessage([{"type": "refusal", "refusal": said}])
        answer: AIMessage = working(messages)
        return answer

    model.reply = reply
    run = Beside(ModelRefusalMiddleware(), first=first, model=model)
    run.work(24, way)
    refuses[0], calls = True, len(model.calls)
    with pytest.raises(ModelRefusalError, match="I must not"):
        run.ask("Do steps 25 to 26.", way)
    assert len(model.calls) == calls + 1
    refuses[0] = False
    run.run((25, 36), way)
    run.assert_sound(ALL)


@beside(ModelRouterMiddleware, ModelChoice)
def test_a_routed_model_gets_the_view(first: bool, way: str) -> None:
    asked: list[str] = []

    def route(state: Any) -> dict[str, Any]:
        asked.append(state.text)
        name = "large" if state.text.startswith("Do steps 13") else "small"
        return {"type": "choice", "choice": name, "probabilities": {name: 1.0}, "confidence": 1.0}

    small, large = steady(), steady()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangChain's, once in a process: it is in beta
        router = ModelRouterMiddleware(
            choices={
                "small": ModelChoice(model=small, criteria="Easy steps."),
                "large": ModelChoice(model=large, criteria="Hard steps."),
            },
            instructions="Who does it?",
            classifier=Decides(answer=route),
        )
    run = Beside(router, first=first)
    run.work(way=way)
    run.assert_sound(
        ALL, calls=[*small.calls, *large.calls], wrote=["ModelRouterMiddleware.before_agent"]
    )
    assert asked == ["Do steps 1 to 12.", "Do steps 13 to 24.", "Do steps 25 to 36."]
    assert (len(small.calls), len(large.calls), len(run.calls)) == (26, 13, 0)


class Binding(ScriptedModel):
    """Remembers the tools that it was given."""

    bound: list[Any] = Field(default_factory=list)
    provider: str = "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Binding":
        self.bound.append(list(tools))
        return self

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": self.provider}


class Selecting(ScriptedModel):
    """Selects the tool "work", and remembers by which message."""

    asked: list[str] = Field(default_factory=list)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        def select(messages: Any) -> dict[str, Any]:
            self.asked.append(messages[-1].text)
            return {"tools": ["work"]}

        return RunnableLambda(select)


@tool
def rest(hours: int) -> str:
    """Rest for some hours."""
    return f"{hours} hours"


def selected(first: bool, way: str, **options: Any) -> tuple[Beside, Selecting]:
    """A run with a selector of tools, and what that was asked."""
    selects = Selecting(reply=lambda _: AIMessage(""))
    run = Beside(
        LLMToolSelectorMiddleware(model=selects),
        first=first,
        model=steady(model=Binding),
        tools=[work, rest],
        options=options,
    )
    run.work(way=way)
    run.assert_sound(ALL)
    assert {tuple(one.name for one in tools) for tools in run.model.bound} == {("work",)}
    return run, selects


@beside(LLMToolSelectorMiddleware)
def test_selected_tools_are_those_of_the_call(first: bool, way: str) -> None:
    _, selects = selected(first, way, digest_role="system")
    assert {text.partition(".")[0] for text in selects.asked} == {
        f"Do steps {step} to {step + 11}" for step in (1, 13, 25)
    }


def test_a_selector_behind_ours_may_take_the_digest_for_the_users_message() -> None:
    """What docs/how-to/create-agent-middleware.md warns of: it stands behind the request."""
    selects = Selecting(reply=lambda _: AIMessage(""))
    for first, wrong in ((True, False), (False, True)):
        selects.asked.clear()
        run = Beside(LLMToolSelectorMiddleware(model=selects), first=first)
        run.run((1, 36))
        assert any(DIGEST_WORD in text for text in selects.asked) is wrong


@pytest.mark.parametrize("always", [True, False])
def test_a_selector_has_to_leave_the_recall_tool_in(
    always: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Placeholders name it in every call; one without it is told in the log, once."""
    selects = Selecting(reply=lambda _: AIMessage(""))
    given = {"always_include": ["recall"]} if always else {}
    run = Beside(
        LLMToolSelectorMiddleware(model=selects, **given),
        first=True,
        tools=[work, create_recall_tool()],
        options={"recall_tool": "recall"},
    )
    run.work()
    run.assert_sound(ALL)
    told = warnings_in(caplog, "recall_tool:")
    assert len(told) == (0 if always else 1)


@beside(ProviderToolSearchMiddleware)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_tools_that_a_provider_searches_stay_deferred(
    first: bool, way: str, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    search = ProviderToolSearchMiddleware(searchable_tools=["rest"])
    run = Beside(
        search,
        first=first,
        model=steady(model=Binding, provider=provider),
        tools=[work, rest],
        options={"protected_tools": ["rest"]},
    )
    run.work(way=way)
    run.assert_sound(ALL)
    for tools in run.model.bound:
        assert [one.name for one in tools[:2]] == ["work", "rest"]
        assert tools[1].extras == {"defer_loading": True}
        assert "tool_search" in tools[2]["type"]
    assert warnings_in(caplog) == []


@beside(dynamic_prompt)
def test_a_prompt_for_each_call_stands_in_front(first: bool, way: str) -> None:
    seen: list[int] = []

    @dynamic_prompt
    def prompt(asked: ModelRequest) -> str:
        seen.append(len(asked.messages))
        return f"Work well, with {len(asked.state['messages'])} messages."

    run = Beside(prompt, first=first)
    run.work(way=way)
    run.assert_sound(ALL)
    assert all(call[0].text.startswith("Work well, with") for call in run.calls)
    assert (max(seen) > 60) is first


@beside(wrap_model_call, ModelRequest)
def test_what_a_wrapper_puts_into_a_call_is_in_that_call_alone(first: bool, way: str) -> None:
    """It has no id and is not in the state; the record still finds its place among the others."""

    def noted(asked: ModelRequest) -> ModelRequest:
        note, hint = HumanMessage("NOTE of the application."), HumanMessage("HINT at the end.")
        at = 1 if isinstance(asked.messages[0], HumanMessage) else 0
        return asked.override(messages=[*asked.messages[:at], note, *asked.messages[at:], hint])

    @wrap_model_call
    def adds(asked: ModelRequest, handler: Any) -> ModelCallResult:
        return handler(noted(asked))

    @wrap_model_call
    async def aadds(asked: ModelRequest, handler: Any) -> ModelCallResult:
        return await handler(noted(asked))

    model = steady()
    run = Beside(adds if way == "stream" else aadds, first=first, model=model)
    run.work(way=way)
    run.assert_sound(ALL)
    for call in run.calls:
        texts = human_texts(call)
        assert texts.count("HINT at the end.") == 1
        assert call[-1].text == "HINT at the end."
        # It is shown wherever nothing covers it, and never part of a digest.
        assert texts.count("NOTE of the application.") == 1
    assert not any("NOTE" in prompt[-1].text for prompt in run.summaries.prompts)
    assert not any("NOTE" in text for text in human_texts(run.messages))


@beside(wrap_model_call)
def test_a_wrapper_may_answer_in_the_models_place(first: bool, way: str) -> None:
    def cached(asked: ModelRequest) -> AIMessage | None:
        return AIMessage("From the cache.") if "cached" in asked.messages[-1].text else None

    @wrap_model_call
    def answers(asked: ModelRequest, handler: Any) -> ModelCallResult:
        return cached(asked) or handler(asked)

    @wrap_model_call
    async def aanswers(asked: ModelRequest, handler: Any) -> ModelCallResult:
        return cached(asked) or await handler(asked)

    run = Beside(answers if way == "stream" else aanswers, first=first)
    run.work(24, way)
    calls = len(run.calls)
    run.run({"messages": [HumanMessage("The cached one.")]}, way)
    assert (len(run.calls), run.messages[-1].text) == (calls, "From the cache.")
    run.run((25, 36), way)
    run.assert_sound(ALL)
