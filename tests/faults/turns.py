"""Turns of a thread that a node folds one after the other."""

from langchain_core.messages import BaseMessage

from tests.faults.threads import Talk, agent, human, result


def turn(number: int) -> list[BaseMessage]:
    """Messages of one turn, enough for a fold of the one before it."""
    return [
        human(f"h{number}", 60), agent(f"a{number}", f"c{number}", words=150),
        result(f"c{number}", 100), agent(f"b{number}"), human(f"g{number}"),
    ]  # fmt: skip


def covered(talk: Talk) -> list[BaseMessage]:
    """The messages up to the record's position."""
    last = talk.record.get("last_summarized_index", -1)
    return list(talk.state["messages"][: last + 1])
