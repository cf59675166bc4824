"""What parallel branches archived is found from the merged record, whichever of them won."""

from typing import Any

from langgraph_compaction import merge_compaction
from langgraph_compaction.heads import HEADS_REMEMBERED, continued, heads_of


def pruned(record: Any, head: str, last: int) -> Any:
    """The record after a fold up to a position, and a prune."""
    revision = record.get("revision", 0) + 1
    return continued({**record, "revision": revision, "last_summarized_index": last}, head)


def test_one_branch_after_another_has_one_head() -> None:
    record: Any = {}
    for number in range(HEADS_REMEMBERED * 2):
        later = pruned(record, f"k{number}", number)
        assert merge_compaction(record, later) is later
        assert heads_of(later) == (f"k{number}",)
        record = later
    assert len(record["archived_before"]) == HEADS_REMEMBERED - 1


def test_branches_side_by_side_leave_a_head_each_until_the_next_prune() -> None:
    base = pruned({}, "base", 5)
    east = pruned(pruned(base, "east1", 9), "east2", 14)
    west = pruned(base, "west", 8)
    merged = merge_compaction(merge_compaction(base, west), east)
    assert set(heads_of(merged)) == {"east2", "west"}
    others = {name for name in merged if not name.startswith("archived")}
    assert {name: merged[name] for name in others} == {name: east[name] for name in others}
    later = pruned(merged, "after", 20)
    # A branch that does not know the newest yet brings back nothing that it leads to.
    assert heads_of(merge_compaction(later, west)) == ("after",)
    assert merge_compaction(later, west) is later


def test_the_head_of_a_loser_is_kept_where_the_winner_has_none() -> None:
    loser, winner = pruned({}, "k", 5), {"revision": 1, "last_summarized_index": 9}
    assert heads_of(merge_compaction(winner, loser)) == ("k",)
    assert merge_compaction(winner, loser)["last_summarized_index"] == 9
    edited = {"epoch": 1, "revision": 1, "last_summarized_index": 2}
    assert heads_of(merge_compaction(edited, loser)) == ("k",)


def test_what_was_forgotten_is_not_brought_back() -> None:
    stale = pruned({}, "stale", 30)
    forgotten = {"epoch": 1, "revision": 2, "forgotten_epoch": 1}
    assert merge_compaction(forgotten, stale) is forgotten
    assert heads_of(merge_compaction(stale, pruned(forgotten, "new", 3))) == ("new",)


def test_an_entry_that_a_hand_wrote_wrongly_breaks_no_merge() -> None:
    odd = {"archived_also": ["x", "", "9" * 5_000 + "-", "y-k"], "last_summarized_index": 1}
    assert heads_of(odd) == ("k",)
    assert "new" in heads_of(merge_compaction(odd, pruned({}, "new", 3)))
    assert "again" in heads_of(pruned(odd, "again", 3))
