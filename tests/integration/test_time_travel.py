"""Rewinds, forks and replays: each branch of a thread has its own record, digest and archive."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_compaction import edit_digest, forget
from tests.integration.travelling import Line, line, numbered
from tests.support.background import settle
from tests.support.doubles import THREAD

__all__ = ["line"]


def going_on(checkpoint: Any, text: str) -> Any:
    """What to run a graph with from a checkpoint on."""
    return None if checkpoint.next else {"messages": [HumanMessage(f"{text}: go on.")]}


def names(line: Line, config: Any) -> list[Any]:
    return [message.id for message in line.branch(config)]


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_checkpoint_shows_what_it_had_and_goes_on(line: Line, stride: int) -> None:
    line.ask(*numbered(1, 7))
    trunk = [one for one in line.checkpoints() if one.values.get("messages")]
    ends = [one.values["compaction"].get("last_summarized_index", -1) for one in trunk]
    assert len(set(ends)) > 1
    before = [line.values(one.config) for one in trunk]
    # A turn has four checkpoints.
    for number, checkpoint in enumerate(trunk[::stride]):
        assert line.faults(checkpoint.config) == []
        end = line.run(going_on(checkpoint, f"fork {number}"), checkpoint.config)
        assert line.faults(end) == []
        end = line.ask(f"more of {number}", f"still more of {number}", config=end)
        assert line.faults(end) == []
        known = names(line, checkpoint.config)
        assert names(line, end)[: len(known)] == known
    # None of it reached the trunk.
    assert [line.values(one.config) for one in trunk] == before
    assert [fault for one in trunk for fault in line.faults(one.config)] == []
    assert line.told == []


def test_two_forks_and_the_trunk_go_on_side_by_side(line: Line) -> None:
    line.ask(*numbered(1, 5))
    root = line.graph.get_state(THREAD).config
    ends = dict.fromkeys(("trunk", "east", "west"), root)
    for first in range(1, 10, 3):
        for name, end in ends.items():
            ends[name] = line.ask(*numbered(first, first + 2, name), config=end)
            assert line.faults(ends[name]) == []
    for name, end in ends.items():
        texts = [message.text for message in line.branch(end) if isinstance(message, HumanMessage)]
        expected = [*numbered(1, 5), *numbered(1, 9, name)]
        assert texts == [f"{text}: go on." for text in expected]
        assert line.faults(end) == []
    # Each was folded several times, and no message of its own twice in one branch.
    records = [line.values(end)["compaction"] for end in ends.values()]
    assert all(len(record["segments"]) > 1 for record in records)
    assert line.told == []
    for end in ends.values():
        assert line.ledger.read_twice(line.branch(end)[10:]) == []


@pytest.mark.parametrize("first", [False, True])
def test_no_fold_is_lost_where_one_of_two_visits_to_a_checkpoint_folds(first: bool) -> None:
    line = Line(InMemorySaver())

    def within(config: Any, enabled: bool) -> Any:
        settings = {"enabled": enabled}
        return {"configurable": {**config["configurable"], "compaction_settings": settings}}

    line.ask(*numbered(1, 5))
    root = line.ask("request-006", config=within(THREAD, first))
    assert bool(line.values(root)["compaction"]) == first
    (asked,) = [one for one in line.checkpoints()[-4:] if one.next == ("compact",)]
    fork = line.run(None, within(asked.config, not first))
    assert bool(line.values(fork)["compaction"]) != first
    # The visit after the one that did not fold finds no record, and folds.
    end = line.ask("more", "still more", config=fork if first else root)
    assert line.values(end)["compaction"]["segments"]
    assert line.faults(end) == []
    assert line.told == []


def test_what_is_folded_beside_one_branch_is_never_told_in_another() -> None:
    line = Line(InMemorySaver(), "background", settles=False)
    root = line.ask(*numbered(1, 4))
    ends = dict.fromkeys(("east", "west"), root)
    for number in range(1, 9):
        for name, end in ends.items():
            ends[name] = line.ask(f"{name}-{number:03}", config=end)
            assert line.faults(ends[name]) == []
    settle(line.compact)
    for name in ("east", "west"):
        for text in numbered(9, 11, name):
            ends[name] = line.ask(text, config=ends[name])
            assert line.faults(ends[name]) == []
        assert line.values(ends[name])["compaction"]["segments"]


def test_a_replay_leads_to_the_same_view_and_asks_for_no_fold_that_stands(line: Line) -> None:
    line.ask(*numbered(1, 7))
    for checkpoint in line.checkpoints():
        if checkpoint.next not in {("compact",), ("agent",)} or not checkpoint.values["messages"]:
            continue
        before = len(line.ledger.folds)
        views = []
        for _ in range(2):
            end = line.run(None, checkpoint.config)
            assert line.faults(end) == []
            # But for the answer itself.
            views.append([m.text for m in line.compact.view(line.values(end))[:-1]])
        if checkpoint.next == ("agent",):
            assert len(line.ledger.folds) == before
            assert views[0] == views[1]


def test_a_change_by_hand_is_of_its_branch_alone(line: Line) -> None:
    end = line.ask(*numbered(1, 8))
    values = line.values()
    edited = line.graph.update_state(end, edit_digest(values, "## Goal\nAs a person has it."))
    change: dict[str, Any] = {"store": line.store, "config": THREAD} if line.pruning else {}
    assert "As a person has it." in " ".join(m.text for m in line.compact.view(line.values(edited)))
    assert line.faults(end) == []
    on = line.ask(*numbered(9, 12), config=edited)
    assert "As a person has it." in " ".join(m.text for m in line.compact.view(line.values(on)))
    other = line.ask(*numbered(9, 12, "other"), config=end)
    assert "As a person has it." not in " ".join(
        m.text for m in line.compact.view(line.values(other))
    )
    assert line.faults(other) == []
    # What is forgotten in one is there in the other, unless its archive was deleted.
    forgotten = line.graph.update_state(other, forget(line.values(other), **change))
    assert "segments" not in line.values(forgotten)["compaction"]
    view = line.compact.view(line.values(on))
    assert line.ledger.covers(view) or line.pruning
    last = line.ask(*numbered(13, 16, "other"), config=forgotten)
    found = line.ledger.faults(line.values(last)["messages"], line.compact.view(line.values(last)))
    assert found == []
