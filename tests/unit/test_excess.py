"""What a provider says of a call that was too long: that it was, and by how much."""

from collections.abc import Callable
from functools import reduce
from itertools import permutations
from typing import Any

import pytest
from langchain_core.exceptions import ModelRefusalError, OutputParserException
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from pydantic import BaseModel, ValidationError

from langgraph_compaction import BudgetError, CompactionNode, RecordError, merge_compaction
from langgraph_compaction.plan.excess import Excess, room_after, wrong_window
from langgraph_compaction.plan.policy import Policy
from langgraph_compaction.record import checked_record
from langgraph_compaction.run.overflow import excess_in
from langgraph_compaction.run.passing import copied
from tests.support.openai_server import (
    LOOKALIKES,
    OVERFLOWS,
    OpenAIServer,
    dropped,
    rate_limited,
    unauthorized,
)
from tests.support.openai_server.clients import ask

SAID = {
    "openai": (128_000, 192_041),
    "openai input": (272_000, 289_650),
    "azure": (32_768, 35_969),
    "llama.cpp": (100_096, 120_737),
    "llama.cpp 500": (256, None),
    "vllm": (2_048, 2_500),
    "vllm top": (16_384, 19_591),
    "sglang": (40_960, 61_709),
    "anthropic": (200_000, 211_180),
    "anthropic output": (204_648, None),
    "gemini": (1_048_576, 3_475_108),
    "gemini list": (1_048_576, 1_200_293),
    "mistral": (131_072, 159_202),
    "together": (4_097, 80_125),
    "deepseek": (65_536, 87_731),
    "cerebras": (40_000, 42_328),
    "xai": (131_072, 136_973),
    "openrouter": (262_000, 263_390),
    "openrouter 200": (131_072, 141_607),
    "lm studio": (4_096, 13_055),
    "moonshot": (262_144, 269_030),
    "dashscope": (983_616, None),
    "copilot": (64_000, 138_898),
    "litellm": (200_000, 209_303),
}
"""Limit and size of the call, for every shape whose text names them."""
TOO_LONG = ValueError("maximum context length is 8,192 tokens, and you requested about 9000")
AS_SAID = Excess(8_192, 9_000)


def raised(act: Callable[[], Any]) -> BaseException:
    """What an action raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # each test says which
        act()
    return caught.value


def call(server: OpenAIServer, case: Any) -> BaseException:
    server.answer(case)
    return raised(lambda: ask(server, "chat", "invoke"))


@pytest.mark.parametrize("shape", OVERFLOWS)
def test_the_numbers_of_every_provider(server: OpenAIServer, shape: str) -> None:
    excess = excess_in(call(server, OVERFLOWS[shape]))
    assert excess == Excess(*SAID.get(shape, (None, None)))


@pytest.mark.parametrize("shape", LOOKALIKES)
def test_a_lookalike_is_no_overflow(server: OpenAIServer, shape: str) -> None:
    assert excess_in(call(server, LOOKALIKES[shape])) is None


def from_cause() -> None:
    raise RuntimeError("the agent failed") from TOO_LONG


def in_context() -> None:
    try:
        raise TOO_LONG
    except ValueError:
        raise RuntimeError("the agent failed")  # noqa: B904  # as careless code does


def twice() -> None:
    try:
        from_cause()
    except RuntimeError as error:
        raise KeyError("agent") from error


def in_group() -> None:
    raise ExceptionGroup("both", [TOO_LONG, ExceptionGroup("inner", [raised(from_cause)])])


@pytest.mark.parametrize("act", [from_cause, in_context, twice, in_group])
def test_a_wrapped_overflow_is_found(act: Callable[[], None]) -> None:
    assert excess_in(raised(act)) == AS_SAID


def hidden() -> None:
    try:
        raise TOO_LONG
    except ValueError:
        raise RuntimeError("the agent failed") from None


def mixed_group() -> None:
    raise ExceptionGroup("both", [TOO_LONG, KeyError("x")])


def given_up() -> None:
    raise BudgetError("too large", sizes={}, limit=1) from TOO_LONG


def interrupted() -> None:
    try:
        raise TOO_LONG
    except ValueError:
        raise GraphInterrupt from None


def bubbles() -> None:
    raise GraphBubbleUp from TOO_LONG


def another_file() -> None:
    try:
        raise TOO_LONG
    except ValueError:
        open("/nowhere/at/all")  # noqa: PTH123, SIM115  # it raises


@pytest.mark.parametrize("act", [hidden, mixed_group, given_up, interrupted, bubbles, another_file])
def test_another_error_is_not_taken_for_one(act: Callable[[], None]) -> None:
    assert excess_in(raised(act)) is None


@pytest.mark.parametrize("case", [rate_limited(7), unauthorized(), dropped()])
def test_what_a_second_model_answers_after_an_overflow_is_no_overflow(
    server: OpenAIServer, case: Any
) -> None:
    def agent() -> None:
        try:
            raise TOO_LONG
        except ValueError:
            call_of_another()

    def call_of_another() -> None:
        server.answer(case)
        ask(server, "chat", "invoke")

    assert excess_in(raised(agent)) is None


def test_a_chain_that_goes_round_ends() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert excess_in(one) is None


def policy(**settings: Any) -> Policy:
    node = CompactionNode(lambda m: "", token_counter="estimate", **settings)
    return node._visits.at({"messages": [], "compaction": {}}).policy


WIDE = policy(context_window=1_000_000, trigger=("tokens", 200_000))  # a target of 120,000


@pytest.mark.parametrize(
    ("excess", "counted", "goal", "limit"),
    [
        # Nothing is named: 0.6 of what was refused; worth sending are nine tenths.
        (Excess(), 10_000, 6_000, 9_000),
        # The target is less.
        (Excess(), 300_000, 120_000, 270_000),
        # The provider's limit is less.
        (Excess(limit=8_192), 100_000, 4_915, 8_192),
        # It counts twice as many tokens as we do, or half as many.
        (Excess(limit=8_192, asked=20_000), 10_000, 2_457, 4_096),
        (Excess(limit=8_192, asked=9_000), 18_000, 9_830, 16_200),
        # No number of tokens: ten times off, or smaller than any window.
        (Excess(limit=8_192, asked=20_000_000), 10_000, 4_915, 8_192),
        (Excess(limit=12), 10_000, 6_000, 9_000),
        # A limit above what was sent says nothing.
        (Excess(limit=128_000), 10_000, 6_000, 9_000),
        (Excess(limit=8_192, asked=100), 10_000, 4_915, 8_192),
        (Excess(), 0, 1, 1),
    ],
)
def test_how_far_a_view_comes_down(excess: Excess, counted: int, goal: int, limit: int) -> None:
    room = room_after(excess, WIDE, counted)
    assert (room.goal, room.limit) == (goal, limit)
    assert room.most == max(1, int(counted * 0.9))


def test_a_window_smaller_than_the_view_is_a_limit_too() -> None:
    room = room_after(Excess(), policy(context_window=1_000), 100_000)
    assert (room.goal, room.limit, room.most) == (480, 1_000, 90_000)


@pytest.mark.parametrize(
    ("excess", "window", "said"),
    [
        (Excess(limit=8_192), 128_000, "'compact' goes by 128000"),
        (Excess(limit=8_192), None, "'compact' knows no window"),
        (Excess(limit=8_192), 8_192, None),
        (Excess(limit=128_000), 100_000, None),  # somebody wants a smaller one
        (Excess(limit=12), 128_000, None),
        (Excess(asked=9_000), 128_000, None),
    ],
)
def test_a_window_larger_than_the_providers_is_told(
    excess: Excess, window: int | None, said: str | None
) -> None:
    found = wrong_window(excess, window, node="compact")
    assert (found is None) == (said is None)
    if found is not None and said is not None:
        assert said in found
        assert found.endswith("Set context_window=8192.")


class OddError(Exception):
    """An error whose constructor takes something else than its arguments."""

    def __init__(self, code: int, *, body: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.body = body


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a", 1),
        OSError(2, "no such", "file"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "reason"),
        ExceptionGroup("several", [ValueError(1)]),
        BudgetError("large", sizes={"digest": 3}, limit=2),
        OddError(5, body="{}"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_is_passed_on_is_the_same_in_all_but_identity(error: Exception) -> None:
    error.add_note("a note")
    error.__cause__ = TOO_LONG
    known = raised(lambda: (_ for _ in ()).throw(error))
    found = copied(known)
    assert found is not known
    assert type(found) is type(known)
    assert (str(found), found.args, vars(found)) == (str(known), known.args, vars(known))
    assert found.__cause__ is TOO_LONG
    assert found.__traceback__ is known.__traceback__


@pytest.mark.parametrize("case", [rate_limited(7), unauthorized(), OVERFLOWS["openai"]])
def test_a_clients_error_that_is_passed_on(server: OpenAIServer, case: Any) -> None:
    error: Any = call(server, case)
    found: Any = copied(error)
    assert found is not error
    assert type(found) is type(error)
    assert (found.status_code, found.response, str(found)) == (
        error.status_code,
        error.response,
        str(error),
    )


class NumberedError(Exception):
    """An error that no copy says the same as."""

    def __str__(self) -> str:
        return str(id(self))


def test_an_error_that_no_copy_is_like_is_passed_on_itself() -> None:
    error = NumberedError()
    assert copied(error) is error


@pytest.mark.parametrize(
    "overflow",
    [
        None,
        [],
        "agent",
        {},
        {"node": "agent"},
        {"node": 1, "tokens": 2},
        {"node": "a", "tokens": "2"},
    ],
    ids=str,
)
def test_a_record_whose_reduction_cannot_be_read_is_refused(overflow: Any) -> None:
    with pytest.raises(RecordError, match="overflow"):
        checked_record({"overflow": overflow})


def test_a_reduction_is_merged_as_part_of_its_record() -> None:
    one: Any = {"revision": 1, "overflow": {"node": "one", "tokens": 10, "last_id": "m"}}
    two: Any = {"revision": 1, "overflow": {"node": "two", "tokens": 10, "last_id": "m"}}
    later: Any = {"revision": 2, "overflow": {"node": "one", "tokens": 5}}
    for order in permutations([one, two, later]):
        assert reduce(merge_compaction, order) is later
    assert merge_compaction(one, two) == merge_compaction(two, one) == two
    assert merge_compaction(one, {"epoch": 1}) == {"epoch": 1}


QUOTED = "The maximum context length of Llama 2 is 4096 tokens, so split the file."


class Answer(BaseModel):
    pages: int


def validated() -> Any:
    return Answer.model_validate({"pages": QUOTED})


def structured() -> None:
    """As `create_agent` does for an answer that does not fit its schema: in two steps."""
    try:
        try:
            validated()
        except ValidationError as error:
            raise ValueError(f"Failed to parse data to Answer: {error}") from error
    except ValueError as error:
        raise RuntimeError(f"Failed to parse structured output: {error}") from error


@pytest.mark.parametrize(
    "error",
    [
        OutputParserException(f"Invalid json output: {QUOTED}"),
        ToolException(QUOTED),
        ModelRefusalError(f"Model refused to produce the requested output: {QUOTED}"),
        validated,
        structured,
    ],
    ids=["parser", "tool", "refusal", "validator", "structured"],
)
def test_an_error_that_quotes_the_conversation_is_no_overflow(error: Any) -> None:
    def act() -> None:
        if isinstance(error, Exception):
            raise error
        error()

    assert excess_in(raised(act)) is None
