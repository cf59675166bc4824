"""What people write by the habits of other libraries is refused with the words to write instead."""

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph.prebuilt.chat_agent_executor import AgentState

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ConfigurationError,
    ExtractiveSummarizer,
    MissingChannelError,
    pin,
)


def node(**options: Any) -> CompactionNode:
    return CompactionNode(ExtractiveSummarizer(), **options)


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        ({"type": "user"}, "human"),
        ({"type": "assistant", "contains": "x"}, "ai"),
        ({"type": "developer"}, "system"),
        ({"role": "human"}, "human"),
        ({"role": "user", "name": "ann"}, "human"),
        ([{"type": "ai"}, {"role": "function"}], "tool"),
    ],
)
def test_a_role_of_a_provider_is_answered_with_the_type_of_the_message(
    rule: Any, meant: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        node(context_window=8_000, pinned=rule)
    assert str(caught.value).endswith(f'Did you mean {{"type": "{meant}"}}?')


@pytest.mark.parametrize("rule", [{"kind": "human"}, {"type": "robot"}, {"type": 7}, "human", [{}]])
def test_nothing_is_guessed_of_any_other_rule(rule: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a rule") as caught:
        node(context_window=8_000, pinned=rule)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "thing", ["x", {"role": "user", "content": "x"}, None, [HumanMessage("x")]]
)
def test_what_is_no_message_cannot_be_pinned(thing: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^pin: .* is no message"):
        pin(thing)


@pytest.mark.parametrize(
    ("name", "pair"), [("target", ("tokens", 1_500)), ("min_keep", ["messages", 4])]
)
def test_a_pair_where_a_number_stands_is_told_the_number(name: str, pair: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"Write the number alone: {name}={pair[1]}\.$"):
        node(context_window=8_000, **{name: pair})
    assert node(context_window=8_000, **{name: pair[1]})


def test_langmems_max_tokens_is_the_target_first() -> None:
    with pytest.raises(
        ConfigurationError, match="'max_tokens' is not a setting; here it is target"
    ):
        node(context_window=8_000, max_tokens=500)


UNKNOWN = ChatOpenAI.model_validate({"model": "of-my-own", "api_key": "unused"})


@pytest.mark.parametrize(
    ("agent_model", "name"),
    [
        (FakeListChatModel(responses=[]), "FakeListChatModel"),
        (UNKNOWN, "of-my-own"),
        ("gpt-0", "gpt-0"),
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"trigger": ("fraction", 0.5)},
        {"trigger": ("tokens", 9_000), "keep": ("fraction", 0.05)},
        {"trigger": ("tokens", 9_000), "reserve_tokens": 100},
    ],
)
def test_a_model_without_a_profile_is_named(
    agent_model: Any, name: str, values: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        node(agent_model=agent_model, **values)
    assert f"no profile of the agent_model '{name}'" in str(caught.value)
    assert "pass context_window=" in str(caught.value)
    assert node(agent_model=agent_model, context_window=128_000, **values)


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_create_react_agent_takes_a_subclass_of_its_own_state() -> None:
    def agent(state_schema: Any) -> Any:
        model = FakeListChatModel(responses=["Hi."])
        return create_react_agent(
            model, [], pre_model_hook=node(context_window=8_000), state_schema=state_schema
        )

    asked: Any = {"messages": [("user", "Hello.")]}
    with pytest.raises(MissingChannelError, match="in a subclass of its own AgentState"):
        agent(AgentState).invoke(asked)
    with pytest.raises(ValueError, match="remaining_steps"):
        agent(CompactionState)
