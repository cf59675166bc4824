"""Long synthetic threads with planted facts, deterministic by seed."""

import random
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import pin
from tests.benchmarks.survival import filler
from tests.benchmarks.survival.counting import text_tokens, tokens
from tests.benchmarks.survival.facts import Fact, Order, Planter, orders

USER_EVERY = 6
"""Every so many turns are a message of the user; the others are calls of the agent."""
LOOSE_SHARE = 0.75
"""Share of a round that is filled without looking at its length. The rest is filled with short
results, so that all rounds have nearly the same tokens."""


@dataclass(frozen=True, slots=True)
class History:
    """A thread.

    Attributes:
        rounds: the messages of each round. A round ends where the agent's model would be called.
        facts: all that is planted, in the order in which it is said.
        where: index of the message that holds a fact, counted over the thread, by its number.
    """

    rounds: tuple[tuple[BaseMessage, ...], ...]
    facts: tuple[Fact, ...]
    where: dict[int, int]


@dataclass
class _Turn:
    """A message of the user, or a call of the agent with its result."""

    user: bool
    said: list[str]
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    pinned: bool = False
    orders: list[Order] = field(default_factory=list)

    def size(self) -> int:
        return sum(map(text_tokens, [*self.said, *self.output]))


def build(seed: int, rounds: int, *, round_tokens: int, lead_tokens: int) -> History:
    """A thread of that many rounds.

    Args:
        seed: of everything in it.
        rounds: how many.
        round_tokens: tokens of a round at least; the last message goes over it.
        lead_tokens: more tokens of the first round: what is kept verbatim after each fold.
    """
    rng = random.Random(f"thread/{seed}")
    planter = Planter(rng)
    where: dict[int, int] = {}
    found: list[tuple[BaseMessage, ...]] = []
    start = 0
    for number in range(1, rounds + 1):
        goal = round_tokens + (lead_tokens if number == 1 else 0)
        turns = _turns(rng, number, goal)
        messages: list[BaseMessage] = []
        while not messages or tokens(messages) < goal:
            for turn in turns:
                messages += _written(turn, planter, where, start + len(messages))
            turns = [_turn(rng, 1, may_be_long=False)]
        found.append(tuple(messages))
        start += len(messages)
    return History(tuple(found), tuple(planter.facts), where)


def _turns(rng: random.Random, number: int, goal: int) -> list[_Turn]:
    turns: list[_Turn] = []
    while sum(turn.size() for turn in turns) < goal * LOOSE_SHARE:
        turns.append(_turn(rng, len(turns)))
    for order in orders(rng, number):
        if order.kind == "pin":
            turns.insert(rng.randint(1, len(turns)), _Turn(True, [], pinned=True, orders=[order]))
        elif order.place == "user":
            rng.choice([turn for turn in turns if turn.user and not turn.pinned]).orders.append(
                order
            )
        else:
            _calls(turns, order, rng).orders.append(order)
    if number == 1:  # the request that opens a thread says what must not be done
        turns[0].said.insert(0, filler.OPENING)
        turns[0].orders.append(Order("constraint", "user"))
    if turns[-1].user:
        turns.append(_turn(rng, 1))
    return turns


def _calls(turns: list[_Turn], order: Order, rng: random.Random) -> _Turn:
    """A turn with a call; facts in arguments each need a call of their own."""
    taken = order.place == "arguments"
    return rng.choice([
        turn
        for turn in turns
        if not (turn.user or (taken and any(one.place == "arguments" for one in turn.orders)))
    ])  # fmt: skip


def _turn(rng: random.Random, number: int, *, may_be_long: bool = True) -> _Turn:
    if number % USER_EVERY == 0:
        return _Turn(True, filler.sentences(rng, 2, 4))
    return _Turn(
        False,
        filler.sentences(rng, 1, 3),
        tool=rng.choice(filler.TOOLS),
        arguments={"what": rng.choice(filler.SUBJECTS)},
        output=filler.output(rng, may_be_long=may_be_long),
    )


def _written(turn: _Turn, planter: Planter, where: dict[int, int], start: int) -> list[BaseMessage]:
    """The turn's messages, its facts planted in the order of where they stand."""
    rng = planter.rng
    first: list[BaseMessage] = []
    if turn.user and start:
        first = [AIMessage(filler.sentence(rng), id=f"m{start}")]
    at = start + len(first)
    before = {"user": 0, "agent": 0, "arguments": 1, "result": 2}
    said = 0
    printed = 0
    for order in sorted(turn.orders, key=lambda one: before[one.place]):
        fact = planter.make(order)
        where[fact.number] = at + (order.place == "result")
        if order.place == "arguments":
            turn.tool, name = planter.call
            turn.arguments = {name: fact.value}
        elif order.place == "result":
            printed = rng.randint(printed, len(turn.output))
            turn.output.insert(printed, fact.sentence)
            printed += 1
        else:
            said = rng.randint(said, len(turn.said))
            turn.said.insert(said, fact.sentence)
            said += 1
    text = " ".join(turn.said)
    if turn.user:
        message = HumanMessage(text, id=f"m{at}")
        return [*first, pin(message) if turn.pinned else message]
    call = {"name": turn.tool, "args": turn.arguments, "id": f"c{at}"}
    answer = AIMessage(text, tool_calls=[call], id=f"m{at}")
    result = "\n".join(turn.output)
    return [answer, ToolMessage(result, name=turn.tool, tool_call_id=f"c{at}", id=f"m{at + 1}")]
